"""Random rules in the SQL of a database, from what the translator accepts, and a table to ask."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import chain, repeat

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dqx_airflow.contracts.compile.sql_table import Row, table
from dqx_airflow.contracts.model import Field
from dqx_airflow.values import Span

COLUMNS = {
    "id": "int",
    "i": "int",
    "j": "int",
    "b": "bigint",
    "d": "decimal(10,2)",
    "e": "decimal(6,3)",
    "f": "double",
    "s": "string",
    "u": "string",
    "day": "date",
    "day2": "date",
    "ts": "timestamp",
    "ts2": "timestamp",
    "ok": "boolean",
    "r": "float",
    "r2": "float",
    "words": "array<string>",
    "xi": "int",
    "xs": "string",
    "xs2": "string",
    "xday": "date",
    "xok": "boolean",
}
UNTYPED = {"xi": "i", "xs": "s", "xs2": "u", "xday": "day", "xok": "ok"}
"""Columns whose type the contract does not say, and those whose values they have."""
_TEXTS = (
    "",
    "a",
    "A",
    "a ",
    " a",
    "ab",
    "Ab",
    "é",
    "É",
    "b\tc",
    "10",
    "a%b",
    "a_b",
    "Zz",
    "日本",
    "a.b",
    "\u00a0a\u3000",
)
_DAYS = (
    *("2023-12-31", "2024-01-01", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-31"),
    *("2024-04-30", "2024-06-30", "2024-07-01", "2024-12-29", "2024-12-30", "2024-12-31"),
    *("2025-01-01", "2025-01-05", "2025-01-06", "1999-12-31", "2000-02-29"),
)
_TIMES = (
    *("00:00:00", "00:00:01", "23:59:59", "12:00:00", "01:59:00", "02:01:00"),
    *("23:00:00", "01:00:00", "00:00:00.000001", "23:59:59.999999", "12:30:30.5"),
)
_NUMBERS = {
    "i": (0, 1, -1, 2, 3, -3, 7, -7, 10, 100, 2_000_000, -2_000_000),
    "b": (0, 1, -1, 5, 2**31, -(2**31), 2**53 + 1, -(2**53) - 1, 9_007_199_254_740_992),
    "d": ("0.00", "0.50", "1.50", "2.50", "-0.50", "-1.50", "-2.50", "0.01", "99999999.99", "3.10"),
    "e": ("0.000", "0.005", "0.015", "-0.005", "1.250", "-1.250", "999.999", "0.125", "2.000"),
    "f": (0.0, -0.0, 0.1, 0.5, 1.5, 2.5, -0.5, -1.5, 1e10, 1e-10, 3.0, -7.25),
    "r": (0.0, 0.5, 1.5, 2.0, 10.0, 100.0, -2.5),
}


def rows() -> list[tuple[object, ...]]:
    """The rows of the table `t`, the same in each run: edge cases, ties, blanks, NULL."""
    chance = random.Random(7)

    def one(of: tuple[object, ...]) -> object:
        return None if chance.random() < 0.12 else chance.choice(of)

    def stamp() -> object:
        return None if chance.random() < 0.12 else f"{chance.choice(_DAYS)} {chance.choice(_TIMES)}"

    found: list[tuple[object, ...]] = [
        (
            number,
            *(one(_NUMBERS[name]) for name in ("i", "i", "b", "d", "e", "f")),
            *(one(_TEXTS) for _ in range(2)),
            *(one(_DAYS) for _ in range(2)),
            *(stamp() for _ in range(2)),
            one((True, False)),
            *(one(_NUMBERS["r"]) for _ in range(2)),
            one((("a", "b"), ("A",), (), ("a ", None))),
        )
        for number in range(48)
    ]
    places = [list(COLUMNS).index(column) for column in UNTYPED.values()]
    return [(*row, *(row[place] for place in places)) for row in found]


def fields() -> tuple[Field, ...]:
    nowhere = Span("", 1, 1, 1, 1)
    return tuple(
        Field(name, name, None if name in UNTYPED else type_, nowhere)
        for name, type_ in COLUMNS.items()
    )


def first_rows(sql_dialect: str) -> list[Row]:
    """The rows of the table for a dialect; of several with the same shape only the first."""
    found: list[Row] = []
    for of_class in table(sql_dialect).values():
        for number, row in enumerate(of_class):
            if all(row.pattern != earlier.pattern for earlier in of_class[:number]):
                found.append(row)
    return found


def rules(sql_dialect: str, seed: object) -> Iterator[str]:
    """Queries without end: some of each row of the table, then any."""
    maker = _Maker(sql_dialect, random.Random(f"{sql_dialect} {seed}"))
    first = (lambda row=row: maker.rule_of(row) for row in maker.rows for _ in range(5))
    for made in chain(first, repeat(maker.rule)):
        try:
            yield made()
        except (RecursionError, SqlglotError):
            continue


_KINDS = {
    "int": ("int",),
    "small": ("int",),
    "big": ("bigint",),
    "decimal": ("decimal",),
    "float": ("float", "decimal"),
    "double": ("float",),
    "sized": ("int", "bigint", "decimal"),
    "exact": ("int", "bigint", "decimal"),
    "number": ("int", "bigint", "decimal", "float"),
    "text": ("text",),
    "column": ("text",),
    "time": ("date", "stamp", "midnight"),
    "real": ("real",),
    "list": ("list",),
    "unknown": ("unknown",),
    "date": ("date",),
    "stamp": ("stamp",),
    "bool": ("bool",),
    "interval": ("interval",),
    "padded": ("padded",),
    "bytes": ("bytes",),
    **dict.fromkeys(
        ("value", "key", "ordered"), ("int", "bigint", "decimal", "float", "text", "date", "stamp")
    ),
}
_LEAVES = {
    "int": ("i", "j", "id"),
    "bigint": ("b",),
    "decimal": ("d", "e"),
    "float": ("f",),
    "text": ("s", "u"),
    "date": ("day", "day2"),
    "stamp": ("ts", "ts2"),
    "bool": ("ok",),
    "real": ("r", "r2"),
    "list": ("words",),
    "unknown": tuple(UNTYPED),
}
_HOLE = r"\b_[a-z]+\d?\b"
_RESULTS = {"bigint": "int", "number": "decimal", "numeric": "decimal", "whole": "int"}


class _Maker:
    def __init__(self, sql_dialect: str, chance: random.Random) -> None:
        self.sql_dialect, self.chance = sql_dialect, chance
        self.makers: dict[str, list[Row]] = {}
        self.totals: list[Row] = []
        self.windows: list[Row] = []
        self.now: list[Row] = []
        self.rows = first_rows(sql_dialect)
        for row in self.rows:
            match row.pattern:
                case exp.RowNumber() | exp.Rank() | exp.DenseRank() | exp.Lag() | exp.Lead():
                    self.windows.append(row)
                case exp.AggFunc() | exp.WithinGroup():
                    self.totals.append(row)
                case _ if not re.search(_HOLE, row.written):
                    self.now.append(row)
                case _:
                    self.makers.setdefault(self._result(row), []).append(row)

    def _result(self, row: Row) -> str:
        if row.result.startswith("_"):
            return _KINDS[row.result.strip("_0123456789")][0]
        if row.result in ("wide", "same", "added", "product", "quotient"):
            return "decimal" if row.pattern.find(exp.Column).name.strip("_2") != "int" else "int"
        return _RESULTS.get(row.result, row.result)

    def rule_of(self, row: Row) -> str:
        """A rule with a row of the table in it."""
        if row in self.windows:
            return self.numbered(row)

        def operand(hole: str) -> str:
            if hole == "exact" and "_digits" in row.written:
                return "CEIL(d)"  # a number of unknown size
            is_one_of = hole == "value" and row.result in ("wide", "same")
            return self.of("int" if is_one_of else self.kind(hole), 1)

        if row.result == "quotient":  # of totals, since MySQL computes nothing with it exactly
            made = self.filled(row, lambda hole: f"MAX({operand(hole)})")
            return f"SELECT {made} FROM t"
        made = self.filled(row, operand)
        if row in self.totals and row.result == "interval":
            return f"SELECT CASE WHEN {made} > INTERVAL '1' DAY THEN 1 ELSE 0 END FROM t"
        if row in self.totals:
            return f"SELECT {made} FROM t"
        if row in self.now:
            return f"SELECT COUNT(CASE WHEN {self.of('stamp', 0)} < {made} THEN 1 END) FROM t"
        match self._result(row):
            case "bool":
                return f"SELECT COUNT(CASE WHEN {self.other(made)} THEN 1 END) FROM t"
            case "int" | "decimal" | "float":
                some = f"id {self.chance.choice(('<', '>'))} {self.chance.randrange(48)}"
                return f"SELECT SUM(CASE WHEN {some} THEN {made} END) FROM t"
            case "text" | "date" | "stamp" as kind if self.sql_dialect != "mysql" or kind != "text":
                return f"SELECT COUNT(DISTINCT {made}) FROM t"
            case "interval":
                return (
                    f"SELECT COUNT(CASE WHEN {made} < {self.of('interval', 0)} THEN 1 END) FROM t"
                )
            case "bytes" | "padded" | "text":
                return (
                    f"SELECT COUNT(CASE WHEN ({made}) = {self.literal('text')} THEN 1 END) FROM t"
                )
        return f"SELECT COUNT(CASE WHEN {made} < {self.of('stamp', 0)} THEN 1 END) FROM t"

    def other(self, made: str) -> str:
        """A comparison, or another one of the same row."""
        for sign, others in ((" = ", ("<>",)), (" < ", ("<=", ">", ">="))):
            if made.count(sign) == 1 and self.chance.random() < 0.5:
                return made.replace(sign, f" {self.chance.choice(others)} ")
        return made

    def numbered(self, row: Row) -> str:
        """A window function over all rows."""
        function = self.filled(row, lambda _hole: self.of("int", 0))
        key, order = self.of(self.chance.choice(("int", "date")), 0), self.chance.choice("ibd")
        ties = "" if isinstance(row.pattern, exp.Rank | exp.DenseRank) else ", id"
        window = (
            f"OVER (PARTITION BY {key} ORDER BY {order}{self.chance.choice(('', ' DESC'))}{ties})"
        )
        value = "SUM(n * id)" if row.result == "bigint" else "COUNT(DISTINCT n)"
        return f"SELECT {value} FROM (SELECT id, {function} {window} AS n FROM t) v"

    def rule(self) -> str:
        shape = self.chance.random()
        if shape < 0.3:
            return f"SELECT COUNT(CASE WHEN {self.of('bool', 3)} THEN 1 END) FROM t"
        if shape < 0.4:
            return f"SELECT COUNT(*) FROM t WHERE {self.of('bool', 2)}"
        if shape < 0.6:
            kind = self.chance.choice(("int", "bigint", "decimal", "float"))
            some = f"id {self.chance.choice(('=', '<', '>'))} {self.chance.randrange(48)}"
            total = self.chance.choice(("SUM", "MIN", "MAX"))
            return f"SELECT {total}(CASE WHEN {some} THEN {self.of(kind, 3)} END) FROM t"
        if shape < 0.7:
            kind = self.chance.choice(("text", "date", "stamp", "int", "decimal"))
            return f"SELECT COUNT(DISTINCT {self.of(kind, 3)}) FROM t"
        if shape < 0.73:
            return self.numbered(self.chance.choice(self.windows))
        return self.query() if shape < 0.85 else f"SELECT {self.total(2)} FROM t"

    def query(self) -> str:
        """A query with groups, a window, a join or another query in it."""
        choose = self.chance.choice
        key, order = (
            self.of(choose(("int", "text", "date")), 1),
            choose(("i", "b", "d", "day", "ts")),
        )
        where, way = self.of("bool", 1), choose(("", " DESC"))
        window = f"OVER (PARTITION BY {key} ORDER BY {order}{way}, id)"
        groups, row = f"GROUP BY {key} HAVING COUNT(*) > 1", f"ROW_NUMBER() {window}"
        own, other = choose((("s", "u"), ("i", "j"), ("day", "day2"), ("b", "i"), ("d", "e")))
        return choose(
            (
                f"SELECT COUNT(*) FROM (SELECT {key} AS k FROM t {groups}) v",
                f"SELECT SUM(n * id) FROM (SELECT id, {row} AS n FROM t WHERE {where}) v",
                f"SELECT SUM(n * id) FROM (SELECT id, i - LAG(i) {window} AS n FROM t) v",
                f"SELECT SUM(n * id) FROM (SELECT id, COUNT({own}) {window} AS n FROM t) v",
                f"SELECT COUNT(*) FROM t LEFT JOIN t o ON t.{own} = o.{other} WHERE o.id IS NULL",
                f"SELECT COUNT(*) FROM t JOIN t AS o ON t.{own} < o.{other}",
                f"SELECT COUNT(*) FROM t WHERE {own} IN (SELECT {other} FROM t WHERE {where})",
                f"SELECT COUNT(*) FROM t WHERE {own} NOT IN (SELECT {other} FROM t WHERE id < 9)",
                "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS o "
                f"WHERE o.{own} = t.{other} AND o.id <> t.id)",
                f"SELECT COUNT(*) FROM t WHERE i > (SELECT {self.total(0)} FROM t)",
                f"SELECT COUNT(*) FROM (SELECT {key} AS k FROM t UNION SELECT {key} FROM t) v",
                f"WITH a AS (SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1) "
                "SELECT MAX(n) FROM a",
                f"SELECT id FROM t ORDER BY {order}{way}, id LIMIT 1",
            )
        )

    def total(self, depth: int) -> str:
        if depth and self.chance.random() < 0.35:
            arithmetic = [
                row
                for kind in ("int", "decimal", "float")
                for row in self.makers.get(kind, ())
                if isinstance(row.pattern, exp.Add | exp.Sub | exp.Mul | exp.Div)
            ]
            return self.filled(
                self.chance.choice(arithmetic), lambda _hole: f"({self.total(depth - 1)})"
            )
        return self.filled(
            self.chance.choice(self.totals), lambda hole: self.of(self.kind(hole), 2)
        )

    def kind(self, hole: str) -> str:
        kinds = [kind for kind in _KINDS[hole] if kind in self.makers or kind in _LEAVES]
        if hole == "float" and self.sql_dialect != "sqlite":
            kinds = ["float"]
        if not kinds:
            raise RecursionError
        return self.chance.choice(kinds)

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        makers = self.makers.get(kind, [])
        leaves = _LEAVES.get(kind, ())
        if not leaves and not makers:
            raise RecursionError
        if leaves and (not makers or depth <= 0 or self.chance.random() < 0.25):
            is_column = kind in ("real", "list", "unknown") or self.chance.random() < 0.8
            return self.chance.choice(leaves) if is_column else self.literal(kind)
        if depth < -3:
            raise RecursionError
        if kind == "bool" and self.chance.random() < 0.3:
            return self.condition(depth - 1)
        if kind in ("stamp", "interval") and self.chance.random() < 0.2:
            return self.moved(kind)
        if kind == "decimal" and self.sql_dialect != "sqlite" and self.chance.random() < 0.1:
            size = self.chance.choice(("12,1", "14,2", "20"))
            return f"CAST({self.of('decimal', depth - 1)} AS DECIMAL({size}))"
        if self.chance.random() < 0.08 and depth > 0:
            test, other = self.of("bool", depth - 1), self.of(kind, depth - 1)
            return f"CASE WHEN {test} THEN {self.of(kind, depth - 1)} ELSE {other} END"
        made = self.filled(
            self.chance.choice(makers), lambda hole: self.of(self.kind(hole), depth - 1)
        )
        return f"({self.other(made) if kind == 'bool' else made})"

    def moved(self, kind: str) -> str:
        """A timestamp before or after another one, or an interval."""
        units = ("SECOND", "MINUTE", "HOUR", "DAY", *(("MONTH", "YEAR") if kind == "stamp" else ()))
        if kind == "stamp" and self.sql_dialect == "mysql" and self.chance.random() < 0.5:
            unit, way = (
                self.chance.choice((*units, "WEEK", "QUARTER")),
                self.chance.choice(("ADD", "SUB")),
            )
            return f"DATE_{way}(ts, INTERVAL {self.chance.choice(('j', 'id', '3', '-2'))} {unit})"
        length = f"INTERVAL '{self.chance.randrange(40)}' {self.chance.choice(units)}"
        base = self.chance.choice(("ts", "ts2", "day"))
        return f"({base} {self.chance.choice('+-')} {length})" if kind == "stamp" else length

    def condition(self, depth: int) -> str:
        shape = self.chance.randrange(7)
        if shape == 6 and self.now:
            now = self.filled(self.chance.choice(self.now), str)
            return f"({self.of('stamp', 0)} < {now})"
        if shape < 2:
            word = ("AND", "OR")[shape]
            return f"({self.of('bool', depth)} {word} {self.of('bool', depth)})"
        if shape == 2:
            return f"(NOT {self.of('bool', depth)})"
        kind = self.chance.choice(("int", "decimal", "text", "date", "bigint"))
        value = self.of(kind, depth)
        if shape == 3:
            return f"({value} IN ({', '.join(self.literal(kind) for _ in range(3))}))"
        if shape == 4:
            return f"({value} BETWEEN {self.literal(kind)} AND {self.literal(kind)})"
        return f"({value} IS NULL)"

    def literal(self, kind: str) -> str:
        choose = self.chance.choice
        match kind:
            case "int" | "bigint":
                return f"({choose(_NUMBERS['i'])})"
            case "decimal" | "float":
                return f"({choose((*_NUMBERS['d'], *_NUMBERS['e']))})"
            case "text":
                return _quoted(choose(_TEXTS))
            case "date":
                return f"CAST('{choose(_DAYS)}' AS DATE)"
            case "stamp":
                if self.sql_dialect == "mysql":
                    return f"CAST('{choose(_DAYS)} {choose(_TIMES[:8])}' AS DATETIME)"
                return f"CAST('{choose(_DAYS)} {choose(_TIMES)}' AS TIMESTAMP)"
        return choose(("ok", "(i > 0)"))

    def filled(self, row: Row, fill: Callable[[str], str]) -> str:
        """The expression of a row with its holes filled; `_x` twice is the same twice."""
        known: dict[str, str] = {}

        def one(match: re.Match[str]) -> str:
            if match[0] not in known:
                hole = match[0].strip("_0123456789")
                text = self.special(hole)
                known[match[0]] = fill(hole) if text is None else text
            return known[match[0]]

        text = re.sub(_HOLE, one, row.written)
        if self.sql_dialect == "mysql":
            text = text.replace(" as bigint)", " as signed)")
        return text

    def special(self, hole: str) -> str | None:
        choose = self.chance.choice
        choices: dict[str, tuple[object, ...]] = {
            "count": (0, 1, 2, 3),
            "from": (1, 2, 3),
            "digits": (2, 10, 100),
            "nonzero": (2, 3, 10),
            "literal": ("0.5", "1.5", "2", "-3"),
            "share": ("0", "0.1", "0.25", "0.5", "0.9", "1"),
            "word": tuple(map(_quoted, _TEXTS[1:])),
            "pattern": ("'a%'", "'%b'", "'_'", "'%'", "''", "'A_'", "'%.%'", "'a b%'"),
            "prefix": ("'a%'", "'%'"),
            "bytewise": ("'a%'", "'%b'", "'%'", "''", "'%.%'", "'a b%'"),
            "regex": (
                "'^a'",
                "'^[a-z]+$'",
                "'b'",
                "'^[A-Z][a-z]?$'",
                "'a|é'",
                "'^.'",
                "'[0-9]{2}'",
            ),
            "daytext": tuple(f"'{day}'" for day in _DAYS),
            "clock": tuple(f"'{day} 01:02:03'" for day in _DAYS),
            "timetext": tuple(f"'{day} 12:00:00'" for day in _DAYS),
        }
        return str(choose(choices[hole])) if hole in choices else None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
