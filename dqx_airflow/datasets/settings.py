"""Reads the settings of a dataset, such as location, format and dates, and reports each error
with its key.

On a command line a dataset is `NAME=LOCATION?key=value&...`: a path, `table:catalog.schema.t`, or
`query:SELECT ...`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime, timezone
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dqx_airflow.datasets.reader_options import wrong_option
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, nearest
from dqx_airflow.errors import RequestError
from dqx_airflow.values import FORMATS, JDBC, DatasetRef, GateRequest, Span
from dqx_airflow.values.blank import has_blank, is_blank
from dqx_airflow.values.files import local_path
from dqx_airflow.values.json_form import iso_timestamp
from dqx_airflow.values.redact import holds_credentials, may_be_secret, redact_urls
from dqx_airflow.values.secret_forms import is_secret_setting

ISO = "yyyy-MM-dd"

_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#])")
_FORMS = {
    "yyyy": "{0.year:04}",
    "uuuu": "{0.year:04}",
    "y": "{0.year}",
    "u": "{0.year}",
    "yy": "{1:02}",
    "uu": "{1:02}",
    "MM": "{0.month:02}",
    "M": "{0.month}",
    "dd": "{0.day:02}",
    "d": "{0.day}",
}


class DatePatternError(ValueError):
    """The error of an invalid date pattern."""


def date_text(pattern: str, on: date) -> str:
    """The date in the format of a pattern, the same as from Spark's `date_format`.

    >>> date_text("dd.MM.yyyy", date(2024, 3, 2))
    '02.03.2024'

    :raises DatePatternError: the pattern does not identify a day, or has unsupported letters.
    """
    text, position, units = [], 0, set()
    while position < len(pattern):
        part = _PART.match(pattern, position)
        if part is None:
            raise DatePatternError(f"'{pattern[position:]}' is invalid")
        quoted, letter, literal = part.groups()
        if letter:
            form = _FORMS.get(part[0])
            if form is None:
                raise DatePatternError(f"'{part[0]}' is not supported in a date pattern")
            units.add("y" if letter == "u" else letter)
            text.append(form.format(on, on.year % 100))
        else:
            text.append(literal or quoted.replace("''", "'") or "'")
        position = part.end()
    if units != {"y", "M", "d"}:
        raise DatePatternError("it must contain the year, the month and the day")
    return "".join(text)


S3A_ENDPOINT = "fs.s3a.endpoint"
_AZURE = re.compile(
    r"(?:az|https|wasbs?|abfss?)://(?P<account>[\w-]+)\.(?:blob|dfs)\.core\.windows\.net/"
    r"(?P<container>[^/]+)/(?P<path>.*)"
)
_WITH_ACCOUNT = re.compile(
    r"(?:az|adl|wasbs?)://(?P<container>[^/@]+)@(?P<account>[\w-]+)\.(?:blob|dfs)"
    r"\.core\.windows\.net/(?P<path>.*)"
)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)


def spark_location(location: str, *, has_endpoint: bool = False) -> str:
    """A location that Spark can read.

    >>> spark_location("https://shop.blob.core.windows.net/lake/orders")
    'abfss://lake@shop.dfs.core.windows.net/orders'
    >>> spark_location("file:/lake/orders")
    '/lake/orders'

    :param has_endpoint: whether an S3 endpoint is set, which only S3A supports; without one, `s3`
        is left to the cluster.
    :raises RequestError: it does not name the account of the data, or nothing can read it.
    """
    if match := _AZURE.fullmatch(location) or _WITH_ACCOUNT.fullmatch(location):
        form = "abfss://{container}@{account}.dfs.core.windows.net/{path}"
        return form.format(**match.groupdict())
    location = local_path(location)
    parts = _SCHEME.fullmatch(location)
    if parts is None:
        return location
    scheme, rest = parts["scheme"].lower(), parts["rest"]
    if scheme == "az":
        container, _, path = rest.partition("/")
        raise RequestError(
            f"the location {location} names no account",
            f"write abfss://{container}@ACCOUNT.dfs.core.windows.net/{path}",
        )
    if scheme in ("http", "https"):
        message = f"the location {location} is a web address, which Spark does not read"
        raise RequestError(message, "write the location in the store, such as s3a://BUCKET/PATH")
    if scheme == "s3n" or (scheme == "s3" and has_endpoint):
        return f"s3a://{rest}"
    return f"gs://{rest}" if scheme == "gcs" else location


DatasetSetting: TypeAlias = "str | os.PathLike[str] | DatasetRef | Mapping[str, Any]"

SETTINGS = tuple(field.name for field in fields(DatasetRef) if field.name != "name")
"""The settings of a dataset."""

_CREDENTIALS = (
    "they belong in the configuration of Spark, in the connection of the results, or in the "
    "environment of the driver"
)


_NO_TEXT = (bool, int, float, bytes, list, tuple, set, dict)


_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)
_OF_CATALOG = re.compile(r"`|^`?spark_catalog`?\.(`?default`?\.)?|^`?default`?\.", re.IGNORECASE)
"""The optional parts of the name of a table: default catalog, default schema, quotes."""
_ONE_SLASH = re.compile(r"(s3[an]?|gs|az|adl|abfss?|wasbs?):/(?!/)")
_CONNECTION_ID = re.compile(r"[\w.#/-]{1,200}")
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


def check_ref(ref: DatasetRef) -> None:
    """Checks a dataset as far as possible before anything is read.

    :raises RequestError: its settings contradict each other, or one of them is invalid.
    """
    objection = _objection(ref)
    if objection is not None:
        raise RequestError(f"dataset '{ref.name}'{objection}")
    wrong = wrong_option(ref)
    if wrong is not None:
        raise RequestError(f"dataset '{ref.name}' {wrong.problem}", wrong.hint)


def check_locations(request: GateRequest) -> None:
    """Rejects credentials in the locations to which a gate writes.

    :raises RequestError: there are some.
    """
    places = [("the results", request.results_root)]
    places += [(f"the quarantine of dataset '{name}'", path) for name, path in request.quarantine]
    places += [(f"the promotion of dataset '{name}'", path) for name, path in request.promote_to]
    for purpose, place in places:
        if holds_credentials(place):
            message = f"the location of {purpose} contains credentials: {redact_urls(place)}"
            raise RequestError(message, _CREDENTIALS)
        if (meant := two_slashes(place)) is not None:
            raise RequestError(f"the location of {purpose} is {place}", f"write {meant}")


def _objection(ref: DatasetRef) -> str | None:
    for key in ("path", "table", "lineage_name"):
        place = getattr(ref, key)
        if place is not None and holds_credentials(place):
            return f" has credentials in its {key}, {redact_urls(place)}: {_CREDENTIALS}"
    if ref.path is not None and (meant := two_slashes(ref.path)) is not None:
        return f" has path={ref.path!r}: write {meant}"
    for name, value in ref.options:
        if is_secret_setting(name) or may_be_secret(value):
            return f" has a secret in its option {name}: {_CREDENTIALS}"
    if (ref.path, ref.table, ref.query).count(None) != 2:
        return ": give it exactly one of path, table and query"
    if ref.conn_id is not None or ref.format == JDBC:
        if (objection := _objection_to_database(ref)) is not None:
            return objection
    elif ref.path is not None and ref.format not in FORMATS:
        return f" has format={ref.format!r}: write one of {', '.join(FORMATS)}"
    has_versions = ref.format != JDBC and (
        ref.table is not None or (ref.path is not None and ref.format == "delta")
    )
    travels = [key for key in ("version", "timestamp") if getattr(ref, key) is not None]
    if travels and not has_versions:
        return f" has a {travels[0]}: only Delta tables have versions"
    if len(travels) > 1:
        return ": give it either a version or a timestamp"
    if ref.schema is not None and (ref.path is None or ref.format in ("delta", "iceberg")):
        return " has a schema: only files can have one"
    for key in ("date_format", "time_zone"):
        if getattr(ref, key) is not None and ref.date_column is None:
            return f" has a {key} but no date_column: give it both, or neither"
    if ref.date_format is not None and ref.time_zone is not None:
        return ": date_format is for strings, time_zone for timestamps; give it only one of them"
    return _objection_to_values(ref)


def _objection_to_database(ref: DatasetRef) -> str | None:
    if ref.conn_id is None:
        return (
            ' has format="jdbc" and no conn_id: give it the id of a connection, which holds the '
            "credentials"
        )
    if ref.format != JDBC:
        return f' has a conn_id and format={ref.format!r}: a table of a database has format="jdbc"'
    if not _CONNECTION_ID.fullmatch(ref.conn_id):
        return " has a conn_id that is not the id of a connection: credentials belong into one"
    if ref.table is None:
        return " has a conn_id and no table: write table=SCHEMA.TABLE, the name in the database"
    return None


def two_slashes(place: str) -> str | None:
    """The correction of an object store URI with one slash, which is a local folder."""
    if _ONE_SLASH.match(place) is None:
        return None
    scheme, _, rest = place.partition(":/")
    return f"{scheme}://{rest}"


def _objection_to_values(ref: DatasetRef) -> str | None:
    if ref.version is not None and ref.version < 0:
        return f" has version={ref.version}: Delta versions start at 0"
    if ref.timestamp is not None:
        try:
            timestamp_of(ref.timestamp)
        except ValueError:
            return f" has timestamp={ref.timestamp!r}: write 2024-03-02T06:00:00+00:00"
    if ref.date_format is not None:
        try:
            date_text(ref.date_format, date.min)
        except DatePatternError as error:
            return f" has date_format={ref.date_format!r}: {error}, as yyyyMMdd or dd.MM.yyyy do"
    if ref.time_zone is not None:
        try:
            ZoneInfo(ref.time_zone)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            return f" has time_zone={ref.time_zone!r}: write a name such as Europe/Zurich"
    return None


def timestamp_of(text: str) -> datetime:
    """The timestamp that an ISO string denotes, in UTC without a zone.

    :raises ValueError: it is not one.
    """
    timestamp = iso_timestamp(text.strip())
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)


def settings_of(ref: DatasetRef) -> dict[str, Any]:
    """The settings of a reference, without its name."""
    return {key: value for key, value in asdict(ref).items() if key in SETTINGS}


def check_quarantine(request: GateRequest) -> None:
    """Rejects a quarantine below the results, where unmasked rows must not be, in a dataset, or
    in the quarantine of another one, whose rows it would replace.

    :raises RequestError: the request has such a quarantine.
    """
    if not request.quarantine:
        return
    taken = {"the results": request.results_root}
    taken |= {f"dataset '{ref.name}'": ref.path for ref in request.datasets if ref.path}
    for name, path in request.quarantine:
        for owner, root in taken.items():
            if _place(path).startswith(_place(root)):
                raise RequestError(
                    f"the quarantine of dataset '{name}' is inside the location of {owner}: {path}",
                    "give it a separate path",
                )
        taken[f"the quarantine of dataset '{name}'"] = path


def check_promotion(request: GateRequest, dates: Collection[date] = ()) -> None:
    """Rejects a promotion of a dataset without versions, one into a location that is in use, and
    one of a dataset without dates for several dates.

    :raises RequestError: the request has such a promotion.
    """
    if request.promote_slice and not request.promote_to:
        message = "promote_slice requires promote_to"
        raise RequestError(message, "set promote_to as well, or remove promote_slice")
    if request.promote_valid is not None:
        places = dict(request.quarantine)
        without = [name for name, _ in request.promote_to if name not in places]
        if without or not request.promote_to:
            lacking = f"quarantine for dataset '{without[0]}'" if without else "promote_to"
            raise RequestError(
                f"promote_valid requires promote_to and quarantine, and there is no {lacking}",
                f"set {lacking.split(maxsplit=1)[0]} as well, or remove promote_valid",
            )
    if not request.promote_to:
        return
    refs = {ref.name: ref for ref in request.datasets}
    taken = {"the results": request.results_root}
    taken |= {
        f"dataset '{ref.name}'": ref.location
        for ref in request.datasets
        if not ref.query and ref.format != JDBC
    }
    taken |= {f"the quarantine of dataset '{name}'": path for name, path in request.quarantine}
    for name, target in request.promote_to:
        if len(set(dates)) > 1 and refs[name].date_column is None:
            raise RequestError(
                f"dataset '{name}' has no date_column, so each date from {min(dates)} to "
                f"{max(dates)} would replace the same rows of {target}",
                "give it a date_column, or promote it in a gate of one date",
            )
        if refs[name].query is not None or refs[name].format == JDBC:
            noun = "a query" if refs[name].query is not None else "a table of a database"
            message = f"dataset '{name}' is {noun} and cannot be promoted"
            raise RequestError(message, "promote a dataset at a path or a table of the catalog")
        for owner, place in taken.items():
            if _overlap(place, target):
                message = f"dataset '{name}' would be promoted to the location of {owner}: {target}"
                raise RequestError(message, "give it a separate location")
        taken[f"the promotion of dataset '{name}'"] = target


def is_table(place: str) -> bool:
    """True for the name of a table, false for a path."""
    return "/" not in place


def _overlap(place: str, other_place: str) -> bool:
    """True if two locations are the same, or one lies within the other."""
    if is_table(place) or is_table(other_place):
        return is_same_place(place, other_place)
    return paths_overlap(place, other_place)


def is_same_place(place: str, other_place: str) -> bool:
    """True if two paths, URIs or names of tables are the same, however they are written."""
    if is_table(place) or is_table(other_place):
        first, second = (_OF_CATALOG.sub("", name).casefold() for name in (place, other_place))
        return first == second
    return _place(place) == _place(other_place)


def paths_overlap(path: str, other_path: str) -> bool:
    """True if two paths or URIs are the same however they are written, or one is in the other."""
    first, second = _place(path), _place(other_path)
    return first.startswith(second) or second.startswith(first)


def _place(path: str) -> str:
    """A path or URI with a trailing slash, so that it is a prefix of everything within it."""
    path = _S3.sub("s3://", local_path(path))
    if "://" not in path:
        path = os.path.realpath(os.path.expanduser(path))
    return path.rstrip("/") + "/"


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
        words = [column.strip() for column in given.split(",")]
        given = [word for word in words if word] or words
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
_FORM = "write NAME=PATH, or NAME=table:CATALOG.SCHEMA.TABLE"
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
        ref, mistakes = _checked_ref(name, settings)
        for mistake in mistakes:
            named = (key for key in places if f"'{key.removeprefix(_OPTION)}'" in mistake.message)
            key = next(named, "") if mistake.key == "options" else mistake.key
            place = places.get(key, (0, len(self.text)))
            self._add(mistake.message, *place, mistake.hint)
        return None if self.problems else ref

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
