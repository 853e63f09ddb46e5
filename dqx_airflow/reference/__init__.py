"""The reference engine: plans computed in plain Python over small tables in memory.

It is slow and simple on purpose. What it finds is what Spark finds; the tests hold both to it.
"""
