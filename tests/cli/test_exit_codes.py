"""No command ends with a traceback, and exit code 1 means "blocked" only."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from dqx_airflow.cli.exit_codes import CommandGroup
from dqx_airflow.cli.main import app
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import StoreError
from tests.command_line import dql
from tests.processes import ended

DQL = Path(sys.executable).with_name("dql")
VERBS = (
    ["check"],
    ["fmt", "--check"],
    ["explain"],
    ["contract", "lint"],
    ["contract", "to-suite"],
    ["contract", "clauses"],
    ["contract", "export", "--format", "html"],
)
HEAD = "dataContractSpecification: 1.1.0\nid: c\ninfo: {title: t, version: 1.0.0}\n"
BROKEN: dict[str, bytes] = {
    "binary.dql": bytes(range(256)) * 10,
    "binary.yaml": bytes(range(256)) * 10,
    "circle.dql": b"""import "round.dql"

suite "S" {
    check "C" on t {
        assert num_rows() > 0
            name "a"
    }
}
""",
    "cut.dql": b'suite "S" { check "C" on t { assert ',
    "cut.yaml": b'a: {b: [1, "',
    "deep.dql": b'suite "S" { check "C" on t { assert ' + b"(" * 3_000,
    "deep.yaml": b"[" * 3_000,
    "flow.yaml": b"a: " + b"{a: " * 2_000,
    "nul.yaml": (HEAD + 'models: {t: {fields: {a: {$ref: "x.yaml\\0"}}}}\n').encode(),
    "own.yaml": (HEAD + 'models: {t: {fields: {a: {$ref: "own.yaml#/models/t"}}}}\n').encode(),
    "items.yaml": (
        HEAD
        + "models: {t: {fields: {a: {type: array, items: {$ref: '#/definitions/d'}}}}}\n"
        + "definitions: {d: {type: record, fields: "
        + "{x: {type: array, items: {$ref: 'items.yaml#/definitions/d'}}}}}\n"
    ).encode(),
    "two.yaml": (HEAD + "models: {t: {fields: {a: {$ref: 'beside.yaml#/d'}}}}\n").encode(),
    "beside.yaml": b"d: {type: record, fields: {x: {$ref: 'two.yaml#/models/t/fields/a'}}}\n",
    "pattern.yaml": (
        HEAD + "models: {t: {fields: {a: {type: string, pattern: '^(a|aa)+$', "
        "examples: ['" + "a" * 60 + "!']}}}}\n"
    ).encode(),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    for name, content in BROKEN.items():
        (folder / name).write_bytes(content)
    (folder / "round.dql").symlink_to("round.dql")
    (folder / "folder.dql").mkdir()
    (folder / "folder.yaml").mkdir()
    return folder


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize(
    "name", [*BROKEN, "round.dql", "folder.dql", "folder.yaml", "missing.yaml"]
)
def test_broken_input_is_reported_without_a_traceback(
    broken: Path, verb: list[str], name: str
) -> None:
    result = dql(*verb, broken / name)
    assert "Traceback" not in result.output
    if name not in ("pattern.yaml", "beside.yaml"):
        assert result.returncode in (0, 2)
    assert "dql failed" not in result.output


@pytest.mark.parametrize("name", ["own.yaml", "items.yaml", "two.yaml"])
def test_a_circular_reference_is_reported(broken: Path, name: str) -> None:
    result = dql("contract", "lint", broken / name)
    assert "error[E407]: circular $ref" in result.output
    assert result.returncode == 2


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (RuntimeError("https://u:SECRET@host broke\nmore"), 4, "dql failed: RuntimeError: https"),
        (RecursionError(), 4, "dql failed: RecursionError"),
        (MemoryError(), 4, "dql failed: MemoryError"),
        (ImportError("half of it"), 4, "half of it\n  help: `dql doctor` finds packages that"),
        (ConnectionRefusedError(111, "refused"), 4, "Spark was lost"),
        (StoreError("no store", "make one"), 4, "error: no store\n  help: make one"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a.dql"), 2, "error: a.dql: File name"),
        (OSError(errno.ENOSPC, "No space left", "a.dql"), 4, "error: a.dql: No space left"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.BadParameter("no"), 2, "no"),
        (typer.Exit(1), 1, ""),
    ],
)
def test_an_exception_is_a_message_and_never_1(
    raised: BaseException, code: int, message: str
) -> None:
    tried = typer.Typer(cls=CommandGroup, pretty_exceptions_enable=False)

    @tried.command()
    def one() -> None:
        raise raised

    @tried.command()
    def other() -> None: ...

    result = CliRunner().invoke(tried, ["one"])
    assert result.exit_code == code
    assert message in result.output
    assert "Traceback" not in result.output
    assert "SECRET" not in result.output


@pytest.mark.parametrize("on", ["0001-01-01", "9999-12-31"])
def test_a_date_at_the_end_of_the_calendar_is_refused(broken: Path, on: str) -> None:
    suite = broken / "sound.dql"
    suite.write_text('suite "S" { check "C" on t { assert num_rows(lag 1) > 0 name "a" } }')
    result = dql("explain", suite, "--date", on)
    assert f"error: no data is of {on}" in result.output
    assert result.returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_closed_pipe_or_output_gives_no_traceback(broken: Path) -> None:
    command = f"{DQL} explain E110 | head -c 1; {DQL} explain E110 >&-"
    done = ended(["sh", "-c", command], timeout=100)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.more
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_closed_streams_are_ignored_and_a_full_disk_is_reported(broken: Path) -> None:
    (broken / "sound.dql").write_text('suite "S" { check "C" on t { assert num_rows() > 0 } }')
    command = f"{DQL} check sound.dql <&- >&-; echo $?; {DQL} check sound.dql >/dev/full; echo $?"
    done = ended(["sh", "-c", command], cwd=broken, timeout=100)
    assert done.stdout.split() == ["0", "4"]
    assert done.stderr.startswith("error: cannot write: No space left on device\n  help: make room")


def test_json_escapes_terminal_control_characters() -> None:
    assert json_text("ä\x9b31m\u202e\u2066\u200f") == '"ä\\u009b31m\\u202e\\u2066\\u200f"'


def test_every_option_of_every_command_has_help() -> None:
    """That of a docstring is lost if its name is misspelt there."""

    def silent(command: Any, name: str) -> Iterator[str]:
        for parameter in command.params:
            if not parameter.help:
                yield f"{name} {parameter.name}"
        for verb in getattr(command, "commands", ()):
            yield from silent(command.commands[verb], f"{name} {verb}")

    assert list(silent(get_command(app), "dql")) == []
