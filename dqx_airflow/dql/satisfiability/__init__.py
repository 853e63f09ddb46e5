"""Assertions whose outcome is certain before any data is read: never true (E104), always true
(W008)."""
