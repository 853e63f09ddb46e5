"""A draft suite from the contents of datasets: each assertion with its evidence, none of which
blocks.

An observation is not a promise: every assertion is `@experimental`, and tunables are bounded by
what was observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from statistics import median

from dqx_airflow.contracts.dialects.clause_reader import slug
from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.dql.dates import WEEKDAYS
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.values import SourceFile

_OLDEST = timedelta(days=7)
"""Older data does not show how fresh it should be."""

_FEWEST_DAYS = 14
_FEWEST_OF_A_WEEKDAY = 2
_SAME = Fraction(1, 4)
_FURTHEST = 20
_SPREADS = 6
"""The median deviations of days between the worst day and a limit: a fine day crosses it about once
in 5,000 days, if the extremes of days have an exponential tail."""

_LEAST_ROOM = Fraction(1, 20)
"""Of the usual rows, also if all days have the same number."""

_MOST_REPEATED = 0.01


@dataclass(frozen=True, slots=True)
class SeenDays:
    """The days of a dataset, by its date column: rows, and by column NULL values, and the ends of
    numbers."""

    column: str
    rows: Mapping[date, int]
    nulls: Mapping[str, Mapping[date, int]] = field(default_factory=dict)
    ends: Mapping[str, Mapping[date, tuple[float, float]]] = field(default_factory=dict)

    def is_part_of_the_date(self, column: str) -> bool:
        """True for a number that follows from the date, such as its month."""
        ends = self.ends.get(column, {})
        is_alone = all(low == high for low, high in ends.values())
        varies = len(set(ends.values())) > 1
        return is_alone and (
            varies or any(low in (on.year, on.month) for on, (low, _) in ends.items())
        )

    def shares(self, column: str) -> list[Fraction]:
        """The share of NULL on each day."""
        nulls = self.nulls.get(column, {})
        return [Fraction(nulls.get(on, 0), rows) for on, rows in self.rows.items()]


@dataclass(frozen=True, slots=True)
class Seen:
    """A dataset by its name in the suite. Without `days` all its rows belong to every date.

    `newest` is the newest timestamp of its clock column, in UTC.
    """

    name: str
    table: ObservedTable
    days: SeenDays | None = None
    newest: datetime | None = None


@dataclass(slots=True)
class _SuiteParts:
    """The parts of the suite as they are found."""

    constants: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    profiles: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def constant(self, name: str, value: str, low: str, high: str) -> str:
        """The name of a new tunable."""
        plain = slug(name).upper()
        base = plain if plain[:1].isalpha() else f"C_{plain}"
        unique, number = base, 1
        while unique in self._names:
            number += 1
            unique = f"{base}_{number}"
        self._names.add(unique)
        self.constants.append(f"const {unique} = {value} tunable [{low}, {high}]")
        return unique

    def check(self, title: str, dataset: str, assertions: Sequence[str]) -> None:
        if assertions:
            body = "\n\n".join(assertions)
            self.checks.append(f"check {show_text(title)} on {show_name(dataset)} {{\n{body}\n}}")


def suggested_suite(name: str, seen: Sequence[Seen], now: datetime) -> str:
    """The text of the draft, formatted. The observed data satisfies it.

    :param now: when the datasets were read.
    """
    draft = _SuiteParts()
    for dataset in seen:
        _Suggestions(dataset, draft, is_alone=len(seen) == 1, now=now).add()
    comment = "".join(f"# {line}\n" for line in _comments(seen, now))
    parts = ["\n".join(draft.constants), *draft.checks, *draft.profiles]
    body = "\n\n".join(part for part in parts if part)
    return format_source(SourceFile("", f"{comment}suite {show_text(name)} {{\n{body}\n}}\n"))


def _comments(seen: Sequence[Seen], now: datetime) -> Iterator[str]:
    yield (
        "A draft: it describes the current data, not your requirements. No assertion blocks a gate,"
    )
    yield "since all are @experimental: keep what you require, and `dql promote` it."
    for dataset in seen:
        name, table, days = dataset.name, dataset.table, dataset.days
        rows = f"{table.rows} rows"
        if days is not None and days.rows:
            first, last = min(days.rows), max(days.rows)
            rows += f" on {len(days.rows)} days from {first} to {last}, by {days.column}"
        yield f"{name}: {table.place}, {rows}, read on {now.date()}."
        for column in table.columns:
            if table.rows and column.nulls == table.rows:
                yield f"{name}: {column.name} is always NULL."
            elif column.is_personal:
                yield f"{name}: {column.name} looks personal, so its values are omitted."
            elif column.is_named_like_a_key and column.distinct:
                others = table.rows - column.distinct
                if 0 < others <= _MOST_REPEATED * table.rows:
                    yield f"{name}: {column.name} is almost a key: {others} rows repeat or lack it."
        if not table.key and table.rows:
            yield f"{name}: no column or pair of columns identifies a row."
        if dataset.newest is not None and now - dataset.newest > _OLDEST:
            yield f"{name}: the newest {table.clock} is {dataset.newest.date()}, too old to"
            yield "suggest an age limit."


class _Suggestions:
    """The suggestions for one dataset."""

    def __init__(self, seen: Seen, draft: _SuiteParts, *, is_alone: bool, now: datetime) -> None:
        self._seen, self._draft, self._now = seen, draft, now
        self._suffix = "" if is_alone else f" of {seen.name}"
        self._prefix = "" if is_alone else f"{seen.name}_"
        self._measures: list[str] = []

    def add(self) -> None:
        columns = [
            column
            for column in self._seen.table.columns
            if column.nulls < self._seen.table.rows and column.name != self._date_column
        ]
        for title, suggestions in (
            ("Keys", self._keys()),
            ("Completeness", (text for column in columns for text in self._completeness(column))),
            ("Values", (text for column in columns for text in self._values(column))),
            ("Volume", self._volume()),
            ("Levels", self._levels()),
            ("Freshness", self._freshness()),
        ):
            self._draft.check(title + self._suffix, self._seen.name, list(suggestions))

    @property
    def _date_column(self) -> str | None:
        return self._seen.days.column if self._seen.days else None

    def _assertion(self, claim: str, name: str, evidence: str) -> str:
        full_name = show_text(f"{self._seen.name}.{name}")
        return f"# {evidence}\n@experimental\nassert {claim}\n    name {full_name}"

    def _keys(self) -> Iterator[str]:
        key = self._seen.table.key
        if key:
            columns = ", ".join(map(show_name, key))
            yield self._assertion(
                f"duplicate_count([{columns}]) == 0",
                "key",
                f"no two of {self._seen.table.rows} rows have the same {' and '.join(key)}",
            )

    def _completeness(self, column: ObservedColumn) -> Iterator[str]:
        rows, shown_name = self._seen.table.rows, show_name(column.name)
        if column.nulls == 0:
            evidence = f"not NULL in {rows} rows"
            yield self._assertion(
                f"null_count({shown_name}) == 0", f"{column.name}.filled", evidence
            )
            return
        shares = self._seen.days.shares(column.name) if self._seen.days else []
        shares = shares or [Fraction(column.nulls, rows)]
        least, most = _percent(min(shares)), _percent(max(shares), up=True)
        limit, worst = most, None
        if len(shares) >= _FEWEST_DAYS and self._seen.days:
            found = _limit(dict(zip(self._seen.days.rows, shares, strict=True)), 1)
            limit, worst = _percent(min(Fraction(1), Fraction(found[0])), up=True), found[1]
        constant = self._draft.constant(
            f"max_nulls_{self._prefix}{column.name}",
            f"{limit}%",
            f"{least}%",
            f"{min(100, 2 * float(limit) + 1):g}%",
        )
        observed = f"{least}% to {most}% NULL on {len(shares)} days" if len(shares) > 1 else "NULL"
        yield self._assertion(
            f"null_count({shown_name}) / num_rows() <= {constant}",
            f"{column.name}.nulls",
            f"{observed}: {column.nulls} of {rows} rows{_without(worst)}",
        )

    def _values(self, column: ObservedColumn) -> Iterator[str]:
        shown_name, rows = show_name(column.name), self._seen.table.rows - column.nulls
        is_key = column.name in self._seen.table.key or column.is_named_like_a_key
        is_number = family_of(column.type) is Family.NUMBER
        is_level = is_number and not is_key and self._has_values_every_day(column)
        if is_level and not (self._days and self._days.is_part_of_the_date(column.name)):
            yield from self._range(column, shown_name)
            self._measures.append(column.name)
        if column.values:
            listed = ", ".join(map(show_text, column.values))
            evidence = f"{len(column.values)} different values in {rows} rows"
            yield self._assertion(
                f"each row: {shown_name} in [{listed}]", f"{column.name}.values", evidence
            )
        if column.pattern is not None:
            evidence = f"all {rows} values have this form"
            yield self._assertion(
                f"each row: {shown_name} matches {show_text(column.pattern)}",
                f"{column.name}.form",
                evidence,
            )

    def _has_values_every_day(self, column: ObservedColumn) -> bool:
        """Whether an extreme has a value on each day: it has none if all values are NULL."""
        return self._seen.days is None or max(self._seen.days.shares(column.name), default=1) < 1

    @property
    def _days(self) -> SeenDays | None:
        """The days, if they are enough to know how days differ."""
        days = self._seen.days
        return days if days is not None and len(days.rows) >= _FEWEST_DAYS else None

    def _range(self, column: ObservedColumn, shown_name: str) -> Iterator[str]:
        low, high = column.lowest, column.highest
        if low is None or high is None:
            return
        seen, ends = f"from {low} to {high}", self._days and self._days.ends.get(column.name)
        bad: tuple[date | None, date | None] = (None, None)
        if ends and len(ends) > 1:
            (below, first), (above, last) = (
                _limit({on: end[side] for on, end in ends.items()}, sign, apart=5)
                for side, sign in ((0, -1), (1, 1))
            )
            below = max(below, 0) if low >= 0 else below
            if math.isfinite(below) and math.isfinite(above):
                if isinstance(low, int) and isinstance(high, int):
                    below, above = math.floor(below), math.ceil(above)
                # A float may lie within the numbers that it stands for.
                low = below if first else min(below, low)
                high, bad = above if last else max(above, high), (first, last)
        span, middle = (high - low) or abs(low) or 1, low + (high - low) / 2
        if not (math.isfinite(low - span) and math.isfinite(high + span)):
            return  # a limit of which no multiple is a number cannot be tuned
        below = max(0, low - span) if low >= 0 else low - span
        whole = isinstance(low, int) and isinstance(high, int)
        least = self._draft.constant(
            f"least_{self._prefix}{column.name}",
            repr(low),
            *_outward(below, low, middle, is_whole=whole),
        )
        most = self._draft.constant(
            f"most_{self._prefix}{column.name}",
            repr(high),
            *_outward(middle, high, high + span, is_whole=whole),
        )
        yield self._assertion(
            f"minimum({shown_name}) >= {least}", f"{column.name}.least", seen + _without(bad[0])
        )
        most_claim = f"maximum({shown_name}) <= {most}"
        yield self._assertion(most_claim, f"{column.name}.most", seen + _without(bad[1]))

    def _volume(self) -> Iterator[str]:
        days, rows = self._seen.days, self._seen.table.rows
        if days is None:
            if rows:
                least = max(1, rows // 2)
                constant = self._draft.constant(
                    f"least_{self._prefix}rows", str(least), str(max(1, rows // 10)), str(rows)
                )
                yield self._assertion(f"num_rows() >= {constant}", "rows", f"{rows} rows")
            return
        if not days.rows:
            return
        factors = _weekday_factors(days.rows)
        scaled = {
            on: count * factors.get(on.weekday(), Fraction(1)) for on, count in days.rows.items()
        }
        usual = median(scaled.values())
        least, most = math.floor(min(scaled.values())), math.ceil(max(scaled.values()))
        if self._days:
            room = usual * _LEAST_ROOM
            least = max(1, math.floor(min(float(least - room), _limit(scaled, -1)[0])))
            most = math.ceil(max(float(most + room), _limit(scaled, 1)[0]))
        evidence = (
            f"{min(days.rows.values())} to {max(days.rows.values())} rows on {len(days.rows)} days"
        )
        low = self._draft.constant(
            f"least_{self._prefix}rows", str(least), str(least // 2), str(math.floor(usual))
        )
        high = self._draft.constant(
            f"most_{self._prefix}rows", str(most), str(math.ceil(usual)), str(2 * most)
        )
        yield self._assertion(f"num_rows() >= {low}", "rows.least", evidence)
        yield self._assertion(f"num_rows() <= {high}", "rows.most", evidence)
        check = show_text(f"Volume{self._suffix}")
        for number, factor in factors.items():
            weekday = tuple(WEEKDAYS)[number]
            counts = [count for on, count in days.rows.items() if on.weekday() == number]
            title = show_text(f"{weekday.capitalize()}s{self._suffix}")
            self._draft.profiles.append(
                f"# {min(counts)} to {max(counts)} rows on {len(counts)} {weekday.capitalize()}s; "
                f"the median of all days is {median(days.rows.values()):g}\n"
                f"profile {title} {{\n    type recurring\n"
                f"    from weekday({weekday})\n    to weekday({weekday})\n"
                f"    scale check {check} by {float(factor):g}x\n}}"
            )

    def _levels(self) -> Iterator[str]:
        """In a check of their own, which no profile scales: they follow the weekday themselves."""
        for name in self._measures if self._days else ():
            metric = f"average({show_name(name)})"
            claim = f"{metric} within usual({metric})"
            yield self._assertion(claim, f"{name}.level", "like the days before")

    def _freshness(self) -> Iterator[str]:
        clock, newest = self._seen.table.clock, self._seen.newest
        if clock is None or newest is None or self._now - newest > _OLDEST:
            return
        hours = max(1, math.ceil((self._now - newest) / timedelta(hours=1)))
        constant = self._draft.constant(
            f"max_age_{self._prefix}{clock}", f"{2 * hours} hours", "1 hour", f"{7 * 24 * 2} hours"
        )
        yield self._assertion(
            f"freshness({show_name(clock)}) < {constant}",
            f"{clock}.fresh",
            f"the newest value was less than {hours} hours old",
        )


def _weekday_factors(rows: Mapping[date, int]) -> dict[int, Fraction]:
    """The factors by which the rows of a weekday differ from the usual number, if they do."""
    if len(rows) < _FEWEST_DAYS:
        return {}
    by_weekday: dict[int, list[int]] = {}
    for on, count in rows.items():
        by_weekday.setdefault(on.weekday(), []).append(count)
    usual = median(rows.values())
    factors = {}
    for weekday, counts in sorted(by_weekday.items()):
        usual_on_weekday = median(counts)
        if len(counts) < _FEWEST_OF_A_WEEKDAY or not usual_on_weekday:
            continue
        factor = Fraction(f"{usual / usual_on_weekday:.2g}")
        is_other = max(factor, 1 / factor) > 1 + _SAME if factor else False
        # Only if all of these days deviate in the same direction: otherwise it is not a pattern.
        is_apart = max(counts) < usual or min(counts) > usual
        if is_other and is_apart and 1 / Fraction(_FURTHEST) <= factor <= _FURTHEST:
            factors[weekday] = factor
    return factors


def _limit(
    days: Mapping[date, float | Fraction], sign: int, apart: float = 2
) -> tuple[float, date | None]:
    """A limit above (1) or below (-1) the values of days: beyond the worst one by what days differ.
    A single day that is `apart` times as far away as all others is left out, and returned."""
    values = {on: float(value) for on, value in days.items()}
    *_, before, last = sorted(values, key=lambda on: sign * values[on])
    middle = median(values.values())
    is_bad = abs(values[last] - middle) > apart * abs(values[before] - middle) > 0
    bad, end = (last, values[before]) if is_bad else (None, values[last])
    spread = median(abs(value - middle) for value in values.values())
    return end + sign * max(_SPREADS * spread, abs(end - middle) / 4), bad


def _without(day: date | None) -> str:
    return "" if day is None else f"; without {day}, which is far from all others"


def _percent(share: Fraction, *, up: bool = False) -> str:
    """A share in percent, with two decimal places."""
    hundredths = math.ceil(share * 10000) if up else math.floor(share * 10000)
    return f"{hundredths / 100:g}"


def _outward(low: float, value: float, high: float, *, is_whole: bool) -> tuple[str, str]:
    """Short bounds around a value, as text: never tighter than the value."""
    if is_whole:
        return str(math.floor(low)), str(math.ceil(high))
    least, most = float(f"{low:.6g}"), float(f"{high:.6g}")
    return repr(min(least, value)), repr(max(most, value))
