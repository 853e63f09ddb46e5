"""Drawings as SVG: the verdicts of past days by assertion, and the cost of each value of a tunable.

In the calendar of verdicts, a cell is split if the current and the proposed one differ: current
above, proposed below. A dot is a label. Each instance of a mapped gate has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from html import escape
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
_HEAD = (
    '<defs><pattern id="unknown" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="4" height="4" fill="#e3e3e3"/><path d="M0 4L4 0" stroke="#a9a9a9"/></pattern>'
    "</defs>"
)


def calendar_svg(comparison: BacktestComparison) -> str:
    """The picture, as one SVG document."""
    dates = comparison.dates
    rows = [row for assertion in comparison.assertions for row in _by_instance(assertion)]
    longest = max((len(_shortened(row.name)) for row in rows), default=0)
    left = round(longest * _LETTER) + 10
    width = left + len(dates) * (_CELL + _GAP) + 10
    height = _TOP + len(rows) * _ROW + 34
    parts = [*_opened(max(width, 520), height, comparison.suite), _HEAD, *_months(dates, left)]
    for number, row in enumerate(rows):
        parts += _row(row, dates, left, _TOP + number * _ROW)
    parts += _legend(_TOP + len(rows) * _ROW + 14)
    return "\n".join([*parts, "</svg>\n"])


def _opened(width: int, height: int, title: str) -> tuple[str, str]:
    """The beginning of a document, and its title."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="ui-monospace, monospace" font-size="11">',
        f"<title>{escape(title)}</title>",
    )


def calendar_html(comparison: BacktestComparison) -> str:
    """The picture on a separate page, with the numbers above it. It loads nothing."""
    values = [
        (name, old, new, comparison.units.get(name, Unit.PLAIN))
        for name, old in comparison.values_before.items()
        if (new := comparison.values_after.get(name, old)) != old
    ]
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td>{number_text(old, unit)}</td>"
        f"<td>{number_text(new, unit)}</td></tr>"
        for name, old, new, unit in values
    )
    changed = f"<table><tr><th>tunable</th><th>today</th><th>proposed</th></tr>{cells}</table>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Backtest of {escape(comparison.suite)}</title><style>"
        "body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}"
        "td,th{text-align:left;padding:.2em 1.2em .2em 0}figure{margin:1em 0;overflow-x:auto}"
        f"</style></head><body><h1>Backtest of {escape(comparison.suite)}</h1>"
        f"{changed if values else ''}{_numbers(comparison.before, comparison.after)}"
        f"<figure>{calendar_svg(comparison)}</figure></body></html>\n"
    )


def _numbers(before: Tally, after: Tally) -> str:
    rows = "".join(
        f"<tr><td>{name.replace('_', ' ')}</td><td>{getattr(before, name)}</td>"
        f"<td>{getattr(after, name)}</td></tr>"
        for name in Tally.__dataclass_fields__
    )
    return f"<table><tr><th>verdicts</th><th>today</th><th>proposed</th></tr>{rows}</table>"


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


_WIDTH, _HEIGHT = 560, 220
_LEFT, _RIGHT, _ABOVE, _BOTTOM = 60, 20, 40, 36


def cost_svg(curve: Mapping[str, Any]) -> str:
    """The chart of one curve of a proposal's evidence: a line of costs, and the two values."""
    points = [(float(value), float(cost)) for value, cost in curve["points"]]
    name, is_share = str(curve["param"]), curve.get("type") == "percent"
    low, high = points[0][0], points[-1][0]
    most = max(cost for _, cost in points) or 1.0
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _ABOVE - _BOTTOM

    def x(value: float) -> float:
        return round(_LEFT + wide * (value - low) / ((high - low) or 1), 1)

    def y(cost: float) -> float:
        return round(_ABOVE + tall * (1 - cost / most), 1)

    def shown(value: float) -> str:
        return f"{value * 100:.6g}%" if is_share else f"{value:.6g}"

    line = " ".join(f"{x(value)},{y(cost)}" for value, cost in points)
    floor = _HEIGHT - _BOTTOM
    parts = [
        *_opened(_WIDTH, _HEIGHT, f"What {name} costs"),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<path d="M{_LEFT} {_ABOVE}V{floor}H{_WIDTH - _RIGHT}" fill="none" stroke="#999"/>',
        f'<text x="{_LEFT - 6}" y="{_ABOVE + 4}" text-anchor="end" fill="#555">{most:.4g}</text>',
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end" fill="#555">0</text>',
        f'<text x="8" y="16" fill="#555">cost on past days by {escape(name)}</text>',
        f'<text x="{_LEFT}" y="{floor + 16}" fill="#555">{shown(low)}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{floor + 16}" text-anchor="end" fill="#555">'
        f"{shown(high)}</text>",
        f'<polyline points="{line}" fill="none" stroke="#2b6cb0" stroke-width="1.5"/>',
    ]
    for row, (word, color) in enumerate((("today", "#d0342c"), ("proposed", "#3f9c6b"))):
        place, anchor = x(curve[word]), "start" if curve[word] <= (low + high) / 2 else "end"
        shift = 4 if anchor == "start" else -4
        parts.append(
            f'<path d="M{place} {_ABOVE - 12 + row * 12}V{floor}" stroke="{color}" '
            'stroke-dasharray="4 3"/>'
            f'<text x="{place + shift}" y="{_ABOVE - 4 + row * 12}" text-anchor="{anchor}" '
            f'fill="{color}">{word} {shown(curve[word])}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
