"""DataLex: blocks that say which contract they implement, and whether they do (seed 000)."""
