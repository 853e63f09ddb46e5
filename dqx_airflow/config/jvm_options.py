"""Options of the JVM that runs a driver for seconds: an archive of its classes, what is quick.

A JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a part
of the time. An archive fits the very Java and the very jars that it was made with; with others, a
JVM passes it over.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
"""The setting of Spark that takes them, and leaves `spark.driver.extraJavaOptions` as they are."""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable that spark-submit takes options of its JVM from. All others come after them."""

# The work of a gate is over before a profile of it pays. So the first compiler takes none, and what
# the second one compiles, which makes scans of many rows fast, has run ten times as often as usual.
# Nor does a collector pay that works beside it. A JVM that is no server class machine takes the one
# without threads, unless somebody names another, with which `-XX:+UseSerialGC` would be at odds;
# and both compilers, where these are asked for. Descriptions of classes have room for all that
# Spark loads: by default, all objects are gone through four times before they have it.
_SHORT_LIFE = " ".join(
    (
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+NeverActAsServerClassMachine",
        "-XX:+TieredCompilation",
        *(f"-XX:-C1Profile{what}" for what in ("Branches", "Calls", "Checkcasts")),
        *(f"-XX:-C1Profile{what}" for what in ("InlinedCalls", "VirtualCalls")),
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        "-XX:MetaspaceSize=256m",
    )
)
# By default a JVM tells in its output of every archive that it passes over.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def for_a_short_life(env: Mapping[str, str]) -> dict[str, str]:
    """What to add to the variables of `spark-submit` so that its JVM does what is worth it.

    No option here can be at odds with another one, and what anybody says of a driver comes later
    and holds.
    """
    said = env.get(SUBMIT_OPTIONS, "")
    if _SHORT_LIFE in said:
        return {}
    return {SUBMIT_OPTIONS: f"{_SHORT_LIFE} {said}".rstrip()}


def with_archive(options: str, archive: str) -> str:
    """These options with an archive; one of their own holds, since it comes later."""
    return f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET} {options}".rstrip()


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)}"
