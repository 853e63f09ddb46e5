"""`dql explain`: the processing of a suite before the scan, or the meaning of a code."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli.arguments import Options, with_shared_options
from dqx_airflow.cli.command import TextFormatOption, TextOrJson, what_to_give
from dqx_airflow.diagnostics import diagnostic
from dqx_airflow.diagnostics.diagnostic import did_you_mean, errors_of, listed
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef, SourceFile, Span
from dqx_airflow.values.output_form import output_form
from dqx_airflow.values.request import is_range

if TYPE_CHECKING:
    from dqx_airflow.dql.check import Checked
    from dqx_airflow.plan.description import DescribedDataset
    from dqx_airflow.plan.model import Plan
    from dqx_airflow.plan.passes import KnownDataset

_ASSUMED = "the datasets of checks are assumed to have dates, all others to have none"
_WITHOUT_EFFECT = (
    *("connection", "format", "output", "force", "results_root", "recompute", "watch"),
    *("quiet", "verbose"),
)
"""The options of a run on which its plan does not depend."""
_CODE = re.compile(r"[EW]\d{3}", re.IGNORECASE)


SuiteStage: TypeAlias = Literal["tokens", "tree", "suite", "plan"]


@partial(with_shared_options, without=_WITHOUT_EFFECT)
def explain(
    path: Annotated[Path, typer.Argument(metavar="SUITE|CODE")],
    stage: SuiteStage = "plan",
    *,
    cost: bool = False,
    format: TextFormatOption = "text",
    shared: Options,
) -> None:
    """Explain how a suite is processed, or the code of an error or warning.

    The plan matches `dql run` with the same options and the same dqx.toml, even for a contract.
    Datasets that are not given are assumed: datasets of checks have dates, all others have none. As
    JSON, the plan of a date is an object; the plans of a range of dates are an array.

    For a code, shows the purpose of the rule, with a wrong and a right example.

    :param path: A suite, a contract, or a code such as E001.
    :param stage: Show the tokens, the syntax tree, the suite with macros expanded, or the plan.
    :param cost: Show what each assertion would read on the datasets, estimated without Spark.
    """
    if _CODE.fullmatch(str(path)) and not path.exists():
        _explain_code(str(path).upper(), format)
        return
    if not path.exists():
        raise RequestError(
            f"no suite found at {path}", f"{what_to_give(path)}; a code looks like E001"
        )
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.import_readers import FileReader, search_path

    if stage == "plan":
        typer.echo(_plan(replace(shared, paths=(path,)), format, shows_cost=cost))
        return
    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        raise source.error
    if stage == "tokens":
        typer.echo(_tokens(source, format))
        return
    reader = FileReader(source.name, path, Path.cwd(), search_path(os.environ))
    checked = check_source(source, reader, needs_suite=stage != "tree")
    if checked.errors:
        raise drawn_error(checked.errors, checked.sources)
    if shared.is_given:
        raise RequestError("the options of a run only affect the plan", "add --stage plan")
    typer.echo(_shown(source, checked, stage, format))


def _explain_code(code: str, format: TextOrJson) -> None:
    """Prints the page of a code: rendered in a terminal, otherwise as Markdown."""
    if code not in diagnostic.codes():
        raise RequestError(f"unknown code {code}", did_you_mean(code, diagnostic.codes()) or "")
    if format == "json":
        named = {"code": code, "title": diagnostic.title(code), "page": diagnostic.page(code)}
        typer.echo(json.dumps(named, indent=2))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        # The terminal's own colors: readable on light and dark backgrounds.
        Console().print(Markdown(diagnostic.page(code), code_theme="ansi_dark"))
    else:
        typer.echo(diagnostic.page(code).rstrip())


def _tokens(source: SourceFile, format: TextOrJson) -> str:
    from dqx_airflow.dql.syntax.parser import tokens

    rows = [(token.type, str(token), token.line, token.column) for token in tokens(source)]
    if format == "json":
        names = ("type", "text", "line", "column")
        return json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2)
    return "\n".join(f"{line}:{column}\t{type}\t{text}" for type, text, line, column in rows)


def _shown(source: SourceFile, checked: Checked, stage: SuiteStage, format: TextOrJson) -> str:
    from dqx_airflow.dql.printer import show_suite
    from dqx_airflow.dql.syntax.parser import parse

    if stage == "tree":
        file = parse(source).file
        return _json(file) if format == "json" else _outline(file)
    # Imported names have been resolved.
    own_constants = tuple(
        constant for constant in checked.valid_suite.constants if "." not in constant.name.text
    )
    suite = replace(checked.valid_suite, constants=own_constants)
    return _json(suite) if format == "json" else show_suite(suite).rstrip()


def _plan(options: Options, format: TextOrJson, *, shows_cost: bool) -> str:
    """The plan of each date of a call of `dql run`, or the cost of its assertions.

    :raises SourceError: that call has errors, other than datasets that are not given.
    """
    from dqx_airflow.cli.calls import read_call
    from dqx_airflow.plan.description import describe_datasets, describe_plans
    from dqx_airflow.plan.selection import assumed, checked_suite, plan_of

    call = read_call(options, date.today())
    errors = tuple(error for error in errors_of(call.diagnostics) if error.code != "E009")
    if errors or not call.requests:
        raise drawn_error(errors, call.sources)
    plans = []
    unknown = dict[str, None]()
    for request in call.requests:
        checked = checked_suite(request)
        datasets = assumed(checked.valid_suite, request.datasets)
        plan = plan_of(replace(request, datasets=datasets), checked)
        given = {ref.name for ref in request.datasets}
        unknown |= dict.fromkeys(name for name in plan.reads if name not in given)
        plans.append(plan)
    refs = {ref.name: ref for request in call.requests for ref in request.datasets}
    if shows_cost and format == "text":
        return "\n\n".join(_costs(plan, refs.values()) for plan in plans)
    known = _known(refs.values())
    if format == "json":
        if shows_cost:
            objects = [_cost_object(plan, refs.values()) for plan in plans]
        else:
            described = describe_datasets(plans, known)
            objects = [_plan_object(plan, described) for plan in plans]
        is_of_range = options.date is not None and is_range(options.date)
        return json_text(objects if is_of_range else objects[0], default=str)
    assumption = f"without {listed(tuple(unknown))}: {_ASSUMED}\n\n" if unknown else ""
    return assumption + describe_plans(plans, known)


def _plan_object(plan: Plan, datasets: Iterable[DescribedDataset]) -> dict[str, object]:
    """The plan of a date, with the passes of the run, which are for all dates together."""
    return {**output_form(plan), "datasets": output_form(tuple(datasets))}


def _known(refs: Iterable[DatasetRef]) -> dict[str, KnownDataset]:
    """The datasets as far as they are known without Spark: the files and the columns of those at a
    path."""
    from dqx_airflow.plan.passes import UnknownDataset

    try:
        from dqx_airflow.engine.sources.unopened import UnopenedDataset
    except ModuleNotFoundError:  # an installation without PySpark
        return {ref.name: UnknownDataset(ref) for ref in refs}
    known: dict[str, KnownDataset] = {}
    for ref in refs:
        dataset = UnopenedDataset(ref)
        known[ref.name] = dataset if ref.path and dataset.exists else UnknownDataset(ref)
    return known


def _cost_object(plan: Plan, refs: Collection[DatasetRef]) -> dict[str, object]:
    """What the assertions of a plan would read, in bytes."""
    from dqx_airflow.engine.cost import costs_of

    total, costs = costs_of(plan, refs)
    return {
        "suite": plan.suite,
        "date": plan.date.isoformat(),
        "bytes": total,
        "costs": output_form(costs),
    }


def _costs(plan: Plan, refs: Collection[DatasetRef]) -> str:
    """An estimate of what the assertions of a plan read."""
    from rich.filesize import decimal

    from dqx_airflow.engine.cost import HOW, costs_of

    total, costs = costs_of(plan, refs)
    sized = listed([ref.name for ref in refs if ref.path]) or "no dataset of known size"
    fields = {"plan": plan, "total": total, "costs": costs, "sized": sized, "how": HOW}
    return filled(__package__, "costs.txt", decimal=decimal, **fields).rstrip("\n")


def _json(value: object) -> str:
    return json_text(asdict(value, dict_factory=_span_last), default=str)  # type: ignore[call-overload]


def _span_last(items: list[tuple[str, object]]) -> dict[str, object]:
    """A node as an object of JSON: what it says comes before its position."""
    return dict(sorted(items, key=lambda item: item[0] == "span"))


def _outline(node: object, depth: int = 0) -> str:
    """The tree as an outline: a line for each node, followed by its plain values."""
    parts = [(field.name, getattr(node, field.name)) for field in fields(node)]  # type: ignore[arg-type]
    plain = []
    inner = []
    for name, value in parts:
        if nested := list(_dataclasses_in(value)):
            inner += [child for child in nested if not isinstance(child, Span)]
        elif value not in ((), None):
            plain.append(f"{name}={value.value if isinstance(value, Enum) else value!r}")
    line = "  " * depth + " ".join([type(node).__name__, *plain])
    return "\n".join([line, *(_outline(child, depth + 1) for child in inner)])


def _dataclasses_in(value: object) -> Iterator[object]:
    """The value itself, or those in a tuple: the arguments of an annotation are pairs."""
    if isinstance(value, tuple):
        for item in value:
            yield from _dataclasses_in(item)
    elif is_dataclass(value):
        yield value
