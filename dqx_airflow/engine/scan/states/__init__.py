"""Partial results of earlier runs: when they may be reused, and how they grow with new files.

`fingerprints` decides whether a stored state is about the same bytes, read in the same way; nothing
else may.
"""
