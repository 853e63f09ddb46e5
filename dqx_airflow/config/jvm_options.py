"""Options of the JVM that runs a driver for seconds: an archive of its classes, what is quick.

A JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a part
of the time. An archive fits the very Java and the very jars that it was made with; with others, a
JVM passes it over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting of Spark that takes them: those of a conf replace those of spark-defaults.conf."""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable that spark-submit takes options of its JVM from. All others come after them."""

_SERIAL = "-XX:+UseSerialGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# The work of a gate is over before a profile of it pays. So the first compiler takes none, and what
# the second one compiles, which makes scans of many rows fast, has run ten times as often as usual.
_PATIENT_COMPILER = " ".join(
    (
        "-XX:+IgnoreUnrecognizedVMOptions",
        *(f"-XX:-C1Profile{what}" for what in ("Branches", "Calls", "Checkcasts")),
        *(f"-XX:-C1Profile{what}" for what in ("InlinedCalls", "VirtualCalls")),
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
    )
)
# By default a JVM tells in its output of every archive that it passes over.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def for_a_short_life(env: Mapping[str, str]) -> dict[str, str]:
    """What to add to the variables of `spark-submit` so that its JVM compiles what is worth it.

    No option here can be at odds with another one, and what anybody says of a driver comes later
    and holds.
    """
    said = env.get(SUBMIT_OPTIONS, "")
    if _PATIENT_COMPILER in said:
        return {}
    return {SUBMIT_OPTIONS: f"{_PATIENT_COMPILER} {said}".rstrip()}


def with_archive(options: str, archive: str) -> str:
    """These options with an archive, and a collector that starts no threads.

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
