"""Errors in the settings of a dataset, each with its key; and datasets of a command line.

On a command line a dataset is `NAME=LOCATION?key=value&...`: a path, `table:catalog.schema.t`, or
`query:SELECT ...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from dqx_airflow.datasets.settings import SETTINGS, dataset_ref, options_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.values import FORMATS, JDBC, DatasetRef, Span

_FLAG = "--dataset"
_PLACES = ("path", "table", "query")
_OPTION = "option."
_FORM = "write NAME=PATH, or NAME=table:CATALOG.SCHEMA.TABLE"
_KEYS = tuple(key for key in SETTINGS if key not in (*_PLACES, "options"))
_BEFORE_A_SETTING = re.compile(rf"[,;&](?=(?:{'|'.join(_KEYS)})=)")
_WORDS = {"options": "the option"}
"""The display names of keys that differ from the keys."""
_NO_TEXTS = ("options", "version", "keys", "masked", "trust_log")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a setting of a dataset; with all of them together if `key` is empty."""

    key: str
    message: str
    hint: str | None = None


def mistakes_in(name: str, settings: Mapping[str, Any]) -> list[Mistake]:
    """Everything that is wrong with the settings of a dataset, which are all among `SETTINGS`.

    Without a location, the settings are checked one by one.
    """
    mistakes = [
        mistake
        for key, value in settings.items()
        if (mistake := _mistake_of(name, key, value)) is not None
    ]
    if not mistakes and any(settings.get(place) for place in _PLACES):
        try:
            dataset_ref(name, settings)
        except RequestError as error:
            named = (
                key for key in settings if re.search(_WORDS.get(key, rf"\b{key}\b"), error.problem)
            )
            mistakes.append(Mistake(next(named, ""), error.problem, error.hint or None))
    return mistakes


def _mistake_of(name: str, key: str, value: Any) -> Mistake | None:
    """What is wrong with one setting, independently of the others."""
    known = (*FORMATS, JDBC)
    if key == "format" and value not in known:
        return Mistake(key, f"unknown format '{value}'", did_you_mean(str(value), known))
    if isinstance(value, str) and not value.strip():
        return Mistake(key, f"'{key}' is empty", "remove it, or write a value")
    if key not in _NO_TEXTS:
        is_text = isinstance(value, str)
        return (
            None if is_text else Mistake(key, f"'{key}' must be a string", f'write {key} = "..."')
        )
    try:
        if key == "options":  # the valid ones depend on the source
            options_of(name, value)
        else:
            dataset_ref(name, {"path": name, key: value})
    except RequestError as error:
        return Mistake(key, error.problem, error.hint or None)
    return None


def datasets_of_arguments(texts: Iterable[str]) -> tuple[dict[str, DatasetRef], list[Diagnostic]]:
    """The datasets of a command line by name, and what is wrong with them.

    The diagnostics refer to a text in which each dataset is on a separate line.
    """
    refs: dict[str, DatasetRef] = {}
    first: dict[str, Span] = {}
    problems: list[Diagnostic] = []
    for line, text in enumerate(texts, start=1):
        argument = _Argument(text, line)
        ref = argument.read()
        problems += argument.problems
        if ref is None:
            continue
        span = argument.span(0, len(ref.name))
        if ref.name in refs:
            related = (Related(first[ref.name], "first given here"),)
            message = f"dataset '{ref.name}' is defined twice"
            problems.append(Diagnostic(message, span, related=related))
        refs.setdefault(ref.name, ref)
        first.setdefault(ref.name, span)
    return refs, problems


class _Argument:
    """One dataset of a command line while it is read."""

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        self.problems: list[Diagnostic] = []

    def span(self, start: int, end: int) -> Span:
        return Span(_FLAG, self.line, start + 1, self.line, max(end, start + 1) + 1)

    def read(self) -> DatasetRef | None:
        """The dataset; None if the argument is invalid."""
        name, equals, rest = self.text.partition("=")
        location, _, query = rest.partition("?")
        if not equals or not name.strip() or not location:
            self._add("missing the dataset name or its location", 0, len(self.text), _FORM)
            return None
        settings: dict[str, Any] = {"options": {}}
        scheme, colon, rest = location.partition(":")
        if colon and scheme in _PLACES:
            settings[scheme] = unquote(rest)
        else:
            settings["path"] = unquote(location)
            self._read_end_of_path(name, location)
        places: dict[str, tuple[int, int]] = {}
        start = len(name) + 1 + len(location) + 1
        for pair in query.split("&") if query else ():
            self._read_setting(pair, start, settings, places)
            start += len(pair) + 1
        for mistake in mistakes_in(name, settings):
            named = (key for key in places if f"'{key.removeprefix(_OPTION)}'" in mistake.message)
            key = next(named, "") if mistake.key == "options" else mistake.key
            place = places.get(key, (0, len(self.text)))
            self._add(mistake.message, *place, mistake.hint)
        return None if self.problems else dataset_ref(name, settings)

    def _read_end_of_path(self, name: str, location: str) -> None:
        match = _BEFORE_A_SETTING.search(location)
        if match is not None:
            start, end = len(name) + 1 + match.start(), len(name) + 1 + len(location)
            settings_text = _BEFORE_A_SETTING.sub("&", location[match.end() :])
            hint = f"write '{name}={location[: match.start()]}?{settings_text}'"
            self._add("write settings after a '?'", start, end, hint)

    def _read_setting(
        self, pair: str, start: int, settings: dict[str, Any], places: dict[str, tuple[int, int]]
    ) -> None:
        written, equals, value = pair.partition("=")
        key = unquote(written)
        place = (start, start + len(written))
        if not equals or not key:
            self._add("invalid setting", start, start + len(pair), "write KEY=VALUE")
        elif key in places:
            self._add(f"'{key}' is set twice", *place, "remove one of them")
        elif key.startswith(_OPTION) and key != _OPTION:
            settings["options"][key.removeprefix(_OPTION)] = unquote(value)
        elif key in _KEYS:
            settings[key] = unquote(value)
        else:
            known = (*_KEYS, f"{_OPTION}NAME")
            self._add(f"unknown dataset setting '{key}'", *place, did_you_mean(key, known))
        places[key] = (start, start + len(pair))

    def _add(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        self.problems.append(Diagnostic(message, self.span(start, end), help=hint))
