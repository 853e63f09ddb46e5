"""The settings of a project: the connection to Spark, defaults, and the locations of datasets."""
