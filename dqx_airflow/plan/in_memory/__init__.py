"""The reference engine: plans computed in plain Python over small tables in memory.

It is slow and simple on purpose. Its results equal those of Spark; the tests check both.
"""
