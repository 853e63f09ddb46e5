"""What a dataset is as users write it: its settings, reader options, locations and databases.

`settings` turns the settings of a DAG, of `dqx.toml` or of Python into `DatasetRef`s, and finds
mistakes in them; the other modules know one kind of setting each. Nothing here reads data.
"""
