"""Drawings as SVG: the verdicts of past days by assertion, and the cost of each value of a tunable.

In the calendar of verdicts, a cell is split if the current and the proposed one differ: current
above, proposed below. A dot is a label. Each instance of a mapped gate has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql.nodes import Unit
from dqx_airflow.tuning.comparison import BacktestComparison, ComparedAssertion, ComparedDay, Tally
from dqx_airflow.tuning.tunables import number_text
from dqx_airflow.values import Status

_CELL, _GAP, _ROW, _TOP = 11, 2, 16, 34
_LETTER = 6.6
_LONGEST_NAME = 60
_FILLS: dict[Status | None, str] = {
    Status.PASSED: "#3f9c6b",
    Status.FAILED: "#d0342c",
    Status.SKIPPED: "#e0b94f",
    Status.ERROR: "#8456a8",
    None: "url(#unknown)",
}
_WORDS: dict[Status | None, str] = {status: status.value for status in Status}
_WORDS[None] = "unknown"


def calendar_svg(comparison: BacktestComparison) -> str:
    """The picture, as one SVG document."""
    dates = comparison.dates
    rows = [row for assertion in comparison.assertions for row in _by_instance(assertion)]
    longest = max((len(_shortened(row.name)) for row in rows), default=0)
    left = round(longest * _LETTER) + 10
    width = left + len(dates) * (_CELL + _GAP) + 10
    height = _TOP + len(rows) * _ROW + 34
    parts = [*_months(dates, left)]
    for number, row in enumerate(rows):
        parts += _row(row, dates, left, _TOP + number * _ROW)
    parts += _legend(_TOP + len(rows) * _ROW + 14)
    return _filled(
        "calendar.svg",
        width=max(width, 520),
        height=height,
        title=escape(comparison.suite),
        parts="\n".join(parts),
    )


def calendar_html(comparison: BacktestComparison) -> str:
    """The picture on a separate page, with the numbers above it. It loads nothing."""
    values = [
        (escape(name), *(number_text(value, unit) for value in (old, new)))
        for name, old in comparison.values_before.items()
        if (new := comparison.values_after.get(name, old)) != old
        for unit in [comparison.units.get(name, Unit.PLAIN)]
    ]
    before, after = comparison.before, comparison.after
    tallies = [
        (name.replace("_", " "), getattr(before, name), getattr(after, name))
        for name in Tally.__dataclass_fields__
    ]
    return _filled(
        "calendar.html",
        suite=escape(comparison.suite),
        tables=(_table("tunable", values) if values else "") + _table("verdicts", tallies),
        picture=calendar_svg(comparison),
    )


def _table(head: str, rows: Sequence[tuple[object, ...]]) -> str:
    """The current and the proposed of something; its cells are escaped."""
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><tr><th>{head}</th><th>today</th><th>proposed</th></tr>{lines}</table>"


def _filled(file: str, /, **parts: object) -> str:
    """The text of a file beside this module, with escaped parts in its places."""
    return Template(files(__package__).joinpath(file).read_text("utf-8")).substitute(parts)


def _months(dates: Sequence[date], left: int) -> Iterator[str]:
    for index, on in enumerate(dates):
        if index == 0 or on.day == 1:
            x = left + index * (_CELL + _GAP)
            yield f'<text x="{x}" y="14" fill="#555">{on:%Y-%m}</text>'
        if on.weekday() == 0:
            x = left + index * (_CELL + _GAP)
            yield f'<text x="{x}" y="28" fill="#999" font-size="9">{on.day}</text>'


def _by_instance(assertion: ComparedAssertion) -> Iterator[ComparedAssertion]:
    """The assertion for each instance of a mapped gate, with the map index in its name."""
    for index in sorted({day.map_index for day in assertion.days}):
        name = f"{assertion.name}[{index}]" if index >= 0 else assertion.name
        days = tuple(day for day in assertion.days if day.map_index == index)
        yield replace(assertion, name=name, days=days)


def _row(row: ComparedAssertion, dates: Sequence[date], left: int, top: int) -> Iterator[str]:
    yield (
        f'<text x="{left - 8}" y="{top + 10}" text-anchor="end" fill="#222">'
        f"{escape(_shortened(row.name))}</text>"
    )
    places = {on: left + number * (_CELL + _GAP) for number, on in enumerate(dates)}
    for day in row.days:
        yield _cell(row, day, places[day.date], top)


def _cell(row: ComparedAssertion, day: ComparedDay, x: int, y: int) -> str:
    half = _CELL / 2
    if day.before is day.after:
        shapes = f'<rect width="{_CELL}" height="{_CELL}" rx="2" fill="{_FILLS[day.after]}"/>'
    else:
        shapes = (
            f'<rect width="{_CELL}" height="{half}" fill="{_FILLS[day.before]}"/>'
            f'<rect y="{half}" width="{_CELL}" height="{half}" fill="{_FILLS[day.after]}"/>'
            f'<rect width="{_CELL}" height="{_CELL}" fill="none" stroke="#111"/>'
        )
    if day.label is not None:
        fill = "#111" if day.label else "#fff"
        shapes += f'<circle cx="{half}" cy="{half}" r="2.4" fill="{fill}" stroke="#111"/>'
    title = escape(_title(row, day))
    return f'<g transform="translate({x} {y})"><title>{title}</title>{shapes}</g>'


def _title(row: ComparedAssertion, day: ComparedDay) -> str:
    title = f"{day.date} {row.name}: {_WORDS[day.before]}"
    if day.after is not day.before:
        title += f", proposed: {_WORDS[day.after]}"
    if day.value is not None:
        title += f"; value {format_value(day.value)}"
    if day.unknown:
        title += f"; {day.unknown}"
    if day.label is not None:
        title += "; labelled: there was an issue" if day.label else "; labelled: the data was fine"
    return title


def _legend(y: int) -> Iterator[str]:
    x = 8
    for status, fill in _FILLS.items():
        yield f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="2" fill="{fill}"/>'
        yield f'<text x="{x + 16}" y="{y + 10}" fill="#444">{_WORDS[status]}</text>'
        x += 26 + round(len(_WORDS[status]) * _LETTER)
    text = "split: today above, proposed below; dot: a label"
    yield f'<text x="{x + 4}" y="{y + 10}" fill="#444">{text}</text>'


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


_LEFT, _ABOVE, _WIDE, _TALL = 60, 40, 480, 144
"""The axes of `cost.svg`."""


def cost_svg(curve: Mapping[str, Any]) -> str:
    """The chart of one curve of a proposal's evidence: a line of costs, and the two values."""
    points = [(float(value), float(cost)) for value, cost in curve["points"]]
    name, is_share = str(curve["param"]), curve.get("type") == "percent"
    low, high = points[0][0], points[-1][0]
    most = max(cost for _, cost in points) or 1.0

    def x(value: float) -> float:
        return round(_LEFT + _WIDE * (value - low) / ((high - low) or 1), 1)

    def y(cost: float) -> float:
        return round(_ABOVE + _TALL * (1 - cost / most), 1)

    def shown(value: float) -> str:
        return f"{value * 100:.6g}%" if is_share else f"{value:.6g}"

    line = " ".join(f"{x(value)},{y(cost)}" for value, cost in points)
    marks = []
    for row, (word, color) in enumerate((("today", "#d0342c"), ("proposed", "#3f9c6b"))):
        place, anchor = x(curve[word]), "start" if curve[word] <= (low + high) / 2 else "end"
        shift = 4 if anchor == "start" else -4
        marks.append(
            f'<path d="M{place} {_ABOVE - 12 + row * 12}V{_ABOVE + _TALL}" stroke="{color}" '
            'stroke-dasharray="4 3"/>'
            f'<text x="{place + shift}" y="{_ABOVE - 4 + row * 12}" text-anchor="{anchor}" '
            f'fill="{color}">{word} {shown(curve[word])}</text>'
        )
    return _filled(
        "cost.svg",
        name=escape(name),
        most=f"{most:.4g}",
        low=shown(low),
        high=shown(high),
        line=line,
        marks="\n".join(marks),
    )
