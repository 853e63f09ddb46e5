"""`gates_of` makes the gates of a dqx.toml in a DAG."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from dqx_airflow.operators import DqlGateOperator

pytestmark = pytest.mark.airflow

SETTINGS = """\
[defaults]
fail_on = "P0"
results_root = "results"
max_clock_skew_hours = 1.5

[reader.csv]
sep = ";"

[datasets.orders]
path = "lake/orders"
date_column = "ds"
masked = ["email"]

[datasets.orders_all]
path = "lake/orders"

[datasets.countries]
path = "lake/countries.csv"
schema = "code string"

[gates.orders]
suite = "suites/orders.dql"
group = "sales/eu"
owner = "sue"
asset = "s3://lake/orders"
on_violation = "warn"

[gates.countries]
suite = "suites/countries.dql"
datasets = ["countries", "orders_all"]
allow_empty = true
fail_on = "P2"

[gates.more_orders]
suite = "suites/orders.dql"
datasets = ["orders"]
group = "sales/eu"
"""


def suite(name: str) -> str:
    return f'suite "{name}" {{ check "A" on {name} {{ assert num_rows() > 0 name "{name}.a" }} }}'


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    (tmp_path / "suites").mkdir()
    for name in ("orders", "countries"):
        (tmp_path / "suites" / f"{name}.dql").write_text(suite(name))
    (tmp_path / "dqx.toml").write_text(SETTINGS)
    return tmp_path / "dqx.toml"


def lake_dag() -> DAG:
    from airflow.sdk import DAG

    return DAG("lake", start_date=datetime(2026, 1, 1), schedule=None)


def gates_of(settings: Path | str, **arguments: object) -> dict[str, DqlGateOperator]:
    from dqx_airflow.operators import gates_of

    return gates_of(settings, **arguments)  # type: ignore[arg-type]


def refused(message: str | None = None) -> Any:
    """Expects that the file or the call is refused, with a message."""
    from dqx_airflow.operators.exceptions import GateMisconfiguredError

    return pytest.raises(GateMisconfiguredError, match=message)


def made(settings: Path, **arguments: object) -> dict[str, DqlGateOperator]:
    with lake_dag() as dag:
        gates = gates_of(settings, **arguments)
    assert {*dag.task_ids} == {*gates}
    return gates


def group_of(gate: DqlGateOperator) -> tuple[str | None, str]:
    assert gate.task_group is not None
    return gate.task_group.group_id, gate.task_group.label or ""


def test_each_gate_of_the_file_is_a_task_with_its_settings(settings: Path) -> None:
    from airflow.sdk import Asset

    gates = made(settings)
    assert {*gates} == {"orders", "countries", "more_orders"}
    orders, countries = gates["orders"], gates["countries"]
    home = settings.parent
    assert orders.suite == f"{home}/suites/orders.dql"
    assert orders.datasets == {
        "orders": {
            "format": "delta",
            "path": f"{home}/lake/orders",
            "date_column": "ds",
            "masked": ["email"],
        }
    }
    assert (orders.fail_on, orders.on_violation, orders.owner) == ("P0", "warn", "sue")
    assert orders.outlets == [Asset("s3://lake/orders")]
    assert orders.max_clock_skew_hours == 1.5
    assert (countries.fail_on, countries.allow_empty, countries.outlets) == ("P2", True, [])
    assert countries.datasets["countries"]["options"] == {"sep": ";"}
    assert orders.results_root == f"{home}/results"


def test_what_is_masked_in_one_dataset_is_masked_in_all_that_read_its_files(settings: Path) -> None:
    datasets = made(settings)["countries"].datasets
    assert datasets["orders_all"]["masked"] == ["email"]


def test_gates_are_in_task_groups_that_are_not_part_of_their_names(settings: Path) -> None:
    gates = made(settings)
    assert group_of(gates["orders"]) == ("group_sales_eu", "sales/eu")
    assert group_of(gates["more_orders"]) == group_of(gates["orders"])
    assert group_of(gates["countries"])[0] is None
    assert group_of(made(settings, group_by="owner")["orders"]) == ("group_sue", "sue")
    assert group_of(made(settings, group_by=None)["orders"])[0] is None


def test_groups_whose_names_differ_in_characters_that_no_id_has_stay_apart(settings: Path) -> None:
    text = settings.read_text().replace('"sales/eu"', '"日本"', 1).replace('"sales/eu"', '"中国"')
    settings.write_text(text.replace("[gates.countries]", "[gates.group__]"))
    gates = made(settings)
    groups = [group_of(gates[name]) for name in ("orders", "more_orders")]
    assert [label for _, label in groups] == ["日本", "中国"]
    assert len({*gates, *(group_id for group_id, _ in groups)}) == 5


def test_gates_of_one_group_may_be_made_by_two_calls(settings: Path) -> None:
    with lake_dag() as dag:
        gates_of(settings, only="orders", retries=2)
        gates_of(settings, exclude="orders")
    assert {*dag.task_ids} == {"orders", "countries", "more_orders"}


def test_gates_are_chosen_by_patterns_of_names_and_groups(settings: Path) -> None:
    assert {*made(settings, only="sales/*")} == {"orders", "more_orders"}
    assert {*made(settings, only=["orders", "countries"])} == {"orders", "countries"}
    assert {*made(settings, exclude="more_*, count*")} == {"orders"}
    assert {*made(settings, exclude=["more_*,count*"])} == {"orders"}


def test_arguments_of_all_gates_count_more_than_defaults_and_less_than_a_gate(
    settings: Path,
) -> None:
    gates = made(settings, fail_on="P1", results_root="/elsewhere", pool="spark", retries=2)
    assert (gates["orders"].fail_on, gates["countries"].fail_on) == ("P1", "P2")
    assert {gate.results_root for gate in gates.values()} == {"/elsewhere"}
    assert {(gate.pool, gate.retries) for gate in gates.values()} == {("spark", 2)}


def test_a_results_root_in_airflow_counts_more_than_the_file(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DQX__RESULTS_ROOT", "/store")
    assert made(settings)["orders"].results_root is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('suite = "suites/countries.dql"\n', "", "gate 'countries' has no suite"),
        ('"orders_all"]', '"order_all"]', "no dataset 'order_all'"),
        ("allow_empty = true", 'allow_empty = "yes"', "invalid value for 'allow_empty'"),
        ('on_violation = "warn"', 'on_violation = "wrn"', "invalid value for 'on_violation'"),
        ('owner = "sue"', 'ownr = "sue"', "unknown key 'ownr' in [gates.orders]"),
        ('datasets = ["orders"]', 'datasets = "orders"', "'datasets' must be a list of names"),
        ('path = "lake/countries.csv"\n', "", "[datasets.countries] has no path"),
        ("[gates.orders]", "[gates", "invalid TOML"),
        (
            "[gates.more_orders]",
            '[gates."more orders"]',
            "'more orders' cannot be the name of a gate",
        ),
        ('"s3://lake/orders"', '"airflow://x"', "dqx.toml:25: invalid value for 'asset'"),
    ],
)
def test_a_mistake_in_the_file_is_an_error_that_says_where(
    old: str, new: str, message: str, settings: Path
) -> None:
    settings.write_text(settings.read_text().replace(old, new))
    with refused(re.escape(message)) as caught:
        made(settings)
    assert "dqx.toml" in str(caught.value)


def test_all_mistakes_are_said_at_once(settings: Path) -> None:
    text = settings.read_text().replace('owner = "sue"', "owner = 1").replace("true", "2")
    settings.write_text(text)
    with refused() as caught:
        made(settings)
    head, owner, empty = str(caught.value).split("\n")
    assert head == f"2 errors in {settings}"
    assert ("'owner' must" in owner, "'allow_empty'" in empty) == (True, True)


def test_of_many_errors_the_first_are_said_and_how_many_more(settings: Path) -> None:
    wrong = "".join(f"\n[gates.g{number}]\nowner = 1\n" for number in range(150))
    settings.write_text(settings.read_text() + wrong)
    with refused() as caught:
        made(settings)
    head, *lines, last = str(caught.value).split("\n")
    count = int(head.removesuffix(f" errors in {settings}"))
    assert count >= 150
    assert len(lines) == 20
    assert [line for line in lines if "dqx.toml:" not in line] == []
    assert last.strip() == f"and {count - 20} more"


def test_an_edit_that_keeps_size_and_time_is_read(settings: Path) -> None:
    before = settings.stat()
    assert made(settings)["orders"].fail_on == "P0"
    settings.write_text(SETTINGS.replace('fail_on = "P0"', 'fail_on = "P3"'))
    os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert made(settings)["orders"].fail_on == "P3"
    settings.write_text(SETTINGS.replace('fail_on = "P0"', 'fail_on = "P7"'))
    os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
    with refused("'fail_on'"):
        gates_of(settings)


@pytest.fixture
def parsed_again(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[dict[str, DqlGateOperator], int]]:
    """Parses the DAG as the next process of the DAG processor; returns its gates, and how often the
    file was parsed for them."""
    from dqx_airflow.datasets import dqx_toml
    from dqx_airflow.operators import parse_notes, toml_gates

    parses = []
    real = dqx_toml.settings_in

    def counted(content: bytes, path: Path) -> dqx_toml.Settings:
        parses.append(path)
        return real(content, path)

    def parse() -> tuple[dict[str, DqlGateOperator], int]:
        parses.clear()
        toml_gates._read_once.cache_clear()
        parse_notes._read_notes.clear()
        return made(settings), len(parses)

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(dqx_toml, "settings_in", counted)
    monkeypatch.setattr("sys.argv", ["airflow", "dag-processor"])
    return parse


Parse: TypeAlias = "Callable[[], tuple[dict[str, DqlGateOperator], int]]"


def test_the_dag_processor_parses_an_unchanged_file_once(parsed_again: Parse) -> None:
    from airflow.serialization.serialized_objects import OperatorSerialization

    first, parses = parsed_again()
    again, more_parses = parsed_again()
    assert (parses, more_parses) == (1, 0)
    for name, gate in first.items():
        shown = [OperatorSerialization.serialize_operator(one) for one in (gate, again[name])]
        assert shown[0] == shown[1]
        given = [
            repr({key: getattr(one, key) for key in one.checked_arguments})
            for one in (gate, again[name])
        ]
        assert given[0] == given[1]
    assert first["orders"].datasets["orders"] is not again["orders"].datasets["orders"]


def test_an_edit_that_keeps_size_and_time_is_read_in_the_dag_processor(
    settings: Path, parsed_again: Parse
) -> None:
    before = settings.stat()
    parsed_again()
    settings.write_text(SETTINGS.replace('fail_on = "P0"', 'fail_on = "P3"'))
    os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
    gates, parses = parsed_again()
    assert (gates["orders"].fail_on, parses) == ("P3", 1)
    settings.write_text(SETTINGS.replace('fail_on = "P0"', 'fail_on = "P7"'))
    for _ in range(2):
        with refused("'fail_on'"):
            parsed_again()


def test_a_task_reads_the_file_itself(parsed_again: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_again()
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "lake")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "orders")
    assert parsed_again()[1] == 1


@pytest.mark.parametrize("damage", [b"", b"[1]\n", b'["x", {"gates": 3}]\n', b"\xff"])
def test_a_damaged_note_is_ignored(parsed_again: Parse, tmp_path: Path, damage: bytes) -> None:
    parsed_again()
    for notes in (tmp_path / "tmp" / f"dqx-airflow-{os.getuid()}").iterdir():
        notes.write_bytes(damage + notes.read_bytes()[:-20])
    gates, parses = parsed_again()
    assert (len(gates), parses) == (3, 1)


def test_a_note_that_others_could_write_is_ignored(parsed_again: Parse, tmp_path: Path) -> None:
    parsed_again()
    (tmp_path / "tmp" / f"dqx-airflow-{os.getuid()}").chmod(0o777)
    assert parsed_again()[1] == 1


def test_a_missing_file_and_patterns_without_a_gate_are_refused(settings: Path) -> None:
    with refused(r"cannot read .*: write Path"):
        gates_of("none.toml")
    with refused(r"matches only=.x.: available"):
        gates_of(settings, only="x")
    with refused("'ordrs': did you mean 'orders'"):
        gates_of(settings, only="countries, ordrs")
    with refused() as caught:
        gates_of(settings, only="countries, ordrs, saels/*", exclude="*_tmp, more_order")
    assert [line.partition("toml: ")[2] for line in str(caught.value).split("\n")] == [
        "no gate or group matches only='ordrs': did you mean 'orders'?",
        "no gate or group matches only='saels/*': did you mean 'sales/*'?",
        "no gate or group matches exclude='more_order': did you mean 'more_orders'?",
    ]
    for blank in ("", "orders,", [" "]):
        with refused("a pattern without characters"):
            gates_of(settings, exclude=blank)
    with refused("only=3: write a pattern"):
        gates_of(settings, only=3)
    with refused("group_by='team'"):
        gates_of(settings, group_by="team")


def test_one_batch_judges_all_gates_with_their_spark(settings: Path) -> None:
    from dqx_airflow.operators import GateBatchOperator

    with lake_dag() as dag:
        gates = gates_of(
            settings,
            batch={"at_once": 2, "retries": 3},
            conn_id="cluster",
            retries=1,
            pool="spark",
            fail_on="P1",
            execution_timeout=timedelta(hours=1),
            on_failure_callback=print,
        )
    batch = dag.get_task("gate_batch")
    assert isinstance(batch, GateBatchOperator)
    assert batch.downstream_task_ids == {*gates}
    assert {gate.batch for gate in gates.values()} == {"gate_batch"}
    assert (batch._conn_id, batch.pool, batch.retries, batch.at_once) == ("cluster", "spark", 3, 2)
    assert batch.execution_timeout is None
    assert not batch.on_failure_callback
    batch.prepare_template()
    with refused("batch='yes': write True, or a mapping"):
        made(settings, batch="yes")
