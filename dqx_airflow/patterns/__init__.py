"""Regular expressions of `matches` and of contracts: what they mean, and what they cost."""
