"""From a checked suite to what has to be computed, and from metric values to verdicts.

Pure Python: no Spark, no clock. The date, the datasets and the metric values are arguments.
"""
