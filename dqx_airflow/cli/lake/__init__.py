"""`dql init` over a folder of tables: reads them, writes what is new, prints a report."""
