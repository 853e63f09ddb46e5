"""A `dqx.toml`: the connection to Spark, defaults of calls, and the datasets.

    [connection]
    url = "local[*]"                # or a type with its host, port and http_path
    jvm_archive = "gate.jsa"        # made with `dql package --jvm-archive`

    [connection.conf]               # settings of the Spark session
    "spark.sql.ansi.enabled" = true

    [defaults]
    date = "yesterday"              # also format, results_root, fail_on, allow_empty,
                                    # require_history, trust_log, ansi, unsupported,
                                    # max_clock_skew_hours

    [datasets.orders]
    path = "lake/orders"            # beside this file; or table = "catalog.schema.orders"
    date_column = "ds"

    [gates.orders]                  # of which a DAG makes tasks: see `gate_settings`
    suite = "suites/orders.dql"

    [contracts]
    environment = ["REGION"]        # variables of the environment that contracts may use

    [contracts.variables]           # other values of `${NAME}` in contracts
    LAKE = "s3://lake"

    [reader.csv]                    # options of all datasets of this format
    sep = ";"

The nearest `dqx.toml` counts, next to a suite or above it. Editors use it, too.

"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from dqx_airflow.datasets import gate_settings, jvm_options, reader_options
from dqx_airflow.datasets.gate_settings import GateSettings
from dqx_airflow.datasets.locations import place_of
from dqx_airflow.datasets.settings import SETTINGS, dataset_ref, mistakes_in
from dqx_airflow.datasets.spark_address import LOCAL, Connection, ConnectionKind, connection_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_CLOCK_SKEW_HOURS
from dqx_airflow.values import DatasetRef, RunOptions, Severity, Span
from dqx_airflow.values.blank import is_blank
from dqx_airflow.values.exact import MANY_DIGITS, TOO_LARGE
from dqx_airflow.values.files import first_bytes, local_path
from dqx_airflow.values.json_form import setting_text
from dqx_airflow.values.redact import may_be_secret
from dqx_airflow.values.request import SETTABLE_OPTIONS, is_clock_skew
from dqx_airflow.values.secret_forms import is_secret_setting
from dqx_airflow.values.typed_values import typed_day
from dqx_airflow.values.variables import HOW_TO_NAME, is_variable_name

Keys: TypeAlias = tuple[str, ...]

_KEY = r"(?:\"[^\"]*\"|'[^']*'|[\w-]+)"
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_KEYS})\s*\]")
_SETTING = re.compile(rf"\s*({_KEYS})\s*=\s*")
_INNER = re.compile(rf"[{{,]\s*({_KEYS})\s*=\s*")
_LONG_TEXT = re.compile(r"\"\"\"|'''")


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """A key and, after it on the same line, its value."""

    key: Span
    value: Span


@dataclass(slots=True)
class Positions:
    """The positions of the tables and keys of a valid TOML text, read line by line when the first
    of them is needed: a file without problems needs none."""

    file: str
    text: str
    _places: dict[Keys, KeyLocation] | None = None

    @property
    def _found(self) -> dict[Keys, KeyLocation]:
        if self._places is None:
            self._places = {}
            self._read(self._places)
        return self._places

    def _read(self, places: dict[Keys, KeyLocation]) -> None:
        table: Keys = ()
        in_text = False
        for number, line in enumerate(self.text.split("\n"), start=1):
            if not in_text:
                if match := _TABLE.match(line):
                    table = _path(match[1])
                    span = self._span(number, match.start(1), match.end(1))
                    places.setdefault(table, KeyLocation(span, span))
                elif match := _SETTING.match(line):
                    self._add(places, table, match, number, line)
            in_text ^= len(_LONG_TEXT.findall(line)) % 2 == 1

    def key(self, *path: str) -> Span:
        """The position of a key; of the nearest enclosing table if it was not found."""
        return self._nearest(path).key

    def value(self, *path: str) -> Span:
        return self._nearest(path).value

    def _nearest(self, path: Keys) -> KeyLocation:
        path = _parts(path)
        places = self._found
        while path and path not in places:
            path = path[:-1]
        first = self._span(1, 0, 1)
        return places.get(path, KeyLocation(first, first))

    def _add(
        self,
        places: dict[Keys, KeyLocation],
        table: Keys,
        match: re.Match[str],
        number: int,
        line: str,
    ) -> None:
        path = (*table, *_path(match[1]))
        end = len(line.rstrip())
        value = self._span(number, match.end(), end)
        places[path] = KeyLocation(self._span(number, match.start(1), match.end(1)), value)
        for inner in _INNER.finditer(line, match.end()):
            behind = re.compile(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,}]*").match(line, inner.end())
            value = self._span(number, inner.end(), behind.end() if behind else end)
            key = self._span(number, inner.start(1), inner.end(1))
            below = (*path, *_path(inner[1]))
            places[below] = KeyLocation(key, value)

    def _span(self, line: int, start: int, end: int) -> Span:
        return Span(self.file, line, start + 1, line, max(end, start + 1) + 1)


def _path(keys: str) -> Keys:
    return _parts(key.strip("\"'") for key in re.findall(_KEY, keys))


def _parts(keys: Iterable[str]) -> Keys:
    """Splits quoted keys at their dots like unquoted ones: names of settings are written both
    with quotes and without."""
    return tuple(part for key in keys for part in key.split("."))


class Unsupported(str, Enum):
    """The treatment of a contract clause that states a check and cannot be enforced."""

    ERROR = "error"
    WARN = "warn"


class RunFormat(str, Enum):
    """The output format of a run."""

    TEXT = "text"
    JSON = "json"
    SUMMARY = "summary"
    JUNIT = "junit"
    GITHUB = "github"
    SARIF = "sarif"


@dataclass(frozen=True, slots=True)
class Defaults(RunOptions):
    """The defaults of calls, including the defaults of `RunOptions`. `results_root` is the root
    of a results store, `date` None means today.

    Without `trust_log`, no dataset trusts the log of its table, whatever its own settings are.
    """

    date: str | None = None
    format: RunFormat = RunFormat.TEXT
    results_root: str | None = None
    trust_log: bool = True
    unsupported: Unsupported = Unsupported.ERROR


_MOST_ERRORS = 20
"""As many errors of a file are shown at once: people read them."""


@dataclass(frozen=True)
class Settings:
    """The contents of a `dqx.toml`; without one, the built-in defaults.

    `datasets` are tables of settings as written, since Spark need not be able to read all of them:
    an editor only needs the columns. Invalid settings are left out, and their datasets are
    `unsound`. `reader` are the options of datasets by format, `variables` the variables available
    to contracts: `NAME=VALUE`, or `NAME` for a variable of the environment. `gates` are the gates
    without mistakes.
    """

    path: Path | None = None
    text: str = ""
    connection: Connection = LOCAL
    conf: Mapping[str, str] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: tuple[Diagnostic, ...] = ()
    unsound: frozenset[str] = frozenset()
    jvm_archive: Path | None = None
    reader: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    gates: tuple[GateSettings, ...] = ()

    @property
    def error_message(self) -> str:
        """The errors in the file: one alone, or a line for each of the first; empty without one."""
        severe = [
            f"{problem.span.file}:{problem.span.line}: {problem.message}"
            for problem in self.problems
            if not problem.is_mild
        ]
        if len(severe) < 2:
            return "".join(severe)
        lines = [f"{len(severe)} errors in {self.path}", *severe[:_MOST_ERRORS]]
        if len(severe) > _MOST_ERRORS:
            lines.append(f"and {len(severe) - _MOST_ERRORS} more")
        return "\n  ".join(lines)

    @cached_property
    def refs(self) -> Mapping[str, DatasetRef]:
        """The datasets with a location, relative paths resolved against the file; only with their
        own options."""
        refs = {}
        for name, table in self.datasets.items():
            settings = {key: value for key, value in table.items() if key in SETTINGS}
            if name in self.unsound or not any(map(settings.get, ("path", "table", "query"))):
                continue
            if path := settings.get("path"):
                settings["path"] = self._beside(path)
            refs[name] = dataset_ref(name, settings)
        return refs

    def as_read(self, refs: Mapping[str, DatasetRef]) -> dict[str, DatasetRef]:
        """Datasets with the options of `reader` for their formats; their own options win."""
        return {
            name: reader_options.with_default_options(ref, self.reader)
            for name, ref in refs.items()
        }

    def with_masks(self, ref: DatasetRef) -> DatasetRef:
        """The dataset, also with the masks set for its name, its files or its table."""
        return self.with_given({ref.name: ref})[ref.name]

    def with_given(self, given: Mapping[str, DatasetRef]) -> dict[str, DatasetRef]:
        """The datasets, and the given ones, each as from `with_masks`."""
        refs = self.refs
        hiding = [(known, _place(known)) for known in refs.values() if known.masked]
        if not hiding:
            return {**refs, **given}
        masked = {}
        for name, ref in given.items():
            columns = dict.fromkeys(ref.masked)
            place = _place(ref)
            for known, known_place in hiding:
                if known.name == ref.name or _overlap(known_place, place):
                    columns.update(dict.fromkeys(known.masked))
            masked[name] = replace(ref, masked=tuple(columns))
        return {**refs, **masked}

    @property
    def session(self) -> Mapping[str, str]:
        """The settings of the Spark session, with the class archive if this process starts the
        JVM."""
        if self.jvm_archive is None or self.connection.kind not in (
            ConnectionKind.LOCAL,
            ConnectionKind.STANDALONE,
        ):
            return self.conf
        options = jvm_options.with_archive(
            self.conf.get(jvm_options.DRIVER_OPTIONS, ""), str(self.jvm_archive)
        )
        return {**self.conf, jvm_options.DRIVER_OPTIONS: options}

    @property
    def results_root(self) -> str | None:
        return self._beside(self.defaults.results_root) if self.defaults.results_root else None

    def suite_of(self, gate: GateSettings) -> str:
        """The path of the suite of a gate, resolved against the file."""
        return self._beside(gate.suite)

    @cached_property
    def _folder(self) -> Path:
        assert self.path is not None
        return self.path.absolute().parent

    def _beside(self, path: str) -> str:
        """A relative path resolved against the file; a URI, and a path with `~`, unchanged."""
        path = local_path(path)
        if self.path is None or "://" in path or path.startswith("~"):
            return path
        return str(self._folder / path)


def _place(ref: DatasetRef) -> tuple[str | None, str]:
    """The place of the files of a dataset, None without files, and its location as written."""
    return (None if ref.path is None else place_of(ref.path)), ref.location


def _overlap(one: tuple[str | None, str], other: tuple[str | None, str]) -> bool:
    """True if datasets at two places have files or a table in common."""
    first, second = one[0], other[0]
    if first is None or second is None:
        return one[1] == other[1]
    return first.startswith(second) or second.startswith(first)


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "dqx.toml"

_TABLES = ("connection", "defaults", "datasets", "gates", "reader", "contracts")

_ADDRESS = ("url", "type", "host", "port", "http_path")

_CONNECTION = (*_ADDRESS, "conf", "jvm_archive")

_SCHEMES = {"spark": "spark", "connect": "sc", "databricks": "databricks"}

_CONF = ("connection", "conf")

_OPTIONS = ("option", "options")
"""The keys of a dataset's options: `[reader.csv]` has them without such a table."""

_COLUMNS = "columns"
"""The setting with the columns of a dataset for editors; a run reads them from the data."""

_SECRET = re.compile(r"token|password|secret", re.IGNORECASE)

_PLACE_OF_ERROR = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.S)


def find_settings(folder: Path) -> Path | None:
    """The nearest `dqx.toml`, in a folder or above it."""
    home = folder.absolute()
    for place in (home, *home.parents):
        file = place / FILE_NAME
        if file.is_file():
            return file
    return None


LARGEST_FILE = 1_000_000
"""The maximum size of a file, in bytes."""


def _unread(path: Path, problem: Diagnostic, text: str = "") -> Settings:
    """The settings of a file that cannot be read: none, and any dataset may be in it."""
    return Settings(path, text, problems=(problem,), unsound=frozenset({""}))


def read_settings(path: Path, name: str | None = None) -> Settings:
    """The settings of a file. Everything that is wrong with it is in `problems`.

    :param name: the name of the file in messages.
    """
    name = name or str(path)
    try:
        content = first_bytes(path, LARGEST_FILE + 1)
    except OSError as error:
        message = f"cannot read this file: {error.strerror or error}"
        return _unread(path, Diagnostic(message, Span(name, 1, 1, 1, 2)))
    return settings_in(content, path, name)


def settings_in(content: bytes, path: Path, name: str | None = None) -> Settings:
    """The settings in the content of a file, as from `read_settings`.

    :param content: the bytes of the file; of a larger one at least one more than `LARGEST_FILE`.
    """
    name = name or str(path)
    first = Span(name, 1, 1, 1, 2)
    if len(content) > LARGEST_FILE:
        message = f"this file has more than {LARGEST_FILE // 1_000_000} MB"
        return _unread(path, Diagnostic(message, first))
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        return _unread(path, Diagnostic("this is not UTF-8 text", first))
    except (ValueError, RecursionError) as error:
        return _unread(path, _syntax_error(error, text, name), text)
    reader = _SettingsReader(document, Positions(name, text))
    reader.keys((), reader.document, _TABLES)
    connection, conf = reader.connection()
    archive = reader.archive(path.absolute().parent)
    defaults = reader.defaults()
    options = reader.options()
    datasets = reader.datasets()
    gates = tuple(reader.gates(datasets))
    variables = tuple(reader.variables())
    found = sorted(reader.problems, key=lambda problem: (problem.span.line, problem.span.column))
    return Settings(
        path,
        text,
        connection,
        conf,
        defaults,
        datasets,
        tuple(found),
        frozenset(reader.unsound),
        archive,
        options,
        variables,
        gates,
    )


def literal(value: str | Sequence[str]) -> str:
    """A string, or a list of strings, as a literal of TOML. It is one of Python, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_toml(text: str) -> bool:
    """Whether a text can be parsed."""
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _syntax_error(error: Exception, text: str, name: str) -> Diagnostic:
    match = _PLACE_OF_ERROR.match(str(error))
    if match is None:
        digits = MANY_DIGITS.search(text)  # which Python does not convert
        line = text[: digits.start()].count("\n") + 1 if digits else 1
        message = TOO_LARGE if digits else f"invalid TOML: {error}"
        return Diagnostic(message, Span(name, line, 1, line, 2))
    lines = text.split("\n")
    line = int(match[2]) if match[2] else len(lines)
    column = int(match[3]) if match[3] else len(lines[-1]) + 1
    return Diagnostic(f"invalid TOML: {match[1]}", Span(name, line, column, line, column + 1))


class _SettingsReader:
    """Reads the tables of a document, and collects what is wrong with them."""

    def __init__(self, document: Mapping[str, Any], positions: Positions) -> None:
        self.positions = positions
        self.problems: list[Diagnostic] = []
        self.unsound: set[str] = set()
        self.document = self._named(document)

    def _named(self, table: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
        """The table, and the tables in it, without keys that are blank: each is an error."""
        named = {}
        for key, value in table.items():
            if is_blank(key):
                where = f"[{'.'.join(path)}]" if path else "this file"
                hint = "write a name with a visible character, or remove it"
                self._wrong(f"a key in {where} is blank", *path, key, hint=hint, is_key=True)
                continue
            named[key] = self._named(value, *path, key) if isinstance(value, dict) else value
        return named

    def keys(self, path: tuple[str, ...], table: Mapping[str, Any], known: Collection[str]) -> None:
        """Reports the unknown keys of a table."""
        for key in table:
            if key in known:
                continue
            where = f" in [{'.'.join(path)}]" if path else ""
            span = self.positions.key(*path, key)
            label = did_you_mean(key, known) or ""
            if path == ("defaults",) and key in _RENAMED:
                label = f"renamed to '{_RENAMED[key]}'"
            hint = None
            if _SECRET.search(key):
                label = ""
                hint = "do not put secrets here: set them in the environment"
            message = f"unknown key '{key}'{where}"
            self.problems.append(Diagnostic(message, span, label=label, help=hint))

    def table(self, parent: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
        """A table within a table; empty if it is missing, or not a table."""
        table = parent.get(path[-1], {})
        if isinstance(table, dict):
            return table
        name = ".".join(path)
        message = f"'{name}' must be a table"
        self._wrong(message, *path, hint=f"write [{name}] and its settings below")
        return {}

    def connection(self) -> tuple[Connection, Mapping[str, str]]:
        table = self.table(self.document, "connection")
        self.keys(("connection",), table, _CONNECTION)
        conf = self.table(table, "connection", "conf")
        settings = {}
        for key, value in _flat(conf).items():
            if isinstance(value, str | int | float):
                settings[key] = setting_text(value)
            else:
                self._wrong(f"'{key}' must be a string, a number or a boolean", *_CONF, key)
        address = self._address(table)
        if address is None:
            return LOCAL, settings
        text, key = address
        try:
            return connection_of(text), settings
        except RequestError as error:
            self._wrong(error.problem, "connection", key, hint=error.hint)
            return LOCAL, settings

    def archive(self, folder: Path) -> Path | None:
        """The archive of JVM classes; None if it does not exist, which only costs time."""
        connection = self.document.get("connection")
        given = connection.get("jvm_archive") if isinstance(connection, dict) else None
        if given is None:
            return None
        place = ("connection", "jvm_archive")
        if not isinstance(given, str):
            hint = 'write jvm_archive = "gate.jsa"'
            self._wrong("'jvm_archive' must be a string", *place, hint=hint)
            return None
        path = folder / Path(given).expanduser()
        if path.is_file():
            return path
        message = "file not found, so Spark starts without it"
        hint = "create it with `dql package --jvm-archive`"
        span = self.positions.value(*place)
        self.problems.append(Diagnostic(message, span, help=hint, is_mild=True))
        return None

    def _address(self, table: Mapping[str, Any]) -> tuple[str, str] | None:
        """The address of the connection, and the key that sets it; None if there is none."""
        for key in ("url", "type", "host", "http_path"):
            if not isinstance(table.get(key, ""), str):
                example = f'write {key} = "..."'
                self._wrong(f"'{key}' must be a string", "connection", key, hint=example)
                return None
        address_keys = [key for key in _ADDRESS if key in table and key != "url"]
        if "url" in table:
            for key in address_keys:
                message = f"'{key}' cannot be combined with `url`"
                self._wrong(message, "connection", key, hint="remove one of them")
            return table["url"], "url"
        if not address_keys:
            return None
        kind = table.get("type")
        host = table.get("host")
        if kind == "local":
            return LOCAL.address, "type"
        if kind not in _SCHEMES:
            known = ("local", *_SCHEMES)
            message = f"unknown connection type '{kind}'" if kind else "missing connection type"
            hint = did_you_mean(kind, known) if kind else f"add type = ...: {', '.join(known)}"
            self._wrong(message, "connection", "type" if kind else address_keys[0], hint=hint)
            return None
        if not host:
            message = f"a connection of type '{kind}' needs a host"
            self._wrong(message, "connection", "type", hint='add host = "..."')
            return None
        port = f":{table['port']}" if "port" in table else ""
        path = f"/{table['http_path'].lstrip('/')}" if "http_path" in table else ""
        return f"{_SCHEMES[kind]}://{host}{port}{path}", "host"

    def defaults(self) -> Defaults:
        table = self.table(self.document, "defaults")
        self.keys(("defaults",), table, _DEFAULTS)
        valid: dict[str, Any] = {}
        for key in table.keys() & _DEFAULTS.keys():
            read, hint = _DEFAULTS[key]
            if (value := read(table[key])) is None:
                self._wrong(f"invalid value for '{key}'", "defaults", key, hint=hint)
            else:
                valid[key] = value
        return Defaults(**valid)

    def variables(self) -> Iterator[str]:
        """The variables available to contracts, see `Settings`."""
        table = self.table(self.document, "contracts")
        self.keys(("contracts",), table, ("environment", "variables"))
        names = table.get("environment", [])
        if isinstance(names, list) and all(map(is_variable_name, names)):
            yield from names
        else:
            hint = 'write a list of names of variables, such as ["REGION"]'
            self._wrong("invalid value for 'environment'", "contracts", "environment", hint=hint)
        for name, value in self.table(table, "contracts", "variables").items():
            if not is_variable_name(name):
                message = f"'{name}' is not the name of a variable"
                place = ("contracts", "variables", name)
                self._wrong(message, *place, hint=HOW_TO_NAME, is_key=True)
            elif isinstance(value, str):
                yield f"{name}={value}"
            else:
                message = f"'{name}' must be a string"
                self._wrong(message, "contracts", "variables", name, hint="put it in quotes")

    def options(self) -> Mapping[str, Mapping[str, str]]:
        """The options of datasets by format, without invalid ones."""
        reader = self.table(self.document, "reader")
        options = {}
        for format in reader:
            if format in reader_options.FORMATS_WITH_OPTIONS:
                options[format] = self._options_of(format, self.table(reader, "reader", format))
                continue
            message = f"unknown format '{format}' in [reader]"
            hint = did_you_mean(format, reader_options.FORMATS_WITH_OPTIONS)
            if format == "delta":
                message = "options are not supported for Delta tables"
                hint = "remove [reader.delta]"
            self._wrong(message, "reader", format, hint=hint, is_key=True)
        return options

    def _options_of(self, format: str, table: Mapping[str, Any]) -> Mapping[str, str]:
        place = ("reader", format)
        title = f"[{'.'.join(place)}]"
        nested = [key for key in _OPTIONS if isinstance(table.get(key), dict)]
        for key in nested:
            hint = f"write them directly below {title}"
            message = f"{title} takes options without '{key}'"
            self._wrong(message, *place, key, hint=hint, is_key=True)
        valid = DatasetRef("", path="", format=format)
        for key, value in _flat({key: table[key] for key in table if key not in nested}).items():
            if not isinstance(value, str | int | float):
                self._wrong(f"'{key}' must be a string, a number or a boolean", *place, key)
                continue
            if is_secret_setting(key) or may_be_secret(str(value)):
                hint = "do not put secrets here: set them in the environment"
                message = f"{title} has a secret in the option '{key}'"
                self._wrong(message, *place, key, hint=hint, is_key=True)
                continue
            candidate = replace(valid, options=(*valid.options, (key, setting_text(value))))
            if (wrong := reader_options.wrong_option(candidate)) is not None:
                message = f"{title} {wrong.problem}"
                self._wrong(message, *place, key, hint=wrong.hint, is_key=True)
            else:
                valid = candidate
        return dict(valid.options)

    def datasets(self) -> Mapping[str, Mapping[str, Any]]:
        datasets: dict[str, Mapping[str, Any]] = {}
        for name, value in self.table(self.document, "datasets").items():
            path = ("datasets", name)
            earlier = len(self.problems)
            table = {"path": value} if isinstance(value, str) else value
            if not isinstance(table, dict):
                hint = f'write [datasets.{name}] and path = "..." below'
                self._wrong("a dataset must be a table of settings or a path", *path, hint=hint)
                self.unsound.add(name)
                continue
            self.keys(path, table, (*SETTINGS, _COLUMNS))
            settings = {key: _as_settings(value) for key, value in table.items() if key in SETTINGS}
            mistakes = mistakes_in(name, settings)
            for mistake in mistakes:
                self._wrong(mistake.message, *path, mistake.key, hint=mistake.hint)
            for mistake in mistakes:
                settings.pop(mistake.key, None)
            if len(self.problems) > earlier:
                self.unsound.add(name)
            columns = table.get(_COLUMNS)
            datasets[name] = settings if columns is None else {**settings, _COLUMNS: columns}
        return datasets

    def gates(self, datasets: Collection[str]) -> Iterator[GateSettings]:
        """The gates without mistakes."""
        for name, table in self.table(self.document, "gates").items():
            path = ("gates", name)
            if not isinstance(table, dict):
                hint = f'write [gates.{name}] and suite = "..." below'
                self._wrong("a gate must be a table of settings", *path, hint=hint)
                continue
            self.keys(path, table, gate_settings.KEYS)
            known = {key: value for key, value in table.items() if key in gate_settings.KEYS}
            gate, mistakes = gate_settings.gate_settings(name, known, datasets)
            for mistake in mistakes:
                self._wrong(mistake.message, *path, mistake.key, hint=mistake.hint)
            if gate is not None:
                yield gate

    def _wrong(
        self, message: str, *path: str, hint: str | None = None, is_key: bool = False
    ) -> None:
        """Reports an error in a value, or in its key."""
        span = self.positions.key(*path) if is_key else self.positions.value(*path)
        self.problems.append(Diagnostic(message, span, help=hint or None))


def _date_text(value: Any) -> str | None:
    """A date as a string; TOML has dates."""
    return str(value) if typed_day(str(value), date.max) else None


def _member(kind: type[Enum], value: Any) -> Enum | None:
    return kind(value) if value in tuple(kind) else None


_RENAMED = {"results": "results_root", "output": "format"}
"""The former names of keys below [defaults]."""

# The parsed value, or None if it is invalid; and what to write instead.
_OF_TYPE: Mapping[type, tuple[Callable[[Any], Any], str]] = {
    bool: (lambda value: value if isinstance(value, bool) else None, "write true or false"),
    float: (
        lambda value: float(value) if is_clock_skew(value) else None,
        f"write a number of hours, from 0 to {MOST_CLOCK_SKEW_HOURS}",
    ),
    Severity: (partial(_member, Severity), 'write "P0", "P1", "P2" or "P3"'),
}
_DEFAULTS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "date": (_date_text, 'write "today", "yesterday", "-3d", or a date such as 2024-12-25'),
    "format": (partial(_member, RunFormat), f"write one of {', '.join(RunFormat)}"),
    "results_root": (
        lambda value: value if isinstance(value, str) and not is_blank(value) else None,
        "write the path or URI of a results store",
    ),
    **{name: _OF_TYPE[type(option.default)] for name, option in SETTABLE_OPTIONS.items()},
    "trust_log": _OF_TYPE[bool],
    "unsupported": (partial(_member, Unsupported), 'write "error" or "warn"'),
}


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with dotted keys: `spark.sql.ansi.enabled = true` makes nested tables."""
    flat = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": item for inner, item in _flat(value).items()})
        else:
            flat[key] = value
    return flat


def _as_settings(value: Any) -> Any:
    """Options and timestamps as strings, everything else unchanged."""
    if isinstance(value, dict):
        return {key: setting_text(item) for key, item in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value
