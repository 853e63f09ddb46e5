"""A rule of another tool, and its translation to DQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.values import Severity


class UntranslatableError(ValueError):
    """Why a rule, or a file, has no counterpart in DQL; in words that follow the rule."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a rule, as DQL: each text follows `assert`, and is one assertion.

    `kind` names them if the rule has no name. `others` are the datasets that they read besides that
    of the rule.
    """

    kind: str
    texts: tuple[str, ...]
    column: str | None = None
    others: tuple[str, ...] = ()


Meaning: TypeAlias = Claims | Translation | str
"""The translation of a rule: claims in DQL, or demands, which are compiled to them; a string says
why there is no counterpart."""


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """A rule as its tool writes it.

    `place` is its position in the file, and `shown` is the rule on one line. `where` is a filter in
    SQL: the rule is about the rows for which it is true. `groups` are columns, as DQL writes them:
    the rule is about each group of them. `difference` says when the verdicts of the two tools
    differ.
    """

    dataset: str
    place: str
    shown: str
    meaning: Meaning
    name: str | None = None
    severity: Severity | None = None
    where: str | None = None
    groups: tuple[str, ...] = ()
    difference: str | None = None
