"""SQL inside suites: tokens as Spark reads them, and the functions that it may call."""
