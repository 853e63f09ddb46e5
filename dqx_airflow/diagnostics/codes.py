"""The diagnostic codes. Each has a page: its title, the purpose of its rule, and a wrong and a
right example. Codes are stable; a retired one is not used again."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_PAGES = files("dqx_airflow") / "docs" / "codes"


@cache
def codes() -> tuple[str, ...]:
    """All codes in order. The pages are not among what `dql package` packs, so that nothing may ask
    for them on import."""
    return tuple(sorted(file.name.removesuffix(".md") for file in _PAGES.iterdir()))


def page(code: str) -> str:
    """The page of a code, in Markdown."""
    return (_PAGES / f"{code}.md").read_text(encoding="utf-8")


def title(code: str) -> str:
    """What is wrong, in a few words: the heading of the page."""
    return page(code).partition("\n")[0].removeprefix(f"# {code}: ")


def reason(code: str) -> str:
    """The opening of the page, on one line: the purpose of the rule."""
    opening = page(code).split("\n## ", 1)[0]
    _, text = opening.split("\n", 1)
    return " ".join(text.split())
