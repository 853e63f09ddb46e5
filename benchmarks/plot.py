"""The plot of the docs: bars as SVG."""

from __future__ import annotations

from figures import OURS, Json, costs_of, median, title

WIDTH, LABEL, BAR, GAP, HEAD = 760, 260, 9, 9, 46
COLOURS = {"first": "#00695c", "warm": "#80cbc4"}
KINDS = {"first": "first run of a JVM", "warm": "warm"}


def plot(found: Json) -> str:
    """An SVG with a bar for the first and for the warm run of each engine, per size."""
    lines, top = [], 0
    for rows, runs in found["runs"].items():
        costs = {
            name: {kind: median(costs_of(own, kind), "wall_s") for kind in COLOURS}
            for name, own in runs.items()
            if any("error" not in run for run in own)
        }
        longest = max(max(cost.values()) for cost in costs.values())
        lines.append(_text(12, top + 28, f"{int(rows):,} rows, seconds", "bold"))
        top += HEAD
        for name in sorted(costs, key=lambda name: costs[name]["first"]):
            spark = next(run["spark"] for run in runs[name] if "error" not in run)
            words = f"{title(found, name)}, Spark {spark}"
            lines.append(_text(12, top + BAR + 3, words, "bold" if name == OURS else "normal"))
            for place, (kind, colour) in enumerate(COLOURS.items()):
                seconds, y = costs[name][kind], top + place * BAR
                length = seconds / longest * (WIDTH - LABEL - 70)
                lines.append(
                    f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 1}" '
                    f'fill="{colour}"/>'
                )
                lines.append(_text(LABEL + length + 5, y + BAR - 1, f"{seconds:.1f}", size=9))
            top += 2 * BAR + GAP
        top += GAP
    for place, (kind, colour) in enumerate(COLOURS.items()):
        x = WIDTH - 250 + place * 130
        lines.append(f'<rect x="{x}" y="17" width="12" height="12" fill="{colour}"/>')
        lines.append(_text(x + 17, 27, KINDS[kind], size=11))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" '
            'font-family="sans-serif" fill="#222">',
            f'<rect width="{WIDTH}" height="{top}" rx="6" fill="#fff"/>',
            *lines,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, words: str, weight: str = "normal", size: int = 12) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}">{words}</text>'
