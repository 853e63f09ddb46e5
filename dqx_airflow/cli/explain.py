"""`dql explain`: what becomes of a suite on its way to the scan, or what a code means."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dqx_airflow.dql.check import Checked
    from dqx_airflow.values import SourceFile

EXIT_ERRORS = 2

_CODE = re.compile(r"[EW]\d{3}", re.IGNORECASE)


class Stage(str, Enum):
    """The stages of a suite."""

    TOKENS = "tokens"
    TREE = "tree"
    SUITE = "suite"
    PLAN = "plan"


class Format(str, Enum):
    TEXT = "text"
    JSON = "json"


def explain(
    path: Annotated[
        Path,
        typer.Argument(metavar="SUITE|CODE", help="A suite file, or a code such as E001."),
    ],
    stage: Annotated[
        Stage,
        typer.Option(
            help="Show the tokens, the syntax tree, the suite with macros expanded, or the plan."
        ),
    ] = Stage.PLAN,
    on: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="The date of the plan; default today."),
    ] = None,
    format: Annotated[Format, typer.Option(help="Output format: text or json.")] = Format.TEXT,
) -> None:
    """Show how a suite is processed: its tokens, its tree, the expanded suite, or the plan. Or
    explain the code of an error or a warning.

    The plan assumes that every dataset of a check has dates, and that all other datasets have none.

    For a code: the purpose of the rule, with a wrong and a right example.
    """
    if _CODE.fullmatch(str(path)) and not path.exists():
        _explain_code(str(path).upper(), format)
        return
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.imports import FileReader, search_path
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        typer.echo(draw([source.diagnostic], {str(path): source.text}), err=True)
        raise typer.Exit(EXIT_ERRORS)
    if stage is Stage.TOKENS:
        typer.echo(_tokens(source, format))
        return
    reader = FileReader(source.name, path, Path.cwd(), search_path(os.environ))
    checked = check_source(source, reader, needs_suite=stage is not Stage.TREE)
    if checked.errors:
        typer.echo(draw(checked.errors, checked.sources), err=True)
        raise typer.Exit(EXIT_ERRORS)
    day = on.date() if on else date.today()
    typer.echo(_shown(source, checked, stage, day, format))


def _explain_code(code: str, format: Format) -> None:
    """Prints the page of a code: drawn in a terminal, else as it is written."""
    from dqx_airflow.diagnostics.codes import CODES
    from dqx_airflow.diagnostics.nearest import did_you_mean
    from dqx_airflow.diagnostics.pages import page

    if code not in CODES:
        typer.echo(f"error: unknown code {code}: {did_you_mean(code, CODES)}", err=True)
        raise typer.Exit(EXIT_ERRORS)
    if format is Format.JSON:
        import json

        typer.echo(json.dumps({"code": code, "title": CODES[code], "page": page(code)}, indent=2))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        # The terminal's own colours: readable on a light background and on a dark one.
        Console().print(Markdown(page(code), code_theme="ansi_dark"))
    else:
        typer.echo(page(code).rstrip())


def _tokens(source: SourceFile, format: Format) -> str:
    import json

    from dqx_airflow.dql.syntax.parser import tokens

    found = [(token.type, str(token), token.line, token.column) for token in tokens(source)]
    if format is Format.JSON:
        names = ("type", "text", "line", "column")
        return json.dumps([dict(zip(names, item, strict=True)) for item in found], indent=2)
    return "\n".join(f"{line}:{column}\t{type}\t{text}" for type, text, line, column in found)


def _shown(source: SourceFile, checked: Checked, stage: Stage, day: date, format: Format) -> str:
    from dqx_airflow.dql.printer import show_suite
    from dqx_airflow.dql.syntax.parser import parse

    if stage is Stage.TREE:
        file = parse(source).file
        return _json(file) if format is Format.JSON else _outline(file)
    assert checked.suite is not None
    if stage is Stage.SUITE:
        # What an alias names has been put in its place.
        own = tuple(item for item in checked.suite.constants if "." not in item.name.text)
        suite = replace(checked.suite, constants=own)
        return _json(suite) if format is Format.JSON else show_suite(suite).rstrip()
    return _plan(source, checked, day, format)


def _plan(source: SourceFile, checked: Checked, day: date, format: Format) -> str:
    from dqx_airflow.dql.checks.assertions import datasets_of
    from dqx_airflow.plan.describe import describe_plan
    from dqx_airflow.plan.resolve import resolve
    from dqx_airflow.values import DatasetRef

    assert checked.suite is not None
    dated = {name.text for check in checked.suite.checks for name in check.datasets}
    datasets = [
        DatasetRef(name, path=name, date_column="date" if name in dated else None)
        for name in datasets_of(checked.suite.checks)
    ]
    plan = resolve(checked.suite, source, datasets, day)
    return _json(plan) if format is Format.JSON else describe_plan(plan)


def _json(value: object) -> str:
    from dataclasses import asdict

    from dqx_airflow.diagnostics.json_text import json_text

    return json_text(asdict(value), default=str)  # type: ignore[call-overload]


def _outline(node: object, depth: int = 0) -> str:
    """The tree as an outline: a line for each node, its plain values behind its name."""
    from dataclasses import fields, is_dataclass

    from dqx_airflow.values import Span

    parts = [(item.name, getattr(node, item.name)) for item in fields(node)]  # type: ignore[arg-type]
    plain, inner = [], []
    for name, value in parts:
        children = value if isinstance(value, tuple) else (value,)
        nested = [child for child in children if is_dataclass(child)]
        if isinstance(value, Span) or value in ((), None):
            continue
        if nested:
            inner += [child for child in nested if not isinstance(child, Span)]
        else:
            plain.append(f"{name}={value.value if isinstance(value, Enum) else value!r}")
    line = "  " * depth + " ".join([type(node).__name__, *plain])
    return "\n".join([line, *(_outline(child, depth + 1) for child in inner)])
