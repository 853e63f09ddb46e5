"""Addresses in contracts: of people, of pages, and of data. Invalid ones are reported."""

from __future__ import annotations

import re

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.source.yaml_document import Mapping
from dqx_airflow.metrics.text_formats import TEXT_FORMATS

_FORMS = {
    "email": "write it as name@example.com",
    "uri": "write it with its scheme: https://example.com/page",
}
_SCHEMES = {
    "s3": ("s3", "s3a", "s3n"),
    "azure": ("abfss", "abfs", "az", "adl", "wasbs", "wasb", "https"),
    "gcs": ("gs", "gcs"),
    "local": ("file",),
}
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^__\w+__$")
"""Placeholders that are replaced before the contract is used."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def check_address(reading: ClauseReader, owner: Mapping | None, key: str, kind: str) -> None:
    """Reports the value of a key, if it is not an `email` or `uri`."""
    written = reading.text(owner, key)
    if owner is None or written is None or _PLACEHOLDER.search(written):
        return
    address = written.strip().removeprefix("mailto:") if kind == "email" else written.strip()
    if re.fullmatch(TEXT_FORMATS[kind].pattern, address) is None:
        form = "e-mail address" if kind == "email" else "URL"
        reason = f"'{written}' is not a valid {form}"
        reading.mistaken(owner.get(key), "E426", reason, _FORMS[kind])


def check_location(reading: ClauseReader, server: Mapping, kind: str) -> None:
    """Reports the location of a file server that does not fit its type."""
    for key in ("location", "path"):
        written = reading.text(server, key)
        if written is None or kind not in _SCHEMES or written.lstrip().startswith(("{", "$")):
            continue
        match = _SCHEME.match(written.strip())
        scheme = match[1].lower() if match else None
        if scheme in _SCHEMES[kind] or (kind == "local" and scheme is None):
            continue
        named = f"begins with {scheme}://" if scheme else "has no scheme"
        wanted = "a path" if kind == "local" else f"{_SCHEMES[kind][0]}://..."
        reason = f"the location of a server of type {kind} {named}"
        reading.mistaken(server.get(key), "E426", reason, f"write {wanted}, or another type")
