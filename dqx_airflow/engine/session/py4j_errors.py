"""The exceptions of py4j, the bridge to a JVM. It may be missing with Spark Connect."""

from __future__ import annotations

__all__ = ["Py4JError", "Py4JJavaError"]

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ModuleNotFoundError:  # pyspark-client comes without py4j, and nothing raises these

    class Py4JError(Exception):  # type: ignore[no-redef]
        pass

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        pass
