"""Contracts: five dialects read into one model, which is compiled to a DQL suite.

Text in, plain values out: no Spark, no Airflow, no clock. The callers read files.
"""
