"""The users of a contract, and the version that they use: listed consumers, gates, code, blocks."""
