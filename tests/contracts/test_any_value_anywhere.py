"""Whatever value stands at a key of a contract, each command prints a message, no traceback."""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dqx_airflow.cli.main import app

EXAMPLES = Path(__file__).parent / "examples"
DOCUMENTS = sorted(path for path in EXAMPLES.rglob("*.*") if path.parent.name != "shared")
ODD_VALUES: list[Any] = [
    *(10**330, -(10**330), float("nan"), float("-inf"), 1e308, 0, -1, 2.5, True, False, None),
    *([], {}, [None], [[]], [{}], {"a": None}, {1: {2: 3}}, date(1, 1, 1), datetime(9999, 12, 31)),
    *("", " ", "\n\n", "x" * 5000, "ß", "İ", "😀", "%%", "= 1", "'; drop", "{{ x }}", "null"),
    *("${X}", "${X:-}", "$", "${", "[", "(?P<a", "a{999999999}", "\\", "1e999", "0x10", "1_000"),
    *("2024-13-45", "P1Y", "99999999d", "-1d"),
]
COMMANDS = [
    ("lint",),
    ("to-suite",),
    ("coverage",),
    *(("export", "--to", kind) for kind in ("odcs", "great-expectations", "html", "schema")),
]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


def _check(data: st.DataObject, folder: Path) -> None:
    shutil.copytree(EXAMPLES / "dcs" / "shared", folder / "shared", dirs_exist_ok=True)
    original = data.draw(st.sampled_from(DOCUMENTS))
    document = yaml.safe_load(original.read_text("utf-8"))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(_places(document)))
        document = _replaced(document, place, data.draw(st.sampled_from(ODD_VALUES)))
    changed = folder / f"changed{original.suffix}"
    changed.write_text(
        json.dumps(document, default=str)
        if original.suffix == ".json"
        else yaml.safe_dump(document, allow_unicode=True),
        "utf-8",
    )
    command = data.draw(st.sampled_from(COMMANDS))
    for arguments in ((*command, changed), ("diff", original, changed)):
        result = CliRunner().invoke(app, ["contract", *map(str, arguments)])
        assert "dql failed" not in result.output, (arguments, result.output, document)
        assert result.exception is None or isinstance(result.exception, SystemExit)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_at_any_key_is_a_message(data: st.DataObject, tmp_path: Path) -> None:
    _check(data, tmp_path)


@pytest.mark.nightly
@settings(max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_at_any_key_is_a_message_in_many_examples(
    data: st.DataObject, tmp_path: Path
) -> None:
    _check(data, tmp_path)


@pytest.mark.parametrize("key", ["partition_by", "z_order_by"])
def test_a_mapping_among_the_columns_of_a_layout_is_an_error_in_each_command(
    key: str, tmp_path: Path
) -> None:
    original = EXAMPLES / "fabric" / "slot_telemetry.yaml"
    document = yaml.safe_load(original.read_text("utf-8"))
    document["contract"]["format"][key] = [{"a": None}]
    changed = tmp_path / "contract.yaml"
    changed.write_text(yaml.safe_dump(document), "utf-8")
    for arguments in (("lint", changed), ("diff", original, changed)):
        result = CliRunner().invoke(app, ["contract", *map(str, arguments)])
        assert f"{key}[0] is a mapping, not a text" in result.output
