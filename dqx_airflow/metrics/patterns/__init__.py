"""Regular expressions of `matches` and of contracts: their meaning, and their cost."""
