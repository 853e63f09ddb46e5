"""JVM options for a driver that runs for seconds: an archive of its classes, and fast defaults.

A JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a
fraction of the time. An archive only fits the Java and the jars that it was made with; a JVM
ignores it with others.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
"""The Spark setting for JVM options, which leaves `spark.driver.extraJavaOptions` to users."""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable from which spark-submit takes options of its JVM. All others come after them."""

_FAST_START = " ".join(
    (
        "-XX:+IgnoreUnrecognizedVMOptions",
        # A concurrent collector does not pay off. A JVM that is not a server class machine uses the
        # serial one, unless another is configured, with which -XX:+UseSerialGC would conflict; and
        # both compilers, if requested.
        "-XX:+NeverActAsServerClassMachine",
        "-XX:+TieredCompilation",
        # A gate ends before profiling pays off. So the first compiler collects no profile, and the
        # second one, which makes scans of many rows fast, compiles what has run ten times as often
        # as usual.
        "-XX:-C1ProfileBranches",
        "-XX:-C1ProfileCalls",
        "-XX:-C1ProfileCheckcasts",
        "-XX:-C1ProfileInlinedCalls",
        "-XX:-C1ProfileVirtualCalls",
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        # Class metadata has room for everything that Spark loads: by default, four full collections
        # run before it has.
        "-XX:MetaspaceSize=256m",
    )
)

# By default a JVM reports every archive that it ignores on stdout.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def for_a_short_life(env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables to add for `spark-submit` so that its JVM starts fast.

    No option here can conflict with another one, and options of users come later and win.
    """
    options = env.get(SUBMIT_OPTIONS, "")
    if _FAST_START in options:
        return {}
    return {SUBMIT_OPTIONS: f"{_FAST_START} {options}".rstrip()}


def with_archive(options: str, archive: str) -> str:
    """JVM options with an archive of classes; a user's archive wins, since it comes later."""
    return f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET} {options}".rstrip()


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive of its classes when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)}"
