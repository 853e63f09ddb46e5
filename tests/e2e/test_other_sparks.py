"""The same verdicts on every Spark: tests of values, files and outputs, in environments of their
own. The counts of the nightly lane go into docs/evidence.md."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.connect_server import connect_server
from tests.other_sparks import ROOT, SPARKS, TESTS, environment_with, python_with
from tests.processes import ended, output_of

PAGE = ROOT / "dqx_airflow" / "docs" / "evidence.md"
_COUNTS = re.compile(r"<!-- counts of pytest --spark -->\n(.*?)<!-- end of counts -->", re.S)
_HEAD = "| Spark | passed | not possible there | failed | on |\n|---|---|---|---|---|\n"

COVERING = (
    "lookups or floating_numbers or nested or (texts and Whole) or (filters and dates) "
    "or sequences or (dates and Durations) or (frequencies and exact) or (matching and missing)"
)
"""Cases with every type, reading files, and what was once wrong on an old Spark: lookups."""


def pytest_with(spark: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("-n", "0", "-q", "-p", "no:cacheprovider")
    return ended(
        [str(python_with(spark)), "-m", "pytest", *options, *arguments],
        cwd=ROOT,
        env=environment_with(spark),
        timeout=3600,
    )


@pytest.mark.slow
def test_covering_cases_have_their_values_on_the_oldest_spark() -> None:
    of_spark = ("-m", "spark and not matrix", "-k", COVERING)
    done = pytest_with("3.5", "tests/metrics/test_conformance.py", *of_spark)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.nightly
@pytest.mark.parametrize("spark", SPARKS)
def test_everything_that_depends_on_spark_is_the_same_on_all(spark: str) -> None:
    of_spark = "spark and not (matrix and nightly) and not timing"
    done = pytest_with(spark, *TESTS, "-m", of_spark)
    record(spark, done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def record(spark: str, output: str) -> None:
    """Writes the row of a Spark into the page, from what pytest printed."""
    ended = re.findall(r"(\d+) (passed|failed|error)", output[-300:])
    found = {word: int(number) for number, word in ended}
    since = map(int, re.findall(r"^SKIPPED \[(\d+)\] tests/other_sparks", output, re.M))
    text = PAGE.read_text("utf-8")
    table = _COUNTS.search(text)
    assert table is not None
    rows = dict(re.findall(r"^\| ([34]\.\d) (\|.*)$", table[1], re.M))
    failed = found.get("failed", 0) + found.get("error", 0)
    counts = (found.get("passed", 0), sum(since), failed)
    today = datetime.now(timezone.utc).date()
    rows[spark] = f"| {' | '.join(f'{count:,}' for count in counts)} | {today} |"
    lines = "".join(f"| {name} {rows[name]}\n" for name in SPARKS if name in rows)
    PAGE.write_text(text[: table.start(1)] + _HEAD + lines + text[table.end(1) :], "utf-8")


_PROVE = """
import json, sys, tempfile
from pathlib import Path
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.proof.prove import prove
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.engine.session.spark_versions import arrow_table
from dqx_airflow.errors import SparkError

try:
    spark = open_session(connection_of(sys.argv[1]), "pair", {})
except SparkError as error:
    print(json.dumps({"refused": error.problem, "hint": error.hint}))
    sys.exit()
assert arrow_table(spark.range(3)).column("id").to_pylist() == [0, 1, 2]
with tempfile.TemporaryDirectory() as folder:
    proof = prove(spark, Path(folder), lambda *_: None)
spark.stop()
print(json.dumps({"agreeing": proof.agreeing, "differences": [repr(d) for d in proof.differences]}))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("server", ["3.5", "4.0", "4.2"])
def test_every_pair_of_client_and_server_works_or_is_refused(server: str, tmp_path: Path) -> None:
    python = python_with(server)
    version = output_of([str(python), "-c", "import pyspark; print(pyspark.__version__)"]).strip()
    with connect_server(tmp_path, programs=python.parent, version=version) as address:
        for client in SPARKS:
            printed = output_of(
                [str(python_with(client)), "-c", _PROVE, address], env=environment_with(client)
            )
            found = json.loads(printed.splitlines()[-1])
            if (server == "3.5") is not (client == "3.5"):
                assert "do not understand each other" in found["refused"], client
                assert "pip install" in found["hint"]
            else:
                assert found.get("differences") == [], (client, server, found)
