"""Datasets and connections as users describe them, and the log of a Delta table.

Enter at `settings`: it turns the settings of a DAG, of `dqx.toml` or of Python into `DatasetRef`s.
`settings_check` finds mistakes in them before anything is read, and `delta_log` reads the log of a
Delta table. No module here reads the rows of a table.
"""
