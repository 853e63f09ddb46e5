"""What the JVM of a gate does ahead, on a thread of its own, while Python imports and Spark starts.

Half of the time of a short gate without an archive goes into finding, reading and verifying some
ten thousand classes, one after the other and each when it is first needed: another processor does
that ahead. With an archive there is still code that runs once and slowly, when a library is used
for the first time.

No class of Spark is initialized here, but for two that ANTLR made of its grammar. Two threads that
initialize classes which need each other would wait for each other forever. Two that load a class
never do, and what is initialized calls nothing of Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables by which spark-submit tells a driver how to reach its JVM."""

THREAD = "dqx warm-up"

_ARCHIVE = "-XX:SharedArchiveFile="
_PARSER = "org.apache.spark.sql.catalyst.parser.SqlBase"  # tables, made by ANTLR
_SAMPLE = """
public long sum(Object[] rows) {
  long sum = 0L;
  for (int i = 0; i < rows.length; i++) {
    if (rows[i] != null) { sum += ((Number) rows[i]).longValue(); } else { sum -= 1L; }
  }
  return sum;
}"""


def class_names() -> str:
    """The classes that a typical gate loads, line by line, in the order in which it needs them.

    Those of the pinned Spark, without the ones that are there before Python starts. The list is
    shipped, not made by `dql package --jvm-archive`: a JVM with an archive has its classes and asks
    for none, so that the list serves just the gates for which nobody made an archive. To find it
    out takes a Spark that runs a gate (`tests/engine/test_warm_up.py` does, and writes it anew),
    which a build of the wheel has not got. Compressed, as git and a wheel keep it, it has 78 KB.
    """
    return files(__package__).joinpath("gate_classes.txt").read_text(encoding="utf-8")


def starter_of(env: Mapping[str, str]) -> GatewayParameters | None:
    """How the JVM that started this process is reached; None where none did."""
    if not {PORT, SECRET} <= env.keys():
        return None
    return GatewayParameters(port=int(env[PORT]), auth_token=env[SECRET])


def warm_up(reached: GatewayParameters, names: str) -> threading.Thread:
    """Lets a JVM do its work ahead, over a connection of its own.

    Whatever goes wrong is no matter: what is not done ahead is done when it is needed.

    :param names: classes to load, line by line. One that is not there is passed over, and a JVM
        with an archive of classes loads none: it has them.
    """
    working = threading.Thread(target=_work, args=(reached, names), name=THREAD, daemon=True)
    working.start()
    return working


def _work(reached: GatewayParameters, names: str) -> None:
    gateway = JavaGateway(gateway_parameters=reached)
    for step in (_scala_reflection, _sql_parser, _java_compiler):
        with suppress(Exception):
            step(gateway.jvm)
    with suppress(Exception):
        java = gateway.jvm.java
        options = java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
        if _ARCHIVE not in options.toString():
            # One call for all of them: ten thousand would take longer than what they spare.
            lines = java.util.regex.Pattern.compile("\n").splitAsStream(names)
            lines.forEach(_linking(gateway))
    gateway.close()


def _scala_reflection(jvm: Any) -> None:
    # A session asks it for the types of functions that an extension of Spark brings.
    universe = getattr(getattr(jvm.scala.reflect.runtime, "package$"), "MODULE$").universe()
    universe.runtimeMirror(_loader(jvm))


def _sql_parser(jvm: Any) -> None:
    for part in ("Lexer", "Parser"):
        jvm.java.lang.Class.forName(f"{_PARSER}{part}", True, _loader(jvm))


def _java_compiler(jvm: Any) -> None:
    # Spark compiles its plans with it.
    jvm.org.codehaus.janino.ClassBodyEvaluator().cook(_SAMPLE)


def _loader(jvm: Any) -> Any:
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _linking(gateway: Any) -> Any:
    """A `java.util.function.Consumer` that loads and links the class of a name, if there is one."""
    java = gateway.jvm.java
    handles, type_of = java.lang.invoke.MethodHandles, java.lang.invoke.MethodType.methodType
    called = java.lang.Class.forName
    text, loader, failure = map(
        called, ("java.lang.String", "java.lang.ClassLoader", "java.lang.Throwable")
    )
    a_class, constructors = map(called, ("java.lang.Class", "[Ljava.lang.reflect.Constructor;"))

    def array(kind: Any, *items: Any) -> Any:
        made = gateway.new_array(kind, len(items))
        for position, item in enumerate(items):
            made[position] = item
        return made

    lookup = handles.lookup()
    signature = type_of(a_class, array(java.lang.Class, text, java.lang.Boolean.TYPE, loader))
    load = lookup.findStatic(a_class, "forName", signature)
    given = array(java.lang.Object, False, _loader(gateway.jvm))
    load = handles.insertArguments(load, 1, given)
    # To tell its constructors, a class is linked: that is, verified.
    link = lookup.findVirtual(a_class, "getDeclaredConstructors", type_of(constructors))
    both = handles.filterReturnValue(load, link)
    nothing = handles.constant(constructors, None)
    ignore = handles.dropArguments(nothing, 0, array(java.lang.Class, failure))
    safe = handles.catchException(both, failure, ignore)
    consumer = called("java.util.function.Consumer")
    return java.lang.invoke.MethodHandleProxies.asInterfaceInstance(consumer, safe)
