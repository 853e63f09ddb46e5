"""Lineage: what a gate did, as OpenLineage events, and how these events get out safely.

`events` builds the events and `emitter` sends them. Importing this package imports neither, since
both borrow the OpenLineage client: only the job and the command line need them.
"""
