"""The Spark session of a run: connecting, launching a JVM, concurrency, cancellation, errors.

The ground floor of the engine: nothing here knows datasets. `connection.connect` and
`spark_session.create_session` are the doors; the rest serves them.
"""
