"""Delta tables: the transaction log, snapshots, and the files as storage has them."""
