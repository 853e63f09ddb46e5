"""Numbers on the command line: every option of every command has a range, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dqx_airflow.cli.main import app
from dqx_airflow.errors import RequestError
from dqx_airflow.results.decisions import waiver_limit
from dqx_airflow.values import RunOptions
from tests.command_line import dql

_ABSURD = {
    "int": (
        "-1",
        "99999999999999999999",
        "1000000000000000000000000",
        "nan",
        "inf",
        "1e3",
        "x",
        "",
    ),
    "float": ("-1", "nan", "-nan", "inf", "-inf", "1e400", "1e20", "x", ""),
    "span": ("-1", "0", "30", "0d", "1000000000000d", "9999999d", "nan", "inf", "1.5", "x", ""),
    "share": ("-1", "80", "1", "101%", "2.0", "nan", "inf", "1e400", "x%", "x", ""),
}
_NEEDED = {
    ("results", "prune"): ("--results-root", "store"),
    ("results", "vacuum"): ("--results-root", "store"),
    ("quarantine", "discard"): ("held", "--reason", "r"),
}
_SPANS = {"--older-than", "--keep", "--longest", "--timeout"}
_SHARES = {"--min", "--max-move"}


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        yield words, command
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        yield from _commands(command.get_command(context, name), (*words, name))


def _numeric() -> Iterator[tuple[tuple[str, ...], str, str, Any]]:
    for words, command in _commands(typer.main.get_command(app)):
        for option in command.params:
            flag = max(option.opts, key=len)
            kind = type(option.type).__name__
            if flag in _SPANS | _SHARES:
                yield words, flag, "span" if flag in _SPANS else "share", option.type
            elif "Int" in kind or "Float" in kind:
                yield words, flag, "int" if "Int" in kind else "float", option.type


_OPTIONS = [*_numeric()]


def test_every_number_has_a_range() -> None:
    open_options = {
        f"{' '.join(words)} {flag}"
        for words, flag, kind, type_ in _OPTIONS
        if kind not in ("span", "share")
        and (getattr(type_, "min", None) is None or type_.max is None)
    }
    assert open_options == set()


@pytest.mark.few(10, apart=True)
@pytest.mark.parametrize(
    ("words", "flag", "kind"),
    [option[:3] for option in _OPTIONS],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_an_absurd_number_is_an_error_of_the_call(
    here: Path, words: tuple[str, ...], flag: str, kind: str
) -> None:
    arguments = [*words, *_NEEDED.get(words, ())]
    for value in _ABSURD[kind]:
        result = dql(*arguments, f"{flag}={value}")
        assert result.returncode == 2, (value, result.output)
        assert "dql failed" not in result.output
        assert "Traceback" not in result.output
        assert result.output.strip()


@pytest.mark.parametrize("limit", ["9" * 5000, "1e9", "nan", "inf", "\u0661\u0662", "1" + "0" * 40])
def test_an_absurd_limit_of_a_waiver_is_refused(limit: str) -> None:
    with pytest.raises(RequestError, match="is not a limit"):
        waiver_limit("below", limit)


@pytest.mark.parametrize("hours", [-1, 10**20, 1e400, float("nan"), True, "24", None])
def test_an_absurd_clock_skew_is_refused_in_python(hours: Any) -> None:
    with pytest.raises(RequestError, match="max_clock_skew_hours"):
        RunOptions(max_clock_skew_hours=hours)
