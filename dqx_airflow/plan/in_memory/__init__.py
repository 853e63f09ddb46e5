"""The reference engine: plans computed in Python, without Spark, over small tables in memory.

It is slow and simple on purpose. Its results equal Spark's; the tests check both.
"""
