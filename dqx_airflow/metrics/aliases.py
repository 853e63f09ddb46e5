"""Names that SQL, Python and other data quality tools use, and their equivalents in DQL: those in
`aliases.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files


def _sections() -> Iterator[dict[str, str]]:
    text = files("dqx_airflow.metrics").joinpath("aliases.txt").read_text(encoding="utf-8")
    for section in text.split("\n[")[1:]:
        yield dict(line.split(" <- ") for line in section.splitlines() if " <- " in line)


MEASURES, ASSERTIONS, FUNCTIONS = _sections()
"""Other names of a value computed from the data, of a whole assertion, and of a row function or
row condition, by their DQL equivalent."""


def measure_elsewhere(name: str, column: str = "column") -> str | None:
    """The DQL equivalent of a value, or of a whole assertion, that has this name elsewhere.

    :param column: its column.
    """
    return _written_as(_MEASURES | _ASSERTIONS, name, column)


def assertion_elsewhere(name: str, column: str = "column") -> str | None:
    """The DQL equivalent of a whole assertion that has this name elsewhere."""
    return _written_as(_ASSERTIONS, name, column)


def function_elsewhere(name: str, column: str = "column") -> str | None:
    """The DQL equivalent of a row function or condition that has this name elsewhere."""
    return _written_as(_FUNCTIONS, name, column)


def name_alone(written: str, arguments: int) -> str | None:
    """The name in a DQL equivalent with this many arguments, if only the name differs."""
    call = re.fullmatch(r"(\w+)\(([^()]*)\)", written)
    if call is None:
        return None
    takes = 0 if not call[2] else 2 if "," in call[2] else 1
    return call[1] if takes == arguments else None


def _written_as(names: dict[str, str], name: str, column: str) -> str | None:
    form = names.get(_key(name))
    return form.format(column) if form else None


def _key(name: str) -> str:
    return name.replace("_", "").casefold()


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {_key(name): written for written, names in table.items() for name in names.split()}


_MEASURES, _ASSERTIONS, _FUNCTIONS = map(_by_name, (MEASURES, ASSERTIONS, FUNCTIONS))
