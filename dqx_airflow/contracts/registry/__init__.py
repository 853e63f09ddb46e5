"""The registry of contracts: their published versions, in a folder or in a Delta table."""
