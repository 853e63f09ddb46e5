"""A contract as a page for readers: one file without scripts, which a strict policy allows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.demands import OfType, Presence
from dqx_airflow.contracts.enforcement.coverage import counts, coverage
from dqx_airflow.contracts.export.exported import Exported
from dqx_airflow.contracts.model import Contract, Rule, Treatment
from dqx_airflow.diagnostics.renderers import without_controls
from dqx_airflow.diagnostics.templates import filled

_TERMS = ("terms", "usage", "price", "support", "sla.support", "sla.changes", "authoritative")


def page(contract: Contract) -> Exported:
    """The page: models with their rules, service levels, coverage, consumers and lifecycle."""
    style = page_style()
    clauses = coverage(contract, compile_contract(contract))
    text = filled(
        __package__,
        "page.html",
        contract=contract,
        style=style,
        digest=digest_of_style(style),
        clauses=clauses,
        counted=counts(clauses),
        remaining_rules=_remaining_rules,
        days=lambda number: None if number is None else f"{number} days",
        service=[parts for parts in contract.rules() if parts[-1].demand.is_service_level],
        # What readers may do with the data, at what price, and who helps them.
        terms=[
            note.clause
            for note in contract.notes
            if note.treatment is Treatment.DOCUMENTED
            and note.clause.path.removeprefix("description.").startswith(_TERMS)
        ],
    )
    return Exported(without_controls(text, keep="\n"))


def page_style() -> str:
    """The style sheet of pages in one file."""
    return files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def digest_of_style(style: str) -> str:
    """The digest of a style sheet by which the policy of a page allows it."""
    return b64encode(sha256(style.encode()).digest()).decode()


def _remaining_rules(rules: Iterable[Rule]) -> list[Rule]:
    """The rules that neither the other cells of the row nor the list of service levels show."""
    return [
        rule
        for rule in rules
        if not rule.demand.is_service_level and not isinstance(rule.demand, Presence | OfType)
    ]
