"""Partial results of earlier runs: when they may be reused, and how they grow with new files.

Only `fingerprints` decides whether a stored state describes the same bytes, read in the same way.
"""
