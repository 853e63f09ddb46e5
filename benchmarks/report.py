"""Writes the stored results to the page of the docs and draws its plot.

It measures nothing: the page follows from the files in `results`.

    python benchmarks/report.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from figures import NAIVE, OURS, Costs, Json, costs_of, median, middle, ratio, title
from plot import KINDS, plot
from workload import CAUGHT

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "dqx_airflow" / "docs" / "evidence.md"
PLOT = PAGE.with_name("images") / "benchmarks.svg"


def main() -> None:
    """Writes the page and the plot."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PLOT.write_text(plot(stored("peers")), encoding="utf-8")


def stored(name: str) -> Json:
    found: Json = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def page(text: str) -> str:
    """The page, with new text between each `<!-- begin NAME -->` and `<!-- end NAME -->`."""
    peers = stored("peers")
    jobs = stored("jobs")
    sweeps = stored("sweeps")
    parts: dict[str, Iterator[str]] = {
        "conditions": conditions(peers),
        "peers": chain.from_iterable(peer_table(peers, rows) for rows in peers["runs"]),
        "conditions of jobs": conditions(jobs),
        "jobs": job_table(jobs),
        "conditions of growth": conditions(sweeps),
        "growth": growth_table(peers, sweeps, stored("growth")),
    }
    for name, lines in parts.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        start = text.index(begin) + len(begin)
        text = text[:start] + "\n".join(lines).strip() + "\n" + text[text.index(end, start) :]
    return text


def conditions(found: Json) -> Iterator[str]:
    of = found["conditions"]
    load = " to ".join(map(str, sorted({min(of["load"]), max(of["load"])})))
    yield (
        f"Measured on {of['taken']}: {of['cores']} cores, {of['memory_gb']} GB, {of['system']}, "
        f"Java {of['java']}, Python {of['python']}. Before each round the load of the machine was "
        f"{load}."
    )


def peer_table(found: Json, rows: str) -> Iterator[str]:
    """A table of a size: the first run of a JVM, and a warm one."""
    runs = found["runs"][rows]
    yield f"#### {int(rows):,} rows"
    yield ""
    yield (
        "| engine | Spark | rounds | jobs | MB read | CPU seconds, first run | to naive | to ours "
        "| CPU seconds, warm | to naive | to ours | faults found |"
    )
    yield f"|---|---|{'---:|' * 10}"
    costs = {name: {kind: costs_of(own, kind) for kind in KINDS} for name, own in runs.items()}
    for name in sorted(costs, key=lambda name: median(costs[name]["first"], "cpu_s")):
        yield _peer_row(found, name, runs, costs)
    yield ""


def _peer_row(
    found: Json,
    name: str,
    runs: Mapping[str, Sequence[Json]],
    costs: Mapping[str, Mapping[str, Costs]],
) -> str:
    head = _head(found, name)
    done = [run for run in runs[name] if "error" not in run]
    if not done:
        complaint = _last_line(runs[name][-1]["error"])
        return f"| {head} | | | | | did not run: {complaint} | | | | | | |"
    spark = done[-1]["spark"]
    last = next(cost for cost in reversed(costs[name]["first"]) if cost is not None)
    cells = [head, spark, str(len(done)), str(last["jobs"]), f"{last['bytes_read'] / 1e6:,.0f}"]
    for kind, own in costs[name].items():
        cells.append(f"{median(own, 'cpu_s'):.1f}")
        cells.append(ratio(own, costs[_baseline(found, runs, spark)][kind], "cpu_s"))
        cells.append(ratio(own, costs[OURS][kind], "cpu_s"))
    cells.append(_found_faults(found["verdicts"][name]))
    return f"| {' | '.join(cells)} |"


def _found_faults(verdicts: Mapping[str, Mapping[str, bool]]) -> str:
    """The number of faults that an engine finds, and of checks that are wrong on sound data."""
    caught = [check for check in CAUGHT if verdicts["faulty"].get(check) is False]
    false_alarms = [check for check, holds in verdicts["sound"].items() if not holds]
    shown = f"{len(caught)} of {len(CAUGHT)}"
    return f"{shown}, {len(false_alarms)} false" if false_alarms else shown


def _rounds(count: int) -> str:
    return f"{count} rounds" if count > 1 else "one round"


def _baseline(found: Json, runs: Mapping[str, Sequence[Json]], spark: str) -> str:
    """The name of the naive plan on the same Spark."""
    for name, own in runs.items():
        is_naive = title(found, name) == title(found, NAIVE)
        if is_naive and any(run.get("spark") == spark for run in own):
            return name
    return NAIVE


def job_table(found: Json) -> Iterator[str]:
    """A table of whole processes, comparing those with an archive of classes and those without."""
    jobs = found["jobs"]
    bases = ("naive plan", "tuned plan")
    rounds = _rounds(len(next(iter(jobs.values()))))
    yield f"#### {found['rows']:,} rows, a whole job, {rounds}"
    yield ""
    heads = ("seconds", "CPU seconds")
    columns = [f"{head} | {' | '.join(f'to {base}' for base in bases)}" for head in heads]
    yield f"| job | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(heads) * (1 + len(bases))}"
    for way in sorted(jobs, key=lambda way: median(jobs[way], "wall_s")):
        kind, comma, archive = way.partition(",")
        cells = [f"**{way}**" if kind == "gate" else way]
        for what in ("wall_s", "cpu_s"):
            cells.append(f"{median(jobs[way], what):.1f}")
            others = (jobs.get(f"{base}{comma}{archive}") for base in bases)
            cells += ["" if other is None else ratio(jobs[way], other, what) for other in others]
        yield f"| {' | '.join(cells)} |"


def growth_table(peers: Json, sweeps: Json, growth: Json) -> Iterator[str]:
    """A row for each quantity that grows: by how much the time of the last step exceeds the
    first one, for us, the naive plan, and the other tool that grows least."""
    yield "| what grows | from | to | ours | naive plan | the best other tool | command |"
    yield "|---|---:|---:|---:|---:|---|---|"
    yield _growth_with_rows(peers)
    for sweep in sweeps["sweeps"].values():
        steps = sweep["steps"]
        rounds = sweep["rounds"]
        if not rounds:
            continue  # interrupted before it
        grown = {}
        for name in sweeps["engines"]:
            first, last = (_costs_of_step(rounds, name, step) for step in (steps[0], steps[-1]))
            if any(last):
                grown[name] = float(ratio(last, first, "wall_s"))
        yield (
            f"| {sweep['title'].lower()} | {steps[0]} | {steps[-1]} | {_grown(sweeps, grown)} "
            f"| `sweeps.py --rows {sweeps['rows']}` |"
        )
    for row in growth["rows"]:
        yield (
            f"| {row['what']} | {row['from']} | {row['to']} | **{row['ours']}** "
            f"| | | `{row['command']}` |"
        )


def _growth_with_rows(peers: Json) -> str:
    """The row about the twenty checks, from the smallest to the largest table."""
    sizes = sorted(peers["runs"], key=int)
    small, large = (
        {name: costs_of(own, "warm") for name, own in peers["runs"][size].items()}
        for size in (sizes[0], sizes[-1])
    )
    grown = {
        name: median(large[name], "cpu_s") / median(small[name], "cpu_s")
        for name in large.keys() & small.keys()
        if any(large[name]) and any(small[name])
    }
    return (
        f"| rows of the twenty checks: CPU seconds | {int(sizes[0]):,} | {int(sizes[-1]):,} "
        f"| {_grown(peers, grown)} | `peers/run.py` |"
    )


def _grown(found: Json, grown: Mapping[str, float]) -> str:
    """The cells of how much we grow, the naive plan, and the other tool that grows least."""
    others = {name: by for name, by in grown.items() if name not in (OURS, NAIVE, "tuned")}
    best = min(others, key=lambda name: others[name])
    return f"**{grown[OURS]:.2f}** | {grown[NAIVE]:.2f} | {title(found, best)}: {others[best]:.2f}"


def _costs_of_step(rounds: Sequence[Json], name: str, step: str) -> Costs:
    """The costs of the step per round, None if the engine did not reach it."""
    done = [
        {own["step"]: own["runs"] for own in told[name]["steps"]} if name in told else {}
        for told in rounds
    ]
    return [middle(runs[step]) if step in runs else None for runs in done]


def _head(found: Json, name: str) -> str:
    return f"**{title(found, name)}**" if name == OURS else title(found, name)


def _last_line(error: str) -> str:
    return error.splitlines()[-1][:80]


if __name__ == "__main__":
    main()
