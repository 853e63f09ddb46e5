"""Databases that answer queries about the table of `random_sql`, each by its own means."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import duckdb

from tests.contracts.random_sql import COLUMNS, rows
from tests.mariadb_server import mariadb
from tests.postgres_server import Postgres, postgres

Answer: TypeAlias = "Decimal | str | None"
"""A number, NULL, or `error: ` and why there is none."""
Ask: TypeAlias = Callable[[Sequence[str]], list[Answer]]

_TYPES = {
    "duckdb": {"string": "VARCHAR", "array<string>": "VARCHAR[]"},
    "postgres": {
        **{"string": "TEXT", "double": "DOUBLE PRECISION", "float": "REAL"},
        "array<string>": "TEXT[]",
    },
    "mysql": {"string": "VARCHAR(20)", "timestamp": "DATETIME(6)", "array<string>": "TEXT"},
    "sqlite": {"string": "TEXT", "double": "REAL", "float": "REAL", "array<string>": "TEXT"},
}
_MARK = "-- answer --"


def statements(sql_dialect: str) -> list[str]:
    """CREATE TABLE and INSERT."""
    types = _TYPES[sql_dialect]
    columns = ", ".join(f"{name} {types.get(type_, type_)}" for name, type_ in COLUMNS.items())
    made = f"CREATE TABLE t ({columns})"
    if sql_dialect == "mysql":
        made += " CHARACTER SET utf8mb4"
    types_of = list(COLUMNS.values())
    values = ", ".join(f"({', '.join(map(_literal, row, types_of))})" for row in rows())
    if sql_dialect == "duckdb":
        values = values.replace("'{", "'[").replace("}'", "]'")
    return [made, f"INSERT INTO t VALUES {values}"]


def _literal(value: object, type_: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        return "'{" + ",".join("NULL" if one is None else f'"{one}"' for one in value) + "}'"
    if type_ in ("double", "float"):
        return repr(value)
    if type_ in ("string", "date", "timestamp"):
        return "'" + str(value).replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else str(value)


def number(value: Any) -> Answer:
    """A value of a database as a number; a truth value is 1 or 0."""
    if value is None or value in ("NULL", "\\N"):
        return None
    words = {"t": "1", "f": "0", "true": "1", "false": "0"}
    text = str(value).lower()
    try:
        return Decimal(words.get(text, text))
    except InvalidOperation:
        return f"error: no number: {value}"


@contextmanager
def server(sql_dialect: str) -> Iterator[Ask]:
    """A database with the table, until the end of the block."""
    if sql_dialect == "duckdb":
        connection = duckdb.connect(config={"threads": 1})
        yield from _in_process(connection.execute, duckdb.Error, sql_dialect)
    elif sql_dialect == "sqlite":
        base = sqlite3.connect(":memory:")
        yield from _in_process(base.execute, sqlite3.Error, sql_dialect)
    elif sql_dialect == "postgres":
        with postgres() as found:
            # A database has a collation, and letters beyond ASCII are letters in this one.
            found.run("CREATE DATABASE words ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;")
            yield lambda queries: _of_postgres(found, queries)
    else:
        with mariadb() as other:
            call = [
                "mariadb",
                "--no-defaults",
                "-uroot",
                f"--socket={other.socket}",
                "-N",
                "-B",
                "-f",
            ]
            call.append("--default-character-set=utf8mb4")
            script = ";\n".join(["CREATE DATABASE d", "USE d", *statements("mysql")])
            subprocess.run(call, input=script + ";", text=True, check=True, timeout=60)
            yield lambda queries: _of_script([*call, "d"], "SELECT '{}';", queries)


def _in_process(
    execute: Callable[[str], Any], failure: type[Exception], sql_dialect: str
) -> Iterator[Ask]:
    for statement in statements(sql_dialect):
        execute(statement)

    def ask(queries: Sequence[str]) -> list[Answer]:
        return [one(query) for query in queries]

    def one(query: str) -> Answer:
        try:
            return number(execute(query).fetchone()[0])
        except failure as error:
            return f"error: {error}"

    yield ask


def _of_postgres(found: Postgres, queries: Sequence[str]) -> list[Answer]:
    address = f"postgresql://postgres:owner-of-the-test@127.0.0.1:{found.port}/words"
    call = [found.program("psql"), "-q", "-A", "-t", "-P", "null=NULL", address]
    made = [f"{statement};" for statement in statements("postgres")]
    script = ["SET client_min_messages = error;", "DROP TABLE IF EXISTS t;", *made]
    return _of_script(call, "\\echo {}", queries, "\n".join(script))


def _of_script(
    call: list[str], echo: str, queries: Sequence[str], before: str = ""
) -> list[Answer]:
    """The output of a database client for each query, in order."""
    lines = [before]
    for query in queries:
        lines += [echo.format(_MARK), f"{query};"]
    done = subprocess.run(
        call,
        input="\n".join([*lines, echo.format(_MARK)]),
        text=True,
        check=False,
        timeout=600,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    parts = [part.strip("\n") for part in done.stdout.split(_MARK + "\n")[1:-1]]
    assert len(parts) == len(queries), done.stdout[-500:]
    return [
        f"error: {part}" if "ERROR" in part or not part else number(part.strip()) for part in parts
    ]
