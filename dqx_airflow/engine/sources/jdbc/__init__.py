"""Database tables, read over JDBC.

- `table`: opens a table, and reads the rows of some dates
- `partitions`: the key by which several connections share a read
- `failures`: errors of drivers and databases
"""
