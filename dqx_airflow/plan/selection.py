"""The assertions that a selection keeps, and its words that match nothing.

Also makes the plan of a request, and the plan of its shadow suite, which is judged in the same scan
without affecting the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from dqx_airflow.diagnostics.diagnostic import did_you_mean, listed
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.import_readers import Reader, inlined
from dqx_airflow.dql.syntax.source_file import Unreadable
from dqx_airflow.dql.watches import Watched, with_columns
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import Chosen, Plan, PlannedAssertion, Scanned
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.resolve import resolve, stated_assertions
from dqx_airflow.values import (
    DatasetRef,
    EnforcedClause,
    EnforcedContract,
    GateRequest,
    PartialRun,
    Selection,
    Severity,
    ShadowReport,
    ShadowSuite,
    SourceFile,
    UnenforcedClause,
)

_DIMENSION = "dimension-"
"""The prefix of the tag by which a compiled suite names the dimension of a rule."""
_NO_COLUMNS: Mapping[str, Iterable[Watched]] = MappingProxyType({})
_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class Selectable:
    """The properties by which an assertion, or a clause of a contract, can be selected. `tags` are
    in lower case, `paths` lead to the clause that it enforces: selecting an enclosing element
    selects it as well. `ids` identify its rule, its field and its model in the contract."""

    name: str
    check: str
    severity: Severity
    tags: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    dimension: str | None = None
    is_protected: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which `only` can select it, its own first."""
        known = (self.name, self.check, f"{self.check}::{self.name}", *self.paths, *self.ids)
        return tuple(name for name in known if name)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A word of a selection that matches nothing: `criterion` is the field of `Selection`."""

    criterion: str
    word: str
    problem: str
    hint: str | None


def checked_suite(request: GateRequest) -> Checked:
    """The suite of a request, checked with the imports that the request contains."""
    return check_source(request.suite, inlined(request.imports), needs_suite=True)


def plan_of(
    request: GateRequest, checked: Checked, columns: Mapping[str, Iterable[Watched]] = _NO_COLUMNS
) -> Plan:
    """The plan of a request, the same for every caller: a gate, its shadow, `dql run` and
    `dql explain`, a backtest, or Python.

    :param checked: its suite, without errors.
    :param columns: the claims about the columns of each watched dataset, as far as they are known.
    :raises SourceError: its datasets lack what the suite needs.
    :raises RequestError: it selects nothing, or something that does not exist.
    """
    suite = checked.valid_suite
    if columns:
        suite = with_columns(suite, columns)
    chosen = chosen_of(request, suite, checked.sources)
    selected = suite if chosen is None else chosen.suite
    if errors := check_datasets(selected, request.datasets, request.fail_on):
        raise drawn_error(errors, checked.sources)
    datasets = request.datasets
    if chosen is not None and request.shadow is None:
        needed = {*chosen.datasets, *dict(request.promote_to)}
        datasets = tuple(ref for ref in datasets if ref.name in needed)
    on = request.run_key.date
    sources = checked.sources
    return resolve(suite, request.suite, datasets, on, request, sources=sources, chosen=chosen)


def chosen_of(
    request: GateRequest, suite: nodes.Suite, sources: Mapping[str, str] = MappingProxyType({})
) -> Chosen | None:
    """The part of its suite that a request selects; None if it has no selection.

    :raises RequestError: it leaves nothing, or names something that does not exist; or it excludes
        a P0 or required assertion from a gate that promotes.
    """
    if request.selection is None:
        return None
    chosen = choose(
        suite,
        request.suite,
        request.datasets,
        request.run_key.date,
        request.selection,
        request.contract,
        sources=sources,
    )
    if chosen.partial is not None:
        require_protected(chosen.partial.protected, request)
    return chosen


def require_protected(left_out: Sequence[str], request: GateRequest) -> None:
    """Refuses to promote if assertions that are P0 or required are not judged.

    :raises RequestError: there are some.
    """
    if left_out and request.promote_to:
        raise RequestError(
            "promote_partial does not promote without the assertions that are P0 or @required: "
            f"{listed(left_out)} would not be evaluated",
            "select them as well, or remove promote_to",
        )


def choose_among(
    known: Sequence[Sequence[Selectable]], selection: Selection
) -> tuple[Selection | None, ...]:
    """The selection for each of several suites, with the words that match there.

    It is None for a suite of which no assertion is selected.

    :param known: the assertions of each suite.
    :raises RequestError: it leaves nothing at all, or names something that does not exist anywhere.
    """
    everything = [selectable for of_suite in known for selectable in of_suite]
    require_known(everything, selection)
    chosen = tuple(without_unmatched(of_suite, selection) for of_suite in known)
    if not any(chosen):
        raise nothing_selected(everything, selection)
    return chosen


def choose(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    selection: Selection,
    contract: EnforcedContract | None = None,
    *,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> Chosen:
    """The selected part of a suite without errors.

    :param datasets: the known ones; a suite may use others, which need not exist.
    :param contract: the contract that the suite was compiled from.
    :raises RequestError: it leaves nothing, or names something that does not exist.
    """
    stated = stated_assertions(suite, source, assumed(suite, datasets), on, sources=sources)
    known = selectables(suite, stated, contract)
    everything = (*known, *unenforced_selectables(contract))
    require_known(everything, selection)
    chosen = [is_selected(selectable, selection) for selectable in known]
    left_out = [selectable for selectable in everything if not is_selected(selectable, selection)]
    if len(left_out) == len(everything):
        raise nothing_selected(everything, selection)
    partial = PartialRun(
        selection,
        len(everything) - len(left_out),
        len(everything),
        tuple(selectable.name for selectable in left_out if selectable.is_protected),
    )
    kept = tuple(assertion for assertion, is_kept in zip(stated, chosen, strict=True) if is_kept)
    return Chosen(
        left_of(suite, chosen),
        stated,
        kept,
        frozenset(_read_by(kept)),
        partial if left_out else None,
    )


def seen_of(request: GateRequest, suite: nodes.Suite) -> tuple[Selectable, ...]:
    """The assertions of the suite of a request, as `seen` returns them."""
    on = request.run_key.date
    return selectable_assertions(suite, request.suite, request.datasets, on, request.contract)


def selectable_assertions(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    contract: EnforcedContract | None = None,
) -> tuple[Selectable, ...]:
    """Everything that can be selected in a suite; arguments as for `choose`."""
    stated = stated_assertions(suite, source, assumed(suite, datasets), on)
    return (*selectables(suite, stated, contract), *unenforced_selectables(contract))


def selectables(
    suite: nodes.Suite, stated: Sequence[PlannedAssertion], contract: EnforcedContract | None = None
) -> tuple[Selectable, ...]:
    """The selectable properties of the assertions of a suite, in its order."""
    clauses = {clause.assertion: clause for clause in contract.clauses} if contract else {}
    assertions = (assertion for check in suite.checks for assertion in check.assertions)
    return tuple(
        _selectable(assertion, node, clauses.get(assertion.name))
        for assertion, node in zip(stated, assertions, strict=True)
    )


def unenforced_selectables(contract: EnforcedContract | None) -> tuple[Selectable, ...]:
    """The selectable properties of clauses that cannot be enforced."""
    return tuple(map(_of_unenforced, contract.unenforced)) if contract else ()


def selected_clauses(contract: EnforcedContract, selection: Selection | None) -> EnforcedContract:
    """The contract with only those unenforceable clauses that a selection matches."""
    if selection is None:
        return contract
    clauses = contract.unenforced
    kept = (clause for clause in clauses if is_selected(_of_unenforced(clause), selection))
    return replace(contract, unenforced=tuple(kept))


def is_selected(selectable: Selectable, selection: Selection) -> bool:
    """True if it matches all criteria."""
    return (
        (not selection.only or any(_is_named(selectable, word) for word in selection.only))
        and (not selection.tags or any(_has_tag(selectable, word) for word in selection.tags))
        and not any(_has_tag(selectable, word) for word in selection.exclude_tags)
        and (selection.severity is None or selectable.severity.at_least(selection.severity))
        and (not selection.dimensions or selectable.dimension in selection.dimensions)
    )


def unmatched(known: Collection[Selectable], selection: Selection) -> Iterator[Unmatched]:
    """The words of a selection that match no assertion, regardless of its other criteria."""
    for word in selection.only:
        if not any(_is_named(selectable, word) for selectable in known):
            every = (name for selectable in known for name in selectable.names)
            names = dict.fromkeys(name for name in every if "::" not in name)
            problem = f"no assertion or check is named '{word}'"
            yield Unmatched("only", word, problem, did_you_mean(word, tuple(names)))
    every_tag = {tag for selectable in known for tag in selectable.tags}
    tags = sorted(tag for tag in every_tag if not tag.startswith(_DIMENSION))
    for criterion in ("tags", "exclude_tags"):
        for word in getattr(selection, criterion):
            if not any(_has_tag(selectable, word) for selectable in known):
                hint = did_you_mean(word, tags) or "no assertion has a tag"
                yield Unmatched(criterion, word, f"no assertion has the tag '{word}'", hint)
    dimensions = sorted({selectable.dimension for selectable in known if selectable.dimension})
    for word in selection.dimensions:
        if word not in dimensions:
            hint = did_you_mean(word, dimensions) or "no assertion has a dimension"
            problem = f"no assertion has the dimension '{word}'"
            yield Unmatched("dimensions", word, problem, hint)


def without_unmatched(known: Collection[Selectable], selection: Selection) -> Selection | None:
    """The selection without the words that match nothing here, as they may match elsewhere; None if
    that empties a criterion."""
    missed = {(miss.criterion, miss.word) for miss in unmatched(known, selection)}

    criteria = ("only", "tags", "exclude_tags", "dimensions")
    words = {criterion: getattr(selection, criterion) for criterion in criteria}
    kept: dict[str, Any] = {
        criterion: tuple(word for word in of_criterion if (criterion, word) not in missed)
        for criterion, of_criterion in words.items()
    }
    narrowed = replace(selection, **kept)
    if any(words[name] and not kept[name] for name in criteria if name != "exclude_tags"):
        return None
    return narrowed if any(is_selected(selectable, narrowed) for selectable in known) else None


def require_known(known: Collection[Selectable], selection: Selection) -> None:
    """:raises RequestError: the selection names something that does not exist."""
    unknown = tuple(unmatched(known, selection))
    if unknown:
        hints = dict.fromkeys(miss.hint for miss in unknown if miss.hint)
        raise RequestError("; ".join(miss.problem for miss in unknown), "; ".join(hints))


def nothing_selected(known: Collection[Selectable], selection: Selection) -> RequestError:
    """The error for a selection that leaves nothing, with the existing names."""
    counts = dict.fromkeys(Severity, 0)
    for selectable in known:
        counts[selectable.severity] += 1
    graded = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    return RequestError(
        f"no assertion is selected: {selection}",
        f"an assertion has to meet all criteria; there are {graded or 'no assertions'}",
    )


def assumed(suite: nodes.Suite, datasets: Sequence[DatasetRef]) -> tuple[DatasetRef, ...]:
    """The datasets, with a placeholder for each unknown one that the suite uses; it has dates if it
    is the dataset of a check."""
    known = {dataset.name for dataset in datasets}
    dated = {name.text for check in suite.checks for name in check.datasets}
    missing = (
        DatasetRef(name, path=name, date_column="date" if name in dated else None)
        for name in datasets_of(suite.checks)
        if name not in known
    )
    return (*datasets, *missing)


def _selectable(
    planned: PlannedAssertion, node: nodes.Assertion, clause: EnforcedClause | None
) -> Selectable:
    tags = (*planned.tags, *(clause.tags if clause else ()))
    named = (tag.removeprefix(_DIMENSION) for tag in planned.tags if tag.startswith(_DIMENSION))
    dimension = clause.dimension if clause else next(named, None)
    return Selectable(
        planned.name,
        planned.check,
        planned.severity,
        frozenset(map(str.lower, tags)),
        (clause.path,) if clause else (),
        _ids(clause) if clause else (),
        dimension.lower() if dimension else None,
        planned.is_protected,
    )


def _of_unenforced(clause: UnenforcedClause) -> Selectable:
    return Selectable(
        clause.assertion,
        clause.dataset,
        clause.severity,
        frozenset(map(str.lower, clause.tags)),
        (clause.path,),
        _ids(clause),
        clause.dimension.lower() if clause.dimension else None,
        clause.severity is Severity.P0 and clause.let_by is None,
    )


def _ids(clause: EnforcedClause) -> tuple[str, ...]:
    return ((clause.id,) if clause.id else ()) + clause.element_ids


def _is_named(selectable: Selectable, word: str) -> bool:
    if word in selectable.names:
        return True
    if any(path.startswith(word) and path[len(word)] in ".[" for path in selectable.paths):
        return True
    if "*" not in word and "?" not in word:
        return False
    pattern = re.escape(word).replace(r"\*", ".*").replace(r"\?", ".")
    return any(re.fullmatch(pattern, name, re.DOTALL) for name in selectable.names)


def _has_tag(selectable: Selectable, word: str) -> bool:
    """True if a tag matches as written in a contract, or as in a suite: `team:sales`,
    `team-sales`."""
    written = word.lower()
    return (
        written in selectable.tags
        or _OTHER_CHARACTERS.sub("-", written).strip("-") in selectable.tags
    )


def _read_by(kept: Iterable[PlannedAssertion]) -> Iterator[str]:
    """The datasets that assertions read."""
    for assertion in kept:
        yield from assertion.datasets
        for request in assertion.requests:
            yield from request.datasets
            yield from (lookup.reference for lookup in lookups_of(request))


def left_of(suite: nodes.Suite, chosen: Iterable[bool]) -> nodes.Suite:
    """The suite with the selected assertions, in its order."""
    is_kept = iter(chosen)
    checks = (
        replace(check, body=tuple(assertion for assertion in check.assertions if next(is_kept)))
        for check in suite.checks
    )
    return replace(suite, checks=tuple(check for check in checks if check.assertions))


def shadow_suite(
    source: SourceFile | Unreadable, read: Reader, datasets: Sequence[DatasetRef], name: str
) -> ShadowSuite:
    """A shadow for a request, with its imports; an error in it becomes its `problem`.

    :param datasets: the datasets of the gate: a shadow must not use others.
    :param name: its name in results.
    """
    if isinstance(source, Unreadable):
        return ShadowSuite(name, problem=source.reason)
    checked = check_source(source, read, needs_suite=True)
    problem = _problem(checked, datasets)
    if problem is not None:
        return ShadowSuite(name, problem=problem)
    return ShadowSuite(name, source, checked.imports)


def shadow_plan(
    request: GateRequest, columns: Mapping[str, Iterable[Watched]] = _NO_COLUMNS
) -> tuple[Plan | None, str | None]:
    """The plan of the shadow of a request, or the reason why it has none; neither without a
    shadow."""
    shadow = request.shadow
    if shadow is None:
        return None, None
    if shadow.suite is None:
        return None, shadow.problem or "it has no suite"
    try:
        checked = check_source(shadow.suite, inlined(shadow.imports), needs_suite=True)
        problem = _problem(checked, request.datasets, request.fail_on)
        if problem is not None:
            return None, problem
        # The shadow of a gate with a selection uses the same selection.
        shadowed = replace(request, suite=shadow.suite, contract=None)
        return plan_of(shadowed, checked, columns), None
    except Exception as error:  # whatever it is, the gate goes on without its shadow
        return None, _on_one_line(error)


def shadow_report(
    request: GateRequest, planned: tuple[Plan | None, str | None], scanned: Scanned, now: datetime
) -> ShadowReport | None:
    """The verdicts of the shadow of a request; None if there is no shadow.

    :param planned: the result of `shadow_plan`.
    """
    shadow = request.shadow
    plan, problem = planned
    if shadow is None:
        return None
    if plan is None:
        return ShadowReport(shadow.name, problem=problem)
    try:
        verdicts = evaluate(plan, scanned, request.skip_dates, now=now)
        requires = request.require_history or plan.require_history
        outcome = decide(verdicts, request.fail_on, require_history=requires)
    except Exception as error:  # as above
        return ShadowReport(shadow.name, problem=_on_one_line(error))
    return ShadowReport(shadow.name, plan.suite, outcome, verdicts)


def _problem(
    checked: Checked, datasets: Sequence[DatasetRef], fail_on: Severity = Severity.P1
) -> str | None:
    """The first of the errors in one line; None if there are none."""
    errors = list(checked.errors)
    if checked.suite is not None and not errors:
        errors = list(check_datasets(checked.suite, datasets, fail_on))
    if not errors:
        return None if checked.suite is not None else "it has no suite"
    first = errors[0]
    count = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
    return f"{count} in {first.span.file}:{first.span.line}: {first.message}"


def _on_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
