"""Suites written in Python, read from the source in a test case."""

from __future__ import annotations

import linecache
from datetime import date
from textwrap import indent
from typing import Any

from dqx_airflow import MemoryDatabase, VerificationSuite
from dqx_airflow.api.verification import PythonCheck

TODAY, YESTERDAY = date(2024, 11, 29), date(2024, 11, 28)

ORDERS = [
    {"id": 1, "email": "ada@x.org", "price": 10.0, "status": "new", "country": "CH", "ds": TODAY},
    {"id": 2, "email": None, "price": 30.0, "status": "paid", "country": "DE", "ds": TODAY},
    {"id": 2, "email": "grace@x.org", "price": None, "status": "paid", "country": "X", "ds": TODAY},
    {"id": 4, "email": "alan@x.org", "price": 5.0, "status": "odd", "country": "CH", "ds": TODAY},
    {
        "id": 5,
        "email": "kurt@x.org",
        "price": 8.0,
        "status": "new",
        "country": "CH",
        "ds": YESTERDAY,
    },
]
RETURNS = [{"id": 2, "ds": TODAY}]
COUNTRIES = [{"code": "CH"}, {"code": "DE"}]

FILE = "checks.py"
_OPENING = """\
from datetime import date, timedelta
from dqx_airflow.api import *
"""
_ONE_CHECK = """\
@check(name="C", datasets=["orders"])
def checked(mp, ctx):
"""


def memory() -> MemoryDatabase:
    tables = {"orders": ORDERS, "returns": RETURNS, "countries": COUNTRIES}
    return MemoryDatabase(tables, date_columns={"orders": "ds", "returns": "ds"})


def python_suite(text: str, db: Any = None) -> VerificationSuite:
    """The suite of a module, or of the body of one check function.

    A module may end in a call of `suite(...)`; without it, the suite holds all of its checks.
    """
    if "@check" not in text:
        text = _ONE_CHECK + indent(text, "    ")
    text = _OPENING + text
    # This is how Python finds the lines of code that has no file.
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    names: dict[str, Any] = {"__name__": "checks", "db": memory() if db is None else db}
    exec(compile(text, FILE, "exec"), names)
    if "suite" in names:
        suite: VerificationSuite = names["suite"]
        return suite
    checks = [item for item in names.values() if isinstance(item, PythonCheck)]
    return VerificationSuite(checks=checks, db=names["db"], name="S")
