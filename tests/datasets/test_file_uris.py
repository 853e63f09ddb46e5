"""A table of this machine is one table, however its path is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.contracts.registry import registry_at
from dqx_airflow.datasets.dqx_toml import read_settings
from dqx_airflow.datasets.locations import paths_overlap
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.engine.sources.listing import absolute
from dqx_airflow.lineage.coverage import Flow
from dqx_airflow.lineage.names import name_of_path, trimmed_location
from dqx_airflow.results.tables import locate
from dqx_airflow.values.files import local_path
from tests.command_line import dql

SPELLINGS = ["file:{}", "file://{}", "file://localhost{}", "FILE:{}", "File://{}", "{}", "{}/"]


@pytest.mark.parametrize("form", SPELLINGS)
def test_every_spelling_is_the_same_place(form: str, tmp_path: Path) -> None:
    place = tmp_path / "lake 1" / "orders"
    is_uri = form.lower().startswith("file")
    written = form.format(str(place).replace(" ", "%20") if is_uri else place)
    plain = str(place)
    assert dataset_ref("t", {"path": written, "format": "csv"}).path in (plain, plain + "/")
    assert absolute(written) == plain
    assert paths_overlap(written, plain)
    assert locate(written).root == plain
    assert str(registry_at(written).home.folder) == plain  # type: ignore[attr-defined]
    assert name_of_path(written) == name_of_path(plain)
    assert trimmed_location(written) == trimmed_location(plain)
    flow = Flow()
    assert flow.at(written) is flow.at(plain)
    settings = tmp_path / "dqx.toml"
    written_path = f'path = "{written}"\nformat = "csv"\n'
    settings.write_text(
        f'[defaults]\nresults_root = "{written}"\n[datasets.orders]\n{written_path}'
    )
    found = read_settings(settings)
    assert not found.problems
    assert str(found.refs["orders"].path).rstrip("/") == plain
    assert str(found.results_root).rstrip("/") == plain


@pytest.mark.parametrize(
    "location",
    ["s3://lake/orders", "hdfs://nn:8020/lake", "/lake/file:/x", "lake/orders", "file://host/lake"],
)
def test_other_locations_stay_as_they_are(location: str) -> None:
    assert local_path(location) == location


def test_the_commands_read_a_path_as_spark_prints_it(here: Path) -> None:
    data = here / "lake" / "t.parquet"
    data.parent.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3]}), data)
    suite = 'suite "S" { check "C" on t { assert num_rows() > 0 name "n" } }'
    Path("s.dql").write_text(suite)
    Path("dqx.toml").write_text("[defaults]\n")
    printed = set()
    for form in ("{}", "file:{}", "file://{}"):
        dataset = f"t={form.format(data)}"
        seen = ""
        for words in (
            ["lineage", "coverage", "s.dql"],
            ["mutate", "s.dql", "--date", "2026-01-01"],
            ["explain", "s.dql", "--cost"],
        ):
            done = dql(*words, "--dataset", dataset)
            assert done.returncode in (0, 1), done.output
            seen += done.stdout
        printed.add(seen)
    assert len(printed) == 1
