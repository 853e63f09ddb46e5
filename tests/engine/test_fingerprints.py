"""Which files and settings change a fingerprint, without Spark."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StringType, StructType

import dqx_airflow
from dqx_airflow.engine.scan import fingerprints
from dqx_airflow.engine.scan.fingerprints import Chain, chain_of, scope_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, partitions_of
from dqx_airflow.values import DatasetRef

TODAY, YESTERDAY = date(2024, 3, 2), date(2024, 3, 1)
SECOND = 10**9
STRUCT = StructType().add("id", IntegerType()).add("day", StringType())

OLD = DataFile("/t/day=2024-03-01/z.parquet", 10, 1 * SECOND)
NEW = DataFile("/t/day=2024-03-02/a.parquet", 20, 2 * SECOND)
OTHER = DataFile("/t/day=2024-03-02/b.parquet", 30, 2 * SECOND)


def dataset(*files: DataFile, **settings: Any) -> OpenDataset:
    ref = replace(DatasetRef("orders", path="/t", format="parquet", date_column="day"), **settings)
    opened = OpenDataset(
        ref, STRUCT, lambda _: cast(Any, None), "file:///t", DateColumn.of(ref, STRUCT), files=files
    )
    return replace(opened, partitions=partitions_of(ref, "/t", ListedFiles(files)))


def chain(opened: OpenDataset, on: date | None = None) -> Chain:
    found = chain_of(opened, on, ListedFiles(opened.files or ()))
    assert found is not None
    return found


def test_added_files_are_found() -> None:
    before, after = chain(dataset(OLD)), chain(dataset(OTHER, OLD, NEW))
    assert after.files == (OLD, NEW, OTHER)  # by time, then by path
    assert after.added_since(before.fingerprint) == (NEW, OTHER)
    assert after.added_since(after.fingerprint) == ()
    assert after.added_since(chain(dataset()).fingerprint) == after.files
    assert before.added_since(after.fingerprint) is None
    assert after.added_since(chain(dataset(NEW)).fingerprint) is None


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/t/day=2024-03-01/y.parquet"},
        {"size": 11},
        {"modified_ns": 1 * SECOND + 1},
        {"changed_ns": 1},
        {"inode": 1},
        {"partition": ("2024-03-01",)},
    ],
    ids=str,
)
def test_any_change_of_a_file_changes_the_fingerprint(change: dict[str, Any]) -> None:
    before = chain(dataset(OLD))
    after = chain(dataset(OLD._replace(**change), NEW))
    assert after.added_since(before.fingerprint) is None


@given(st.builds(DataFile, st.text(), *[st.integers(0, 2**64)] * 4, st.tuples(st.text())))
def test_a_file_is_written_as_json(file: DataFile) -> None:
    ours = Chain("ground", (file,)).fingerprint
    assert ours == hashlib.sha256(f"ground{json.dumps(file)}".encode()).hexdigest()


def test_columns_and_their_types_are_part_of_the_fingerprint() -> None:
    before = chain(dataset(OLD)).fingerprint
    for struct in (
        StructType().add("id", StringType()).add("day", StringType()),
        StructType().add("it", IntegerType()).add("day", StringType()),
        StructType().add("day", StringType()).add("id", IntegerType()),
    ):
        assert chain(replace(dataset(OLD), struct=struct)).fingerprint != before


def test_a_date_has_the_files_outside_folders_of_other_dates() -> None:
    loose = DataFile("/t/c.parquet", 1, 3 * SECOND)
    opened = dataset(OLD, NEW, loose)
    assert chain(opened, TODAY).files == (NEW, loose)
    assert chain(opened, YESTERDAY).files == (OLD, loose)
    assert chain(opened).files == (OLD, NEW, loose)
    assert chain(replace(opened, dates=None), TODAY).files == (OLD, NEW, loose)


def test_how_the_strings_of_folders_are_read_is_part_of_the_fingerprint() -> None:
    today = NEW._replace(path="/t/day=2024-03-02/city=Z%C3%BCrich/a.parquet")
    decoded, other = (
        OLD._replace(path=f"/t/day=2024-03-01/city={c}/z.parquet") for c in ("B", "è")
    )
    before = chain(dataset(today), TODAY).fingerprint
    assert chain(dataset(today, decoded), TODAY).fingerprint == before
    assert chain(dataset(today, other), TODAY).fingerprint != before


def test_an_unlisted_dataset_or_an_open_filter_has_no_fingerprint() -> None:
    assert chain_of(dataset(OLD), None, None) is None
    assert chain_of(replace(dataset(), files=None), None, ListedFiles([OLD])) is None
    assert chain_of(dataset(OLD, filter="id > rand()"), None, ListedFiles([OLD])) is None
    assert chain_of(dataset(OLD, filter="other > 1"), None, ListedFiles([OLD])) is None
    assert chain_of(dataset(OLD, filter="id > 1"), None, ListedFiles([OLD])) is not None


@pytest.mark.parametrize(
    ("modified", "changed", "moment", "is_older"),
    [
        (5 * SECOND, 0, 6 * SECOND, True),
        (5 * SECOND, 0, 6 * SECOND - 1, False),
        (5 * SECOND, 0, 5 * SECOND, False),
        (5 * SECOND + 1, 0, 5 * SECOND, True),  # told to the nanosecond
        (5 * SECOND, 5 * SECOND + 1, 5 * SECOND, True),
        (4 * SECOND, 5 * SECOND, 5 * SECOND, False),
        (7 * SECOND + 1, 5 * SECOND, 5 * SECOND, False),
    ],
)
def test_a_file_is_older_only_if_written_before_that_second(
    modified: int, changed: int, moment: int, is_older: bool
) -> None:
    file = DataFile("/t/a", 1, modified, changed)
    assert chain(dataset(file)).is_older_than(moment) is is_older
    assert chain(dataset(OLD, file)).is_older_than(moment) is is_older


def test_an_empty_chain_is_older_than_any_time() -> None:
    assert chain(dataset()).is_older_than(0)


@pytest.fixture
def delta(tmp_path: Path) -> OpenDataset:
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "day": ["2024-03-01", "2024-03-02"]})
    write_deltalake(str(tmp_path), rows, partition_by=["day"])
    return opened_delta(tmp_path)


def opened_delta(path: Path) -> OpenDataset:
    opened = dataset(path=str(path), format="delta")
    return replace(opened, log=DeltaLog(DeltaTable(str(path)), str(path), STRUCT, opened.dates))


def test_the_log_of_a_table_names_its_files(delta: OpenDataset) -> None:
    for on, count in ((None, 2), (TODAY, 1), (TODAY + timedelta(1), 0)):
        found = chain_of(delta, on, None)
        assert found is not None
        assert len(found.files) == count
        assert [file for file in found.files if not file.inode] == []
        assert [file for file in found.files if f"day={on or ''}" not in file.path] == []


def test_a_table_with_missing_files_has_no_fingerprint(delta: OpenDataset) -> None:
    for file in Path(cast(str, delta.ref.path)).glob("*/*.parquet"):
        file.unlink()
    assert chain_of(delta, None, None) is None


def test_deletion_vectors_make_the_version_part_of_the_fingerprint(delta: OpenDataset) -> None:
    path = Path(cast(str, delta.ref.path))
    before = chain(delta, TODAY).fingerprint
    more = pa.table({"id": pa.array([3], pa.int32()), "day": ["2024-03-05"]})
    write_deltalake(str(path), more, mode="append")
    assert chain(opened_delta(path), TODAY).fingerprint == before
    table = DeltaTable(str(path))
    table.alter.add_feature(deletion_vectors(), allow_protocol_versions_increase=True)
    marked = chain(opened_delta(path), TODAY).fingerprint
    assert marked != before
    write_deltalake(str(path), more, mode="append")
    assert chain(opened_delta(path), TODAY).fingerprint != marked


def deletion_vectors() -> Any:
    from deltalake import TableFeatures

    return TableFeatures.DeletionVectors


def test_location_reader_settings_and_engine_make_the_scope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"ansi": "true", "zone": None}
    before = scope_of(dataset(OLD), settings, "4.2.0")
    same = [
        scope_of(dataset(NEW), dict(reversed(settings.items())), "4.2.0"),
        scope_of(dataset(OLD, name="o", keys=("id",), masked=("id",)), settings, "4.2.0"),
        scope_of(dataset(OLD, path="/u", version=1), settings, "4.2.0"),
    ]
    assert set(same) == {before}
    others = [
        scope_of(dataset(OLD), settings, "4.2.1"),
        scope_of(dataset(OLD), {**settings, "ansi": "false"}, "4.2.0"),
        scope_of(dataset(OLD), {"ansi": "true"}, "4.2.0"),
        scope_of(replace(dataset(OLD), location="file:///u"), settings, "4.2.0"),
        scope_of(dataset(OLD, filter="id > 1"), settings, "4.2.0"),
        scope_of(dataset(OLD, options=(("a", "b"),)), settings, "4.2.0"),
    ]
    for owner, name in ((dqx_airflow, "__version__"), (fingerprints, "STATE_FORMAT")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, 99)
            others.append(scope_of(dataset(OLD), settings, "4.2.0"))
    assert len({before, *others}) == 1 + len(others)
