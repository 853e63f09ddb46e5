"""Options of the JVM that runs a driver for seconds: an archive of its classes, what is quick.

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
# Compiling well takes more of a gate than what it compiles, up to some million rows.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_COMPILER = re.compile(r"-XX:(TieredStopAtLevel=|[+-]TieredCompilation\b)|-Xint\b|-Xcomp\b")
# By default a JVM tells in its output of every archive that it passes over.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def with_archive(options: str, archive: str) -> str:
    """These options with an archive, a collector that starts no threads, and a quick compiler.

    What is said already holds: an archive of one's own, another collector or compiler.
    """
    if "-XX:SharedArchiveFile=" in options:
        return options
    told = [f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET}"]
    if not _COLLECTOR.search(options):
        told.append(_SERIAL)
    if not _COMPILER.search(options):
        told.append(_QUICK_COMPILER)
    return " ".join([*filter(None, [options]), *told])


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)} {_SERIAL}"
