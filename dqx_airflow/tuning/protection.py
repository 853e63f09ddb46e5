"""The changes that an algorithm may make to a suite: one judgement, for every writer.

Every agent but `human` is an algorithm. It moves tunables within their bounds, and nothing else.
Required assertions (`@required`, or P0 and not `@experimental`) it can only make stricter. Stricter
means provably stricter for any data: the same metric against a tighter limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.checks.profile_rules import is_required
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.printer import show, show_claim
from dqx_airflow.plan.adjustments import Adjustment, adjust
from dqx_airflow.plan.model import PlannedAssertion
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.tuning.past_judge import number_of
from dqx_airflow.tuning.proposals import ProposedForm
from dqx_airflow.tuning.tunables import tunables_of, with_values
from dqx_airflow.values import DatasetRef, SourceFile, Span
from dqx_airflow.values.exact import NUMBERS

HUMAN = "human"
"""The agent of a change by a person."""

DEFAULT_AGENT = "python"
"""The agent that sets a tunable in Python by default: an algorithm, since people edit files."""

_SOME_DAY = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement on a change: refusals, or whether it requires a review.

    `refusals` are the reasons against it. Without any, it awaits review if `needs_review`; if
    `is_auto_approved`, it needs no review even where other changes are proposed: every assertion
    that it affects is marked `@auto_approve`. `touched` are the names of those assertions, or their
    claims.
    """

    refusals: tuple[Diagnostic, ...]
    needs_review: bool = False
    is_auto_approved: bool = False
    touched: tuple[str, ...] = ()


def is_algorithm(agent: str) -> bool:
    return agent != HUMAN


def judge_change(
    before: nodes.Suite, after: nodes.Suite, agent: str, *, form: ProposedForm | None = None
) -> Judgement:
    """The judgement on a change of a suite without errors.

    Profiles added by an algorithm need a review. So does another form of an assertion, which is
    refused if the assertion is required.

    :param agent: who makes it; every agent but `human` is an algorithm.
    :param form: the other form of an assertion in the later suite.
    """
    pairs = _in_pairs(before, after)
    touched = [pair for pair in pairs if pair.is_changed]
    refusals = [*_out_of_bounds(after)]
    if not is_algorithm(agent):
        return Judgement(tuple(refusals), touched=tuple(pair.title for pair in touched))
    refusals += _weakened(touched, agent)
    if form is not None:
        refusals += _beyond_form(pairs, form, agent)
        kept = tuple(it for it in before.profiles if it.name.value not in form.drops)
        before, after = (
            _without_form(replace(before, profiles=kept), after, form),
            _without_form(after, before, form),
        )
    added = after.profiles[len(before.profiles) :]
    without_added = replace(after, profiles=after.profiles[: len(before.profiles)])
    if not refusals:
        refusals += _beyond_tunables(before, without_added, agent)
    is_marked = bool(touched) and all(_is(pair, "auto_approve") for pair in touched)
    needs_review = (
        bool(added) or form is not None or any(_is(pair, "human_review") for pair in touched)
    )
    return Judgement(
        tuple(refusals),
        needs_review=needs_review,
        is_auto_approved=is_marked and not needs_review and not refusals,
        touched=tuple(pair.title for pair in touched),
    )


def weakened(before: nodes.Suite, after: nodes.Suite, agent: str) -> tuple[Diagnostic, ...]:
    """The required assertions that an algorithm would weaken."""
    pairs = [pair for pair in _in_pairs(before, after) if pair.is_changed]
    return tuple(_weakened(pairs, agent)) if is_algorithm(agent) else ()


def changed_since(suite: nodes.Suite, expected: Mapping[str, float]) -> tuple[Diagnostic, ...]:
    """The tunables whose values have changed since a change was proposed."""
    current_values = {tunable.name: tunable.value for tunable in tunables_of(suite)}
    constants = {constant.name.text: constant for constant in suite.constants}
    return tuple(
        Diagnostic(
            f"{name} is no longer {expected[name]:g}: the change was proposed for that value",
            constants[name].value.span,
            code="E604",
            help="reject the proposal and create a new one",
        )
        for name in expected
        if name in current_values and current_values[name] != expected[name]
    )


def judge_values(suite: nodes.Suite, values: Mapping[str, float], agent: str) -> Judgement:
    """The judgement on other values of tunables, see `judge_change`."""
    tunables = tunables_of(suite)
    refusals = [_not_tunable(suite, name) for name in values if name not in tunables]
    if refusals:
        return Judgement(tuple(refusals))
    return judge_change(suite, with_values(suite, values), agent)


# Pairs of assertions


_Key: TypeAlias = tuple[str, str | int]
_Planned: TypeAlias = tuple[nodes.Assertion, PlannedAssertion, tuple[Adjustment, ...]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """An assertion before and after a change, with the effect of each profile on it. `new` is None
    if it is removed. An added assertion has no pair: it weakens nothing."""

    check: str
    node: nodes.Assertion
    old: PlannedAssertion
    old_effects: tuple[Adjustment, ...]
    new_node: nodes.Assertion | None
    new: PlannedAssertion | None
    new_effects: tuple[Adjustment, ...]

    @property
    def title(self) -> str:
        return self.node.name.value if self.node.name else show_claim(self.node.claim)

    @property
    def is_changed(self) -> bool:
        return (
            self.node != self.new_node
            or self.old_effects != self.new_effects
            or self.new is None
            or (self.old.term, self.old.condition) != (self.new.term, self.new.condition)
        )


def _in_pairs(before: nodes.Suite, after: nodes.Suite) -> tuple[_Pair, ...]:
    later = dict(_planned(after))
    gone = None, None, ()
    return tuple(
        _Pair(key[0], *planned, *later.get(key, gone)) for key, planned in _planned(before)
    )


def _planned(suite: nodes.Suite) -> Iterator[tuple[_Key, _Planned]]:
    """Each assertion, with the key by which it is identified in another version of the suite."""
    quiet = replace(suite, profiles=())
    refs = [DatasetRef(name, table=name, date_column="?") for name in datasets_of(suite.checks)]
    plan = resolve(quiet, SourceFile("", ""), refs, _SOME_DAY, QUIET)
    constants = settle(suite.constants)
    planned = iter(plan.assertions)
    for check in suite.checks:
        unnamed = 0
        for node in check.assertions:
            unnamed += node.name is None
            name = node.name.value if node.name else unnamed
            effects = (adjust((profile,), check, node, constants) for profile in suite.profiles)
            kept = tuple(effect for effect in effects if effect.profiles)
            yield (check.name.value, name), (node, next(planned), kept)


def _is(pair: _Pair, annotation: str) -> bool:
    return pair.node.is_annotated(annotation)


# Refusals


def _weakened(pairs: Iterable[_Pair], agent: str) -> Iterator[Diagnostic]:
    for pair in pairs:
        if not is_required(pair.node):
            continue
        why = _weakness(pair)
        if why is None:
            continue
        mark = "@required" if pair.node.is_annotated("required") else "P0"
        yield Diagnostic(
            f"'{agent}' cannot change this: '{pair.title}' is {mark}, and {why}",
            pair.node.claim.span,
            code="E602",
            help="someone can change it: edit the suite, or set it as agent `human`",
        )


def _weakness(pair: _Pair) -> str | None:
    """The reason why the later assertion may pass where the earlier failed; None if it cannot."""
    old, new, node = pair.old, pair.new, pair.new_node
    if new is None or node is None:
        return "it would be removed"
    if not is_required(node):
        return "it would no longer be required"
    if pair.old_effects != pair.new_effects or old.multiplier != new.multiplier:
        return "profiles would change it"
    if not new.severity.at_least(old.severity):
        return f"its severity would fall to {new.severity.value}"
    if old.term != new.term:
        return "it would compare a different value, which is not provably stricter"
    return _weakness_of_condition(old, new)


def _weakness_of_condition(old: PlannedAssertion, new: PlannedAssertion) -> str | None:
    """The reason why the later condition may hold where the earlier did not; None if it cannot."""
    before, after = old.condition, new.condition
    if before.kind != after.kind or before.tolerance != after.tolerance:
        return f"its condition would become {_condition_text(new)}"
    orders = _orders(before.kind, len(before.bounds))
    for old_bound, new_bound, order in zip(before.bounds, after.bounds, orders, strict=True):
        was, becomes = number_of(old_bound), number_of(new_bound)
        if old_bound == new_bound:
            continue
        if not (isinstance(was, NUMBERS) and isinstance(becomes, NUMBERS)):
            return f"the new limit of {_condition_text(new)} is not provably stricter"
        is_looser = becomes > was if order == "<" else becomes < was
        if order == "=" or is_looser:
            return f"{_condition_text(new)} is weaker than {_condition_text(old)}"
    return None


def _orders(kind: str, limits: int) -> tuple[str, ...]:
    """For each limit `<` if a smaller one is stricter, `>` if a larger one is, `=` if neither."""
    if kind == "between":
        return ">", "<"
    if kind == "not between":
        return "<", ">"
    return (kind[0] if kind in ("<", "<=", ">", ">=") else "=",) * limits


def _condition_text(assertion: PlannedAssertion) -> str:
    return f"`{assertion.condition.text}`"


def _out_of_bounds(suite: nodes.Suite) -> Iterator[Diagnostic]:
    constants = settle(suite.constants)
    for constant in suite.constants:
        if constant.bounds is None:
            continue
        value = fold(constant.value, constants)
        low, high = (fold(bound, constants) for bound in constant.bounds)
        if not all(isinstance(number, NUMBERS) for number in (value, low, high)):
            continue
        if not low <= value <= high:  # type: ignore[operator]
            name = constant.name.text
            bounds = f"[{show(constant.bounds[0])}, {show(constant.bounds[1])}]"
            yield Diagnostic(
                f"{name} cannot be {show(constant.value)}: it is outside its bounds {bounds}",
                constant.value.span,
                code="E601",
            )


def _but_for_tunables(suite: nodes.Suite) -> nodes.Suite:
    """The suite without the values that algorithms may choose."""
    values = {tunable.name: tunable.min_bound for tunable in tunables_of(suite)}
    return with_values(suite, values)


def _beyond_tunables(before: nodes.Suite, after: nodes.Suite, agent: str) -> Iterator[Diagnostic]:
    """The first part of the suite that an algorithm would change without being allowed to."""
    old, new = _but_for_tunables(before), _but_for_tunables(after)
    if old == new:
        return
    for part in ("constants", "checks", "profiles", "annotations"):
        was, becomes = getattr(old, part), getattr(new, part)
        if was == becomes:
            continue
        changed = [
            old_node
            for old_node, new_node in zip_longest(was, becomes)
            if old_node != new_node and old_node
        ]
        node = changed[0] if changed else before.name
        yield _beyond(agent, node.span)
        return
    yield _beyond(agent, before.name.span)


def _beyond_form(pairs: Iterable[_Pair], form: ProposedForm, agent: str) -> Iterator[Diagnostic]:
    """The first change of an assertion that is not the new claim of the form."""
    for pair in pairs:
        node, new = pair.node, pair.new_node
        if pair.check == form.check and node.name and node.name.value == form.assertion:
            if new is None or replace(new, claim=node.claim) != node:
                yield _beyond(agent, node.span)
                return
        elif pair.is_changed:
            yield _beyond(agent, node.span)
            return


def _without_form(suite: nodes.Suite, other: nodes.Suite, form: ProposedForm) -> nodes.Suite:
    """A version of a suite, without what another form of an assertion may change: its claim, and
    its tunables. `_beyond_form` checks that these affect nothing else."""
    names = {constant.name.text for constant in other.constants}

    def is_its(check: nodes.Check, node: object) -> bool:
        if not isinstance(node, nodes.Assertion) or node.name is None:
            return False
        return (check.name.value, node.name.value) == (form.check, form.assertion)

    return replace(
        suite,
        constants=tuple(
            constant
            for constant in suite.constants
            if constant.name.text in names
            or not (constant.bounds or constant.name.text in form.replaces)
        ),
        checks=tuple(
            replace(check, body=tuple(node for node in check.body if not is_its(check, node)))
            for check in suite.checks
        ),
    )


def _beyond(agent: str, span: Span) -> Diagnostic:
    return Diagnostic(
        f"'{agent}' cannot change this: algorithms may only change tunables within their bounds",
        span,
        code="E603",
        help="someone can change it: edit the suite",
    )


def _not_tunable(suite: nodes.Suite, name: str) -> Diagnostic:
    """The error for setting a constant that does not exist, or is not tunable."""
    constant = next((constant for constant in suite.constants if constant.name.text == name), None)
    if constant is None:
        hint = did_you_mean(name, [tunable.name for tunable in tunables_of(suite)])
        span = suite.name.span
        help_line = hint or "mark a constant with tunable [low, high]"
        return Diagnostic(f"the suite has no tunable '{name}'", span, code="E603", help=help_line)
    if constant.bounds is not None:
        message = f"the suite has no tunable '{name}': it is imported from another file"
        return Diagnostic(message, constant.name.span, code="E603", help="change it there")
    message = f"the suite has no tunable '{name}': the constant has no bounds"
    help_line = f"write `const {name} = {show(constant.value)} tunable [low, high]`"
    return Diagnostic(message, constant.name.span, code="E603", help=help_line)
