"""A contract as a page for readers: one file without scripts, which a strict policy allows."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.demands import Demand, OfType, Presence
from dqx_airflow.contracts.enforcement.enforced_contract import counts, coverage
from dqx_airflow.contracts.export import Exported
from dqx_airflow.contracts.model import Contract, Treatment

_TERMS = ("terms", "usage", "price", "support", "sla.support", "sla.changes", "authoritative")


def page(contract: Contract) -> Exported:
    """The page: models with their rules, service levels, coverage, consumers and lifecycle."""
    environment = Environment(
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["told_elsewhere"] = _is_told_elsewhere
    environment.filters["days"] = lambda number: None if number is None else f"{number} days"
    text, style = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css")
    )
    clauses = coverage(contract, compile_contract(contract))
    values = {
        "style": style,
        "digest": b64encode(sha256(style.encode()).digest()).decode(),
        "clauses": clauses,
        "counted": counts(clauses),
        "service": [parts for parts in contract.rules() if parts[-1].demand.is_service_level],
        # What readers may do with the data, at what price, and who helps them.
        "terms": [
            note.clause
            for note in contract.notes
            if note.treatment is Treatment.DOCUMENTED
            and note.clause.path.removeprefix("description.").startswith(_TERMS)
        ],
    }
    return Exported(environment.from_string(text).render(contract=contract, **values))


def _escaped(value: object) -> Markup:
    """Escapes text for HTML, and replaces characters that are not allowed."""
    if isinstance(value, Markup):
        return value
    signs = (sign if sign.isprintable() or sign == "\n" else "�" for sign in str(value))
    return Markup(escape("".join(signs)))  # noqa: S704


def _is_told_elsewhere(demand: Demand) -> bool:
    """True for what the columns beside a rule show, or the list of service levels."""
    return demand.is_service_level or isinstance(demand, Presence | OfType)
