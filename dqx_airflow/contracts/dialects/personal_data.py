"""Signs of personal or confidential data in a column: its classification, its tags, its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HARMLESS = {"", "none", "public", "open", "unclassified", "unrestricted"}
_MARKS = {"pii", "phi", "pci", "gdpr", "sensitive", "confidential", "restricted", "secret"}
_PERSONAL = re.compile(
    r"(?i)(^|_)(e?mail(_address)?|phone(_number)?|ssn|tax_id|passport|iban|credit_card|birth_?date|"
    r"date_of_birth|first_name|last_name|full_name|surname)(_|$)"
)


def is_sensitive(classification: str | None, tags: Iterable[str] = ()) -> bool:
    """True for every classification except public, and for a tag such as `pii`."""
    classified = (classification or "").strip().lower() not in _HARMLESS
    return classified or any(tag.strip().lower() in _MARKS for tag in tags)


def looks_personal(name: str) -> bool:
    """True for names of columns with personal data: `email`, `birth_date`."""
    return _PERSONAL.search(name) is not None
