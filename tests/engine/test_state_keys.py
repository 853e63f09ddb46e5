"""A stored state depends on every setting of a dataset and a request, unless there is a reason not
to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import dqx_airflow
from dqx_airflow.engine.job_parts import plan_gate
from dqx_airflow.engine.scan import fingerprints
from dqx_airflow.engine.scan.fingerprints import WITHOUT_EFFECT
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.states import State, StateCache, StateStore
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.plan.passes import AggregateRequest, AggregateResults
from dqx_airflow.plan.predicates import aggregates_of, lookups_of
from dqx_airflow.plan.row_types import RowTypes
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    EnforcedContract,
    GateOrigin,
    GatePart,
    GateRequest,
    ImportedFile,
    Origin,
    ParentRun,
    RunKey,
    Selection,
    Severity,
    ShadowSuite,
    SourceFile,
)
from tests.engine.lake import TODAY, YESTERDAY, request

pytestmark = pytest.mark.spark

SUITE = """suite "S" { check "C" on orders {
    assert sum(id) > 0 name "sum"
    assert values(k) in values(k, dataset known) name "known"
} }"""
Keys = dict[str, set[tuple[object, ...]]]


class Kept:
    """A store that remembers under what states would be kept."""

    def __init__(self) -> None:
        self.keys: set[tuple[object, ...]] = set()

    def keep(self, scope: str, run_id: str, at: datetime, states: Iterable[State]) -> None:
        for state in states:
            for sql, fingerprint in state.fingerprints.items():
                self.keys.add((scope, state.date, sql, fingerprint))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that stays as it is."""
    return written_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def own_lake(tmp_path: Path) -> Path:
    """A lake whose files a test may change."""
    return written_lake(tmp_path)


def written_lake(folder: Path) -> Path:
    """The same rows in every format that a setting may ask for."""
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "k": ["a", "b"],
            "ds": pa.array([TODAY] * 2, pa.date32()),
            "other": pa.array([TODAY] * 2, pa.date32()),
            "day": ["2024-03-02", "20240302"],
            "at": pa.array([datetime(2024, 3, 2)] * 2, pa.timestamp("us", "UTC")),
        }
    )
    for name in ("orders", "known"):
        for place in (name, f"{name}_2"):
            write_deltalake(str(folder / "delta" / place), table)
            for kind in ("parquet", "csv"):
                (folder / kind / place).mkdir(parents=True)
            pq.write_table(table, folder / "parquet" / place / "a.parquet")
            pa.csv.write_csv(table, folder / "csv" / place / "a.csv")
    return folder


def keys_of(spark: Any, gate: GateRequest, began: datetime | None = None) -> Keys:
    """Under what the states of each assertion of `SUITE` would be stored."""
    plan = plan_gate(gate)
    opened = {ref.name: open_dataset(spark, ref) for ref in gate.datasets}
    references = ReferenceTables(opened, plan.date)
    keys: Keys = {}
    for one in plan.assertions:
        kept = Kept()
        memory = StateCache(
            spark, cast(StateStore, kept), "run", began or datetime.now(timezone.utc)
        )
        for item in () if one.is_implicit else one.requests:
            looks_into = tuple(lookup.reference for lookup in lookups_of(item))
            types = RowTypes(opened[item.dataset].schema.type_of)
            needs = [
                AggregateRequest(item.date, part, looks_into) for part in aggregates_of(item, types)
            ]
            found = AggregateResults()
            for need in needs:
                found.add(need.date, {need.aggregate.sql: 7}, Origin.SCAN)
            memory.keep(opened[item.dataset], references, needs, found)
        if not one.is_implicit:
            keys[one.name] = kept.keys
    return keys


@pytest.fixture(scope="module")
def keys_of_base(spark: Any, lake: Path) -> Callable[[str], Keys]:
    """The keys of two datasets as they are, the same however often they are asked for."""

    @cache
    def keys_of_its_lake(base: str) -> Keys:
        gate = request(lake, SUITE, tuple(base_refs(lake, base).values()))
        keys = keys_of(spark, gate)
        assert all(keys.values())
        assert keys_of(spark, gate) == keys
        return keys

    return keys_of_its_lake


def base_refs(lake: Path, base: str) -> dict[str, DatasetRef]:
    return {
        name: replace(BASES[base], name=name, path=str(lake / str(BASES[base].path) / name))
        for name in ("orders", "known")
    }


def delta_refs(lake: Path) -> dict[str, DatasetRef]:
    return base_refs(lake, "delta")


BASES = {
    "delta": DatasetRef("", "delta", format="delta", date_column="ds"),
    "csv": DatasetRef(
        "", "csv", format="csv", date_column="day", schema="id bigint, k string, day string"
    ),
    "at": DatasetRef("", "delta", format="delta", date_column="at"),
}
CHANGES: dict[str, tuple[str, Any]] = {
    "path": ("delta", "_2"),
    "format": ("delta", "parquet"),
    "date_column": ("delta", "other"),
    "filter": ("delta", "id > 0"),
    "options": ("csv", (("nullValue", "b"),)),
    "schema": ("csv", "id int, k string, day string"),
    "date_format": ("csv", "yyyyMMdd"),
    "time_zone": ("at", "Asia/Tokyo"),
    "trust_log": ("delta", False),
    "table": ("delta", "rows_by_name"),
    "query": ("delta", "SELECT * FROM rows_by_name"),
}
"""For each setting of a dataset, how it is read otherwise, and another value."""


WITHOUT_FILES = {"conn_id": "a table of a database has no files to know again: it has no states"}


def test_every_setting_of_a_dataset_is_in_the_key_or_exempt() -> None:
    names = {field.name for field in fields(DatasetRef)}
    assert names == {*CHANGES, *WITHOUT_EFFECT, *WITHOUT_FILES}
    assert {"path"} == CHANGES.keys() & WITHOUT_EFFECT  # it counts as the location


@pytest.mark.few(4)
@pytest.mark.parametrize("whose", ["orders", "known"])
@pytest.mark.parametrize("setting", CHANGES)
def test_another_setting_of_a_dataset_or_of_its_reference_is_another_state(
    spark: Any, lake: Path, keys_of_base: Callable[[str], Keys], setting: str, whose: str
) -> None:
    base, value = CHANGES[setting]
    refs, before = base_refs(lake, base), keys_of_base(base)
    changes = {setting: value}
    if setting == "path":
        changes["path"] = f"{refs[whose].path}{value}"
    elif setting == "format":
        changes["path"] = str(lake / value / whose)
    elif setting in ("table", "query"):
        rows = spark.createDataFrame([(1, "a", TODAY)], "id long, k string, ds date")
        rows.createOrReplaceTempView("rows_by_name")
        changes["path"] = None
    refs[whose] = replace(refs[whose], **changes)
    after = keys_of(spark, request(lake, SUITE, tuple(refs.values())))
    assert before["known"].isdisjoint(after["known"])
    assert (before["sum"] == after["sum"]) is (whose == "known")
    assert (after["known"] == set()) is (setting in ("table", "query"))


@pytest.mark.parametrize("whose", ["orders", "known"])
def test_exempt_settings_do_not_change_the_key(
    spark: Any, lake: Path, keys_of_base: Callable[[str], Keys], whose: str
) -> None:
    refs, before = delta_refs(lake), keys_of_base("delta")
    refs[whose] = replace(refs[whose], keys=("id",), masked=("at",), version=0)
    assert keys_of(spark, request(lake, SUITE, tuple(refs.values()))) == before


OTHER_REQUEST: dict[str, Any] = {
    "run_key": RunKey("test.gate", YESTERDAY, "manual"),
    "suite": SourceFile("s", SUITE.replace("sum(id)", "maximum(id)")),
    "datasets": "see the tests of each setting",
}
SAME_REQUEST = {
    "attempt": (Attempt(2, "b"), "who asks does not change what is there"),
    "results_root": ("/elsewhere", "another store has other states"),
    "fail_on": (Severity.P3, "judges values"),
    "allow_empty": (True, "judges values"),
    "skip_dates": ((YESTERDAY,), "judges values"),
    "parent": (ParentRun("a", "b", "c", "d", "e", "f"), "lineage"),
    "timeout_s": (7.0, "ends a gate"),
    "imports": (
        (ImportedFile("s", "x", SourceFile("x", "")),),
        "what a suite draws in is in its aggregates",
    ),
    "recompute": (True, "nothing is asked of the store then, nor put there"),
    "sample_rows": (3, "shows rows"),
    "quarantine": ((("orders", "/q"),), "copies rows"),
    "contract": (EnforcedContract("c", "1", "dcs"), "the suite is made of it"),
    "promote_to": ((("orders", "/p"),), "copies rows"),
    "date_from": ("the schedule", "the date itself counts"),
    "promote_slice": ((("k", "a"),), "copies rows"),
    "require_history": (True, "judges values"),
    "ansi": (False, "the mode of the session is in the key"),
    "max_clock_skew_hours": (1.0, "judges values"),
    "origin": (GateOrigin("the data team"), "lineage"),
    "more": (
        (GatePart(RunKey("test.gate", YESTERDAY, "manual")),),
        "each part asks for what is its own",
    ),
    "selection": (Selection(severity=Severity.P3), "it leaves requests out, and changes none"),
    "promote_partial": (True, "it decides where rows go"),
    "promote_blocked": (True, "it decides where rows go"),
    "promote_valid": ("1%", "it decides where rows go"),
    "accept_required": (True, "it decides where rows go"),
    "answered": ("run", "it decides where rows go"),
    "shadow": (ShadowSuite("s", SourceFile("s", SUITE)), "it asks for the same aggregates"),
}
"""What a request may say otherwise, and why a state is the same then."""


@pytest.mark.slow
def test_every_field_of_a_request_is_in_the_key_or_exempt_with_a_reason(
    spark: Any, lake: Path
) -> None:
    assert {field.name for field in fields(GateRequest)} == {*OTHER_REQUEST, *SAME_REQUEST}
    gate = request(lake, SUITE, tuple(delta_refs(lake).values()))
    before = keys_of(spark, gate)
    for name, (value, _) in SAME_REQUEST.items():
        assert keys_of(spark, replace(gate, **{name: value})) == before, name
    other_day = keys_of(spark, replace(gate, run_key=OTHER_REQUEST["run_key"]))
    assert [name for name in before if before[name] & other_day[name]] == []
    other_suite = keys_of(spark, replace(gate, suite=OTHER_REQUEST["suite"]))
    assert before["sum"].isdisjoint(other_suite["sum"])
    assert before["known"] == other_suite["known"]


def test_a_lookup_from_a_dataset_without_dates_is_kept_for_the_date_of_its_reference(
    spark: Any, lake: Path
) -> None:
    refs = delta_refs(lake)
    refs["orders"] = replace(refs["orders"], date_column=None)
    gate = request(lake, SUITE, tuple(refs.values()))
    before = keys_of(spark, gate)
    after = keys_of(spark, replace(gate, run_key=OTHER_REQUEST["run_key"]))
    assert before["sum"] == after["sum"]
    assert before["known"].isdisjoint(after["known"])


SETTINGS = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.whatever.comes.next": "1",
}


def test_session_settings_are_in_the_key_unless_about_speed(spark: Any, lake: Path) -> None:
    gate = request(lake, SUITE, tuple(delta_refs(lake).values()))
    before = keys_of(spark, gate)
    for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": "7"}.items():
        old = spark.conf.get(name, None)
        spark.conf.set(name, value)
        try:
            after = keys_of(spark, gate)
        finally:
            spark.conf.set(name, old) if old is not None else spark.conf.unset(name)
        is_same = name == "spark.sql.shuffle.partitions"
        assert all((before[key] == after[key]) is is_same for key in before), name


@pytest.mark.since_spark("4.0", "lets a test replace its version")
def test_versions_are_in_the_key(spark: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = request(lake, SUITE, tuple(delta_refs(lake).values()))
    before = keys_of(spark, gate)
    for owner, name, value in (
        (dqx_airflow, "__version__", "99.0"),
        (fingerprints, "STATE_FORMAT", 99),
        (spark, "version", "99.0"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            after = keys_of(spark, gate)
        assert all(before[name].isdisjoint(after[name]) for name in before), name


def _replaced(path: Path) -> None:
    """Another file in the place of one, of its size and of its time of modification."""
    shutil.copy2(path, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def test_a_replaced_file_of_the_same_size_and_time_changes_the_key(
    spark: Any, own_lake: Path
) -> None:
    paths = [own_lake / kind for kind in ("parquet", "delta")]
    for place in paths:
        refs = {
            name: replace(BASES["delta"], name=name, path=str(place / name), format=place.name)
            for name in ("orders", "known")
        }
        gate = request(own_lake, SUITE, tuple(refs.values()))
        before = keys_of(spark, gate)
        for name in ("orders", "known"):
            (file,) = (place / name).glob("*.parquet")
            _replaced(file)
            after = keys_of(spark, gate)
            assert before["known"].isdisjoint(after["known"])
            assert (before["sum"] == after["sum"]) is (name == "known")
            before = after


def test_a_redirected_link_changes_the_key(spark: Any, own_lake: Path) -> None:
    """A file behind a link, with the size and the times of the first one."""
    folder, link = own_lake / "parquet" / "orders", own_lake / "parquet" / "orders" / "a.parquet"
    for name in ("one", "two"):
        shutil.copy2(link, own_lake / name)
    refs = delta_refs(own_lake)
    refs["orders"] = replace(refs["orders"], path=str(folder), format="parquet")
    found = []
    for name in ("one", "two"):
        link.unlink()
        link.symlink_to(own_lake / name)
        found.append(keys_of(spark, request(own_lake, SUITE, tuple(refs.values())))["sum"])
    assert found[0].isdisjoint(found[1])


@pytest.mark.more
def test_states_of_object_store_files_of_the_last_second_are_not_stored(
    spark: Any, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its times are whole seconds: a file that was written as the gate began may be another one."""

    refs = {
        name: replace(
            BASES["delta"], name=name, path=str(lake / "parquet" / name), format="parquet"
        )
        for name in ("orders", "known")
    }
    began = datetime.now(timezone.utc)
    now_s = int(began.timestamp())
    for time_ns, is_kept in (
        (now_s * 10**9, False),
        (now_s * 10**9 + 1_000, True),
        ((now_s - 60) * 10**9, True),
    ):

        def listed(path: str, stat: Any, time_ns: int = time_ns) -> DataFile:
            return DataFile(path, stat.st_size, time_ns)

        monkeypatch.setattr(listing, "local_file", listed)
        keys = keys_of(spark, request(lake, SUITE, tuple(refs.values())), began)
        assert {name: bool(its) for name, its in keys.items()} == dict.fromkeys(keys, is_kept)
