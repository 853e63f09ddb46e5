"""Datasets and connections as users describe them, and the log of a Delta table.

`settings` turns the settings of a DAG, of `dqx.toml` or of Python into `DatasetRef`s, and finds
mistakes in them. `connections` reads the addresses of Spark and of databases, `dqx_toml` the file
`dqx.toml`, and `reader_options` the options of Spark's readers. `delta_log` reads the log of a
Delta table. No module here reads the rows of a table.
"""
