"""Assertions whose outcome is certain before any data is read: never true (E104), always (W008)."""
