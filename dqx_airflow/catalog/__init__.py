"""What tables tell of the contracts that they are under: properties, comments, and their SQL."""
