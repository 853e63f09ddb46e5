"""Datasets as users describe them: settings, reader options, locations and databases.

`settings` turns the settings of a DAG, of `dqx.toml` or of Python into `DatasetRef`s, and finds
mistakes in them; each of the other modules covers one kind of setting. Nothing here reads data.
"""
