"""Random queries over a few tables, in all forms in which Spark reads a table by its name: in FROM
and as `TABLE name`, in pipes, beside and inside of WITH with names that hide tables, in subqueries.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

TABLES = ("north", "east", "south", "west")
"""Each has the columns `x` and `y`, and `z`, an array."""

_Names = frozenset[str]


class RandomQueries:
    """Writes queries from a seed; the same seed writes the same. `names` are those of the WITH
    around a query."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def query(self, depth: int, names: _Names = frozenset()) -> str:
        """A query of one column, `x`."""
        if depth <= 0:
            return f"SELECT x FROM {self._name(names)}"
        below = depth - 1
        return self._one(
            lambda: self._with(below, names),
            lambda: self._set(below, names),
            lambda: f"FROM {self._relation(below, names)} SELECT x",
            lambda: f"TABLE {self._name(names)}",
            lambda: f"FROM {self._relation(below, names)} |> {self._pipe(below, names)}",
            lambda: f"({self.query(below, names)})",
            lambda: f"{self.query(below, names)} ORDER BY {self._value(below, names)}",
            *[lambda: self._select(below, names)] * 6,
        )

    def _one(self, *makers: Callable[[], str]) -> str:
        return self._random.choice(makers)()

    def _pick(self, *words: str) -> str:
        return self._random.choice(words)

    def _name(self, names: _Names) -> str:
        """A table, or more often a name of a WITH, as it may be written."""
        name = self._pick(*TABLES, *sorted(names) * 2)
        return self._pick(name, name, name.upper(), f"`{name}`")

    def _with(self, depth: int, names: _Names) -> str:
        is_recursive = self._random.random() < 0.1
        parts = []
        for _ in range(self._random.randint(1, 2)):
            name = self._pick(*TABLES, "first", "second")
            inside = names | {name} if is_recursive else names
            columns = self._pick("", "", "(x)")
            parts.append(f"{name}{columns} AS ({self.query(depth, inside)})")
            names |= {name}
        recursive = "RECURSIVE " if is_recursive else ""
        return f"WITH {recursive}{', '.join(parts)} {self.query(depth, names)}"

    def _set(self, depth: int, names: _Names) -> str:
        operator = self._pick("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "MINUS")
        right = self._one(
            lambda: self.query(depth, names),
            lambda: f"TABLE {self._name(names)}",
            lambda: f"(TABLE {self._name(names)})",
        )
        return f"{self.query(depth, names)} {operator} {right}"

    def _select(self, depth: int, names: _Names) -> str:
        value = self._one(
            lambda: "x", lambda: f"{self._value(depth, names)} AS x", lambda: "max(x) AS x"
        )
        hint = self._pick("", "", "", f"/*+ BROADCAST({self._name(names)}) */ ")
        where = f" WHERE {self._condition(depth, names)}" if self._random.random() < 0.5 else ""
        order = f" ORDER BY {self._value(depth, names)}" if self._random.random() < 0.1 else ""
        return f"SELECT {hint}{value} FROM {self._relation(depth, names)}{where}{order}"

    def _pipe(self, depth: int, names: _Names) -> str:
        part = self._value(depth, names)
        return self._one(
            lambda: f"WHERE {self._condition(depth, names)}",
            lambda: "SELECT x",
            lambda: f"UNION ALL {self.query(depth, names)}",
            lambda: f"UNION ALL TABLE {self._name(names)}",
            lambda: f"JOIN {self._relation(depth, names)} USING (x) |> SELECT x",
            lambda: f"EXTEND {self._value(depth, names)} AS q |> SELECT x",
            lambda: "AGGREGATE max(x) AS x",
            lambda: f"ORDER BY {self._value(depth, names)} |> SELECT x",
            lambda: f"SELECT max(x) OVER w AS x WINDOW w AS (PARTITION BY {part})",
        )

    def _relation(self, depth: int, names: _Names) -> str:
        name = self._name(names)
        if depth <= 0:
            return name
        below = depth - 1
        alias = self._pick("", "", " AS k", " k")
        return self._one(
            *[lambda: name] * 4,
            lambda: f"({name})",
            lambda: f"({self.query(below, names)}){alias}",
            lambda: f"({self.query(below, names)}) AS k(x)",
            lambda: f"{self._relation(below, names)} NATURAL JOIN {self._relation(below, names)}",
            lambda: f"{self._relation(below, names)}, LATERAL ({self.query(below, names)}) AS l",
            lambda: f"({self._relation(below, names)} CROSS JOIN {self._relation(below, names)})",
            lambda: f"{name} LATERAL VIEW explode(z) e AS element",
            lambda: f"{name} TABLESAMPLE (100 PERCENT)",
            lambda: f"{name} PIVOT (max(y) FOR x IN (1 AS x))",
            lambda: f"(TABLE {name})",
            lambda: f"(FROM {name})",
            lambda: "(VALUES (1)) AS written(x)",
            lambda: f"stack(1, {self._value(below, names)}) AS made(x)",
            lambda: f"explode(array({self._value(below, names)})) AS made(x)",
            lambda: f"explode(TABLE({name})) AS made(x)",
        )

    def _value(self, depth: int, names: _Names) -> str:
        if depth <= 0:
            return "x"
        below = depth - 1
        return self._one(
            lambda: "x",
            lambda: f"(SELECT max(x) FROM {self._relation(below, names)})",
            lambda: f"(TABLE {self._name(names)})",
            lambda: f"(FROM {self._name(names)} SELECT max(x))",
            lambda: f"({self.query(below, names)})",
            lambda: f"CASE WHEN {self._condition(below, names)} THEN 1 ELSE 0 END",
            lambda: f"if({self._condition(below, names)}, 1, 0)",
            lambda: f"coalesce({self._value(below, names)}, 1)",
            lambda: f"abs((TABLE {self._name(names)}))",
            lambda: f"array((TABLE {self._name(names)}))[0]",
        )

    def _condition(self, depth: int, names: _Names) -> str:
        if depth <= 0:
            return "x > 0"
        below = depth - 1
        negated = self._pick("", "NOT ")
        return self._one(
            lambda: "x > 0",
            lambda: f"x IN ({self.query(below, names)})",
            lambda: f"x {negated}IN (TABLE {self._name(names)})",
            lambda: f"(x, y) IN (TABLE {self._name(names)})",
            lambda: f"x = (TABLE {self._name(names)})",
            lambda: f"{negated}EXISTS ({self.query(below, names)})",
            lambda: f"{negated}EXISTS (TABLE {self._name(names)})",
            lambda: f"{negated}EXISTS (FROM {self._name(names)})",
            lambda: f"{self._value(below, names)} > 0",
            lambda: f"x BETWEEN {self._value(below, names)} AND 9",
        )
