"""Problems of a `dql run` call: each below the argument that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dqx_airflow.config.settings_file import FILE_NAME
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.diagnostics.nearest import nearest
from dqx_airflow.values import DatasetRef, Span


@dataclass(frozen=True, slots=True)
class CallProblems:
    """The diagnostics in order, each once, and their texts: files, and the values of arguments by
    flag."""

    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        return bool(errors_of(self.diagnostics))

    def wrong(self, flag: str, text: str, message: str, hint: str | None = None) -> None:
        """Reports an argument as a whole."""
        lines = [*self.sources[flag].split("\n"), text] if flag in self.sources else [text]
        self.sources[flag] = "\n".join(lines)
        span = Span(flag, len(lines), 1, len(lines), len(text) + 1)
        self.diagnostics[Diagnostic(message, span, help=hint or None)] = None

    def warn(self, flag: str, text: str, message: str) -> None:
        """Warns about an argument that is ignored, or possibly meant otherwise."""
        span = Span(flag, 1, 1, 1, len(text) + 1)
        self.sources.setdefault(flag, text)
        self.diagnostics[Diagnostic(message, span, is_mild=True)] = None

    def add(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
        self.diagnostics.update(dict.fromkeys(diagnostics))
        self.sources.update(sources)


def with_advice(
    error: Diagnostic, sources: Mapping[str, str], given: Mapping[str, DatasetRef]
) -> Diagnostic:
    """An error of a suite about its datasets, with the `dql run` arguments that fix it."""
    match error.code:
        case "E009":
            span = error.span
            line = sources[span.file].split("\n")[span.line - 1]
            name = line[span.column - 1 : span.end_column - 1]
            nearest_name = nearest(name, given)
            how_to_add = (
                f"add --dataset {name}=PATH, or [datasets.{name}] with a path to {FILE_NAME}"
            )
            advice = f"did you mean '{nearest_name}'?" if nearest_name else how_to_add
        case "E111":
            advice = f"add date_column=COLUMN to its --dataset, or to its table in {FILE_NAME}"
        case _:
            return error
    return replace(error, help=advice)
