"""The results store: Delta tables under one root, written by gates and read by everything else.

It uses deltalake and pyarrow, never Spark: an Airflow worker reads reports without a JVM.
"""
