"""The registry of published contracts: what it stores, and what it refuses on which date."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.contracts.publishing import period_of
from dqx_airflow.contracts.registry import Publication, Registry, registry_at
from dqx_airflow.errors import RegistryError
from tests.contracts.contract_edits import contract_of

ID = "bronze.wagers"
START = date(2026, 1, 5)


def wagers(version: str, columns: str = "amount", more: str = "") -> str:
    listed = "\n".join(
        f"      - {{name: {name}, type: bigint, semantic: The {name}.}}" for name in columns.split()
    )
    return f"""\
contract:
  id: {ID}
  version: {version}
{more}  schema:
    columns:
{listed}
"""


NOTICE = "  versioning: {deprecation_notice_days: 30}\n"
DEPRECATED = "  lifecycle: {status: deprecated}\n" + NOTICE
QUARTERLY = "  versioning: {breaking_change_cadence: quarterly_max}\n"


@pytest.fixture(params=["folder", "table"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a registry is that is not there yet."""
    return f"{'delta:' * (request.param == 'table')}{tmp_path / 'registry'}"


@pytest.fixture
def registry(place: str) -> Registry:
    return registry_at(place)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The place of a registry in a folder."""
    return tmp_path / "registry"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The place of a registry in a Delta table, with one version."""
    place = tmp_path / "table"
    publish(registry_at(f"delta:{place}"), wagers("1.0.0"))
    return place


def publish(registry: Registry, text: str, on: date = START) -> Publication:
    return registry.publish(contract_of(text), {"wagers.yaml": text}, on)


def problems(publication: Publication) -> list[str]:
    return [objection.problem for objection in publication.objections]


def versions(registry: Registry) -> list[str | None]:
    return [item.contract.version for item in registry.versions(ID)]


def test_a_published_version_is_read_back_unchanged(registry: Registry) -> None:
    text = wagers("1.0.0") + "# a remark\n"
    publish(registry, text)
    (found,) = registry.versions(ID)
    assert (found.contract, found.on) == (contract_of(text), START)
    assert registry.texts(ID, found.number) == {"wagers.yaml": text}
    assert registry.ids() == (ID,)


def test_referenced_files_are_published_with_it(registry: Registry, tmp_path: Path) -> None:
    from dqx_airflow.contracts.read import read_contract
    from dqx_airflow.contracts.references import FolderReader
    from dqx_airflow.values import SourceFile

    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "id.yaml").write_text("type: string\nrequired: true\n")
    text = (
        "dataContractSpecification: 1.1.0\nid: orders\ninfo: {title: O, version: 1.0.0}\n"
        "models:\n  orders:\n    fields:\n      id: {$ref: parts/id.yaml}\n"
    )
    found = read_contract(SourceFile("orders.yaml", text), FolderReader(tmp_path))
    assert found.contract is not None
    registry.publish(found.contract, found.sources, START)
    (published,) = registry.versions("orders")
    assert published.contract == found.contract


def test_a_version_is_published_once_and_never_with_another_content(registry: Registry) -> None:
    publish(registry, wagers("1.0.0"))
    assert publish(registry, wagers("1.0.0")).was_there
    refused = publish(registry, wagers("1.0.0", "amount game"))
    assert problems(refused) == ["version 1.0.0 was published on 2026-01-05 with another content"]
    assert versions(registry) == ["1.0.0"]


@pytest.mark.parametrize(
    ("version", "columns", "message"),
    [
        (
            "1.1.0",
            "game",
            "the version goes from 1.0.0 to 1.1.0, and a major bump is required: 2.0.0",
        ),
        ("1.0.1", "amount game", "and a minor bump is required: 1.1.0 or higher"),
        ("0.9.0", "amount", "version 0.9.0 is lower than 1.0.0"),
        ("newest", "amount", "'newest' cannot be ordered as a version"),
    ],
)
def test_a_version_bump_that_is_too_small_is_refused(
    registry: Registry, version: str, columns: str, message: str
) -> None:
    publish(registry, wagers("1.0.0"))
    (problem,) = problems(publish(registry, wagers(version, columns)))
    assert message in problem
    assert versions(registry) == ["1.0.0"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  lifecycle: {status: stabel}\n", "'stabel' is not one of the values of 'status'"),
        (QUARTERLY.replace("quarterly_max", "sometimes"), "'sometimes' is not one of the values"),
    ],
)
def test_unknown_keywords_are_refused(place: str, more: str, message: str) -> None:
    registry = registry_at(place)
    for _ in ("the first version", "a later one"):
        (problem,) = problems(publish(registry, wagers("1.1.0", more=more)))
        assert message in problem
        assert not publish(registry, wagers("1.0.0")).objections


def test_a_datalex_manifest_is_refused(registry: Registry) -> None:
    text = (
        '{"manifestSpecVersion": "1.0.0", "datalexVersion": "1.8.0", "domains": [],'
        ' "generatedAt": "2026-01-01T00:00:00Z", "project": {"name": "shop"}}'
    )
    outcome = registry.publish(contract_of(text, "m.json"), {"m.json": text}, START)
    assert problems(outcome) == [
        "a manifest of DataLex has no version: each of its contracts has one"
    ]


def test_release_candidates_promise_nothing(registry: Registry) -> None:
    publish(registry, wagers("1.0.0"))
    publish(registry, wagers("1.1.0-rc.1", "amount game"))
    assert not problems(publish(registry, wagers("1.1.0", "amount table")))


def test_drafts_promise_nothing(registry: Registry) -> None:
    publish(registry, wagers("1.0.0", "amount", "  lifecycle: {status: draft}\n"))
    assert not problems(publish(registry, wagers("1.0.1", "game")))


def test_a_breaking_version_waits_for_its_notice(registry: Registry) -> None:
    publish(registry, wagers("1.0.0", "amount", NOTICE))
    breaking = wagers("2.0.0", "game", NOTICE)
    assert problems(publish(registry, breaking)) == [
        "1.0.0 promises 30 days of notice before it breaks, and it is not deprecated yet"
    ]
    publish(registry, wagers("1.1.0", "amount", DEPRECATED), date(2026, 2, 1))
    (early,) = publish(registry, breaking, date(2026, 3, 2)).objections
    assert early.hint == "publish it on 2026-03-03 or later"
    assert not problems(publish(registry, breaking, date(2026, 3, 3)))


def test_a_notice_longer_than_the_calendar_never_ends(registry: Registry) -> None:
    ages = NOTICE.replace("30", "999999999999")
    publish(registry, wagers("1.0.0", "amount", ages))
    publish(registry, wagers("1.1.0", "amount", DEPRECATED.replace("30", "999999999999")))
    (early,) = publish(registry, wagers("2.0.0", "game", ages)).objections
    assert early.hint == "publish it on 9999-12-31 or later"


def test_a_breaking_version_that_comes_into_force_later_has_given_notice(
    registry: Registry,
) -> None:
    def customers(version: str, column: str, effective: str) -> str:
        return (
            f"contract: {{name: Customers, version: '{version}', description: All,"
            f" owner: team, domain: d, effective_date: '{effective}'}}\n"
            f"schema:\n  fields:\n    - {{name: {column}, type: string, description: It.}}\n"
            "sla:\n  changes: {breaking_change_notice: 90}\n"
        )

    publish(registry, customers("1.0.0", "id", "2026-01-05"))
    assert problems(publish(registry, customers("2.0.0", "key", "2026-04-04")))
    assert not problems(publish(registry, customers("2.0.0", "key", "2026-04-05")))


def test_breaking_changes_are_limited_by_the_contract(registry: Registry) -> None:
    publish(registry, wagers("1.0.0", "a", QUARTERLY), date(2025, 12, 1))
    assert not problems(publish(registry, wagers("2.0.0", "b", QUARTERLY), date(2026, 1, 5)))
    assert problems(publish(registry, wagers("3.0.0", "c", QUARTERLY), date(2026, 3, 31))) == [
        "bronze.wagers breaks at most once a quarter (quarterly_max), and did so on 2026-01-05 "
        "with 2.0.0"
    ]
    assert not problems(publish(registry, wagers("2.1.0", "b c", QUARTERLY), date(2026, 3, 31)))
    assert not problems(publish(registry, wagers("3.0.0", "c", QUARTERLY), date(2026, 4, 1)))


@pytest.mark.parametrize(
    ("cadence", "begin"),
    [
        ("monthly_max", date(2026, 8, 1)),
        ("quarterly_max", date(2026, 7, 1)),
        ("half_yearly", date(2026, 7, 1)),
        ("yearly", date(2026, 1, 1)),
        ("weekly", date(2026, 8, 17)),
        ("now and then", None),
    ],
)
def test_periods_are_those_of_the_calendar(cadence: str, begin: date | None) -> None:
    found = period_of(cadence, date(2026, 8, 20))
    assert (found and found[0]) == begin


def test_a_sunset_is_announced_in_time(registry: Registry) -> None:
    publish(registry, wagers("1.0.0", "amount", NOTICE))

    def sunset(day: str) -> str:
        return f"  lifecycle: {{status: deprecated, sunset_date: {day}}}\n{NOTICE}"

    early = publish(registry, wagers("1.1.0", "amount", sunset("2026-01-20")))
    assert problems(early) == [
        "the sunset on 2026-01-20 gives less than the 30 days of notice that are promised"
    ]
    assert not problems(publish(registry, wagers("1.1.0", "amount", sunset("2026-02-04"))))


def test_nothing_is_published_into_the_past(registry: Registry) -> None:
    publish(registry, wagers("1.0.0"))
    (problem,) = problems(publish(registry, wagers("1.1.0", "amount game"), date(2025, 1, 1)))
    assert problem == "2025-01-01 is before 2026-01-05, when the last version was published"


def test_concurrent_versions_are_checked_against_each_other(registry: Registry) -> None:
    publish(registry, wagers("1.0.0"))
    texts = [wagers(f"1.{number}.0", f"amount c{number}") for number in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda text: publish(registry, text), texts))
    found = registry.versions(ID)
    assert [item.number for item in found] == list(range(1, len(found) + 1))
    assert found == tuple(sorted(found, key=lambda item: item.version))
    assert len(found) == 1 + sum(outcome.published is not None for outcome in outcomes)


def test_concurrent_publishers_of_one_version_publish_it_once(registry: Registry) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda text: publish(registry, text), [wagers("1.0.0")] * 8))
    assert sum(not outcome.was_there for outcome in outcomes) == 1
    assert versions(registry) == ["1.0.0"]


@pytest.mark.more
@pytest.mark.few(1)
def test_processes_that_publish_at_once_never_share_a_number(place: str, tmp_path: Path) -> None:
    calls = []
    for number in range(4):
        file = tmp_path / f"{number}.yaml"
        # Versions before 1.0.0 break nobody: only the number is fought for.
        file.write_text(wagers(f"0.{number}.0", f"amount c{number}"))
        calls.append(["dql", "contract", "registry", "publish", str(file), "--registry", place])
    running = [
        subprocess.Popen(
            [f"{Path(sys.executable).parent}/{call[0]}", *call[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for call in calls
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    found = registry_at(place).versions(ID)
    assert sum(f"{ID} 0." in text and "published" in text for text in outputs) == len(found), (
        outputs
    )
    assert [item.number for item in found] == list(range(1, len(found) + 1))
    assert [item.version for item in found] == sorted(item.version for item in found)


def test_contracts_are_separate(registry: Registry) -> None:
    other = wagers("3.0.0").replace(ID, "bronze.players")
    publish(registry, wagers("1.0.0"))
    publish(registry, other)
    assert registry.ids() == ("bronze.players", ID)
    assert versions(registry) == ["1.0.0"]


def test_a_missing_registry_is_empty_and_not_created(registry: Registry, tmp_path: Path) -> None:
    assert (registry.ids(), registry.versions(ID)) == ((), ())
    assert not list(tmp_path.iterdir())


def test_a_dry_run_reports_and_publishes_nothing(registry: Registry) -> None:
    text = wagers("1.0.0")
    outcome = registry.publish(contract_of(text), {"wagers.yaml": text}, START, is_dry=True)
    assert outcome.published is not None
    assert registry.ids() == ()


@pytest.mark.parametrize("strange", ["../up", "..", "a/b", ".hidden", "x" * 400, "ü %/\\:*'"])
def test_any_id_is_stored_unchanged(registry: Registry, strange: str) -> None:
    text = wagers("1.0.0").replace(f"id: {ID}", f"id: {json.dumps(strange)}")
    assert publish(registry, text).published
    assert registry.ids() == (strange,)
    assert [item.contract.id for item in registry.versions(strange)] == [strange]


# In a folder -------------------------------------------------------------------------------------


def test_a_version_changed_after_publication_is_reported(folder: Path) -> None:
    publish(registry_at(str(folder)), wagers("1.0.0"))
    (file,) = folder.rglob("wagers.yaml")
    file.write_text(wagers("1.0.0", "other"))
    with pytest.raises(RegistryError, match="was changed after it was published"):
        registry_at(str(folder)).versions(ID)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": 2}', '{"format": 1}', "\x00"])
def test_an_invalid_entry_is_reported(folder: Path, content: str) -> None:
    publish(registry_at(str(folder)), wagers("1.0.0"))
    (file,) = folder.rglob("entry.json")
    file.write_text(content)
    with pytest.raises(RegistryError):
        registry_at(str(folder)).versions(ID)


def test_a_half_written_version_is_ignored(folder: Path) -> None:
    publish(registry_at(str(folder)), wagers("1.0.0"))
    assert not list(folder.rglob(".publishing-*"))
    (folder / ID / ".publishing-abc").mkdir()
    assert versions(registry_at(str(folder))) == ["1.0.0"]


@pytest.mark.parametrize("strange", ["../up", "..", "a/b", ".hidden", "x" * 400, "ü %/\\:*"])
def test_any_id_has_a_folder_of_its_own_below_the_registry(folder: Path, strange: str) -> None:
    text = wagers("1.0.0").replace(f"id: {ID}", f"id: {json.dumps(strange)}")
    publish(registry_at(str(folder)), text)
    assert [home.parent for home in folder.iterdir()] == [folder]
    assert [path.name for path in folder.parent.iterdir()] == ["registry"]


def test_a_file_as_location_is_reported(place: str, tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("")
    with pytest.raises(RegistryError, match="cannot be read or written"):
        publish(registry_at(place), wagers("1.0.0"))


# In a Delta table --------------------------------------------------------------------------------


def test_the_path_of_a_table_and_urls_mean_the_table(table: Path) -> None:
    for place in (str(table), f"delta:{table}", table.as_uri(), f"delta:{table.as_uri()}"):
        assert versions(registry_at(place)) == ["1.0.0"]


def test_a_version_is_one_append_only_row(table: Path) -> None:
    publish(registry_at(str(table)), wagers("1.1.0", "amount game"))
    found = DeltaTable(table)
    assert found.metadata().configuration["delta.appendOnly"] == "true"
    rows = sorted(found.to_pyarrow_table().to_pylist(), key=lambda row: row["number"])
    shown = [(row["contract_id"], row["number"], row["version"], row["dialect"]) for row in rows]
    assert shown == [(ID, 1, "1.0.0", "fabric"), (ID, 2, "1.1.0", "fabric")]
    assert rows[0]["files"] == [{"name": "wagers.yaml", "text": wagers("1.0.0")}]


def test_a_taken_number_is_refused_by_a_stale_reader(table: Path) -> None:
    home = registry_at(str(table)).home
    (entry,) = home.entries(ID)
    assert not home.add(entry)
    assert versions(registry_at(str(table))) == ["1.0.0"]


def test_a_row_changed_after_publication_is_reported(table: Path) -> None:
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    rows[0]["files"][0]["text"] = wagers("1.0.0", "other")
    changed = pa.Table.from_pylist(rows, DeltaTable(table).to_pyarrow_table().schema)
    forged = table.parent / "forged"
    write_deltalake(forged, changed)
    with pytest.raises(RegistryError, match=r"1\.0\.0 .* was changed after it was published"):
        registry_at(str(forged)).versions(ID)


def test_rows_of_an_unknown_format_are_reported(table: Path) -> None:
    rows = DeltaTable(table).to_pyarrow_table()
    later = table.parent / "later"
    place = rows.schema.get_field_index("format")
    write_deltalake(later, rows.set_column(place, "format", pa.array([2])))
    with pytest.raises(RegistryError, match="has an unknown format"):
        registry_at(str(later)).versions(ID)


def test_any_other_table_is_not_a_registry(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "orders", pa.table({"id": [1]}))
    with pytest.raises(RegistryError, match="not a registry of contracts"):
        publish(registry_at(str(tmp_path / "orders")), wagers("1.0.0"))


def test_a_registry_in_a_folder_does_not_become_a_table(folder: Path) -> None:
    publish(registry_at(str(folder)), wagers("1.0.0"))
    with pytest.raises(RegistryError, match="a folder with files, but not a Delta table"):
        publish(registry_at(f"delta:{folder}"), wagers("1.0.0"))


@pytest.mark.parametrize("nowhere", ["", " ", "delta:"])
def test_a_registry_needs_a_location(nowhere: str) -> None:
    with pytest.raises(RegistryError, match="no registry given"):
        registry_at(nowhere)
