"""Requests for consent: lines of CODEOWNERS, and the draft of an RFC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dqx_airflow.contracts.demands import (
    AllComplete,
    Complete,
    Distinct,
    Fresh,
    Required,
    Unique,
    Volume,
)
from dqx_airflow.contracts.model import Contract, Model

_SHARES = (AllComplete, Complete, Distinct, Unique)
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
    questions = tuple(f"- {question}" for question in _questions(contract))
    title = f"# RFC: {contract.id} contract v{(contract.version or '1.0.0').removeprefix('v')}"
    sections = (
        ("Purpose", _purpose(contract)),
        ("Producers", _producers(contract)),
        ("Identified consumers", _consumers(contract)),
        ("Schema (proposed)", _schema(contract)),
        ("Quality SLAs (proposed)", _promises(contract)),
        ("Open questions", questions or ("None that can be seen here.",)),
    )
    written = (
        f"## {name}\n\n" + ("\n".join(lines) or "Not known yet.") for name, lines in sections
    )
    return "\n\n".join((title, *written)) + "\n"


def _purpose(contract: Contract) -> tuple[str, ...]:
    words = contract.description or next(
        (model.description for model in contract.models if model.description), None
    )
    return (words.strip(),) if words else ()


def _producers(contract: Contract) -> tuple[str, ...]:
    parties = dict.fromkeys(party for party in (contract.owner, *contract.contacts) if party)
    return tuple(f"- {party}" for party in parties)


def _consumers(contract: Contract) -> tuple[str, ...]:
    return tuple(
        f"- {consumer.team}" + (f": {consumer.use_case}" if consumer.use_case else "")
        for consumer in contract.consumers
    )


def _schema(contract: Contract) -> tuple[str, ...]:
    lines: list[str] = []
    for model in contract.models:
        lines += ["", f"### {model.name}", ""] if len(contract.models) > 1 else []
        lines += ["| column | type | NULL | meaning |", "|---|---|---|---|"]
        lines += _columns(model)
    return tuple(lines)


def _columns(model: Model) -> Iterator[str]:
    for item in model.walk():
        meaning = " ".join((item.semantic or "").split())
        cells = (
            item.path,
            item.written_type or item.type or "",
            "yes" if item.is_nullable else "no",
            f"{meaning} ({item.unit})" if item.unit else meaning,
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _promises(contract: Contract) -> tuple[str, ...]:
    return tuple(
        f"- {rule.name}: {rule.demand.text}"
        for _, _, rule in contract.rules()
        if rule.demand.is_service_level or isinstance(rule.demand, _SHARES)
    )


def _questions(contract: Contract) -> Iterator[str]:
    if not contract.owner:
        yield "Who owns the data?"
    if not contract.consumers:
        yield "Who reads the data, and what for?"
    for item in (item for model in contract.models for item in model.fields):
        if not item.semantic:
            yield f"What does `{item.path}` mean?"
        if item.type is None:
            yield f"Of which type is `{item.path}`?"
    demands = [rule.demand for _, _, rule in contract.rules()]
    for kind, question in (
        (Fresh, "How old may the youngest row be?"),
        (Volume, "How many rows come on a day?"),
        ((Unique, Distinct), "Which columns identify a row?"),
        (Required, "Which columns must not be NULL?"),
    ):
        if not any(isinstance(demand, kind) for demand in demands):
            yield question
    if contract.lifecycle.notice_days is None:
        yield "How many days of notice do consumers get before a breaking change?"
