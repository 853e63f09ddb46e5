"""Shared by the tests of several packages: the Spark session of a worker, and the workers."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

from tests import other_airflows, other_sparks
from tests.cpu_costs import CpuCosts
from tests.other_airflows import AIRFLOWS
from tests.other_sparks import SPARKS, skip_before
from tests.quick_jvm import QUICK_JVM
from tests.stopwatch import judge_times

# Expressions are interpreted: to write and to compile Java for a query on ten rows takes a quarter
# of its time. The second lane has them compiled, as those of a gate are.
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",  # a plan is described for each query, and never shown
}


def pytest_configure(config: pytest.Config) -> None:
    # Images of containers often ask for no bytecode. Then each process compiles all that it
    # imports, and each run of pytest takes all of its assertions apart anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    judge_times("timing" in (config.option.markexpr or ""))
    if most := os.environ.get("DQX_TEST_COSTS"):
        config.pluginmanager.register(CpuCosts(int(most)))
    # Airflow reads its home when it is first imported, by whichever test does that. Without one,
    # it is the home of the user, with the database that other runs use at the same time.
    home = tempfile.mkdtemp(prefix="dqx_airflow_home_")
    config.add_cleanup(partial(shutil.rmtree, home, ignore_errors=True))
    os.environ["AIRFLOW_HOME"] = home
    # A checkout is left as it was found.
    set_hypothesis_home_dir(Path(tempfile.gettempdir(), "dqx_airflow_hypothesis"))
    # The same commit has the same result. New examples are looked for in the nightly lane.
    settings.register_profile("same_examples", derandomize=True)
    if "not nightly" in (config.option.markexpr or "not nightly"):
        settings.load_profile("same_examples")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--spark", choices=SPARKS, help="run the tests with this version of Spark")
    parser.addoption("--sail", action="store_true", help="run the tests of gates on Sail")
    parser.addoption("--airflow", choices=AIRFLOWS, help="run them with this version of Airflow")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A run of all tests, and of no named file, takes two workers; `-n 0` does without.

    A third one takes longer on two cores: it starts one more JVM.
    """
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    for option, other in (("--spark", other_sparks), ("--airflow", other_airflows)):
        if (version := config.getoption(option)) is not None:
            arguments = list(config.invocation_params.args)
            other.run_instead(version, arguments, has_paths=not is_whole)
    is_open = config.getoption("numprocesses", 0) is None  # of pytest-xdist, and not given
    if is_whole and is_open and not hasattr(config, "workerinput") and not config.option.usepdb:
        config.option.numprocesses = 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Eight thousand tests are no garbage: the collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.work_units import WorkUnits

    return WorkUnits(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`few(3)`: the default lane has the first three inputs of the test, and the nightly lane the
    others; `few(3, apart=True)`: three that are far apart in the list, as the first ones differ by
    little.

    A test that takes a session of Spark has the mark `spark`, so that the quick lane has none.
    """
    inputs: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("few") and not item.get_closest_marker("nightly"):
            inputs[item.nodeid.partition("[")[0]].append(item)
    for of_test in inputs.values():
        few = of_test[0].get_closest_marker("few")
        assert few is not None
        count, most = len(of_test), few.args[0]
        kept = range(most)
        if few.kwargs.get("apart") and most < count:
            kept = [number * count // most for number in range(most)]
        for number, item in enumerate(of_test):
            if number not in kept:
                item.add_marker(pytest.mark.nightly)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if marker := item.get_closest_marker("since_spark"):
        skip_before(*marker.args)
    if item.config.getoption("--sail") and (marker := item.get_closest_marker("not_on_sail")):
        pytest.skip(f"not on Sail: {marker.args[0]}")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The home of Airflow in this process, for the tests of all folders."""
    return Path(os.environ["AIRFLOW_HOME"])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Any]:
    """A classic local session, started once a process, with the settings of a local gate.

    In the default lane, it does not compile expressions. With `--sail`, a session on Sail.
    """
    if pytestconfig.getoption("--sail"):
        from tests.sail_server import sail_session

        yield from sail_session()
        return
    from dqx_airflow.engine.session.java import java_environment
    from dqx_airflow.engine.session.spark_session import create_session
    from tests.sail_server import skip_beside_sail

    skip_beside_sail()
    before = dict(os.environ)
    # Its connections end when the process does, and pytest has closed the streams of its handlers.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    home = tmp_path_factory.mktemp("spark")
    os.environ.update(java_environment())
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_JVM} -Xmn384m -Dderby.system.home={home}"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --conf spark.log.level=ERROR pyspark-shell"
    )
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        **({} if _is_compiled(pytestconfig) else _INTERPRETED),
    }
    session = create_session("tests", settings)
    # PySpark asks for this class up to 30 times per error, step by step, and the JVM looks for
    # classes called `py4j` and `py4j.reflection` in all of its jars each time.
    jvm = session._jvm
    jvm.py4j = SimpleNamespace(reflection=SimpleNamespace(TypeUtil=jvm.py4j.reflection.TypeUtil))
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def connect_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, started once a process."""
    from tests.connect_server import connect_server

    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture(scope="module")
def server_session(connect_address: str) -> Iterator[Any]:
    """A session on the Spark Connect server, with the settings of a gate."""
    from pyspark.sql.connect.session import SparkSession

    from dqx_airflow.engine.session.spark_session import SQL_DEFAULTS

    # Not by the builder of both kinds: there may be a classic session in this process.
    session = SparkSession.builder.remote(connect_address).create()
    for key, value in SQL_DEFAULTS.items():
        session.conf.set(key, value)
    yield session
    session.stop()


def _is_compiled(config: pytest.Config) -> bool:
    """In all lanes but the default one."""
    return "not matrix" not in (config.option.markexpr or "")
