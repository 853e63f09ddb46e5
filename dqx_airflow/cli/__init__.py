"""The `dql` command. One module a verb group; each imports what it needs when it is called."""
