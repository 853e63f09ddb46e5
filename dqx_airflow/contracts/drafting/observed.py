"""The observations of a table, and of its columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dqx_airflow.contracts.dialects.sensitivity import looks_personal
from dqx_airflow.metrics.types import Family, family_of

_KEY_NAME = re.compile(r"(?i)(^|_)(id|uuid|key|code|number|no)$")
_CLOCK_NAMES = (
    *("ingested", "loaded", "updated", "modified", "changed", "created", "event", "_ts"),
    *("time", "_at", "date"),
)
"""Parts of the name of a column with the creation time of a row, most likely ones first."""


@dataclass(frozen=True, slots=True)
class ObservedColumn:
    """A column: its type in Spark, and the properties of its values.

    `values` are all values, for strings with few distinct ones; `pattern` matches all strings.
    Neither is recorded for personal data.
    """

    name: str
    type: str
    nulls: int = 0
    distinct: int | None = None
    lowest: int | float | None = None
    highest: int | float | None = None
    values: tuple[str, ...] = ()
    pattern: str | None = None
    is_personal: bool = False

    @property
    def is_named_like_a_key(self) -> bool:
        return _KEY_NAME.search(self.name) is not None


@dataclass(frozen=True, slots=True)
class ObservedTable:
    """A table at a location, with the columns that identify its rows, if known.

    `format` is that of its files, and None if the location is the name of a catalog table:
    `catalog.schema.table`.
    """

    name: str
    place: str
    format: str | None
    rows: int
    columns: tuple[ObservedColumn, ...]
    key: tuple[str, ...] = ()

    @property
    def clock(self) -> str | None:
        """The column that probably has the creation time of a row."""
        times = [column.name for column in self.columns if family_of(column.type) is Family.TIME]
        for word in _CLOCK_NAMES:
            for name in times:
                if word in name.lower():
                    return name
        return times[0] if len(times) == 1 else None


def is_personal(name: str, texts_look_personal: bool) -> bool:
    """Whether a column contains personal data, by its name or by the format of its strings."""
    return texts_look_personal or looks_personal(name)


# The form of texts -------------------------------------------------------------------------------

_LONGEST_TEXT = 40
_MOST_RUNS = 9
_CLASSES = (("[0-9]", str.isdigit), ("[A-Z]", str.isupper), ("[a-z]", str.islower))


@dataclass(slots=True)
class _CharacterRun:
    """Adjacent characters of one class, in all strings."""

    kind: str
    shortest: int
    longest: int
    text: str | None

    def pattern(self) -> str:
        if self.text is not None:
            return "".join(map(_escaped, self.text))
        least, most = self.shortest, self.longest
        return self.kind + (f"{{{least}}}" if least == most else f"{{{least},{most}}}")


def common_pattern(texts: list[str]) -> str | None:
    """The pattern of strings with a common structure that contains a number; None for all others.

    >>> common_pattern(["M0001", "M0317"])
    '^M[0-9]{4}$'
    """
    runs: list[_CharacterRun] | None = None
    for text in texts:
        runs_of_text = _runs(text)
        if runs_of_text is None or (runs is not None and len(runs) != len(runs_of_text)):
            return None
        if runs is None:
            runs = runs_of_text
            continue
        for run, other in zip(runs, runs_of_text, strict=True):
            if run.kind != other.kind:
                return None
            run.shortest = min(run.shortest, other.shortest)
            run.longest = max(run.longest, other.longest)
            run.text = run.text if run.text == other.text and run.kind != _CLASSES[0][0] else None
    if not runs or all(run.kind != _CLASSES[0][0] for run in runs):
        return None
    return f"^{''.join(run.pattern() for run in runs)}$"


def _runs(text: str) -> list[_CharacterRun] | None:
    if not text or len(text) > _LONGEST_TEXT or not text.isascii():
        return None
    runs: list[_CharacterRun] = []
    for sign in text:
        kind = next((name for name, is_one in _CLASSES if is_one(sign)), sign)
        if runs and runs[-1].kind == kind:
            runs[-1].longest += 1
            runs[-1].shortest += 1
            runs[-1].text = (runs[-1].text or "") + sign
        else:
            runs.append(_CharacterRun(kind, 1, 1, sign))
    return runs if len(runs) <= _MOST_RUNS else None


def _escaped(sign: str) -> str:
    return "\\" + sign if sign in r".^$*+?()[]{}|\/" else sign
