"""The Spark session of a run: connections, JVM launch, concurrency, cancellation, errors.

The lowest layer of the engine: nothing here refers to datasets. Enter through
`connection.open_session` and `spark_session.create_session`; the other modules serve them.
"""
