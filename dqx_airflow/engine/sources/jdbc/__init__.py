"""Tables of databases, read over JDBC.

- `table`: opens a table, and reads the rows of some dates
- `partitions`: the key by which several connections share a read
- `failures`: what a driver or a database complains about
"""
