"""Mistakes in a gate are import errors of its DAG: the cases of `planted_mistakes.md`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.markdown_cases import Case, cases
from tests.operators.dag_files import read_dags, read_folder
from tests.operators.gate_stubs import CONTRACT, SUITE

pytestmark = pytest.mark.airflow

CASES = Path(__file__).with_name("planted_mistakes.md")
DOCS = Path(__file__).parents[2] / "dqx_airflow" / "docs"

SOURCES = {
    "orders.dql": SUITE,
    "broken.dql": SUITE.replace("null_count", "nul_count").replace("P0", "P7"),
    "orders.yaml": CONTRACT,
    "broken.yaml": CONTRACT.replace("number", "numbr").replace("2.3.0", "two"),
}
HEAD = """
from datetime import datetime
from airflow.sdk import DAG, Asset, task
from jinja2 import Undefined
from dqx_airflow.operators import ContractGateOperator, DqlGateOperator

with DAG("lake", start_date=datetime(2024, 1, 1), schedule=None):
"""


@pytest.fixture
def dags(here: Path, monkeypatch: pytest.MonkeyPatch, operators: ModuleType) -> Path:
    """A folder for a DAG file, with suites and contracts; notes of earlier tests are elsewhere."""
    folder = here / "lake"
    folder.mkdir()
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    (here / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "tmp"))
    return folder


def parsed(folder: Path, gates: str) -> str:
    """The import error of a DAG file with these gates; nothing where it has none."""
    lines = "".join(f"    {line}\n" for line in gates.strip().splitlines())
    (folder / "lake.py").write_text(HEAD + lines)
    error = ""
    try:
        read_dags(folder / "lake.py")
    except ImportError as caught:
        error = str(caught)
    # What is raised while the file runs comes with a traceback.
    found = re.search(r"^(?:[\w.]+\.)?GateMisconfiguredError: (.*)", error, re.M | re.S)
    assert bool(found) == bool(error), error
    return found[1].strip().replace(str(folder.parent), "") if found else ""


@pytest.mark.parametrize("case", list(cases(CASES)), ids=str)
def test_an_invalid_gate_is_an_import_error(dags: Path, case: Case) -> None:
    error = parsed(dags, case.block("python").text)
    assert error
    case.expect(error)


def test_the_mistakes_that_pages_quote_are_those_of_the_program() -> None:
    """Each line is in the expected part of a case, which the test above compares."""
    told = {line for case in cases(CASES) for line in case.block("text").text.splitlines()}
    quoted = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"^gate \w+: .*$", text, re.M)
        lines += [f"gate gate: {one}" for one in re.findall(r"`(\w+='[^`]*: write [^`]*)`", text)]
        quoted += [(page.name, line) for line in lines]
    assert len(quoted) >= 3
    wrong = [
        (page, line)
        for page, line in quoted
        if not any(one == line or one.startswith(line.removesuffix("...")) for one in told)
    ]
    assert wrong == []


TEMPLATES = """
DqlGateOperator(task_id="a", suite="{{ var.value.suite }}", datasets={"x": "/{{ ds }}"})
DqlGateOperator(
    task_id="b", suite="orders.dql", date="{{ ds }}", promote_slice={"store": "{{ params.x }}"},
    promote_to="{{ params.y | lower }}", quarantine="{{ z | default('/z') }}",
    datasets={"orders": {"path": "{{ var.value.p }}", "version": "{{ run_id }}", "schema": "id int",
              "format": "{{ params.f }}", "options": {"x": "{{ params.y }}"},
              "keys": ["{{ params.k }}"], "filter": "day = '{{ ds }}' = ="}},
)
DqlGateOperator(
    task_id="h", suite="orders.dql", date="{{ macros.ds_add(ds, -1) }}",
    datasets={"orders": "/lake/{a,b}/{{ ti.xcom_pull(task_ids='land') }}/{{ range(3) | first }}"},
)
with DAG("own", user_defined_macros={"dss": str}, user_defined_filters={"day": str}):
    DqlGateOperator(
        task_id="i", suite="orders.dql", datasets={"orders": "/a"}, date="{{ dss(ds) | day }}"
    )
with DAG("lenient", template_undefined=Undefined):
    DqlGateOperator(
        task_id="j", suite="orders.dql", datasets={"orders": "/a"}, date="{{ dss or ds }}"
    )
@task
def land(): return {"orders": "/a"}
DqlGateOperator(task_id="c", suite="orders.dql", datasets=land(), promote_to="/b")
ContractGateOperator(
    task_id="d", contract="{{ params.c }}", data="{{ params.d }}", expect_version="{{ params.e }}"
)
ContractGateOperator(task_id="e", contract="orders.yaml", data="/a", expect_version=2)
DqlGateOperator.partial(task_id="f", suite="orders.dql", promote_slice={"store": "a"}).expand(
    datasets=[{"orders": "/a"}], promote_to=["/b"])
DqlGateOperator.partial(task_id="k", suite=["orders.dql"]).expand(datasets=[{"orders": "/a"}])
DqlGateOperator.partial(task_id="l", suite="orders.dql", promote_to="/{{ ti.map_index }}").expand(
    datasets=[{"orders": "/a"}, {"orders": "/b"}])
ContractGateOperator.partial(task_id="m", contract="orders.yaml", promote_to="/b").expand_kwargs([
    {"data": "/a", "promote_slice": {"store": "bern"}},
    {"data": "/a", "promote_slice": {"store": "zurich"}},
    {"data": "/a", "promote_slice": {"store": "zurich"}, "date": "2024-05-17"}])
ContractGateOperator.partial(task_id="n", contract="orders.yaml", promote_to="/b").expand(
    data=["/a"], date=["2024-05-16", "2024-05-17"])
DqlGateOperator(
    task_id="o", suite="orders.dql", datasets=land(), conf=land(), outlets=Asset("file:///a"),
    env_vars={"A": "{{ params.a }}", "B": land()}, packages="a:b:1", executor_memory="4g",
    num_executors=2, deploy_mode="cluster", on_failure_callback=[print], on_warning_callback=print,
)
@task.dql_gate(suite="orders.dql", quarantine={"orders": "/bad"})
def g(): return {"orders": "/a"}
g()
"""


def test_templated_arguments_are_not_errors(dags: Path) -> None:
    assert parsed(dags, TEMPLATES) == ""


GATE = 'DqlGateOperator(task_id="gate", suite="orders.dql", datasets={"orders": "/lake"})'


@pytest.fixture
def examinations(monkeypatch: pytest.MonkeyPatch, operators: ModuleType) -> Callable[[], int]:
    """The number of gates that were examined, and not found in the notes."""
    from dqx_airflow.operators import mistakes, parse_notes

    count = [0]
    real = mistakes.examine

    def counted(*given: Any) -> Any:
        count[0] += 1
        return real(*given)

    def number() -> int:
        parse_notes._read_notes.clear()  # as in the next process
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(mistakes, "examine", counted)
    return number


def test_a_sound_gate_is_checked_again_after_a_change(
    dags: Path, examinations: Callable[[], int]
) -> None:
    assert parsed(dags, GATE) == ""
    assert examinations() == 1
    assert parsed(dags, GATE) == ""
    assert examinations() == 0
    assert parsed(dags, GATE.replace("})", '}, fail_on="P0")')) == ""
    examinations()
    (dags / "orders.dql").write_text(SUITE.replace("null_count", "nul_count"))
    assert "did you mean 'null_count'?" in parsed(dags, GATE)
    assert examinations() == 1
    (dags / "orders.dql").unlink()
    assert "orders.dql not found" in parsed(dags, GATE)


WITH_OBJECTS = """
from airflow.sdk import Asset, BaseNotifier
from dqx_airflow.values import DatasetRef
class Tell(BaseNotifier):
    def notify(self, context): ...
@task
def land(): return {"orders": "/a"}
landed = land()
kept = dict(suite="orders.dql", outlets=[Asset("file:///x")])
DqlGateOperator(task_id="a", datasets=landed, on_warning_callback=lambda context: None, **kept)
ref = DatasetRef("orders", "/a")
DqlGateOperator(task_id="b", datasets={"orders": ref}, on_warning_callback=Tell(), **kept)
told = [Tell(), print]
DqlGateOperator(task_id="c", datasets={"orders": landed["x"]}, on_warning_callback=told, **kept)
DqlGateOperator.partial(task_id="d", **kept).expand(datasets=landed.map(dict))
"""


def test_unchanged_gates_are_not_checked_in_the_next_process(
    dags: Path, examinations: Callable[[], int]
) -> None:
    assert parsed(dags, WITH_OBJECTS) == ""
    assert examinations()
    assert (parsed(dags, WITH_OBJECTS), examinations()) == ("", 0)


AS_PROPERTIES = """
class ShopGate(DqlGateOperator):
    def __init__(self, *, shop, datasets=None, **kwargs):
        self.shop = shop
        super().__init__(datasets=datasets, **kwargs)
    @property
    def datasets(self):
        return {"orders": f"/lake/{self.shop}"}
    @datasets.setter
    def datasets(self, given): ...
    @property
    def sample_rows(self):
        return min(self._most, 10)
    @sample_rows.setter
    def sample_rows(self, given):
        self._most = given
    @property
    def executor_cores(self):
        return self._cores
kept = dict(suite="orders.dql", sample_rows=10**9)
ShopGate(task_id="a", shop="basel", **kept)
ShopGate.partial(task_id="b", **kept).expand(shop=["basel", "zurich"])
ShopGate.partial(task_id="c", **kept).expand_kwargs([{"shop": "basel", "executor_cores": 2}])
"""


def test_the_arguments_of_a_mapped_gate_may_be_properties(dags: Path) -> None:
    assert parsed(dags, AS_PROPERTIES) == ""
    wrong = AS_PROPERTIES.replace('"zurich"]', '"zurich"], fail_on=["P9"]')
    assert "fail_on='P9': write P0" in parsed(dags, wrong)


def test_a_changed_import_is_detected(dags: Path, examinations: Callable[[], int]) -> None:
    (dags / "limits.dql").write_text("export const MOST = 5\n")
    suite = 'import { MOST } from "limits.dql"\n' + SUITE.replace("== 0", "< MOST")
    (dags / "orders.dql").write_text(suite)
    assert parsed(dags, GATE) == ""
    assert (examinations(), parsed(dags, GATE), examinations()) == (1, "", 0)
    (dags / "limits.dql").write_text("export const MUST = 5\n")
    assert "MOST" in parsed(dags, GATE)


@pytest.mark.parametrize("file", ["orders.dql", "limits.dql"])
def test_an_edit_that_keeps_size_and_time_is_detected(
    dags: Path, examinations: Callable[[], int], file: str
) -> None:
    (dags / "limits.dql").write_text("export const MOST = 5\n")
    suite = 'import { MOST } from "limits.dql"\n' + SUITE.replace("== 0", "< MOST")
    (dags / "orders.dql").write_text(suite)
    assert (parsed(dags, GATE), examinations()) == ("", 1)
    before = (dags / file).stat()
    (dags / file).write_text((dags / file).read_text().replace("MOST", "MUST"))
    os.utime(dags / file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = (dags / file).stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert "MUST" in parsed(dags, GATE)


def test_a_cache_writable_by_others_is_ignored(
    dags: Path, examinations: Callable[[], int], tmp_path: Path
) -> None:
    assert parsed(dags, GATE) == ""
    examinations()
    folder = tmp_path / "tmp" / f"dqx-airflow-{os.getuid()}"
    folder.chmod(0o777)
    assert (parsed(dags, GATE), examinations()) == ("", 1)


def test_a_truncated_cache_is_ignored(
    dags: Path, examinations: Callable[[], int], tmp_path: Path
) -> None:
    assert parsed(dags, GATE) == ""
    examinations()
    (notes,) = (tmp_path / "tmp" / f"dqx-airflow-{os.getuid()}").iterdir()
    notes.write_bytes(notes.read_bytes()[:-9] + b"\n\xff")
    assert (parsed(dags, GATE), examinations()) == ("", 1)


def test_one_new_file_of_notes_in_256_removes_those_of_a_month_ago(
    tmp_path: Path, operators: ModuleType
) -> None:
    from dqx_airflow.operators import parse_notes

    old = tmp_path / "old"
    for name in ("01", "00"):
        old.touch()
        os.utime(old, (0, 0))
        parse_notes.note(tmp_path / f"{name}ab", "key", [])
        assert old.exists() is (name != "00")
    os.utime(tmp_path / "01ab", (0, 0))
    parse_notes.note(tmp_path / "00ab", "other", [])
    assert (tmp_path / "01ab").exists(), "it was no new file"


def test_a_task_that_runs_does_not_check_its_neighbours(
    dags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "lake")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "other")
    assert parsed(dags, GATE.replace("orders.dql", "order.dql")) == ""


BAD_CONTRACTS = {
    "long": (CONTRACT.replace("0}", f"{'9' * 320}}}").encode(), "7", "larger than every double"),
    "infinite": (CONTRACT.replace("0}", "1e400}").encode(), "7", "larger than every double"),
    "twice": (CONTRACT.encode() + b"id: other\n", "8", "duplicate key 'id'"),
    "tab": (CONTRACT.replace("    fields", "\tfields").encode(), "6", "tab"),
    "binary": (b"\x00\x01\xff" + CONTRACT.encode(), "", "not a text file"),
    "cut": (CONTRACT.replace("0}", "").encode(), "4", "invalid YAML"),
    "cyclic": (CONTRACT.replace("  orders:", "  orders: &a\n    x: *a").encode(), "6", "alias"),
    "empty": (b"", "", ""),
    "list": (b"- 1\n", "1", ""),
}
TWO_DAGS = """
    ContractGateOperator(task_id="gate", contract="{name}.yaml", data="/lake/orders")

with DAG("sound_{name}", start_date=datetime(2024, 1, 1), schedule=None):
    ContractGateOperator(task_id="gate", contract="orders.yaml", data="/lake/orders")
"""


def test_a_contract_that_cannot_be_read_costs_its_own_dag_only(dags: Path) -> None:
    for name, (text, _, _) in BAD_CONTRACTS.items():
        (dags / f"{name}.yaml").write_bytes(text)
        head = HEAD.replace('"lake"', f'"bad_{name}"')
        (dags / f"{name}.py").write_text(head + TWO_DAGS.format(name=name))
    found, errors = read_folder(dags)
    assert found == {f"sound_{name}" for name in BAD_CONTRACTS}
    shown = {Path(file).stem: error for file, error in errors.items()}
    assert shown.keys() == BAD_CONTRACTS.keys()
    for name, (_, line, words) in BAD_CONTRACTS.items():
        assert "Traceback" not in shown[name]
        assert f"{name}.yaml:{line}" in shown[name], shown[name]
        assert words in shown[name], shown[name]
