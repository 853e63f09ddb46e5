"""The calls of the docs run: each in a copy of one project, without Spark and without a service.

A row of calls.txt with the third cell `Sail` runs each night with `--engine sail`. One with another
third cell is parsed only (test_calls.py): the cell says what is missing.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from deltalake import write_deltalake

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning.proposals import Proposal, ProposedValue, propose
from tests.cli.test_calls import ROWS, command_of
from tests.cli.test_output import CONTRACT
from tests.command_line import dql
from tests.tuning.stored_days import stored

MANIFEST = Path(__file__).parents[1] / "contracts" / "examples" / "datalex" / "minimal.json"
TODAY = date.today()
BAD = TODAY - timedelta(3)
SUITE = """\
suite "Orders" {
    const MAX_NULLS = 5% tunable [0%, 20%]
    const MIN_ORDERS = 10 tunable [1, 200]

    check "Completeness" on orders {
        @experimental
        assert null_count(email) / num_rows() < MAX_NULLS
            name "orders.email_null"
            tags [slow]
    }
    check "Volume" on orders {
        assert num_rows() >= MIN_ORDERS
            name "orders.min_rows"
            tags [finance]
        watch orders
    }
}
"""
EXPECTATIONS = """\
{"expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}]}
"""
DBT = "version: 2\nmodels: [{name: orders, columns: [{name: id, tests: [not_null]}]}]\n"
WORDS = {
    "SUITE": "orders.dql",
    "GATE": "shop.gate",
    "shop.old": "shop.gate",
    "bronze.slot_telemetry": "orders",
    "orders.amount": "orders.min_rows",
    "ASSERTION": "orders.min_rows",
    "orders.customer.known": "orders.min_rows",
    "CODE": "E001",
    "FILE": "orders.yaml",
    "ID": "orders",
    "OLD": "orders.yaml",
    "NEW": "newer.yaml",
    "LOCATION": "lake/orders",
    "TABLE": "lake/orders",
    "TARGET": "lake/orders",
    "TABLE[@VERSION]": "lake/orders",
    "...": "lake/orders",
    "NAME=LOCATION": "orders=lake/orders?date_column=ds",
    "NAME=VALUE": "MIN_ORDERS=8",
    "[FOLDER]": "first",
    "ROOT": "results",
    "REV": "HEAD",
    "FETCH_HEAD": "HEAD",
    "origin/main": "HEAD",
    "main": "HEAD",
    "origin/$GITHUB_BASE_REF": "HEAD",
    "2024-12-01": str(TODAY - timedelta(21)),
    "2024-12-07": str(BAD),
    "2024-12-10": str(BAD),
    "2024-12-20": str(TODAY - timedelta(1)),
    "2024-12-21": str(TODAY - timedelta(1)),
    "2026-11-05": str(BAD),
    "2026-11-27": str(TODAY + timedelta(9)),
    "s3://lake/contracts": "registry",
    "s3://lake/dqx": "results",
    "/data/dqx": "results",
    "s3://lake/silver/orders": "lake/orders",
    "lake/silver/orders": "lake/orders",
}
"""What stands in the project for the words of a call."""

OF_SOME = {
    "check PATH": {"PATH": "suites"},
    "fmt PATH": {"PATH": "suites"},
    "diff PATH": {"PATH": "suites"},
    "contract lint PATH": {"PATH": "contracts"},
    "import FILE": {"FILE": "great_expectations/expectations/orders.json"},
    "init": {"LOCATION": "../lake/orders"},
    "contract registry show": {"2": "1"},
    "contract impact": {"OLD": "old.json", "NEW": "new.json", "PATH": "suites"},
    "contract test": {"PATH": "lake/orders", "completeness": "conformity"},
    "run": {
        "PATH": "orders.dql",
        "orders=PATH": "orders=lake/orders?date_column=ds",
        "orders=lake/orders?format=parquet&date_column=ds": "orders=lake/orders?date_column=ds",
        "2026-01-01..2026-03-31": f"{TODAY - timedelta(21)}..{TODAY - timedelta(1)}",
        "orders.ids": "orders.min_rows",
    },
    "tune rollback": {"3": "0"},
    "tune enforce": {"NAME": "orders.email_null"},
    "tune label": {"NAME": "orders.min_rows"},
    "waivers add": {"2026-11-05": str(TODAY + timedelta(9))},
}
"""The same for the calls that begin so."""

ASKS = (
    "results optimize",
    "results prune",
    "results vacuum",
    "tune approve orders.dql 3f9c1a7b20de 3f9c1a7b20df",
    "tune label orders.dql --from-csv",
    "waivers end",
)
"""The calls that ask before they act: without a terminal they need `--yes`."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with 21 days in its store, one of them blocked; a table, contracts, and git."""
    home = tmp_path_factory.mktemp("project")
    days = [TODAY - timedelta(number) for number in range(1, 22)]
    rows = [
        {"id": number, "email": "a@x.org", "ds": day}
        for day in days
        for number in range(4 if day == BAD else 20)
    ]
    db = MemoryDatabase({"orders": rows}, date_columns={"orders": "ds"})
    store, suite = ResultsStore(str(home / "results")), Suite.from_string(SUITE)
    for day in sorted(days):
        store.write(stored(suite.run(db, day).report, "shop.gate"))
    write_deltalake(home / "lake" / "orders", pa.Table.from_pylist(rows))
    waiting = [
        Proposal("Orders", "autotuner", (change,), id=proposal_id)
        for proposal_id, change in (
            ("3f9c1a7b20de", ProposedValue("MIN_ORDERS", 10, 9)),
            ("3f9c1a7b20df", ProposedValue("MAX_NULLS", 0.05, 0.06)),
        )
    ]
    for proposal in waiting:
        propose(str(home / "results"), proposal)
    manifest = MANIFEST.read_text("utf-8")
    key = Ed25519PrivateKey.generate().public_key()
    texts = {
        "out/MIN_ORDERS.json": waiting[0].to_json(),
        "old.json": manifest,
        "new.json": manifest,
        "receipts.pub": key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        "dqx.toml": '[datasets.orders]\npath = "lake/orders"\ndate_column = "ds"\n'
        '[defaults]\nresults_root = "results"\n',
        "orders.dql": SUITE,
        "proposed.dql": SUITE.replace("MIN_ORDERS = 10", "MIN_ORDERS = 8"),
        "suites/orders.dql": SUITE,
        "great_expectations/expectations/orders.json": EXPECTATIONS,
        "models/schema.yml": DBT,
        "checks.yml": "checks for orders:\n  - row_count > 0\n",
        "rules.dqdl": 'Rules = [ IsComplete "id" ]\n',
        "events/events.jsonl": "",
        "alerts.csv": f"date,assertion,label\n{BAD},orders.min_rows,false_positive\n",
        "contracts/slots.contract.yaml": CONTRACT,
        "dags/orders.py": "",
        "tests/test_storm.py": "",
        "contracts/orders.contract.yaml": CONTRACT,
        "contracts/customers.yaml": CONTRACT,
        **{
            f"{folder}{name}.yaml": CONTRACT
            for folder in ("", "contracts/", "products/")
            for name in ("orders", "newer")
        },
    }
    for path, text in texts.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@x.org commit -q -m a"):
        subprocess.run(["git", *command.split()], cwd=home, check=True)
    for root in ("registry", "contracts"):
        published = f"contract registry publish orders.yaml --registry {root}".split()
        assert dql(*published, cwd=home).returncode == 0
    waiver = arguments("dql waivers add GATE ASSERTION --until 2026-11-05 --owner a --reason b")
    assert dql(*waiver, cwd=home).returncode == 0
    return home


@pytest.fixture(scope="module")
def ids(project: Path) -> dict[str, dict[str, str]]:
    """The ids of the blocked run, its incident and the waiver, for the calls that begin so."""
    incident, waiver = (
        json.loads(dql(verb, "--format", "json", cwd=project).stdout)[0]
        for verb in ("incidents", "waivers")
    )
    listed = json.loads(dql("results", "list", "--format", "json", cwd=project).stdout)
    (run_id,) = (run["run_id"] for run in listed if run["outcome"] == "blocked")
    return {
        "incidents": dict.fromkeys(("ID", "85f36984"), incident["id"]),
        "waivers": dict.fromkeys(("ID", "85f36984"), waiver["id"]),
        "shrink": dict.fromkeys(("RUN", "29300706"), run_id),
    }


def arguments(call: str, ids: Mapping[str, Mapping[str, str]] | None = None) -> list[str]:
    """The words of a call, with what stands for them in the project."""
    rest = call.removeprefix("dql ").replace("...", "" if "PATH..." in call else "...")
    known = WORDS | {"PATH": "lake/orders", "RUN_ID": "latest"}
    for start, words in [*OF_SOME.items(), *(ids or {}).items()]:
        if rest.startswith(start):
            known = known | words
    confirmed = ["--yes"] if rest.startswith(ASKS) else []
    return [*(known.get(word, word) for word in shlex.split(rest)), *confirmed]


RUN = [row[1] for row in ROWS if len(row) == 2 and not row[1].endswith("--help")]
ON_SAIL = [row[1] for row in ROWS if row[2:] == ["Sail"]]


def calls() -> Iterator[Any]:
    """The calls that run: the first one of each command always, the others each night."""
    seen = set()
    for call in RUN:
        command = command_of(call)
        marks = [pytest.mark.nightly] if command in seen else []
        seen.add(command)
        yield pytest.param(call, marks=marks)


@pytest.mark.parametrize("call", [*calls()])
def test_a_call_of_the_docs_runs(
    project: Path,
    ids: dict[str, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    monkeypatch.setenv("DQX_CONTRACT_REGISTRY", "registry")
    here = shutil.copytree(project, tmp_path / "project")
    words = arguments(call, ids)
    for option, path in pairwise(words):
        if option in ("-o", "--output"):
            (here / path).unlink(missing_ok=True)
    is_new = words[0] == "init"
    done = dql(*words, cwd=here / "dags" if is_new else here)
    assert done.returncode in (0, 1), done.output


@pytest.mark.nightly
@pytest.mark.parametrize("call", ON_SAIL)
def test_a_call_of_the_docs_runs_on_sail(
    project: Path, ids: dict[str, dict[str, str]], tmp_path: Path, call: str
) -> None:
    pytest.importorskip("pysail")
    here = shutil.copytree(project, tmp_path / "project")
    words = arguments(call, ids)
    if "--engine" not in words:
        words += ["--engine", "sail"]
    done = dql(*words, cwd=here)
    # Some days of the calls have no data: their runs are broken.
    assert done.returncode in (0, 1, 3), done.output
    assert "error[" not in done.stderr


def test_most_calls_run() -> None:
    assert len(RUN) + len(ON_SAIL) >= 135
