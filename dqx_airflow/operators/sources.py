"""The source of a gate, a suite or a contract: found next to the DAG, with its mistakes
reported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateMisconfigured, as_misconfigured
from dqx_airflow.values import SourceFile

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic
    from dqx_airflow.dql import nodes
    from dqx_airflow.values import GateRequest, Selection


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source; its file, None for one in the DAG itself; and the folder of the DAG."""

    source: SourceFile
    path: Path | None
    folder: Path | None


def find_source(given: Any, folder: Path | None, *, kind: str, signs: str) -> FoundSource:
    """The source of an operator's argument: a path, or the text itself.

    :param folder: that of the DAG's file.
    :param kind: "suite" or "contract", the argument and its word in messages.
    :param signs: a substring of every such text, and of no path.
    :raises GateMisconfigured: the file does not exist, or it cannot be read.
    """
    from dqx_airflow.dql.syntax.source_file import read_source

    if not isinstance(given, str | os.PathLike) or not str(given).strip():
        raise GateMisconfigured(f"{kind}={given!r}: give the path of a file, or a {kind}")
    text = os.fspath(given)
    if any(sign in text for sign in signs):
        return FoundSource(SourceFile(f"<inline {kind}>", text), None, folder)
    paths = possible_paths(text, folder)
    for path in paths:
        source = read_source(path, text)
        if isinstance(source, SourceFile):
            return FoundSource(source, path, folder)
        if not source.is_missing:
            raise GateMisconfigured(f"the {kind} {path}: {source.reason}")
    looked = " or ".join(str(path.absolute()) for path in paths)
    raise GateMisconfigured(
        f"{kind} {text} not found: searched {looked}; {_meant(paths)}give its path relative to "
        "the file of the DAG, or absolute"
    )


def _meant(paths: Iterable[Path]) -> str:
    """A question with the name of a similar file next to a missing one, if there is one."""
    from dqx_airflow.diagnostics.diagnostic import nearest

    for path in paths:
        with suppress(OSError, ValueError):
            names = [file.name for file in path.parent.iterdir() if file.suffix == path.suffix]
            if near := nearest(path.name, names):
                return f"did you mean '{near}'? Otherwise "
    return ""


def possible_paths(text: str, folder: Path | None) -> list[Path]:
    """The possible locations of a path in a DAG, in search order."""
    path = Path(os.path.expanduser(text))
    return [path] if path.is_absolute() or folder is None else [folder / path, path]


def errors_in(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], name: str
) -> list[str]:
    """The errors of a source, drawn, as one mistake; none if it has none.

    :param name: the source, as messages name it.
    """
    from dqx_airflow.diagnostics.diagnostic import errors_of
    from dqx_airflow.diagnostics.renderers import draw, first_findings

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

    :raises GateMisconfigured: it has errors; the message contains the first of them.
    """
    from dqx_airflow.diagnostics.diagnostic import Level, errors_of
    from dqx_airflow.diagnostics.renderers import draw, first_findings

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
        raise GateMisconfigured(
            f"the {kind} {first.span.file} has {number} in line {first.span.line}: "
            f"{first.message}{f' ({hint})' if hint else ''}"
        )


def selected_suite(request: GateRequest, suite: nodes.Suite) -> nodes.Suite:
    """What the selection of a request leaves of its suite.

    :raises GateMisconfigured: it leaves nothing, or names something that does not exist.
    """
    selected, _ = selected_suites(request, [(suite, request.suite)])[0]
    assert selected is not None
    return selected


def selected_suites(
    request: GateRequest, suites: Sequence[tuple[nodes.Suite, SourceFile]]
) -> list[tuple[nodes.Suite | None, Selection | None]]:
    """What the selection of a request leaves of each suite, with its words that match there; no
    suite if nothing is left.

    :raises GateMisconfigured: it leaves nothing at all, or names something that does not exist; or
        it excludes a P0 or required assertion from a gate that promotes.
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


def dag_folder(context: Any) -> Path | None:
    """The folder of the DAG's file, against which relative paths are resolved."""
    location = getattr(context.get("dag"), "fileloc", None)
    return Path(location).parent if location else None
