"""The `dql` command. One module for each verb group, whose imports are deferred to the call."""
