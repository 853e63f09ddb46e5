"""The engines and their environments: one table with every version that is measured.

An environment is installed from PyPI into the given folder, once for each set of pins.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Environment:
    """The packages to install, the engine first. `variables` turn off its telemetry."""

    requirements: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    jar: str | None = None


@dataclass(frozen=True)
class Engine:
    """An engine that judges a table. `module` is its module in benchmarks/peers/engines.

    Without an `environment` it runs in the environment of this project.

    """

    title: str
    module: str
    environment: str | None = None


@dataclass(frozen=True)
class Interpreter:
    """The Python of an engine, and the jar that the engine needs."""

    python: Path
    variables: Mapping[str, str]
    jar: Path | None


_PANDAS = "pandas==2.3.3"
ENVIRONMENTS: Mapping[str, Environment] = MappingProxyType(
    {
        "gx": Environment(
            ("great-expectations==1.24.1", "pyspark==4.1.1", _PANDAS),
            {"GX_ANALYTICS_ENABLED": "false"},
        ),
        "soda3": Environment(
            ("soda-core-spark-df==3.5.6", "pyspark==3.5.8", _PANDAS, "setuptools==80.9.0")
        ),
        "soda4": Environment(
            ("soda-sparkdf==4.28.0", "pyspark==4.2.0", _PANDAS),
            {"SODA_CORE_TELEMETRY_ENABLED": "false"},
        ),
        "databricks_dqx": Environment(("databricks-labs-dqx==0.17.0", "pyspark==4.2.0", _PANDAS)),
        "datacontract_cli": Environment(
            ("datacontract-cli[dataframe]==1.2.8", "pyspark==4.2.0", _PANDAS)
        ),
        "datacontract_cli_local": Environment(("datacontract-cli[duckdb]==1.2.8",)),
        "cuallee": Environment(("cuallee==0.15.4", "pyspark==4.2.0", _PANDAS)),
        # The newest PyDeequ whose Deequ is on Maven Central.
        "pydeequ": Environment(
            ("pydeequ==1.4.0", "pyspark==3.5.8", _PANDAS, "numpy==1.26.4", "setuptools==80.9.0"),
            jar="com.amazon.deequ:deequ:2.0.7-spark-3.5",
        ),
    }
)

ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "ours": Engine("dqx_airflow", "ours"),
        "tuned": Engine("by hand, tuned", "tuned"),
        "naive": Engine("by hand, naive", "naive"),
        "cuallee": Engine("cuallee", "cuallee", "cuallee"),
        "databricks_dqx": Engine("Databricks DQX", "databricks_dqx", "databricks_dqx"),
        "datacontract_cli": Engine("datacontract-cli", "datacontract_cli", "datacontract_cli"),
        "soda4": Engine("Soda", "soda4", "soda4"),
        "gx": Engine("Great Expectations", "gx", "gx"),
        "naive_4_1": Engine("by hand, naive", "naive", "gx"),
        "pydeequ": Engine("PyDeequ", "pydeequ", "pydeequ"),
        "naive_3_5": Engine("by hand, naive", "naive", "soda3"),
        "soda3": Engine("Soda", "soda3", "soda3"),
    }
)
"""In the order in which they run. The naive plan runs on every Spark that a peer needs, next to it:
that is what the peer is compared with."""


CACHE = Path.home() / ".cache" / "dqx_airflow_peers"
"""The default folder of the environments."""


def titles(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The engines with their versions, as they are stored with the runs."""
    return {
        name: {"title": ENGINES[name].title, "version": version(ENGINES[name])} for name in names
    }


def version(engine: Engine) -> str:
    """The version of the engine, None for a plan by hand."""
    if engine.module == "ours":
        from dqx_airflow import __version__

        return __version__
    is_peer = engine.module == engine.environment
    return ENVIRONMENTS[engine.module].requirements[0].partition("==")[2] if is_peer else ""


def interpreter(engine: Engine, cache: Path) -> Interpreter:
    """The Python of the engine, whose environment is installed if it is missing."""
    if engine.environment is None:
        return Interpreter(Path(sys.executable), {}, None)
    environment = ENVIRONMENTS[engine.environment]
    pins = "\n".join(environment.requirements)
    folder = cache / f"{engine.environment}-{hashlib.sha256(pins.encode()).hexdigest()[:8]}"
    python, is_ready = folder / "bin" / "python", folder / "ready"
    if not is_ready.exists():
        print(f"making {folder}", flush=True)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", *environment.requirements)
        is_ready.touch()
    jar = environment.jar and _jar(environment.jar, cache / "maven")
    return Interpreter(python, environment.variables, jar or None)


def _jar(coordinate: str, repository: Path) -> Path:
    group, artifact, release = coordinate.split(":")
    folder = repository.joinpath(*group.split("."), artifact, release)
    jar = folder / f"{artifact}-{release}.jar"
    if not jar.exists():
        print(f"getting {coordinate}", flush=True)
        where = f"-Dmaven.repo.local={repository}"
        what = ("-Dtransitive=false", f"-Dartifact={coordinate}")
        _run("mvn", "--batch-mode", "--quiet", where, "dependency:get", *what)
    return jar


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
