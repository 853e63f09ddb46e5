"""A draft suite from the contents of datasets: each assertion with its evidence, none of which
blocks.

An observation is not a promise: every assertion is `@experimental`, and tunables are bounded by
what was observed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from statistics import median
from typing import TypeVar

from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.dates import WEEKDAYS
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS, DayBefore, Kind, usual_limits
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

_FEW_ROWS = 3
"""Shares of NULL that differ by fewer rows do not differ."""

_MOST_REPEATED = 0.01

_RARE_ROOM, _MOST_RARE = Fraction(3, 2), Fraction(1, 10)
"""Of a day's rows, with values that only this day has: how much more of them may come, since days
have fewer rows, too; and from which share on the values of a column are new ones every day."""


Figure = TypeVar("Figure")


@dataclass(frozen=True, slots=True)
class SeenDays:
    """The days of a dataset, by its date column: rows, and by column NULL values, minimum, maximum
    and mean of numbers, and the rows with each string; None if there are too many strings."""

    column: str
    rows: Mapping[date, int]
    nulls: dict[str, Mapping[date, int]] = field(default_factory=dict)
    numbers: dict[str, Mapping[date, tuple[float, float, float]]] = field(default_factory=dict)
    texts: dict[str, Mapping[date, Mapping[str, int]] | None] = field(default_factory=dict)

    def on_days(self, rows: Mapping[date, int]) -> SeenDays:
        """The figures of some of the days; without columns that have too many strings on all of
        them, which may have few on these."""

        def part(by_day: Mapping[date, Figure]) -> dict[date, Figure]:
            return {on: figure for on, figure in by_day.items() if on in rows}

        return SeenDays(
            self.column,
            rows,
            nulls={name: part(by_day) for name, by_day in self.nulls.items()},
            numbers={name: part(by_day) for name, by_day in self.numbers.items()},
            texts={name: part(by_day) for name, by_day in self.texts.items() if by_day is not None},
        )

    def share_of_rare(self, column: str) -> Fraction:
        """The largest share of a day's rows with strings of no other day; 1 if there are too many
        strings to know, 0 for a column of something else."""
        by_day = self.texts.get(column, {})
        if by_day is None:
            return Fraction(1)
        days = Counter(text for counts in by_day.values() for text in counts)
        shares = (
            Fraction(sum(count for text, count in counts.items() if days[text] == 1), self.rows[on])
            for on, counts in by_day.items()
        )
        return max(shares, default=Fraction(0))

    def is_part_of_the_date(self, column: str) -> bool:
        """True for a number that follows from the date, such as its month."""
        lowest, highest = self.of(column, 0), self.of(column, 1)
        varies = len(set(lowest.values())) > 1
        return lowest == highest and (
            varies or any(low in (on.year, on.month) for on, low in lowest.items())
        )

    def of(self, column: str, side: int) -> dict[date, float]:
        """The minimum (0), maximum (1) or mean (2) on each day that has values."""
        return {on: numbers[side] for on, numbers in self.numbers.get(column, {}).items()}

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
    """The text of the draft, formatted. The observed data satisfies it, apart from single bad days
    that its evidence names.

    :param now: when the datasets were read.
    """
    draft = _SuiteParts()
    for dataset in seen:
        _Suggestions(dataset, draft, is_alone=len(seen) == 1, now=now).add()
    parts = ["\n".join(draft.constants), *draft.checks, *draft.profiles]
    text = filled(
        __package__,
        "suggested.txt",
        title=show_text(name),
        parts=[part for part in parts if part],
        seen=seen,
        now=now,
        oldest=_OLDEST,
        most_repeated=_MOST_REPEATED,
    )
    return format_source(SourceFile("", text))


def watched_parts(seen: Seen, now: datetime) -> list[str]:
    """The parts of a suite that watches a dataset: keys, columns without NULL, sets of values and
    forms of strings, and everything else as far as it is usual.

    A dataset without days cannot be watched: NULL values and rows have limits of their own.
    """
    draft = _SuiteParts()
    _Suggestions(seen, draft, is_alone=True, now=now).add_watched()
    return [part for part in ("\n".join(draft.constants), *draft.checks) if part]


class _Suggestions:
    """The suggestions for one dataset."""

    def __init__(self, seen: Seen, draft: _SuiteParts, *, is_alone: bool, now: datetime) -> None:
        self._seen, self._draft, self._now = seen, draft, now
        self._suffix = "" if is_alone else f" of {seen.name}"
        self._prefix = "" if is_alone else f"{seen.name}_"
        self._measures: list[str] = []

    @property
    def _columns(self) -> list[ObservedColumn]:
        """The columns with values, but for the date column."""
        return [
            column
            for column in self._seen.table.columns
            if column.nulls < self._seen.table.rows and column.name != self._date_column
        ]

    def add(self) -> None:
        columns = self._columns
        for title, suggestions in (
            ("Keys", self._keys()),
            ("Completeness", (text for column in columns for text in self._completeness(column))),
            ("Values", (text for column in columns for text in self._values(column))),
            ("Volume", self._volume()),
            ("Levels", self._levels()),
            ("Freshness", self._freshness()),
        ):
            self._draft.check(title + self._suffix, self._seen.name, list(suggestions))

    def add_watched(self) -> None:
        columns = self._columns
        is_watched = self._seen.days is not None
        # Shares of NULL and the number of rows are watched, if days can be compared.
        required = [column for column in columns if column.nulls == 0 or not is_watched]
        groups = [
            ("Keys", self._keys()),
            ("Completeness", (text for column in required for text in self._completeness(column))),
            ("Values", (text for column in columns for text in self._sets_and_forms(column))),
        ]
        if not is_watched:
            groups.append(("Volume", self._volume()))
        for title, suggestions in groups:
            self._draft.check(title, self._seen.name, list(suggestions))
        if is_watched:
            self._draft.check("Usual", self._seen.name, [f"watch {show_name(self._seen.name)}"])

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
            evidence = f"no two of {self._seen.table.rows} rows have the same {' and '.join(key)}"
            if faults := self._faults_of_key():
                evidence = f"{faults} of {self._seen.table.rows} rows repeat or lack it"
            yield self._assertion(f"duplicate_count([{columns}]) == 0", "key", evidence)

    def _faults_of_key(self) -> int:
        """The rows that repeat or lack a key of one column; none if it is a key of all rows."""
        for column in self._seen.table.columns:
            if self._seen.table.key == (column.name,) and column.distinct is not None:
                return self._seen.table.rows - column.distinct
        return 0

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
            by_day = dict(zip(self._seen.days.rows, shares, strict=True))
            room = _FEW_ROWS / median(self._seen.days.rows.values())
            most_share, worst = _limit(by_day, 1, room=room)
            limit = _percent(min(Fraction(1), Fraction(most_share)), up=True)
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
        shown_name = show_name(column.name)
        is_key = column.name in self._seen.table.key or column.is_named_like_a_key
        is_number = family_of(column.type) is Family.NUMBER
        is_level = is_number and not is_key and self._has_values_every_day(column)
        if is_level and not (self._days and self._days.is_part_of_the_date(column.name)):
            yield from self._range(column, shown_name)
            self._measures.append(column.name)
        yield from self._sets_and_forms(column)

    def _sets_and_forms(self, column: ObservedColumn) -> Iterator[str]:
        shown_name, rows = show_name(column.name), self._seen.table.rows - column.nulls
        rare = self._days.share_of_rare(column.name) if self._days else Fraction(0)
        if column.values and rare <= _MOST_RARE:
            listed = ", ".join(map(show_text, column.values))
            evidence = f"{len(column.values)} different values in {rows} rows"
            claimed = "each row"
            if rare:  # so other days will have others
                evidence += (
                    f"; of a day up to {_percent(rare, up=True)}% have one that no other has"
                )
                claimed = f"{_percent(1 - _RARE_ROOM * rare)}% of rows"
            yield self._assertion(
                f"{claimed}: {shown_name} in [{listed}]", f"{column.name}.values", evidence
            )
        if column.pattern is not None:
            evidence = f"all {rows} values have this form"
            if column.read_for_pattern is not None:
                evidence = (
                    f"{column.read_for_pattern} of {rows} values were read, and have this form"
                )
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
        seen, days = f"from {low} to {high}", self._days
        bad: tuple[date | None, date | None] = (None, None)
        if days and len(days.of(column.name, 0)) > 1:
            below, first = _limit(days.of(column.name, 0), -1, apart=5)
            # The largest values of a day differ by factors, as those with a long tail do.
            above, last = _limit(days.of(column.name, 1), 1, apart=5, is_log=low >= 0)
            below = max(below, 0) if low >= 0 else below
            above = min(above, 0) if high <= 0 else above
            if math.isfinite(below) and math.isfinite(above):
                if isinstance(low, int) and isinstance(high, int):
                    below, above = math.floor(below), math.ceil(above)
                # A float may lie within the numbers that it stands for.
                low = below if first else min(below, low)
                high, bad = above if last else max(above, high), (first, last)
        metrics = f"minimum({shown_name})", f"maximum({shown_name})"
        yield from self._between(metrics, column.name, (low, high), seen, bad)

    def _between(
        self,
        metrics: tuple[str, str],
        name: str,
        ends: tuple[float, float],
        evidence: str,
        bad: Sequence[date | None],
        bounds: tuple[tuple[str, str], ...] = (),
    ) -> Iterator[str]:
        """Yields two claims, for a lower and an upper limit, each with its omitted bad day."""
        limits = self._limits(name, *ends, *bounds) or ()
        sides = zip(limits, metrics, (">=", "<="), ("least", "most"), bad, strict=False)
        for limit, metric, op, end, day in sides:
            reason = evidence + _without(day)
            yield self._assertion(f"{metric} {op} {limit}", f"{name}.{end}", reason)

    def _limits(
        self, name: str, low: float, high: float, *bounds: tuple[str, str]
    ) -> tuple[str, str] | None:
        """Two new tunables; none if a multiple of them is not a number, and cannot be tuned."""
        is_whole = isinstance(low, int) and isinstance(high, int)
        span = (high - low) or abs(low) or 1
        middle = low + ((high - low) // 2 if is_whole else (high - low) / 2)
        if not (math.isfinite(low - span) and math.isfinite(high + span)):
            return None
        below = max(0, low - span) if low >= 0 else low - span
        least, most = bounds or (
            _outward(below, low, middle, is_whole=is_whole),
            _outward(middle, high, high + span, is_whole=is_whole),
        )
        name = f"{self._prefix}{name}"
        return (
            self._draft.constant(f"least_{name}", repr(low), *least),
            self._draft.constant(f"most_{name}", repr(high), *most),
        )

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
        low, high = float(min(scaled.values())), float(max(scaled.values()))
        bad: tuple[date | None, date | None] = (None, None)
        if self._days:
            room = float(usual * _LEAST_ROOM)
            low, few = _limit(scaled, -1, room=room)
            high, many = _limit(scaled, 1, room=room)
            bad = few, many
        least, most = max(1, math.floor(low)), math.ceil(high)
        evidence = (
            f"{min(days.rows.values())} to {max(days.rows.values())} rows on {len(days.rows)} days"
        )
        bounds = ((str(least // 2), str(math.floor(usual))), (str(math.ceil(usual)), str(2 * most)))
        metrics = "num_rows()", "num_rows()"
        yield from self._between(metrics, "rows", (least, most), evidence, bad, bounds)
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
        """In a check of their own, which no profile scales: they follow the weekday themselves.
        Measures whose days broke `within usual(...)` get fixed limits."""
        days = self._days
        if days is None:
            return
        for name in self._measures:
            means, metric = days.of(name, 2), f"average({show_name(name)})"
            claim, evidence = f"{metric} within usual({metric})", "like the days before"
            if not _are_usual(means):
                is_positive = min(days.of(name, 0).values()) >= 0
                low, few = _limit(means, -1, apart=5, is_log=is_positive)
                high, many = _limit(means, 1, apart=5, is_log=is_positive)
                low = max(low, 0) if is_positive else low
                limits = self._limits(f"mean_{name}", low, high)
                if limits is None:
                    continue
                claim = f"{metric} between {limits[0]} and {limits[1]}"
                seen = f"{min(means.values()):g} to {max(means.values()):g} on {len(means)} days"
                evidence = f"{seen}, too different for `within usual`{_without(few, many)}"
            yield self._assertion(claim, f"{name}.level", evidence)
        yield from self._orders(days)

    def _orders(self, days: SeenDays) -> Iterator[str]:
        """For each measure the next one that was clearly larger on each day, although not than on
        other days: values of swapped columns are no other values than before."""
        means = {name: days.of(name, 2) for name in self._measures}
        for name, own in means.items():
            larger: dict[str, float] = {}
            for other, its in means.items():
                apart = {on: its[on] - own[on] for on in own.keys() & its.keys()}
                is_known = len(apart) == len(own) == len(its) >= _FEWEST_DAYS
                if is_known and min(its.values()) < max(own.values()):
                    least, bad = _limit(apart, -1)
                    if least > 0 and bad is None:
                        larger[other] = median(apart.values())
            if larger:
                other = min(larger, key=lambda one: larger[one])
                claim = f"average({show_name(name)}) <= average({show_name(other)})"
                evidence = f"by {larger[other]:.3g} on a median day of {len(own)}"
                yield self._assertion(claim, f"{name}.below.{other}", evidence)

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
    days: Mapping[date, float | Fraction],
    sign: int,
    *,
    apart: float = 2,
    room: float = 0,
    is_log: bool = False,
) -> tuple[float, date | None]:
    """A limit above (1) or below (-1) the values of days: beyond the worst one by what days differ.
    A single day that is `apart` times as far away as all others is left out, and returned.

    :param room: the least distance between the worst day and the limit; days that differ by less
        do not differ.
    :param is_log: days differ by factors, if their values are positive.
    """
    values = {on: float(value) for on, value in days.items()}
    *_, before, last = sorted(values, key=lambda on: sign * values[on])
    middle = median(values.values())
    is_bad = abs(values[last] - middle) > apart * max(abs(values[before] - middle), room) > 0
    bad, end = (last, values[before]) if is_bad else (None, values[last])
    if is_log and min(values.values()) > 0:
        spread = median(abs(math.log(value / middle)) for value in values.values())
        factor = min(_FURTHEST, math.exp(max(_SPREADS * spread, abs(math.log(end / middle)) / 4)))
        return end * factor**sign, bad
    spread = median(abs(value - middle) for value in values.values())
    return end + sign * max(_SPREADS * spread, abs(end - middle) / 4, room), bad


def _are_usual(values: Mapping[date, float]) -> bool:
    """Whether `within usual(...)` holds on all of these days that have enough days before them."""
    first, last = min(values), max(values)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    series = [*[None] * DEFAULT_DAYS, *map(values.get, days)]
    before = [DayBefore(on, series[at : at + DEFAULT_DAYS]) for at, on in enumerate(days)]
    limits = usual_limits(before, Kind.OTHER)
    return all(
        found is None or on not in values or found.low <= values[on] <= found.high
        for on, found in zip(days, limits, strict=True)
    )


def _without(*days: date | None) -> str:
    return "".join(f"; without {day}, which is far from all others" for day in days if day)


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
