"""The Spark session of a run: connections, JVM launch, concurrency, cancellation, errors.

The ground floor of the engine: nothing here knows about datasets. Enter through
`connection.open_session` and `spark_session.create_session`; the other modules serve them.
"""
