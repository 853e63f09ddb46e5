"""The results store: Delta tables under one root, written by gates and read by everyone else.

It relies on deltalake and pyarrow, never on Spark: an Airflow worker reads reports without a JVM.
"""
