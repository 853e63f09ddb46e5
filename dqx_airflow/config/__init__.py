"""What a project settles once: how Spark is reached, defaults, and where the datasets are."""
