"""`dql explain`: the processing of a suite before the scan, or the meaning of a code."""

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

from dqx_airflow.cli.output import TextFormatOption, TextOrJson
from dqx_airflow.cli.run.options import (
    DimensionOption,
    ExcludeTagOption,
    OnlyOption,
    SeverityOption,
    TagOption,
)
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.values import Span

if TYPE_CHECKING:
    from dqx_airflow.dql.check import Checked
    from dqx_airflow.values import Selection, SourceFile

_WITHOUT = "without datasets: those of checks are assumed to have dates, all others to have none"
_CODE = re.compile(r"[EW]\d{3}", re.IGNORECASE)


class SuiteStage(str, Enum):
    """The stages of a suite."""

    TOKENS = "tokens"
    TREE = "tree"
    SUITE = "suite"
    PLAN = "plan"


def explain(
    path: Annotated[
        Path, typer.Argument(metavar="SUITE|CODE", help="A suite file, or a code such as E001.")
    ],
    stage: Annotated[
        SuiteStage,
        typer.Option(
            help="Show the tokens, the syntax tree, the suite with macros expanded, or the plan."
        ),
    ] = SuiteStage.PLAN,
    on: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="The date of the plan; default today."),
    ] = None,
    only: OnlyOption = None,
    tag: TagOption = None,
    exclude_tag: ExcludeTagOption = None,
    severity: SeverityOption = None,
    dimension: DimensionOption = None,
    format: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """Show how a suite is processed, or explain the code of an error or a warning.

    The plan is that of `dql run` with the dqx.toml of the suite. If it lacks a dataset, the plan is
    one without datasets: those of checks are assumed to have dates, and all others to have none.
    A selection shows the plan of some of the assertions, as in `dql run`.

    For a code, shows the purpose of the rule, with a wrong and a right example.
    """
    if _CODE.fullmatch(str(path)) and not path.exists():
        _explain_code(str(path).upper(), format)
        return
    if not path.exists():
        from dqx_airflow.cli.project import what_to_give

        raise RequestError(
            f"no suite found at {path}", f"{what_to_give(path)}; a code looks like E001"
        )
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.imports import FileReader, search_path
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
    from dqx_airflow.selection import selection_of

    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        drawn = draw([source.diagnostic], {str(path): source.text})
        raise SourceError(drawn, diagnostics=(source.diagnostic,))
    if stage is SuiteStage.TOKENS:
        typer.echo(_tokens(source, format))
        return
    reader = FileReader(source.name, path, Path.cwd(), search_path(os.environ))
    checked = check_source(source, reader, needs_suite=stage is not SuiteStage.TREE)
    if checked.errors:
        drawn = draw(checked.errors, checked.sources)
        raise SourceError(drawn, diagnostics=tuple(checked.errors))
    day = on.date() if on else None
    selection = selection_of(only, tag, exclude_tag, severity, dimension)
    if selection is not None and stage is not SuiteStage.PLAN:
        raise RequestError("a selection only affects the plan", "add --stage plan")
    typer.echo(_shown(source, checked, stage, day, format, selection))


def _explain_code(code: str, format: TextOrJson) -> None:
    """Prints the page of a code: rendered in a terminal, otherwise as Markdown."""
    from dqx_airflow.diagnostics.codes import CODES, page
    from dqx_airflow.diagnostics.nearest import did_you_mean

    if code not in CODES:
        raise RequestError(f"unknown code {code}", did_you_mean(code, CODES) or "")
    if format is TextOrJson.JSON:
        import json

        typer.echo(json.dumps({"code": code, "title": CODES[code], "page": page(code)}, indent=2))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        # The terminal's own colors: readable on light and dark backgrounds.
        Console().print(Markdown(page(code), code_theme="ansi_dark"))
    else:
        typer.echo(page(code).rstrip())


def _tokens(source: SourceFile, format: TextOrJson) -> str:
    import json

    from dqx_airflow.dql.syntax.parser import tokens

    rows = [(token.type, str(token), token.line, token.column) for token in tokens(source)]
    if format is TextOrJson.JSON:
        names = ("type", "text", "line", "column")
        return json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2)
    return "\n".join(f"{line}:{column}\t{type}\t{text}" for type, text, line, column in rows)


def _shown(
    source: SourceFile,
    checked: Checked,
    stage: SuiteStage,
    on: date | None,
    format: TextOrJson,
    selection: Selection | None,
) -> str:
    from dqx_airflow.dql.printer import show_suite
    from dqx_airflow.dql.syntax.parser import parse

    if stage is SuiteStage.TREE:
        file = parse(source).file
        return _json(file) if format is TextOrJson.JSON else _outline(file)
    if stage is SuiteStage.SUITE:
        # Imported names have been resolved.
        own_constants = tuple(
            constant for constant in checked.valid_suite.constants if "." not in constant.name.text
        )
        suite = replace(checked.valid_suite, constants=own_constants)
        return _json(suite) if format is TextOrJson.JSON else show_suite(suite).rstrip()
    return _plan(source, checked, on, format, selection)


def _plan(
    source: SourceFile,
    checked: Checked,
    on: date | None,
    format: TextOrJson,
    selection: Selection | None,
) -> str:
    """:raises RequestError: nothing is selected, or something that does not exist."""
    from dqx_airflow.cli.run.call import Options
    from dqx_airflow.cli.run.request_builder import read_call
    from dqx_airflow.plan.describe import describe_plan
    from dqx_airflow.plan.resolve import resolve
    from dqx_airflow.plan.selection import assumed, choose

    suite = checked.valid_suite
    # The request of `dql run`, if the dqx.toml has all datasets.
    call = read_call(
        Options((Path(source.name),), date=on.isoformat() if on else None, selection=selection),
        date.today(),
    )
    request = None if call.has_errors else next(iter(call.requests), None)
    datasets = assumed(suite, ()) if request is None else request.datasets
    day = (on or date.today()) if request is None else request.run_key.date
    chosen = None
    if selection is not None:
        chosen = choose(suite, source, datasets, day, selection)
        datasets = tuple(ref for ref in datasets if ref.name in chosen.datasets)
    plan = resolve(
        suite,
        source,
        datasets,
        day,
        allow_empty=request is not None and request.allow_empty,
        ansi=request is None or request.ansi,
        chosen=chosen,
    )
    if format is TextOrJson.JSON:
        return _json(plan)
    return describe_plan(plan) if request else f"{_WITHOUT}\n\n{describe_plan(plan)}"


def _json(value: object) -> str:
    from dataclasses import asdict

    return json_text(asdict(value), default=str)  # type: ignore[call-overload]


def _outline(node: object, depth: int = 0) -> str:
    """The tree as an outline: a line for each node, followed by its plain values."""
    from dataclasses import fields, is_dataclass

    parts = [(field.name, getattr(node, field.name)) for field in fields(node)]  # type: ignore[arg-type]
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
