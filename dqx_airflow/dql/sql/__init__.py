"""SQL inside suites: its tokens as Spark reads them, and the functions that it may call."""
