"""The published version that users of a contract rely on, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.contracts.enforcement.version_pins import (
    is_version,
    lifecycle_status,
    objection_to_version,
)
from dqx_airflow.contracts.versioning.publication_policy import PublishedVersion
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class ConsumerUse:
    """A user of a contract: a listed team, a gate, a task, a job, a block.

    `pin` is the version written there. Without one, `version` is the version that is read or was
    enforced, if known. `span` is its position in code.
    """

    name: str
    how: str | None = None
    pin: str | None = None
    version: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reliance:
    """A use, and the version that it relies on; None if no published version fits.

    `concern` says what is wrong with that version, or is None.
    """

    use: ConsumerUse
    version: str | None
    concern: str | None


def reliances(
    published: Sequence[PublishedVersion], on: date, uses: Iterable[ConsumerUse] = ()
) -> tuple[Reliance, ...]:
    """What is relied on: the pinned version, else the one that is read, else the newest.

    Former consumers that are no longer listed are left out.

    :param uses: in addition to the consumers that the newest version lists.
    """
    if not published:
        return ()
    ordered = sorted(published, key=lambda item: item.version)
    listed = (
        ConsumerUse(consumer.team, consumer.use_case, consumer.pin)
        for consumer in ordered[-1].contract.consumers
    )
    return tuple(_reliance(use, ordered, on) for use in (*listed, *uses))


def _reliance(use: ConsumerUse, ordered: Sequence[PublishedVersion], on: date) -> Reliance:
    wanted = (use.pin or use.version or "").lstrip("@")
    if wanted and not is_version(wanted):
        return Reliance(use, None, f"'{wanted}' has no known version before it runs")
    meant = [
        version
        for version in ordered
        if not wanted or objection_to_version(version.contract, wanted) is None
    ]
    if not meant:
        return Reliance(use, None, f"no version {wanted} is published")
    used, newest = meant[-1], ordered[-1]
    state = lifecycle_status(used.contract, on)
    concern = state.message if state is not None else None
    if concern is None and used.version.major < newest.version.major:
        concern = f"version {newest.contract.version} is published"
    return Reliance(use, used.contract.version, concern)
