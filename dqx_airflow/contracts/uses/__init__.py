"""Who uses a contract, and which version: consumers that it lists, gates, code, blocks."""
