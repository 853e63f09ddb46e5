"""The pages of the codes: the purpose of each rule, with a wrong and a right example."""

from __future__ import annotations

from importlib.resources import files

from dqx_airflow.diagnostics.codes import CODES


def page(code: str) -> str:
    """The page of a code of the table, in Markdown."""
    assert code in CODES
    home = files("dqx_airflow") / "docs" / "codes"
    return (home / f"{code}.md").read_text(encoding="utf-8")


def reason(code: str) -> str:
    """The opening of the page, on one line: the purpose of the rule."""
    opening = page(code).split("\n## ", 1)[0]
    _, text = opening.split("\n", 1)
    return " ".join(text.split())
