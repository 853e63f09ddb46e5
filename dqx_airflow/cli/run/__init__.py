"""`dql run`: suites against datasets, from the command line."""
