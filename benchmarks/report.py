"""Writes the stored results to the page of the docs and draws its plot.

It measures nothing: the page follows from the files in `results`.

    python benchmarks/report.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from figures import NAIVE, OURS, Costs, Json, costs_of, median, middle, ratio, title
from plot import KINDS, plot
from workload import CAUGHT, CHECKS

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
    peers, sweeps, gate_jvm = stored("peers"), stored("sweeps"), stored("gate_jvm")
    gate_jvm_peers, jobs = stored("gate_jvm_peers"), stored("jobs")
    parts: dict[str, Iterator[str]] = {
        "conditions": conditions(peers),
        "peers": peer_tables(peers),
        "conditions of gate_jvm": conditions(gate_jvm),
        "gate_jvm": peer_tables(gate_jvm),
        "conditions of gate_jvm_peers": conditions(gate_jvm_peers),
        "gate_jvm_peers": peer_tables(gate_jvm_peers),
        "conditions of jobs": conditions(jobs),
        "jobs": job_table(jobs),
        "verdicts": verdict_table(peers),
        "conditions of sweeps": conditions(sweeps),
        "sweeps": sweep_tables(sweeps),
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


def peer_tables(found: Json) -> Iterator[str]:
    """For each size, a table of the first runs and one of the warm runs."""
    for rows, runs in sorted(found["runs"].items(), key=lambda item: int(item[0])):
        for kind, words in KINDS.items():
            yield f"#### {int(rows):,} rows, {words}, {_rounds(max(map(len, runs.values())))}"
            yield ""
            yield (
                "| engine | Spark | jobs | MB read | seconds | to naive | to ours "
                "| CPU seconds | to naive | to ours |"
            )
            yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
            costs = {name: costs_of(own, kind) for name, own in runs.items()}
            for name in sorted(costs, key=lambda name: median(costs[name], "wall_s")):
                yield _peer_row(found, name, runs, costs)
            yield ""


def _peer_row(
    found: Json, name: str, runs: Mapping[str, Sequence[Json]], costs: Mapping[str, Costs]
) -> str:
    head = _head(found, name)
    done = [
        (run["spark"], cost)
        for run, cost in zip(runs[name], costs[name], strict=True)
        if cost is not None
    ]
    if not done:
        complaint = _last_line(runs[name][-1]["error"])
        return f"| {head} | | | | did not run: {complaint} | | | | | |"
    spark, last = done[-1]
    cells = [head, spark, str(last["jobs"]), f"{last['bytes_read'] / 1e6:,.0f}"]
    for what in ("wall_s", "cpu_s"):
        cells.append(f"{median(costs[name], what):.1f}")
        cells.append(ratio(costs[name], costs[_baseline(found, runs, spark)], what))
        cells.append(ratio(costs[name], costs[OURS], what))
    return f"| {' | '.join(cells)} |"


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


def verdict_table(found: Json) -> Iterator[str]:
    """A table of what each engine found in the table without faults and in the one with faults."""
    yield "| engine | checks it can say | found of the faults | wrong | what it cannot say |"
    yield "|---|---:|---:|---|---|"
    seen = set()
    for name, verdicts in found["verdicts"].items():
        head = title(found, name)
        if head in seen:
            continue  # the naive plan on another Spark
        seen.add(head)
        sound, faulty = verdicts["sound"], verdicts["faulty"]
        unsaid = [check for check in CHECKS if check not in sound]
        caught = [check for check in CAUGHT if faulty.get(check) is False]
        wrong = [f"{check}: fails on sound data" for check in sound if not sound[check]]
        wrong += [
            f"{check}: {'holds' if holds else 'fails'} on faulty data"
            for check, holds in faulty.items()
            if holds is (check in CAUGHT)
        ]
        yield (
            f"| {head} | {len(sound)} of {len(CHECKS)} | {len(caught)} of {len(CAUGHT)} "
            f"| {'; '.join(wrong) or '-'} | {', '.join(unsaid) or '-'} |"
        )


def sweep_tables(found: Json) -> Iterator[str]:
    """One table per sweep: a row per engine, two columns per step."""
    for sweep in found["sweeps"].values():
        steps, rounds = sweep["steps"], sweep["rounds"]
        if not rounds:
            continue  # interrupted before it
        yield f"#### {sweep['title']}, {found['rows']:,} rows, {_rounds(len(rounds))}"
        yield ""
        heads = [f"seconds for {step} | to ours" for step in steps]
        yield f"| engine | Spark | {' | '.join(heads)} | {steps[-1]} to {steps[0]} |"
        yield f"|---|---|{'---:|' * (2 * len(steps) + 1)}"
        ran = [name for name in found["engines"] if any(name in done for done in rounds)]
        costs = {name: [_costs_of_step(rounds, name, step) for step in steps] for name in ran}
        for name in sorted(ran, key=lambda name: _by_last_step(costs[name])):
            yield _sweep_row(found, sweep, name, costs)
        yield ""


def _by_last_step(costs: Sequence[Costs]) -> list[float]:
    """A sort key: the seconds of the last step first; engines that did not reach it come last."""
    return [median(cost, "wall_s") for cost in costs[::-1]]


def _costs_of_step(rounds: Sequence[Json], name: str, step: str) -> Costs:
    """The costs of the step per round, None if the engine did not reach it."""
    done = [
        {own["step"]: own["runs"] for own in told[name]["steps"]} if name in told else {}
        for told in rounds
    ]
    return [middle(runs[step]) if step in runs else None for runs in done]


def _sweep_row(found: Json, sweep: Json, name: str, costs: Mapping[str, Sequence[Costs]]) -> str:
    told = [done[name] for done in sweep["rounds"] if name in done]
    spark = next((step["spark"] for done in told for step in done["steps"]), "")
    cells = [_head(found, name), spark]
    why = [f"not done: {_last_line(done['error'])}" for done in told if "error" in done]
    for place, cost in enumerate(costs[name]):
        if any(cost):
            to_ours = ratio(cost, costs[OURS][place], "wall_s") if OURS in costs else ""
            cells += [f"{median(cost, 'wall_s'):.2f}", to_ours]
        else:
            cells += [why.pop() if why else "", ""]
            why = []
    cells.append(ratio(costs[name][-1], costs[name][0], "wall_s"))
    return f"| {' | '.join(cells)} |"


def _head(found: Json, name: str) -> str:
    return f"**{title(found, name)}**" if name == OURS else title(found, name)


def _last_line(error: str) -> str:
    return error.splitlines()[-1][:80]


if __name__ == "__main__":
    main()
