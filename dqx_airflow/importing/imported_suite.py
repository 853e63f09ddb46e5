"""Builds a suite from the rules of a tool, and reports the result for every rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dqx_airflow.contracts.compile import claims, rule_context, sql_forms, suite
from dqx_airflow.contracts.demands import AmongRows, Demand, QueryGives, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.rule_names import slug, unique_name
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model, Rule
from dqx_airflow.dql import nodes
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_where
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.values import SourceFile

_FILE = "suite.dql"
_LONGEST_ORIGIN = 88


class ImportOutcome(str, Enum):
    """The result for a rule."""

    TRANSLATED = "translated"
    DIFFERENT = "translated with a difference"
    NOT_TRANSLATED = "not translated"


@dataclass(frozen=True, slots=True)
class ImportedRule:
    """A rule and its assertions, by name, with the datasets that they read.

    `reason` describes how its verdicts differ, or why it has no assertion.
    """

    rule: foreign_rule.ForeignRule
    outcome: ImportOutcome
    assertions: tuple[tuple[str, str], ...] = ()
    datasets: tuple[str, ...] = ()
    reason: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its assertions."""
        return tuple(name for name, _ in self.assertions)


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """The suite as text, formatted, and the result for each rule, in order.

    `dql check` finds no error in it. Without any translated rule it has no check.
    """

    text: str
    rules: tuple[ImportedRule, ...]


def suite_of(name: str, origin: str, rules: Sequence[foreign_rule.ForeignRule]) -> ImportedSuite:
    """The suite of the rules.

    :param name: of the suite.
    :param origin: the origin to mention in the first comment.
    """
    drafts = [_drafted(rule) for rule in rules]
    while True:
        named = _named(drafts)
        source, wrong = _written(name, origin, named)
        if not wrong:
            break
        for number, reason in wrong.items():
            drafts[number] = _RuleDraft(drafts[number].rule, (), reason)
    return ImportedSuite(format_source(source), tuple(named))


@dataclass(frozen=True, slots=True)
class _RuleDraft:
    """A rule with its claims, or the reason why it has none."""

    rule: foreign_rule.ForeignRule
    compiled: tuple[claims.CompiledClaim, ...]
    reason: str = ""
    kind: str = ""
    column: str | None = None


def _drafted(rule: foreign_rule.ForeignRule) -> _RuleDraft:
    meaning = rule.meaning
    try:
        match meaning:
            case str():
                return _RuleDraft(rule, (), meaning)
            case foreign_rule.Claims():
                filter_text = show_where(_sayable_filter(rule))
                texts = (f"{text}{filter_text}" for text in meaning.texts)
                compiled = tuple(claims.CompiledClaim(text, meaning.others) for text in texts)
                kind, column = meaning.kind, meaning.column
            case Translation():
                demands = (_among(rule, meaning, demand) for demand in meaning.demands)
                compiled = tuple(_compiled(rule.dataset, meaning, demand) for demand in demands)
                kind, column = meaning.name or meaning.kind, meaning.column
    except NoCounterpartError as error:
        return _RuleDraft(rule, (), str(error))
    if rule.groups:
        groups = foreign_rule.groups_text(rule.groups)
        compiled = tuple(
            claims.CompiledClaim(f"{claim.text}{groups}", claim.others) for claim in compiled
        )
    return _RuleDraft(rule, compiled, rule.difference or "", rule.name or kind, column)


def _sayable_filter(rule: foreign_rule.ForeignRule) -> nodes.Expression | None:
    """The filter of a rule as a predicate of DQL; None if it has none.

    :raises NoCounterpartError: DQL cannot express it.
    """
    where = _predicate_of_filter(rule)
    if isinstance(where, sql_forms.RowSql):
        raise NoCounterpartError("its filter is more than a predicate of DQL")
    return where


def _among(rule: foreign_rule.ForeignRule, translation: Translation, demand: Demand) -> Demand:
    """A demand on the rows that the filter of the rule selects.

    If DQL has no syntax for the filter, a demand on each row exempts the rows outside the filter,
    and the filter becomes part of a query.

    :raises NoCounterpartError: DQL cannot express it.
    """
    where = _predicate_of_filter(rule)
    if where is None or rule.where is None:
        return demand
    match demand:
        case RowsSatisfy(predicate, dialect, share) if share == translation.share == 1:
            claim = _meaning(rule, predicate, dialect)
            if isinstance(where, sql_forms.RowSql) or isinstance(claim, sql_forms.RowSql):
                return replace(
                    demand, predicate=f"coalesce(NOT ({rule.where}), true) OR ({predicate})"
                )
        case QueryGives(query=query):
            chosen = " ".join(("(SELECT * FROM {model} WHERE", rule.where, ")"))
            return replace(demand, query=query.replace("{model}", chosen))
    _sayable_filter(rule)
    return AmongRows(demand, rule.where)


def _meaning(
    rule: foreign_rule.ForeignRule, predicate: str, sql_dialect: str | None = None
) -> nodes.Expression | sql_forms.RowSql | sql_forms.TableSql | sql_forms.Query:
    """:raises NoCounterpartError: the SQL is not a condition over a row."""
    from dqx_airflow.contracts.compile.sql_rules import row_rule  # imports sqlglot

    return row_rule(predicate, sql_dialect, sql_forms.SqlScope(rule.dataset))


def _predicate_of_filter(
    rule: foreign_rule.ForeignRule,
) -> nodes.Expression | sql_forms.RowSql | None:
    """:raises NoCounterpartError: the filter is not a condition over a row."""
    if rule.where is None:
        return None
    if (variable := foreign_rule.VARIABLE.search(rule.where)) is not None:
        raise NoCounterpartError(f"its filter has the variable {variable[0]}: write its value")
    translated = _meaning(rule, rule.where)
    if isinstance(translated, sql_forms.TableSql | sql_forms.Query):
        raise NoCounterpartError("its filter is not a condition on a single row")
    return translated


def _compiled(dataset: str, translation: Translation, demand: Demand) -> claims.CompiledClaim:
    """:raises NoCounterpartError: there is no claim for the demand."""
    model = Model(dataset, nodes.NOWHERE)
    contract = Contract(Dialect.DCS, None, dataset, None, nodes.NOWHERE, models=(model,))
    column = translation.column
    name = column.strip("`") if column else ""
    way = (Field(name, column, None, nodes.NOWHERE),) if column else ()
    rule = Rule(translation.kind, demand, (), share=translation.share)
    claim = demand.claim(rule_context.RuleContext(contract, model, way, rule))
    if not isinstance(claim, claims.CompiledClaim):
        raise NoCounterpartError("the type of the column is unknown")
    return claim


def _named(drafts: Sequence[_RuleDraft]) -> list[ImportedRule]:
    """Gives the assertions of rules names that are unique in each dataset."""
    taken: dict[str, set[str]] = {}
    named = []
    for draft in drafts:
        assertions = []
        for claim in draft.compiled:
            of_dataset = taken.setdefault(draft.rule.dataset, set())
            assertions.append((unique_name(_base_name(draft), of_dataset), claim.text))
        outcome = ImportOutcome.DIFFERENT if draft.rule.difference else ImportOutcome.TRANSLATED
        outcome = outcome if draft.compiled else ImportOutcome.NOT_TRANSLATED
        other_datasets = (other for claim in draft.compiled for other in claim.others)
        datasets = tuple(dict.fromkeys((draft.rule.dataset, *other_datasets)))
        named.append(ImportedRule(draft.rule, outcome, tuple(assertions), datasets, draft.reason))
    return named


def _base_name(draft: _RuleDraft) -> str:
    if draft.rule.name:
        return " ".join(draft.rule.name.split())
    column = slug((draft.column or "").replace("`", ""))
    return ".".join(filter(None, (column, slug(draft.kind) or "rule")))


# The text ----------------------------------------------------------------------------------------


def _written(
    name: str, origin: str, rules: Sequence[ImportedRule]
) -> tuple[SourceFile, dict[int, str]]:
    """The suite, and the errors of the language, by the number of the rule at fault."""
    summary = ", ".join(f"{count} {outcome.value}" for outcome, count in outcome_counts(rules))
    opening = f"{suite.shortened(origin, _LONGEST_ORIGIN)}: {summary or 'no rules'}."
    numbers = [number for number, imported in enumerate(rules) for _ in imported.assertions]
    assertions = [assertion for imported in rules for assertion in _assertions(imported)]
    untranslated = [rule for rule in rules if rule.outcome is ImportOutcome.NOT_TRANSLATED]
    closing = ["Not translated:"] if untranslated else []
    for imported in untranslated:
        place = f"{imported.rule.place}: {imported.rule.shown}"
        closing.append(f"  {suite.shortened(place, _LONGEST_ORIGIN)}")
        closing.append(f"    {suite.shortened(imported.reason, _LONGEST_ORIGIN)}")
    source, _, wrong = suite.written_suite(_FILE, name, opening, assertions, closing)
    reasons = {numbers[place]: f"in DQL: {message}" for place, message in reversed(wrong.items())}
    return source, reasons


def _assertions(imported: ImportedRule) -> Iterator[suite.SuiteAssertion]:
    """The assertions of a rule; the rule is a comment above the first one."""
    comments = [suite.shortened(imported.rule.shown, _LONGEST_ORIGIN)]
    if imported.reason:
        comments.append(f"Differs: {suite.shortened(imported.reason, _LONGEST_ORIGIN)}")
    for name, claim in imported.assertions:
        severity = imported.rule.severity
        yield suite.SuiteAssertion(name, claim, imported.datasets, tuple(comments), severity)
        comments = []


def outcome_counts(rules: Sequence[ImportedRule]) -> Iterator[tuple[ImportOutcome, int]]:
    """The number of rules with each outcome, without zeros."""
    for outcome in ImportOutcome:
        count = sum(rule.outcome is outcome for rule in rules)
        if count:
            yield outcome, count
