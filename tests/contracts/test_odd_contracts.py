"""Every command prints a message, not a traceback, for any value at any key of a contract."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command_line import dql
from tests.odd_values import text_of, with_odd_values

EXAMPLES = Path(__file__).parent / "examples"
DOCUMENTS = sorted(path for path in EXAMPLES.rglob("*.*") if path.parent.name != "shared")
COMMANDS = [
    ("lint",),
    ("to-suite",),
    ("clauses",),
    *(("export", "--format", kind) for kind in ("odcs", "great-expectations", "html", "schema")),
]


def _check(data: st.DataObject, folder: Path) -> None:
    shutil.copytree(EXAMPLES / "dcs" / "shared", folder / "shared", dirs_exist_ok=True)
    original = data.draw(st.sampled_from(DOCUMENTS))
    document = data.draw(with_odd_values(yaml.safe_load(original.read_text("utf-8"))))
    changed = folder / f"changed{original.suffix}"
    changed.write_text(text_of(document, original.suffix), "utf-8")
    command = data.draw(st.sampled_from(COMMANDS))
    for arguments in ((*command, changed), ("diff", original, changed)):
        result = dql("contract", *arguments)
        assert "dql failed" not in result.output, (arguments, result.output, document)


@pytest.mark.more
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
        result = dql("contract", *arguments)
        assert f"{key}[0] is a mapping, not a text" in result.output
