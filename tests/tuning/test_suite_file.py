"""Writing to the file of a suite changes the values and no other byte."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dqx_airflow.dql import Suite
from dqx_airflow.errors import ChangeRefusedError, RequestError, SourceError
from dqx_airflow.tuning.suite_file import replacing

LINES = """\
# Limits: keep 5% where it is

suite "Orders" {
    const  MAX_NULLS=5%   tunable [0%, 20%]      # a share
\tconst MIN_ROWS = 1_000 tunable [1, 10_000] const LIMIT = (0.50) tunable [-1.0, 1.0]
    const AGE = 2 hours tunable [1 hour, 1 day]

    check "Ärger" on orders {
        assert null_count(email) / num_rows() < MAX_NULLS name "nulls ≥ 5%"
        assert num_rows() >= MIN_ROWS name "rows"
        assert average(x) > LIMIT name "limit"
        assert freshness(ds) < AGE name "age" } }
"""
SET = {"MAX_NULLS": 0.0375, "MIN_ROWS": 1200, "LIMIT": -0.25, "AGE": 5400}
WRITTEN = (
    LINES.replace("=5%  ", "=3.75%  ")
    .replace("= 1_000 ", "= 1200 ")
    .replace("(0.50)", "(-0.25)")
    .replace("2 hours", "90 minutes")
)


@pytest.mark.few(2)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_the_values_change(tmp_path: Path, end: str, mark: str) -> None:
    path = tmp_path / "orders.dql"
    path.write_bytes((mark + LINES.replace("\n", end)).encode())
    path.chmod(0o640)
    suite = Suite.load(path)
    for name, value in SET.items():
        suite.set_param(name, value, agent="autotuner", reason="labels")
    assert suite.save().written == (*SET,)
    assert path.read_bytes() == (mark + WRITTEN.replace("\n", end)).encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert {one.name: one.value for one in Suite.load(path).get_tunable_params()} == SET
    assert sorted(one.name for one in tmp_path.iterdir()) == ["orders.dql", "orders.dql.history"]


def test_concurrent_changes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(LINES)
    first, second = Suite.load(path), Suite.load(path)
    first.set_param("MAX_NULLS", 0.04)
    second.set_param("MIN_ROWS", 900)
    first.save()
    path.write_text(path.read_text().replace("# a share", "# a share of the rows"))
    second.save()
    text = path.read_text()
    assert "MAX_NULLS=4%" in text
    assert "MIN_ROWS = 900" in text
    assert "# a share of the rows" in text
    assert (second.get_param("MAX_NULLS"), second.save().written) == (0.04, ())


def test_a_suite_broken_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(LINES)
    suite = Suite.load(path)
    suite.set_param("MAX_NULLS", 0.04)
    path.write_text(LINES.replace("const  MAX_NULLS", "const  MOST_NULLS"))
    before = path.read_bytes()
    with pytest.raises(SourceError, match="E003"):
        suite.save()
    path.write_text(before.decode().replace("< MAX_NULLS", "< MOST_NULLS"))
    with pytest.raises(ChangeRefusedError, match=r"(?s)E603.*no tunable 'MAX_NULLS'"):
        suite.save()
    assert "MOST_NULLS=5%" in path.read_text()
    assert not Path(f"{path}.history").exists() or not Path(f"{path}.history").read_text()


def test_a_value_that_breaks_the_suite_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    text = (
        'suite "S" { const LOW = 1 tunable [0, 9] const HIGH = 5 tunable [0, 9]\n'
        'check "C" on orders { assert num_rows() between LOW and HIGH name "rows" } }\n'
    )
    path.write_text(text)
    suite = Suite.load(path)
    suite.set_param("LOW", 6)
    with pytest.raises(ChangeRefusedError, match="E104"):
        suite.save()
    assert path.read_text() == text


def test_a_symbolic_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "real.dql").write_text(LINES)
    link = tmp_path / "link.dql"
    link.symlink_to("real.dql")
    suite = Suite.load(link)
    suite.set_param("MIN_ROWS", 7)
    suite.save()
    assert link.is_symlink()
    assert "MIN_ROWS = 7 " in (tmp_path / "real.dql").read_text()


def test_an_unwritable_suite_is_an_error(tmp_path: Path) -> None:
    text = Suite.from_string(LINES)
    text.set_param("MIN_ROWS", 7)
    with pytest.raises(RequestError, match="this suite has no file"):
        text.save()
    path = tmp_path / "orders.dql"
    path.write_text(LINES)
    suite = Suite.load(path)
    suite.set_param("MIN_ROWS", 7)
    Path(f"{path}.history").mkdir()
    with pytest.raises(RequestError, match="cannot write the history"):
        suite.save()
    assert path.read_text() == LINES


def test_a_full_disk_leaves_the_suite_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_text(LINES)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # files cannot grow any further
    try:
        with pytest.raises(RequestError, match="cannot write"), replacing(path, b"x" * 100):
            pytest.fail("the content was written")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == LINES
    assert [file.name for file in tmp_path.iterdir()] == ["suite.dql"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(LINES)
    suite = Suite.load(path)
    suite.set_param("MIN_ROWS", 7)
    tmp_path.chmod(0o500)
    with pytest.raises(RequestError, match="run this where that folder is writable"):
        suite.save()
    tmp_path.chmod(0o700)
    assert path.read_text() == LINES


def test_copies_of_tunables_set_nothing(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(LINES)
    suite = Suite.load(path)
    suite.get_tunable_params()[1].value = 5
    assert suite.get_param("MIN_ROWS") == 1000
    assert suite.save().written == ()
    assert suite.get_tunable_params()[0]["normalized_value"] == 0.25
    with pytest.raises(KeyError):
        _ = suite.get_tunable_params()[0]["_value"]
