"""From a checked suite to the values to compute, and from metric values to verdicts.

Pure Python: no Spark, no clock. The date, the datasets and the metric values are arguments.
"""
