"""The consent of owners and consumers: the line in CODEOWNERS, and the draft of an RFC."""

from __future__ import annotations

import re

from dqx_airflow.contracts.model import Contract
from dqx_airflow.diagnostics.templates import filled

_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")


def codeowners_line(path: str, contract: Contract, org: str | None = None) -> str:
    """The owners of a contract's file: its owner, then each consumer.

    :param org: the organisation of the teams; `@org/team` instead of `@team`.
    """
    parties = (contract.owner, *(consumer.team for consumer in contract.consumers))
    handles = dict.fromkeys(_handle(party, org) for party in parties if party)
    # In CODEOWNERS a space separates a path from its owners, and # begins a comment.
    escaped = re.sub(r"([ #\\])", r"\\\1", path)
    return " ".join((escaped, *(handle for handle in handles if handle)))


def _handle(party: str, org: str | None) -> str | None:
    """`@bi-reporting` for a team; an email address unchanged."""
    if _EMAIL.fullmatch(party):
        return party
    if re.fullmatch(r"@[\w./-]+", party):
        return party
    slug = re.sub(r"[^a-z0-9]+", "-", party.lower()).strip("-")
    return (f"@{org}/{slug}" if org else f"@{slug}") if slug else None


def rfc_draft(contract: Contract) -> str:
    """The draft as Markdown: the contents of the contract, and open questions."""
    rules = [(type(rule.demand).__name__, rule) for _, _, rule in contract.rules()]
    return filled(__package__, "rfc.md", contract=contract, rules=rules)
