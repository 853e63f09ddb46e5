"""Whatever stands in a file of rules, `dql import` prints a message or translates, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command_line import dql
from tests.odd_values import text_of, with_odd_values

CASES = Path(__file__).parent / "cases"
DOCUMENTS = sorted(path for path in CASES.iterdir() if path.suffix in (".json", ".yml"))


def _check(data: st.DataObject, folder: Path) -> None:
    original = data.draw(st.sampled_from(DOCUMENTS))
    document = data.draw(with_odd_values(yaml.safe_load(original.read_text("utf-8"))))
    changed = folder / original.name
    changed.write_text(text_of(document, original.suffix), "utf-8")
    result = dql("import", changed)
    assert "dql failed" not in result.output, (result.output, document)


@pytest.mark.more
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_a_rule_is_a_message(data: st.DataObject, tmp_path: Path) -> None:
    _check(data, tmp_path)


@pytest.mark.nightly
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_a_rule_is_a_message_in_many_examples(
    data: st.DataObject, tmp_path: Path
) -> None:
    _check(data, tmp_path)


def _imported(folder: Path, text: str) -> str:
    path = folder / "dqx.yml"
    path.write_text(text)
    return dql("import", path).output


def test_a_rule_of_another_shape_is_named_and_the_others_are_translated(tmp_path: Path) -> None:
    output = _imported(
        tmp_path,
        "- check: {function: is_unique, arguments: {columns: 1.5}}\n"
        "- check: {function: is_not_null, arguments: {column: id}}\n",
    )
    assert "its arguments are not as the tool writes them" in output
    assert "1 translated, 1 not translated" in output


def test_a_file_of_another_structure_is_refused_with_the_place(tmp_path: Path) -> None:
    output = _imported(tmp_path, "- check: {function: is_not_null, arguments: [a]}\n")
    assert "at the beginning: not as a file of Databricks DQX is written" in output


def test_a_check_of_pandera_without_its_value_is_not_translated(tmp_path: Path) -> None:
    path = tmp_path / "schema.yml"
    path.write_text("schema_type: dataframe\ncolumns: {a: {checks: {str_matches: {}}}}\n")
    done = dql("import", path)
    assert done.returncode == 1
    assert "the check 'str_matches' has unsupported arguments" in done.output
