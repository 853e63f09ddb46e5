"""Improves thresholds under human control: tunables, their history, and the protection of suites.

Pure Python over the language and the plan; independent of how results are stored.
"""
