"""Which published version those who use a contract rely on, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.contracts.enforcement.version_pins import (
    is_version,
    objection_to_version,
    standing,
)
from dqx_airflow.contracts.versioning.publication_policy import PublishedVersion
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class ConsumerUse:
    """Somebody who uses a contract: a team that it lists, a gate, a task, a job, a block.

    `pin` is the version that is written there. Where none is, `version` is the one that is read or
    was enforced, if that is known. `span` is the place of it in code.
    """

    name: str
    how: str | None = None
    pin: str | None = None
    version: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reliance:
    """A use, and the version that it relies on; None where none is published that could be meant.

    `concern` tells what is wrong with that version, and is None where nothing is.
    """

    use: ConsumerUse
    version: str | None
    concern: str | None


def reliances(
    published: Sequence[PublishedVersion], on: date, uses: Iterable[ConsumerUse] = ()
) -> tuple[Reliance, ...]:
    """What is relied on: the version that is pinned, else the one that is read, else the newest.

    Whoever was listed as a consumer once and is no longer is not told.

    :param uses: those beside the consumers that the newest version lists.
    """
    if not published:
        return ()
    ordered = sorted(published, key=lambda item: item.version)
    listed = (
        ConsumerUse(one.team, one.use_case, one.pin) for one in ordered[-1].contract.consumers
    )
    return tuple(_reliance(use, ordered, on) for use in (*listed, *uses))


def _reliance(use: ConsumerUse, ordered: Sequence[PublishedVersion], on: date) -> Reliance:
    wanted = (use.pin or use.version or "").lstrip("@")
    if wanted and not is_version(wanted):
        return Reliance(use, None, f"'{wanted}' has no known version before it runs")
    meant = [
        item
        for item in ordered
        if not wanted or objection_to_version(item.contract, wanted) is None
    ]
    if not meant:
        return Reliance(use, None, f"no version {wanted} is published")
    used, newest = meant[-1], ordered[-1]
    state = standing(used.contract, on)
    concern = state.message if state is not None else None
    if concern is None and used.version.major < newest.version.major:
        concern = f"version {newest.contract.version} is published"
    return Reliance(use, used.contract.version, concern)
