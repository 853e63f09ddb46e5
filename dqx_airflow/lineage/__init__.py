"""Lineage: the activity of a gate as OpenLineage events, and their safe delivery.

`events` builds the events and `emitter` sends them. Importing this package imports neither, since
both use the OpenLineage client: only the job and the command line need them.
"""
