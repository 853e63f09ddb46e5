"""A contract as a page for readers: one file without scripts, which a strict policy allows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from dqx_airflow.contracts.compile import compile_contract
from dqx_airflow.contracts.demands import OfType, Presence
from dqx_airflow.contracts.enforcement.enforced_contract import ClauseCoverage, counts, coverage
from dqx_airflow.contracts.export.exported import Exported
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, Treatment

_SHOWN_ELSEWHERE = (Presence, OfType)
_TERMS = ("terms", "usage", "price", "support", "sla.support", "sla.changes", "authoritative")
_STATUSES = ("draft", "active", "deprecated", "sunset")


def page(contract: Contract) -> Exported:
    """The page: models with their rules, service levels, coverage, consumers and lifecycle."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = contract.name or contract.id
    clauses = coverage(contract, compile_contract(contract))
    body = [
        *_head(contract, title),
        *(line for model in contract.models for line in _model(model, contract.description)),
        *_service(contract),
        *_table("Terms", ("what", "text"), _terms(contract)),
        *_coverage(clauses),
        *_table("Servers", ("server", "type", "environment", "location"), _servers(contract)),
        *_table("Consumers", ("team", "uses it for", "relies on"), _consumers(contract)),
        *_table("Lifecycle", ("what", "when"), _lifecycle(contract)),
    ]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        *body,
        "</main>",
        "</body>",
        "</html>",
    ]
    return Exported("\n".join(lines) + "\n")


def _text(value: object) -> str:
    """Escapes text for HTML, and replaces characters that are not allowed."""
    text = str(value)
    return escape(
        "".join(
            character if character.isprintable() or character == "\n" else "�" for character in text
        )
    )


def _paragraphs(text: str | None, kind: str = "") -> Iterator[str]:
    if text and text.strip():
        mark = f' class="{kind}"' if kind else ""
        yield f"<p{mark}>{_text(text.strip())}</p>"


def _badge(text: str, kind: str = "plain") -> str:
    return f'<span class="badge {kind}">{_text(text)}</span>'


def _head(contract: Contract, title: str) -> Iterator[str]:
    life = contract.lifecycle
    badges = [_badge(contract.version or "no version"), _badge(contract.dialect)]
    if life.status in _STATUSES:
        badges.insert(1, _badge(life.written_status or life.status, life.status))
    yield f"<header><h1>{_text(title)}</h1><p>{' '.join(badges)}</p>"
    yield from _paragraphs(contract.description, "words")
    facts = (
        ("id", contract.id),
        ("domain", contract.domain),
        ("owner", contract.owner),
        ("contacts", ", ".join(contract.contacts)),
        ("tags", ", ".join(contract.tags)),
    )
    entries = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts if value)
    yield f"<dl>{entries}</dl></header>"


# Models ------------------------------------------------------------------------------------------


def _model(model: Model, already: str | None) -> Iterator[str]:
    """A model; `already` is the description of the contract, which is not repeated."""
    yield f"<section><h2>{_text(model.title or model.name)}</h2>"
    named = model.location or (model.name if model.title else None)
    if named:
        yield f"<p><code>{_text(named)}</code></p>"
    if model.description != already:
        yield from _paragraphs(model.description, "words")
    if model.fields:
        yield '<div class="wide"><table><thead><tr>'
        yield "<th>column</th><th>type</th><th>meaning</th><th>rules</th></tr></thead><tbody>"
        for item in model.walk():
            yield _row(item)
        yield "</tbody></table></div>"
    rules = [_rule(rule) for rule in model.rules if not rule.demand.is_service_level]
    if rules:
        yield f"<h3>Rules of the table</h3><ul>{''.join(rules)}</ul>"
    if model.partition_by:
        yield f"<p>Partitioned by <code>{_text(', '.join(model.partition_by))}</code>.</p>"
    yield "</section>"


def _row(item: Field) -> str:
    marks = [_badge("key", "key")] if item.is_key else []
    marks += [_badge(item.classification or "sensitive", "sensitive")] if item.is_sensitive else []
    kind = item.written_type or item.type or "any"
    words = "".join(_paragraphs(item.title, "title")) + "".join(_paragraphs(item.semantic, "words"))
    facts = [("Unit", item.unit), ("Default", item.default if item.has_default else None)]
    words += "".join(f"<p>{name}: {_text(value)}</p>" for name, value in facts if value is not None)
    rules = [
        _rule(rule)
        for rule in item.rules
        if not (rule.demand.is_service_level or isinstance(rule.demand, _SHOWN_ELSEWHERE))
    ]
    listed = f"<ul>{''.join(rules)}</ul>" if rules else ""
    cells = (
        f"<code>{_text(item.path)}</code> {' '.join(marks)}",
        f"<code>{_text(kind)}</code>",
        words,
        listed,
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _rule(rule: Rule) -> str:
    severity = f" {_badge(rule.severity.value, 'severity')}" if rule.severity is not None else ""
    line = f"<code>{_text(rule.name)}</code> {_text(rule.text)}{severity}"
    about = f"<br>{_text(rule.description)}" if rule.description else ""
    return f"<li>{line}{about}</li>"


# The contract as a whole --------------------------------------------------------------------------


def _service(contract: Contract) -> Iterator[str]:
    rows = [
        (contract.assertion_name(model, item, rule), rule.demand.text)
        for model, item, rule in contract.rules()
        if rule.demand.is_service_level
    ]
    return _table("Service levels", ("promise", "what is promised"), rows)


def _terms(contract: Contract) -> list[tuple[object, ...]]:
    """What readers may do with the data, at what price, and who helps them."""
    return [
        (note.clause.path, note.clause.text)
        for note in contract.notes
        if note.treatment is Treatment.DOCUMENTED
        and note.clause.path.removeprefix("description.").startswith(_TERMS)
    ]


def _coverage(clauses: Sequence[ClauseCoverage]) -> Iterator[str]:
    counted = counts(clauses)
    badges = " ".join(_badge(f"{number} {kind}", kind) for kind, number in counted.items())
    yield f"<section><h2>Coverage</h2><p>{badges}</p>"
    unchecked = [clause for clause in clauses if clause.treatment is Treatment.UNSUPPORTED]
    yield from _rows(
        "Not checked", ("line", "clause", "why"), _clauses(unchecked, reason_alone=True)
    )
    yield "<details><summary>All clauses</summary>"
    head = ("line", "clause", "treatment", "assertion or reason")
    yield from _rows(None, head, _clauses(clauses, reason_alone=False))
    yield "</details></section>"


def _clauses(clauses: Iterable[ClauseCoverage], *, reason_alone: bool) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for clause in clauses:
        reason = clause.reason or ", ".join(clause.assertions)
        treatment = () if reason_alone else (clause.treatment,)
        rows.append((clause.span.line, clause.path, *treatment, reason))
    return rows


def _servers(contract: Contract) -> list[tuple[object, ...]]:
    return [
        (server.name, server.type, server.environment or "", server.location or "")
        for server in contract.servers
    ]


def _consumers(contract: Contract) -> list[tuple[object, ...]]:
    return [
        (consumer.team, consumer.use_case or "", consumer.pin or "")
        for consumer in contract.consumers
    ]


def _lifecycle(contract: Contract) -> list[tuple[object, ...]]:
    life = contract.lifecycle
    days = (
        ("notice before it ends", life.notice_days),
        ("notice before a breaking change", life.breaking_notice_days),
        ("both versions are written for", life.dual_write_days),
    )
    rows = [
        ("effective", life.effective_date),
        ("deprecated", life.deprecation_date),
        ("ends", life.sunset_date),
        ("successor", life.successor),
        *((name, f"{number} days") for name, number in days if number is not None),
        ("breaks at most", life.cadence),
    ]
    return [(name, value) for name, value in rows if value is not None]


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> Iterator[str]:
    if rows:
        yield f"<section><h2>{title}</h2>"
        yield from _rows(None, head, rows)
        yield "</section>"


def _rows(
    title: str | None, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]
) -> Iterator[str]:
    if not rows:
        return
    if title is not None:
        yield f"<h3>{title}</h3>"
    names = "".join(f"<th>{name}</th>" for name in head)
    yield f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>'
    for row in rows:
        yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table></div>"
