"""The checks of `dql doctor`: each is a small function that yields a `Finding`.

Imports only the standard library at first. Airflow is queried by its own command in a subprocess,
since this package does not import Airflow.
"""
