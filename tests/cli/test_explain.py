"""`dql explain` at each stage, for people and for scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import "lib.dql" as lib
suite "S" {
    const MOST = 5%
    macro nulls(column) { assert null_count({column}) / num_rows() < MOST name "{column} nulls" }
    check "C" on orders {
        use nulls(email)
        assert day_over_day(num_rows()) < lib.CHANGE name "stable" tags [volume]
        assert values(country) in values(code, dataset countries) name "known"
    }
    profile "P" { from 2024-02-28 to 2024-03-01 scale tag "volume" by 0.5x }
}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "lib.dql").write_text("export const CHANGE = 35%\n")
    path = tmp_path / "suite.dql"
    path.write_text(SUITE)
    return path


def explain(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "dql"), "explain", str(path), *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_plan_names_passes_dates_and_multipliers(suite: Path) -> None:
    found = explain(suite, "--date", "2024-02-29").stdout
    assert "one pass over orders: 2024-02-28, 2024-02-29" in found
    assert "one pass over countries: all rows" in found
    assert "with country looked up in countries.code" in found
    assert "times 0.5: profiles P" in found
    assert "< 35%" in found


def test_the_expanded_suite_is_plain_and_sound(suite: Path, tmp_path: Path) -> None:
    printed = explain(suite, "--stage", "suite").stdout
    assert "macro" not in printed
    assert "import" not in printed
    assert "assert null_count(email) / num_rows() < MOST" in printed
    again = tmp_path / "alone.dql"
    again.write_text(printed)
    (tmp_path / "lib.dql").unlink()
    assert explain(again, "--stage", "suite").stdout == printed


@pytest.mark.parametrize("stage", ["tokens", "tree", "suite", "plan"])
def test_every_stage_has_a_json_form(suite: Path, stage: str) -> None:
    found = explain(suite, "--stage", stage, "--format", "json")
    assert json.loads(found.stdout)


def test_tokens_and_tree_are_readable(suite: Path) -> None:
    assert "2:1\tIMPORT\timport" in explain(suite, "--stage", "tokens").stdout
    assert "Macro is_variadic=False" in explain(suite, "--stage", "tree").stdout


def test_a_suite_with_errors_exits_2_and_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "bad.dql"
    path.write_text('suite "S" { check "C" on t { assert avg(a) > 0 } }')
    found = explain(path)
    assert found.returncode == 2
    assert "did you mean 'average'?" in found.stderr
    assert explain(tmp_path / "nowhere.dql").returncode == 2
