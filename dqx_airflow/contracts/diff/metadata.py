"""The metadata of two versions of a contract: owner, servers, consumers, lifecycle."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.diff.change import Change
from dqx_airflow.contracts.diff.location import ContractLocation
from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from dqx_airflow.contracts.model import Contract, Lifecycle, Server

_FORWARD = {"draft": 0, "active": 1, "deprecated": 2}
_DATES = ("effective_date", "deprecation_date", "sunset_date")
_POLICY = ("successor", "notice_days", "breaking_notice_days", "dual_write_days", "cadence")


def compare_identity(old: Contract, new: Contract) -> Iterator[Change]:
    """The id, the dialect, and the descriptions of the contract."""
    location = ContractLocation("", old.span, new.span)
    if old.id != new.id:
        place = location.below("id", old.span, new.span)
        yield place.change("id_changed", f"the id changes: {old.id} → {new.id}", old.id, new.id)
    for name in ("dialect", "dialect_version"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            message = f"the {_words(name)} changes: {before or 'none'} → {after or 'none'}"
            place = location.below(name, old.span, new.span)
            yield place.change("dialect_changed", message, before and str(before), str(after or ""))
    for name in ("name", "description", "owner", "contacts", "domain", "tags"):
        before, after = (_text(getattr(contract, name)) for contract in (old, new))
        if before == after:
            continue
        corrected = before and after and compare_wording(before, after) is Wording.CORRECTED
        kind = "wording_corrected" if corrected else "about_changed"
        place = location.below(name, old.span, new.span)
        verb = "change" if name in ("contacts", "tags") else "changes"
        yield place.change(kind, f"the {name} of the contract {verb}", before, after)


def compare_parties(old: Contract, new: Contract) -> Iterator[Change]:
    """The servers, and the consumers."""
    servers = {server.name: server for server in old.servers}
    for server in new.servers:
        before = servers.pop(server.name, None)
        if before is None:
            place = ContractLocation(f"servers.{server.name}", None, server.span)
            message = f"server {server.name} is added"
            yield place.change("server_added", message, new=server.name)
        else:
            yield from _server(before, server)
    for name, removed in servers.items():
        place = ContractLocation(f"servers.{name}", removed.span, None)
        yield place.change("server_changed", f"server {name} is removed", old=name)
    consumers = {consumer.team: consumer for consumer in old.consumers}
    for consumer in new.consumers:
        previous = consumers.pop(consumer.team, None)
        if previous != consumer:
            place = ContractLocation(f"consumers.{consumer.team}", old.span, new.span)
            verb = "is listed" if previous is None else "has a changed description"
            if previous is not None and previous.pin != consumer.pin:
                verb = f"pins version {consumer.pin}" if consumer.pin else "does not pin a version"
            message = f"consumer {consumer.team} {verb}"
            yield place.change(
                "consumers_changed", message, previous.team if previous else None, consumer.team
            )
    for team in consumers:
        place = ContractLocation(f"consumers.{team}", old.span, new.span)
        yield place.change("consumers_changed", f"consumer {team} is no longer listed", old=team)


def _server(old: Server, new: Server) -> Iterator[Change]:
    location = ContractLocation(f"servers.{new.name}", old.span, new.span)
    if old.format != new.format and old.format and new.format:
        message = f"the files of server {new.name} change: {old.format} → {new.format}"
        yield location.change("format_changed", message, old.format, new.format)
    elif old != new:
        message = f"server {new.name} changes"
        if old.location != new.location:
            message = f"server {new.name} moves: {old.location} → {new.location}"
        yield location.change("server_changed", message, old.location, new.location)


def compare_lifecycles(old: Contract, new: Contract) -> Iterator[Change]:
    """The status of the contract, its dates, and its promises about changes."""
    before, after = old.lifecycle, new.lifecycle
    location = ContractLocation("lifecycle", old.span, new.span)
    yield from _status(before, after, location.below("status", old.span, new.span))
    for name in _DATES:
        old_date, new_date = getattr(before, name), getattr(after, name)
        if old_date == new_date:
            continue
        is_earlier = (
            name == "sunset_date"
            and old_date is not None
            and new_date is not None
            and new_date < old_date
        )
        kind = "sunset_advanced" if is_earlier else "dates_changed"
        message = f"the {_words(name)} changes: {old_date or 'none'} → {new_date or 'none'}"
        yield location.below(name, old.span, new.span).change(kind, message, old_date, new_date)
    for name in _POLICY:
        first, second = (_text(getattr(lifecycle, name)) for lifecycle in (before, after))
        if first != second:
            message = f"{_words(name)} changes: {first or 'none'} → {second or 'none'}"
            place = location.below(name, old.span, new.span)
            yield place.change("policy_changed", message, first, second)


def _status(old: Lifecycle, new: Lifecycle, location: ContractLocation) -> Iterator[Change]:
    if old.status == new.status:
        return
    before, after = old.status or "active", new.status or "active"
    if before == after:
        return
    ends = after == "sunset" or (after == "draft" and before in _FORWARD)
    message = f"the status changes: {before} → {after}"
    kind = "status_withdrawn" if ends else "status_advanced"
    yield location.change(kind, message, old.written_status, new.written_status)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(value) or None
    return None if value is None else str(value)
