"""Templates in Jinja: pages, pictures, notifications and reports as text. The job of a gate
has none, and no Jinja either."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

_AS_WRITTEN = (".txt", ".md", ".dql")


@cache
def _template(package: str, name: str) -> Any:
    from jinja2 import Environment, StrictUndefined  # slow to import

    environment = Environment(
        autoescape=not name.endswith(_AS_WRITTEN),  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(files(package).joinpath(name).read_text("utf-8"))


def filled(package: str, name: str, /, **values: Any) -> str:
    """The template `name` of a package, in Jinja, with these values. They are escaped for
    HTML, unless it is a text, Markdown or a suite."""
    return str(_template(package, name).render(**values))
