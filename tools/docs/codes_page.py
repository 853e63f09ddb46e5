"""The list of all codes as a Markdown page, generated from their own pages."""

from __future__ import annotations

from dqx_airflow.diagnostics.diagnostic import codes, reason, title

_OPENING = """\
# Errors and warnings

Every error and warning has a code, and every code has a page with a wrong and a right example.
`dql explain E001` prints the same page."""

_FAMILIES = {
    "E0": "Syntax and names",
    "E1": "Types and units",
    "E2": "Macros and imports",
    "E3": "Profiles and dates",
    "E4": "Contracts",
    "E5": "DataLex",
    "E6": "Tuning",
    "W": "Warnings",
}


def codes_page() -> str:
    """The page, with codes in their order, family by family."""
    sections = [_OPENING]
    for start, family in _FAMILIES.items():
        own = [code for code in codes() if code.startswith(start)]
        rows = (f"| [{code}](codes/{code}.md) | {title(code)} | {_first(code)} |" for code in own)
        listed = "\n".join(["| code | what | why |", "|---|---|---|", *rows])
        sections.append(f"## {family}\n\n{listed}")
    return "\n\n".join(sections) + "\n"


def _first(code: str) -> str:
    """The first sentence of the reason."""
    return f"{reason(code).split('. ')[0].removesuffix('.')}.".replace("|", "\\|")
