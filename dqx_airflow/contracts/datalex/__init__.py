"""DataLex: blocks that name the contract they implement, and whether they do (seed 000)."""
