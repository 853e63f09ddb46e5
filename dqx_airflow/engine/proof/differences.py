"""Finds the traits that an engine must not judge, from the cases for which it has other values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from dqx_airflow.engine.proof.cases import ProofCase
from dqx_airflow.engine.proof.operations import SeenDataset, suspects_of
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values.engine_proof import ERROR


def suspects_in(case: ProofCase) -> tuple[frozenset[str], ...]:
    """For each line of a case, the traits of which one is wrong if an engine has another value."""
    tables, refs = case.tables()
    datasets = {
        ref.name: SeenDataset(
            Schema.of(ref.name, tables[ref.name].fields), ref.format if ref.path else None
        )
        for ref in refs
    }
    requests = {one.name: one.requests for one in case.plan(refs).assertions}
    return tuple(
        frozenset[str]().union(*(suspects_of(one, datasets) for one in requests[str(line)]))
        for line in range(len(case.lines))
    )


def doubts_of(found: Mapping[ProofCase, Sequence[str]]) -> tuple[str, ...]:
    """The traits that an engine must not judge, given its values.

    :param found: the value of each line of the cases that were tried. An error judges nothing by
        itself, so it neither blames nor acquits.
    """
    differing: list[frozenset[str]] = []
    agreeing: list[frozenset[str]] = []
    for case, values in found.items():
        for suspects, (_, due), value in zip(suspects_in(case), case.lines, values, strict=True):
            if value.startswith(ERROR) or due.startswith(ERROR):
                continue
            (agreeing if value == due else differing).append(suspects)
    return blamed(differing, agreeing)


def blamed(
    differing: Iterable[Collection[str]], agreeing: Iterable[Collection[str]]
) -> tuple[str, ...]:
    """The traits that explain differences, each of which has at least one of them.

    First the traits of differences with a single suspect. For the other differences, all traits
    that agree nowhere are blamed; or else the trait that explains most of them, in the largest
    share of its lines, although it agrees elsewhere.

    :param differing: the suspects of each line with another value.
    :param agreeing: the suspects of each line with the expected value.
    """
    fine = Counter(trait for suspects in agreeing for trait in suspects)
    left = [frozenset(suspects) for suspects in differing if suspects]
    chosen: set[str] = set()
    for suspects in left:
        open_to_doubt = {trait for trait in suspects if _is_operation(trait) or not fine[trait]}
        if len(open_to_doubt) == 1:
            chosen |= open_to_doubt
    left = [suspects for suspects in left if chosen.isdisjoint(suspects)]
    for suspects in left:
        chosen |= {trait for trait in suspects if not fine[trait]}
    left = [suspects for suspects in left if chosen.isdisjoint(suspects)]
    while left:
        bad = Counter(trait for suspects in left for trait in suspects)
        worst = max(bad, key=lambda trait: (bad[trait] ** 2 / (bad[trait] + fine[trait]), trait))
        chosen.add(worst)
        left = [suspects for suspects in left if worst not in suspects]
    return tuple(sorted(chosen))


def _is_operation(trait: str) -> bool:
    """False for a trait of all operations over a type, or over files of a format."""
    return " over " in trait or " beside " in trait or " read from " in trait
