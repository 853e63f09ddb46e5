"""Random SQL over the columns of `sql_beside_spark.TYPES`: aggregates, and queries of one value.

Forms are combined that were compared with Spark one by one: conditions within aggregates and their
filters, aggregates in arithmetic, derived tables, joins, groups. What Sail refuses is left out by
the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_COLUMNS = {
    "whole": ("i", "n", "b"),
    "decimal": ("d", "e"),
    "double": ("x", "y", "f"),
    "text": ("s", "g"),
    "date": ("dd", "dt"),
    "timestamp": ("ts",),
    "truth": ("ok",),
}
_LITERALS = {
    "whole": ("0", "1", "-1", "7", "25", "100"),
    "decimal": ("0.5", "1.01", "2.50", "-2.5", "100"),
    "double": ("0.0D", "0.5D", "2.5D", "-1.25D"),
    "text": ("'a'", "'ab'", "''", "'Zürich'", "'1'", "'a '"),
    "date": ("DATE '2024-02-29'", "DATE '2024-01-01'", "current_date()"),
    "timestamp": ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-02-29 12:30:00'"),
    "truth": ("true", "false"),
}
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "'a_b'")


class RandomSql:
    """Writes SQL from a seed; the same seed writes the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def text(self) -> str:
        """An aggregate over the table `t`, or a query of one value."""
        return self._one(self._computed, self._computed, self._query)

    def condition(self, depth: int = 2) -> str:
        """A condition over a row."""
        if depth <= 0:
            return self._one(self._comparison, self._null_test, lambda: self._column("truth"))
        return self._one(
            *(self._comparison, self._comparison, self._null_test, self._member, self._like),
            lambda: f"NOT ({self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)} AND {self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})",
            lambda: f"coalesce({self.condition(depth - 1)}, {self._pick('true', 'false')})",
            lambda: (
                f"CASE WHEN {self.condition(depth - 1)} THEN {self.condition(0)} "
                f"ELSE {self.condition(0)} END"
            ),
        )

    def _one(self, *makers: Callable[[], str]) -> str:
        return self._random.choice(makers)()

    def _pick(self, *words: str) -> str:
        return self._random.choice(words)

    def _kind(self) -> str:
        return self._random.choice([*_COLUMNS])

    def _column(self, kind: str) -> str:
        return self._random.choice(_COLUMNS[kind])

    def _value(self, kind: str, depth: int = 2) -> str:
        """A value of a row."""
        if depth <= 0 or self._random.random() < 0.4:
            return self._column(kind)
        makers: list[Callable[[], str]] = [
            lambda: self._random.choice(_LITERALS[kind]),
            lambda: f"coalesce({self._value(kind, depth - 1)}, {self._value(kind, depth - 1)})",
            lambda: f"nullif({self._value(kind, depth - 1)}, {self._value(kind, 0)})",
            lambda: (
                f"CASE WHEN {self.condition(depth - 1)} THEN {self._value(kind, depth - 1)} "
                f"{self._pick('', f'ELSE {self._value(kind, 0)} ')}END"
            ),
            lambda: (
                f"if({self.condition(depth - 1)}, {self._value(kind, 0)}, {self._value(kind, 0)})"
            ),
        ]
        if kind == "whole":
            makers += [
                lambda: f"length({self._value('text', depth - 1)})",
                lambda: f"{self._pick('year', 'month', 'day')}({self._value('date', depth - 1)})",
                lambda: f"abs({self._value('whole', depth - 1)})",
                lambda: f"({self._value('whole', depth - 1)} % {self._pick('3', '25')})",
            ]
        if kind in ("decimal", "double"):
            makers.append(
                lambda: (
                    f"({self._value(kind, depth - 1)} {self._pick('+', '-', '*', '/')} "
                    f"{self._value(self._pick(kind, 'whole'), depth - 1)})"
                )
            )
        if kind == "double":
            makers.append(lambda: f"CAST({self._value('whole', depth - 1)} AS DOUBLE)")
        if kind == "text":
            makers += [
                lambda: f"{self._pick('lower', 'upper', 'trim')}({self._value(kind, depth - 1)})",
                lambda: f"concat({self._value(kind, depth - 1)}, {self._value(kind, 0)})",
                lambda: f"{self._pick('left', 'right')}({self._value(kind, depth - 1)}, 2)",
            ]
        if kind == "date":
            makers += [
                lambda: f"CAST({self._value('timestamp', depth - 1)} AS DATE)",
                lambda: f"date_add({self._value(kind, depth - 1)}, {self._pick('1', '-30')})",
            ]
        return self._random.choice(makers)()

    def _comparison(self) -> str:
        kind = self._kind()
        op = self._random.choice(_COMPARED)
        other = self._value(self._pick("whole", "decimal") if kind == "whole" else kind, 1)
        return f"{self._value(kind, 1)} {op} {other}"

    def _null_test(self) -> str:
        return f"{self._value(self._kind(), 1)} IS {self._pick('', 'NOT ')}NULL"

    def _member(self) -> str:
        kind = self._kind()
        choices = ", ".join(self._value(kind, 1) for _ in range(self._random.randint(1, 3)))
        word = self._pick("IN", "NOT IN")
        between = f"{self._value(kind, 0)} AND {self._value(kind, 0)}"
        return self._pick(
            f"{self._value(kind, 1)} {word} ({choices})",
            f"{self._value(kind, 1)} {self._pick('', 'NOT ')}BETWEEN {between}",
        )

    def _like(self) -> str:
        operand = self._value("text", 1)
        return self._pick(
            f"{operand} {self._pick('', 'NOT ')}LIKE {self._random.choice(_PATTERNS)}",
            f"{operand} RLIKE '^[a-z]+$'",
            f"startswith({operand}, 'a')",
            f"contains({operand}, 'b')",
        )

    def _aggregate(self) -> str:
        kind = self._kind()
        number = self._pick("whole", "decimal", "double")
        of_numbers = self._pick("sum", "avg", "min", "max", "stddev", "variance", "var_pop")
        aggregate = self._pick(
            "count(*)",
            f"count({self._value(kind)})",
            f"count(DISTINCT {self._value(kind)})",
            f"count(DISTINCT {self._column(kind)}, {self._column(number)})",
            f"count(DISTINCT struct({self._column(kind)} AS a, {self._value('text')} AS b))",
            f"count_if({self.condition()})",
            f"count_if({self.condition()})",
            f"{of_numbers}({self._value(number)})",
            f"{of_numbers}({self._column(number)})",
            f"{self._pick('min', 'max')}({self._value(kind)})",
            f"sum(CASE WHEN {self.condition()} THEN 1 ELSE 0 END)",
            f"percentile({self._column(number)}, {self._pick('0.5', '0.9')})",
        )
        if self._random.random() < 0.25:
            return f"{aggregate} FILTER (WHERE {self.condition()})"
        return aggregate

    def _computed(self) -> str:
        """An aggregate, or arithmetic of several."""
        first, second = self._aggregate(), self._aggregate()
        counted = f"count_if({self.condition()})"
        return self._pick(
            *(first, first, first),
            f"{counted} {self._pick('+', '-', '/')} count(*)",
            f"100 * {counted} / nullif(count(*), 0)",
            f"coalesce({counted} / nullif({counted}, 0), 0)",
            f"CAST({counted} AS DOUBLE) / count(*)",
            f"CASE WHEN {counted} > {self._pick('0', '3')} THEN {first} END",
            f"{first} {self._pick('+', '-', '/')} {second}",
        )

    def _query(self) -> str:
        keys = ", ".join(dict.fromkeys(self._column(self._kind()) for _ in range(2)))
        where = self._pick("", f" WHERE {self.condition()}")
        having = self._pick("", f" HAVING count(*) > {self._pick('1', '2')}")
        join = self._pick("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        kind = self._pick("whole", "text", "date")
        on = f"a.{self._column(kind)} = b.{self._column(kind)}"
        return self._pick(
            f"SELECT {self._computed()} FROM t{where}",
            f"SELECT count(*) FROM (SELECT {keys} FROM t{where} GROUP BY {keys}{having})",
            f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM t{where})",
            f"SELECT max(c) FROM (SELECT {keys}, {self._aggregate()} AS c FROM t GROUP BY {keys})",
            f"WITH some AS (SELECT * FROM t{where}) SELECT {self._computed()} FROM some",
            f"SELECT count(*) FROM t AS a {join} t AS b ON {on}",
            f"SELECT count(*) FROM t WHERE {self._column(kind)} {self._pick('IN', 'NOT IN')} "
            f"(SELECT {self._column(kind)} FROM t{where})",
            f"SELECT count(*) FROM t AS a WHERE {self._pick('', 'NOT ')}EXISTS "
            f"(SELECT 1 FROM t AS b WHERE {on})",
            f"SELECT count(*) FROM t WHERE {self._column('whole')} > "
            f"(SELECT {self._aggregate()} FROM t{where})",
        )
