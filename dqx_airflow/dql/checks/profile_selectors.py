"""The assertions that the rules of profiles select."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

from dqx_airflow.dql import nodes

_Handle: TypeAlias = tuple[str, str, str | None]
"""The parts of a selector: its kind, the name, and the check if it has one."""


class SelectableAssertions:
    """The assertions of a suite, indexed by the names of selectors."""

    def __init__(self, checks: Iterable[nodes.Check]) -> None:
        self._selected: dict[_Handle, list[nodes.Assertion]] = defaultdict(list)
        self._required: dict[_Handle, list[nodes.Assertion]] = defaultdict(list)
        self._names: dict[str, dict[str, None]] = defaultdict(dict)
        self.size = 0
        """The number of all assertions."""
        for check in checks:
            self._names["check"][check.name.value] = None
            for assertion in check.assertions:
                self.size += 1
                for handle in _handles(check, assertion):
                    self._selected[handle].append(assertion)
                    if is_required(assertion):
                        self._required[handle].append(assertion)
                    self._names[handle[0]][handle[1]] = None

    def of(self, selector: nodes.Selector) -> list[nodes.Assertion]:
        """The assertions that a rule with this selector applies to."""
        return self._selected.get(_handle(selector), [])

    def required(self, selector: nodes.Selector) -> list[nodes.Assertion]:
        """Those of them that a rule must not change."""
        return self._required.get(_handle(selector), [])

    def names(self, kind: str) -> Collection[str]:
        """All possible names in a selector of this kind."""
        return self._names[kind]


def selects(selector: nodes.Selector, check: nodes.Check, assertion: nodes.Assertion) -> bool:
    """True if a rule with this selector applies to the assertion."""
    return _handle(selector) in _handles(check, assertion)


def is_required(assertion: nodes.Assertion) -> bool:
    """`@required`, or P0 and not `@experimental`: algorithms and profiles must not change it."""
    if assertion.is_annotated("required"):
        return True
    is_p0 = assertion.severity is not None and assertion.severity.text == "P0"
    return is_p0 and not assertion.is_annotated("experimental")


def _handle(selector: nodes.Selector) -> _Handle:
    check = None if selector.check is None else selector.check.value
    return selector.kind, selector.name.value, check


def _handles(check: nodes.Check, assertion: nodes.Assertion) -> Iterator[_Handle]:
    yield "check", check.name.value, None
    for tag in dict.fromkeys(tag.text for tag in assertion.tags):
        yield "tag", tag, None
    if assertion.name is not None:
        yield "assertion", assertion.name.value, check.name.value
