"""Demands in SQL: on rows, on the result of a query, and on some of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dqx_airflow.contracts import demand as base
from dqx_airflow.contracts.compile import (
    claims,
    expectations,
    rule_context,
    spark_predicates,
    sql_forms,
    sql_meanings,
    terms,
)
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show_where
from dqx_airflow.errors import NoCounterpartError


class RowsSatisfy(
    base.Demand, is_quality=True, subject_fields=("predicate", "sql_dialect", "share")
):
    """Each row, or at least `share` of them, satisfies a predicate in the SQL dialect of a
    server."""

    predicate: str
    sql_dialect: str | None = None
    share: float = 1.0

    @property
    def text(self) -> str:
        return base.one_line(self.predicate) + base.share_of_rows(self.share)

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        return base.all_of(self._predicate_order(new), base.rising(self.share, new.share))

    def _predicate_order(self, new: RowsSatisfy) -> base.Order:
        from dqx_airflow.contracts.compile import sql_comparison  # imports sqlglot

        if _is_same_sql(self.predicate, self.sql_dialect, new.predicate, new.sql_dialect):
            return base.Order.SAME
        before = sql_comparison.comparison_in(self.predicate, self.sql_dialect)
        after = sql_comparison.comparison_in(new.predicate, new.sql_dialect)
        if before is None or after is None or before.left != after.left:
            return base.Order.OTHER
        limit = base.Condition(before.op, before.number)
        return limit.order(base.Condition(after.op, after.number))

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        share = min(self.share, context.rule.share)
        rule = sql_meanings.row_meaning(context, self.predicate, self.sql_dialect)
        match rule:
            case sql_forms.RowSql(sql=predicate):
                return claims.satisfied(predicate, share)
            case sql_forms.TableSql(sql=predicate):
                return claims.CompiledClaim(f"{claims.sql(f'CAST({predicate} AS INT)')} == 1")
            case sql_forms.Query(sql=text, datasets=datasets):
                if share < 1:
                    raise NoCounterpartError(
                        "a share of rows cannot be combined with other datasets or window functions"
                    )
                return claims.compared(claims.query(text), base.NONE, others=datasets)
            case _:
                return claims.each_row(rule, share)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return expectations.rows_where(f"NOT ({self.predicate})", self.share)


class QueryGives(
    base.Demand,
    words="{query} returns {condition}",
    is_quality=True,
    subject_fields=("query", "condition", "sql_dialect"),
):
    """A query returns a number that satisfies a condition. `{model}` and `{field}` are filled
    in."""

    query: str
    condition: base.Condition
    sql_dialect: str | None = None

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if not _is_same_sql(self.query, self.sql_dialect, new.query, new.sql_dialect):
            return base.Order.OTHER
        return self.condition.order(new.condition)

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        rule = sql_meanings.query_meaning(context, self.query, self.sql_dialect)
        match rule:
            case sql_forms.Query(sql=text, datasets=datasets):
                return claims.compared(claims.query(text), self.condition, others=datasets)
            case sql_forms.TableSql(sql=text):
                return claims.compared(claims.sql(text), self.condition)
        if self.condition == base.NONE:
            return claims.each_row(terms.negation(rule))
        counted = claims.sql(f"count_if({spark_predicates.spark_text(rule)})")
        return claims.compared(counted, self.condition)


class AmongRows(base.Demand, words="{demand} where {where}", is_quality=True):
    """A demand on the rows for which an SQL predicate is true; others are exempt."""

    demand: base.Demand
    where: str
    sql_dialect: str | None = None

    @property
    def dimension(self) -> str | None:  # type: ignore[override]
        return self.demand.dimension

    @property
    def named_columns(self) -> tuple[str, ...]:
        return self.demand.named_columns

    @property
    def subject(self) -> tuple[Any, ...]:
        return (type(self), self.where, *self.demand.subject)

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if not _is_same_sql(self.where, self.sql_dialect, new.where, new.sql_dialect):
            return base.Order.OTHER
        return base.compare_demands(self.demand, new.demand, is_whole=is_whole)

    def claim(
        self, context: rule_context.RuleContext
    ) -> claims.CompiledClaim | claims.EnforcedByType:
        where = sql_meanings.row_meaning(context, self.where, self.sql_dialect)
        if isinstance(self.demand, QueryGives) and not isinstance(
            where, sql_forms.TableSql | sql_forms.Query
        ):
            query = self._filtered_query(context, self.demand, where)
            if query is not None:
                return query.claim(context)
        if isinstance(where, sql_forms.RowSql | sql_forms.TableSql | sql_forms.Query):
            raise NoCounterpartError(f"DQL cannot express the filter: {self.where}")
        rule = replace(context.rule, demand=self.demand)
        claim = self.demand.claim(replace(context, rule=rule, is_filtered=True))
        if isinstance(claim, claims.EnforcedByType):
            message = "a column has the same type in all rows, so a filter has no effect"
            raise NoCounterpartError(message)
        return replace(claim, text=claim.text + show_where(where))

    def _filtered_query(
        self,
        context: rule_context.RuleContext,
        demand: QueryGives,
        where: nodes.Expression | sql_forms.RowSql,
    ) -> QueryGives | None:
        """A demand on a query of Spark, whose model has only the chosen rows; None if the demand
        is no query, or one of another database."""
        meaning = sql_meanings.query_meaning(context, demand.query, demand.sql_dialect)
        if not isinstance(meaning, sql_forms.Query) or demand.sql_dialect not in (None, "spark"):
            return None
        if isinstance(where, sql_forms.RowSql):
            condition = where.sql
        else:
            condition = spark_predicates.spark_text(where)
        chosen = " ".join(("(SELECT * FROM {model} WHERE", condition, ")"))
        return replace(demand, query=demand.query.replace("{model}", chosen))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if self.sql_dialect not in (None, "spark", "databricks"):
            raise NoCounterpartError(base.NO_EXPECTATION)
        expectation = place.of(self.demand)
        if "unexpected_rows_query" in expectation.kwargs:
            raise NoCounterpartError(base.NO_EXPECTATION)
        where = {"row_condition": self.where, "condition_parser": "spark"}
        return replace(expectation, kwargs={**expectation.kwargs, **where})


def _is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    from dqx_airflow.contracts.compile.sql_comparison import is_same_sql  # imports sqlglot

    return is_same_sql(old, old_dialect, new, new_dialect)
