"""Thresholds that get better under human control: tunables, their history, what protects a suite.

Pure Python over the language and the plan; where results are stored, it does not know.
"""
