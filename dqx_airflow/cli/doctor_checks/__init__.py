"""The checks of `dql doctor`: each is a small function that yields a `Finding`.

The standard library only, at import. What Airflow knows is asked of its own command in a
subprocess, since this house does not import Airflow.
"""
