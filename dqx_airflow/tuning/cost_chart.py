"""A chart of the cost of each value of a tunable on past days, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 560, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 40, 36


def cost_svg(curve: Mapping[str, Any]) -> str:
    """The chart of one curve of a proposal's evidence: a line of costs, and the two values."""
    points = [(float(value), float(cost)) for value, cost in curve["points"]]
    name, is_share = str(curve["param"]), curve.get("type") == "percent"
    low, high = points[0][0], points[-1][0]
    most = max(cost for _, cost in points) or 1.0
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(value: float) -> float:
        return round(_LEFT + wide * (value - low) / ((high - low) or 1), 1)

    def y(cost: float) -> float:
        return round(_TOP + tall * (1 - cost / most), 1)

    def shown(value: float) -> str:
        return f"{value * 100:.6g}%" if is_share else f"{value:.6g}"

    line = " ".join(f"{x(value)},{y(cost)}" for value, cost in points)
    floor = _HEIGHT - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="ui-monospace, monospace" '
        'font-size="11">',
        f"<title>What {escape(name)} costs</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}" fill="none" stroke="#999"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end" fill="#555">{most:.4g}</text>',
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
            f'<path d="M{place} {_TOP - 12 + row * 12}V{floor}" stroke="{color}" '
            'stroke-dasharray="4 3"/>'
            f'<text x="{place + shift}" y="{_TOP - 4 + row * 12}" text-anchor="{anchor}" '
            f'fill="{color}">{word} {shown(curve[word])}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
