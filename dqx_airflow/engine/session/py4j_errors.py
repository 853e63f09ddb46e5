"""The exceptions of py4j, the bridge to a JVM. Over Spark Connect it may not be installed."""

from __future__ import annotations

__all__ = ["Py4JError", "Py4JJavaError"]

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ModuleNotFoundError:  # pyspark-client comes without it, and nothing raises these then

    class Py4JError(Exception):  # type: ignore[no-redef]
        pass

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        pass
