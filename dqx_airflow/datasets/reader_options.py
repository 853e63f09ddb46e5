"""Options of the readers of Spark: which are known, and their values, from `reader_options.md`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType

from dqx_airflow.diagnostics.diagnostic import nearest
from dqx_airflow.values import JDBC, DatasetRef

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
_WHOLE = re.compile(r"-?\d+")
_SHARE = re.compile(r"0?\.\d+|1(\.0+)?")
_ONE_OF = "one of "
_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "true or false": lambda value: value.lower() in ("true", "false"),
    "a whole number": lambda value: _WHOLE.fullmatch(value) is not None,
    "one character": lambda value: len(value) <= 1 or value in ("\\0", "\\t", "\\\\", '\\"'),
    "a value": bool,
    "2024-05-17T06:00:00": lambda value: _TIME.fullmatch(value) is not None,
    "a number above 0, up to 1": lambda value: _SHARE.fullmatch(value) is not None,
}
"""The tests for values of each type in `reader_options.md`."""


def _rows() -> Iterator[list[str]]:
    page = files(__package__).joinpath("reader_options.md").read_text("utf-8")
    for line in page.split("\n"):
        if line.startswith("| `"):
            yield [cell.strip(" `") for cell in line.strip("|").split("|")]


_ROWS = tuple(_rows())
_OF_ANY = tuple(name for name, *_ in _ROWS)
_WANTED = {name.lower(): wanted for name, _, wanted in _ROWS}
FORMATS_WITH_OPTIONS = ("csv", "json", "parquet", "orc", "avro", "iceberg", JDBC)
"""The formats whose readers take options; a Delta table takes none."""
_KNOWN = {
    format: tuple(name for name, formats, _ in _ROWS if format in formats.split())
    for format in FORMATS_WITH_OPTIONS
}


def hint_for(name: str, value: str) -> str | None:
    """The valid values for an option with an invalid one; None if its value is valid.

    :param name: of the option, in lower case.
    """
    wanted = _WANTED.get(name, "")
    if wanted.startswith(_ONE_OF):
        is_sound = value.upper() in wanted.removeprefix(_ONE_OF).split(", ")
    else:
        is_sound = not wanted or _CHECKS[wanted](value)
    return None if is_sound else f"write {wanted}"


UNCHECKED = "unchecked."
"""The prefix that passes an unknown option to Spark unchecked."""

_SAME = MappingProxyType({"delimiter": "sep", "charset": "encoding"})
"""Synonyms of options: if both are given, Spark ignores the first of a pair."""
_OF_GATES = (
    *("url", "user", "driver", "dbtable", "query", "preparequery", "hint", "sessioninitstatement"),
    *("connectionprovider", "keytab", "principal", "refreshkrb5config", "prefertimestampntz"),
    *("pushdownpredicate", "pushdownaggregate", "pushdownlimit", "pushdownoffset"),
    "pushdowntablesample",
)
"""Options of the database reader that the connection and the gate set."""
_TRAVELS = MappingProxyType({"versionasof": "version", "timestampasof": "timestamp"})
_TRUE_ANYWAY = (("header", "true"),)
"""Options that are accepted for any format, and are true where files name their columns
themselves."""
_CHANGES_BY_TIME = ("start-timestamp", "end-timestamp")
"""Options for logs of changes. A read of the table passes over them, or fails, by its version."""
_PASSES_OVER = ("ignorecorruptfiles", "ignoremissingfiles", "ignoreinvalidpartitionpaths")
"""Options with which Spark skips unreadable files instead of failing."""
_HADOOP = re.compile(r"(?!spark\.)\w[\w-]*\.")
"""Settings of file systems and codecs, which readers accept as options: `fs.s3a.endpoint`."""


@dataclass(frozen=True, slots=True)
class WrongOption:
    """An invalid option of a dataset: what is wrong with it, and what to write instead."""

    problem: str
    hint: str = ""


def wrong_option(ref: DatasetRef) -> WrongOption | None:
    """The first option of a dataset that its source does not take, or would misread."""
    names: dict[str, str] = {}
    for name, value in ref.options:
        earlier = names.get(_meaning(name))
        if earlier is not None and _plain(earlier) == _plain(name):
            problem = f"has the option '{name}' twice"
            return WrongOption(problem, "option names are case-insensitive")
        if earlier is not None:
            problem = f"has the option '{name}' next to '{earlier}', which means the same"
            return WrongOption(problem, "remove one of them")
        names[_meaning(name)] = name
        wrong = _wrong_for_source(ref, name, value) or _wrong_value(name, value)
        if wrong is not None:
            return wrong
    return None


def of_delta_table(name: str) -> WrongOption:
    """The error of an option for a Delta table, which takes none."""
    instead = _TRAVELS.get(name.lower())
    if instead is not None:
        problem = f"has the option '{name}', which is not supported for a Delta table"
        return WrongOption(problem, f"write {instead}=... next to the path or the table")
    problem = f"has the option '{name}': options are not supported for a Delta table"
    return WrongOption(problem, "remove it")


def given_options(ref: DatasetRef) -> dict[str, str]:
    """The options of a dataset as passed to Spark."""
    return {name.removeprefix(UNCHECKED): value for name, value in ref.options}


def option_of(ref: DatasetRef, name: str) -> str | None:
    """The value of an option, whose name may be in any case; None if it is not given."""
    for key, value in ref.options:
        if key.removeprefix(UNCHECKED).lower() == name.lower():
            return value
    return None


def is_on(ref: DatasetRef, name: str, *, by_default: bool = False) -> bool:
    """The value of a boolean option."""
    text = option_of(ref, name)
    return by_default if text is None else text.lower() == "true"


def with_default_options(ref: DatasetRef, defaults: Mapping[str, Mapping[str, str]]) -> DatasetRef:
    """A dataset with the default options of its format; its own options win.

    :param defaults: options by format. Tables of the catalog and queries have no format of their
        own, and take none.
    """
    has_format = ref.path is not None or ref.format == JDBC
    of_format = defaults.get(ref.format) if has_format else None
    if not of_format:
        return ref
    return replace(ref, options=tuple(beside(of_format, dict(ref.options)).items()))


def beside(defaults: Mapping[str, str], stated: Mapping[str, str]) -> dict[str, str]:
    """The stated options, with the defaults of all others; synonyms count as the same option."""
    meanings = {_meaning(name) for name in stated}
    missing = {name: text for name, text in defaults.items() if _meaning(name) not in meanings}
    return {**missing, **stated}


def _plain(name: str) -> str:
    return name.removeprefix(UNCHECKED).lower()


def _meaning(name: str) -> str:
    """The canonical name of an option with synonyms."""
    return _SAME.get(_plain(name), _plain(name))


def _wrong_for_source(ref: DatasetRef, name: str, value: str) -> WrongOption | None:
    if ref.query is not None:
        problem = f"has the option '{name}': options are not supported for a query"
        return WrongOption(problem, "remove it")
    if ref.path is not None and ref.format == "delta":
        return of_delta_table(name)
    is_known_source = ref.path is not None or ref.format == JDBC
    known = _KNOWN.get(ref.format, ()) if is_known_source else _OF_ANY
    if name.lower() in _CHANGES_BY_TIME and (ref.format == "iceberg" or not is_known_source):
        problem = f"has the option '{name}', by which Iceberg selects no rows"
        return WrongOption(problem, "write start-snapshot-id and end-snapshot-id")
    if ref.format == JDBC and _plain(name) in _OF_GATES:
        problem = f"has the option '{name}', which a gate sets itself"
        return WrongOption(problem, "remove it; what the driver needs is part of the connection")
    if name.startswith(UNCHECKED):
        plain = name.removeprefix(UNCHECKED)
        is_known = plain.lower() in map(str.lower, known)
        return _slip(name, plain) if is_known else None
    if _HADOOP.match(name):
        return None
    if name.lower() in map(str.lower, known) or (name.lower(), value.lower()) in _TRUE_ANYWAY:
        return None
    near = nearest(name, known)
    if not is_known_source:
        # A catalog table may be of any source: only likely typos are reported.
        return None if near is None else _slip(name, near)
    instead = f"did you mean '{near}'? An" if near else "remove it; an"
    return WrongOption(
        f"has the option '{name}', which {ref.format} does not support",
        f"{instead} option that only your Spark knows is written {UNCHECKED}{name}",
    )


def _slip(name: str, near: str) -> WrongOption:
    return WrongOption(f"has the option '{name}'", f"did you mean '{near}'?")


def _wrong_value(name: str, value: str) -> WrongOption | None:
    key = _plain(name)
    if (hint := hint_for(key, value)) is not None:
        return WrongOption(f"has the option {name}={value}", hint)
    if key in _PASSES_OVER and value.lower() != "false":
        return WrongOption(
            f"has the option {name}={value}: a gate does not skip unreadable data",
            "remove it; use pathGlobFilter and modifiedAfter to select files",
        )
    return None
