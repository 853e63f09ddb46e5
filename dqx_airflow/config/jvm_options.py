"""Options of the JVM that runs a driver: an archive of its classes, and a collector for seconds.

A JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a part
of the time. An archive fits the very Java and the very jars that it was made with; with others, a
JVM passes it over.
"""

from __future__ import annotations

import re
import shlex

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting of Spark that takes them."""

_SERIAL = "-XX:+UseSerialGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# By default a JVM tells in its output of every archive that it passes over.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def with_archive(options: str, archive: str) -> str:
    """These options with an archive, and with a collector that starts no threads.

    What is said already holds: an archive of one's own, another collector.
    """
    if "-XX:SharedArchiveFile=" in options:
        return options
    told = [f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET}"]
    if not _COLLECTOR.search(options):
        told.append(_SERIAL)
    return " ".join([*filter(None, [options]), *told])


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)} {_SERIAL}"
