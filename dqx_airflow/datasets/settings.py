"""Reads the settings of a dataset, such as location, format and dates, and reports each error
with its key.

On a command line a dataset is `NAME=LOCATION?key=value&...`: a path, `table:catalog.schema.t`, or
`query:SELECT ...`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import unquote

from dqx_airflow.datasets.locations import S3A_ENDPOINT, spark_location
from dqx_airflow.datasets.settings_check import check_ref
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, nearest
from dqx_airflow.errors import RequestError
from dqx_airflow.values import FORMATS, JDBC, DatasetRef, Span
from dqx_airflow.values.blank import has_blank, is_blank
from dqx_airflow.values.redact import holds_credentials

DatasetSetting: TypeAlias = "str | os.PathLike[str] | DatasetRef | Mapping[str, Any]"

SETTINGS = tuple(field.name for field in fields(DatasetRef) if field.name != "name")
"""The settings of a dataset."""


_NO_TEXT = (bool, int, float, bytes, list, tuple, set, dict)
_FORMAT_OF_SUFFIX = {name: name for name in FORMATS} | dict.fromkeys(("jsonl", "ndjson"), "json")


def dataset_ref(name: str, given: DatasetSetting) -> DatasetRef:
    """The dataset `name`: from a path, a table, its settings, or a reference that is renamed.

    :raises RequestError: it is invalid.
    """
    if isinstance(given, os.PathLike):
        given = {"path": os.fspath(given)}
    elif isinstance(given, str):
        given = {"path" if "/" in given else "table": given} if given.strip() else {}
    elif isinstance(given, DatasetRef):
        given = settings_of(given)
    if not isinstance(given, Mapping):
        raise RequestError(
            f"dataset '{name}' is {given!r}: write a path, a table, or a mapping with "
            f"{', '.join(SETTINGS)}"
        )
    if objection := unknown_settings(name, given):
        raise RequestError(objection)
    settings = {key: value for key, value in given.items() if value is not None}
    for key, value in settings.items():
        if (wrong := _wrong_setting(key, value)) is not None:
            raise RequestError(f"dataset '{name}' {wrong}")
    if "format" not in settings:
        format_name = JDBC if "conn_id" in settings else format_of(str(settings.get("path", "")))
        settings |= {"format": format_name} if format_name else {}
    for key, value in settings.items():
        settings[key] = _OF_OTHER_FORM[key](name, value) if key in _OF_OTHER_FORM else str(value)
    if "path" in settings:
        settings["path"] = _spark_path(name, settings["path"], settings.get("options", ()))
    ref = DatasetRef(name, **settings)
    check_ref(ref)
    return ref


def _wrong_setting(key: str, value: Any) -> str | None:
    """Describes what is wrong with the form of a setting, if anything. An empty one is an error: it
    comes from a template without a result, and without it other rows would be selected."""
    if is_blank(value):
        return f"has an empty {key}: remove it, or write a value"
    if key not in _OF_OTHER_FORM and isinstance(value, _NO_TEXT):
        return f"has {key}={value!r}: write a string"
    return None


def _spark_path(name: str, path: str, options: tuple[tuple[str, str], ...]) -> str:
    """A path that Spark can read.

    :raises RequestError: it cannot.
    """
    try:
        has_endpoint = S3A_ENDPOINT in dict(options)
        return path if holds_credentials(path) else spark_location(path, has_endpoint=has_endpoint)
    except RequestError as error:
        raise RequestError(f"dataset '{name}': {error.problem}", error.hint) from None


def unknown_settings(name: str, given: Mapping[str, Any]) -> str | None:
    """The message about unknown settings of a dataset, with suggestions; None if all are known."""
    unknown = []
    for key in given:
        if key not in SETTINGS:
            near = nearest(str(key), SETTINGS)
            unknown.append(f"{key} (did you mean '{near}'?)" if near else str(key))
    if not unknown:
        return None
    return (
        f"dataset '{name}' has unknown settings {', '.join(unknown)}: write {', '.join(SETTINGS)}"
    )


def format_of(path: str) -> str | None:
    """The format implied by a file name: `csv` for `orders.csv.gz`; None if there is none."""
    for suffix in reversed(PurePosixPath(path).suffixes):
        if format_name := _FORMAT_OF_SUFFIX.get(suffix.removeprefix(".").lower()):
            return format_name
    return None


def settings_of(ref: DatasetRef) -> dict[str, Any]:
    """The settings of a reference, without its name."""
    return {key: value for key, value in asdict(ref).items() if key in SETTINGS}


def options_of(name: str, given: Any) -> tuple[tuple[str, str], ...]:
    """The options of the dataset `name`, from a mapping.

    :raises RequestError: it is not a mapping.
    """
    try:
        pairs = given.items() if isinstance(given, Mapping) else given
        return tuple((str(key), str(text)) for key, text in pairs)
    except (TypeError, ValueError):
        message = f"dataset '{name}' has options={given!r}: write a mapping, {{'header': 'true'}}"
        raise RequestError(message) from None


def _columns(setting: str, name: str, given: Any) -> tuple[str, ...]:
    """The columns of a setting: a list, or one comma-separated string."""
    if isinstance(given, str):
        given = [column.strip() for column in given.split(",")]
    if not isinstance(given, Sequence) or not all(isinstance(column, str) for column in given):
        raise RequestError(f"dataset '{name}' has {setting}={given!r}: write a list of columns")
    if has_blank(given):
        raise RequestError(f"dataset '{name}' has an empty column in {setting}: remove it")
    return tuple(given)


def _version(name: str, given: Any) -> int:
    """A version, which may come from a template as a string."""
    text = "" if isinstance(given, bool) else str(given).strip()
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        message = f"dataset '{name}' has version={given!r}: write the number of a Delta version"
        raise RequestError(message)
    return int(text)


def _truth(name: str, given: Any) -> bool:
    """A boolean, which may come from a template or a command line as a string."""
    truth = {"true": True, "false": False}.get(str(given).strip().lower())
    if truth is None:
        raise RequestError(f"dataset '{name}' has trust_log={given!r}: write true or false")
    return truth


_FLAG = "--dataset"
_PLACES = ("path", "table", "query")
_OPTION = "option."
_FORM = "write NAME=PATH or NAME=table:CATALOG.SCHEMA.TABLE; one dataset alone needs no NAME"
_NAMED = re.compile(r"(?P<name>[^=/\\?:]*)=", re.DOTALL)
"""The name before a location, which is not part of a path such as `lake/ds=2024-12-25`."""
_KEYS = tuple(key for key in SETTINGS if key not in (*_PLACES, "options"))
_BEFORE_A_SETTING = re.compile(rf"[,;&](?=(?:{'|'.join(_KEYS)})=)")
_WORDS = {"options": "the option"}
"""The display names of keys that differ from the keys."""
_OF_OTHER_FORM: Mapping[str, Callable[[str, Any], Any]] = {
    "options": options_of,
    "version": _version,
    "keys": partial(_columns, "keys"),
    "masked": partial(_columns, "masked"),
    "trust_log": _truth,
}
"""The functions that read settings which are not strings, by setting."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error in one setting of a dataset, or in all of them together if `key` is empty."""

    key: str
    message: str
    hint: str | None = None


def mistakes_in(name: str, settings: Mapping[str, Any]) -> list[Mistake]:
    """Everything that is wrong with the settings of a dataset, which are all among `SETTINGS`.

    Without a location, the settings are checked one by one.
    """
    return _checked_ref(name, settings)[1]


def _checked_ref(name: str, settings: Mapping[str, Any]) -> tuple[DatasetRef | None, list[Mistake]]:
    """The dataset, if it has a location and no mistakes, and the mistakes."""
    mistakes = [
        mistake
        for key, value in settings.items()
        if (mistake := _mistake_of(name, key, value)) is not None
    ]
    if mistakes or not any(map(settings.get, _PLACES)):
        return None, mistakes
    try:
        return dataset_ref(name, settings), []
    except RequestError as error:
        named = (
            key for key in settings if re.search(_WORDS.get(key, rf"\b{key}\b"), error.problem)
        )
        return None, [Mistake(next(named, ""), error.problem, error.hint or None)]


def _mistake_of(name: str, key: str, value: Any) -> Mistake | None:
    """The error in one setting, checked independently of the others; None if it is valid."""
    known = (*FORMATS, JDBC)
    if key == "format" and value not in known:
        return Mistake(key, f"unknown format '{value}'", did_you_mean(str(value), known))
    if is_blank(value):
        return Mistake(key, f"'{key}' is empty", "remove it, or write a value")
    if key not in _OF_OTHER_FORM:
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
    """The datasets of a command line by name, and what is wrong with them. The name of one without
    a name is empty: `named_alone` gives it the only name that there is.

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
            if not ref.name:
                message = "two datasets have no name"
            problems.append(Diagnostic(message, span, related=related))
        refs.setdefault(ref.name, ref)
        first.setdefault(ref.name, span)
    return refs, problems


def argument_name(text: str) -> str:
    """The name of a dataset of a command line; empty without a name."""
    named = _NAMED.match(text)
    return named["name"] if named else ""


def named_alone(refs: Mapping[str, DatasetRef], names: Collection[str]) -> dict[str, DatasetRef]:
    """The datasets of a command line, of which one without a name has the only name.

    :param names: the datasets of a suite or the models of a contract.
    :raises RequestError: there is more than one name, or the only one is given already.
    """
    unnamed = refs.get("")
    if unnamed is None:
        return dict(refs)
    named = {name: ref for name, ref in refs.items() if name}
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise RequestError(
            f"{unnamed.location} has no name, and the datasets are {listed}",
            f"write --dataset NAME={unnamed.location}",
        )
    (name,) = names
    if name in named:
        raise RequestError(f"dataset '{name}' is given twice, once without its name")
    return {**named, name: replace(unnamed, name=name)}


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
        name = argument_name(self.text)
        is_named = _NAMED.match(self.text) is not None
        start = len(name) + is_named
        location, _, query = self.text[start:].partition("?")
        if (is_named and not name.strip()) or not location:
            self._add("missing the dataset name or its location", 0, len(self.text), _FORM)
            return None
        settings: dict[str, Any] = {"options": {}}
        scheme, colon, rest = location.partition(":")
        if colon and scheme in _PLACES:
            settings[scheme] = unquote(rest)
        else:
            settings["path"] = unquote(location)
            self._read_end_of_path(start, location)
        places: dict[str, tuple[int, int]] = {}
        start += len(location) + 1
        for pair in query.split("&") if query else ():
            self._read_setting(pair, start, settings, places)
            start += len(pair) + 1
        # Messages name a dataset without a name by its location.
        ref, mistakes = _checked_ref(name or location, settings)
        for mistake in mistakes:
            named = (key for key in places if f"'{key.removeprefix(_OPTION)}'" in mistake.message)
            key = next(named, "") if mistake.key == "options" else mistake.key
            place = places.get(key, (0, len(self.text)))
            self._add(mistake.message, *place, mistake.hint)
        return None if self.problems or ref is None else replace(ref, name=name)

    def _read_end_of_path(self, begin: int, location: str) -> None:
        """:param begin: where the location begins in the text."""
        match = _BEFORE_A_SETTING.search(location)
        if match is not None:
            start = begin + match.start()
            end = begin + len(location)
            settings_text = _BEFORE_A_SETTING.sub("&", location[match.end() :])
            hint = f"write '{self.text[:start]}?{settings_text}'"
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
