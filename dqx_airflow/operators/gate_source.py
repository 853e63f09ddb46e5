"""The source that a gate enforces, a suite or a contract: found next to the DAG, its mistakes
reported, and reduced to the selected assertions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, errors_of, nearest
from dqx_airflow.diagnostics.renderers import draw, first_findings
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateMisconfiguredError, as_misconfigured
from dqx_airflow.values import DatasetRef, EnforcedContract, GateRequest, Selection, SourceFile

if TYPE_CHECKING:
    from dqx_airflow.dql import nodes


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source. `path` is its file, None for a text in the DAG itself, and `folder` the folder of
    the DAG. `searched` are the places where the file was searched, ending with its own."""

    source: SourceFile
    path: Path | None
    folder: Path | None
    searched: tuple[Path, ...] = ()


def find_source(given: Any, folder: Path | None, *, kind: str, signs: str) -> FoundSource:
    """Finds the source in an operator's argument, which is a path or the text itself.

    :param folder: the folder of the DAG's file.
    :param kind: "suite" or "contract", the argument and its word in messages.
    :param signs: characters, each of which shows that the argument is a text and not a path.
    :raises GateMisconfiguredError: the file does not exist, or it cannot be read.
    """
    from dqx_airflow.dql.syntax.source_file import read_source

    if not isinstance(given, str | os.PathLike) or not str(given).strip():
        raise GateMisconfiguredError(f"{kind}={given!r}: give the path of a file, or a {kind}")
    text = os.fspath(given)
    if any(sign in text for sign in signs):
        return FoundSource(SourceFile(f"<inline {kind}>", text), None, folder)
    paths = _possible_paths(text, folder)
    for number, path in enumerate(paths, start=1):
        source = read_source(path, text)
        if isinstance(source, SourceFile):
            return FoundSource(source, path, folder, tuple(paths[:number]))
        if not source.is_missing:
            raise GateMisconfiguredError(f"the {kind} {path}: {source.reason}")
    looked = " or ".join(str(path.absolute()) for path in paths)
    raise GateMisconfiguredError(
        f"{kind} {text} not found: searched {looked}; {_meant(paths)}give its path relative to "
        "the file of the DAG, or absolute"
    )


def _meant(paths: Iterable[Path]) -> str:
    """The hint "did you mean" with a similar file next to a missing one; empty without one."""
    for path in paths:
        with suppress(OSError, ValueError):
            names = [file.name for file in path.parent.iterdir() if file.suffix == path.suffix]
            if near := nearest(path.name, names):
                return f"did you mean '{near}'? Otherwise "
    return ""


def _possible_paths(text: str, folder: Path | None) -> list[Path]:
    """The possible locations of a path in a DAG, in search order."""
    path = Path(os.path.expanduser(text))
    return [path] if path.is_absolute() or folder is None else [folder / path, path]


def errors_in(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], name: str
) -> list[str]:
    """A list with one mistake, which contains the errors of a source with the lines that they
    point to; empty without errors.

    :param name: the name of the source in messages.
    """
    errors = errors_of(diagnostics)
    if not errors:
        return []
    displayed, rest = first_findings(errors)
    number = f"{len(errors)} errors" if len(errors) > 1 else "an error"
    drawn = [draw([diagnostic], sources) for diagnostic in displayed]
    return ["\n".join(filter(None, (f"{name} has {number}:", *drawn, rest)))]


def log_diagnostics(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], log: Logger, *, kind: str
) -> None:
    """Logs all diagnostics of a source.

    :raises GateMisconfiguredError: it has errors; the message contains the first of them.
    """
    diagnostics = list(diagnostics)
    displayed, rest = first_findings(diagnostics)
    for diagnostic in displayed:
        write = log.error if diagnostic.level is Level.ERROR else log.warning
        write("%s", draw([diagnostic], sources))
    if rest:
        log.error("%s", rest)
    errors = errors_of(diagnostics)
    if errors:
        first = errors[0]
        number = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
        hint = first.help or first.label
        raise GateMisconfiguredError(
            f"the {kind} {first.span.file} has {number} in line {first.span.line}: "
            f"{first.message}{f' ({hint})' if hint else ''}"
        )


def selected_suite(request: GateRequest, suite: nodes.Suite) -> nodes.Suite:
    """Reduces the suite of a request to its selected assertions.

    :raises GateMisconfiguredError: no assertion is selected, or the selection refers to something
        that does not exist.
    """
    selected, _ = selected_suites(request, [(suite, request.suite)])[0]
    assert selected is not None
    return selected


def selected_suites(
    request: GateRequest, suites: Sequence[tuple[nodes.Suite, SourceFile]]
) -> list[tuple[nodes.Suite | None, Selection | None]]:
    """Reduces each suite to its selected assertions.

    Returns for each the suite, None if none of its assertions is selected, and the part of the
    selection that matches in it.

    :raises GateMisconfiguredError: no assertion is selected at all, or the selection refers to
        something that does not exist; or it excludes a P0 or required assertion from a gate that
        promotes.
    """
    if request.selection is None:
        return [(suite, None) for suite, _ in suites]
    from dqx_airflow.plan.selection import choose_among, chosen_of, require_protected, seen_of

    selectables = [seen_of(replace(request, suite=source), suite) for suite, source in suites]
    selected: list[tuple[nodes.Suite | None, Selection | None]] = []
    with as_misconfigured():
        for (suite, source), own, all_of in zip(
            suites, choose_among(selectables, request.selection), selectables, strict=True
        ):
            if own is None:
                require_protected(
                    [assertion.name for assertion in all_of if assertion.is_protected], request
                )
                selected.append((None, None))
                continue
            chosen = chosen_of(replace(request, suite=source, selection=own), suite)
            selected.append((suite if chosen is None else chosen.suite, own))
    return selected


def selectable_suites(
    selection: Selection,
    suites: Sequence[tuple[nodes.Suite, SourceFile]],
    datasets: Sequence[DatasetRef],
    contract: EnforcedContract | None = None,
) -> tuple[list[nodes.Suite | None], list[str]]:
    """Reduces each suite to its selected assertions, for any date, None if there are none; and
    returns the mistakes of the selection. With a mistake no suite is reduced.

    With profiles the severity of an assertion depends on the date, so the severity of the selection
    is ignored.
    """
    everything: list[nodes.Suite | None] = [suite for suite, _ in suites]
    has_profiles = any(suite.profiles for suite, _ in suites)
    undated = replace(selection, severity=None) if has_profiles else selection
    if undated == Selection():
        return everything, []
    from dqx_airflow.plan.selection import choose, choose_among, selectable_assertions

    today = date.today()
    try:
        selectables = [
            selectable_assertions(suite, source, datasets, today, contract)
            for suite, source in suites
        ]
        return [
            None if own is None else choose(suite, source, datasets, today, own, contract).suite
            for (suite, source), own in zip(suites, choose_among(selectables, undated), strict=True)
        ], []
    except RequestError as error:
        return everything, [error.in_one_line]


def dag_folder(context: Any) -> Path | None:
    """The folder of the DAG's file, against which relative paths are resolved."""
    location = getattr(context.get("dag"), "fileloc", None)
    return Path(location).parent if location else None
