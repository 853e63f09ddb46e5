"""Runs datacontract-cli on contracts with local data, and prints its verdicts as a line of JSON.

Runs in the environment of datacontract-cli, which has DuckDB. Data that a fixture has as SQL is
written as Parquet first, to the location in the contract.

    python benchmarks/peers/judge_contracts.py CASES.json
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
from datacontract.data_contract import DataContract

# The names in DuckDB of types of the databases for which the statements are written.
_SPELLINGS = {
    "[dbo].": "",
    "[my_table]": "my_table",
    "public.": "",
    "DATETIME2": "TIMESTAMP",
    "UNIQUEIDENTIFIER": "VARCHAR",
}


def write_parquet(statements: Path, to: Path) -> None:
    """Writes the rows of the single table that the statements create and fill."""
    text = statements.read_text("utf-8")
    for written, known in _SPELLINGS.items():
        text = text.replace(written, known)
    with duckdb.connect() as connection:
        connection.execute(text)
        ((table,),) = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        connection.execute(f"COPY {table} TO '{to}' (FORMAT parquet)")


def verdict(case: Mapping[str, str]) -> dict[str, str]:
    """The verdict of datacontract-cli, and the first reason if it is not passed."""
    try:
        run = DataContract(data_contract_file=case["contract"]).test()
    except Exception as error:  # a contract that crashes datacontract-cli is a finding
        return {"result": "crashed", "reason": f"{type(error).__name__}: {error}"}
    reasons = [str(it.reason) for it in run.checks if _said(it.result) in ("failed", "error")]
    return {"result": _said(run.result), "reason": reasons[0] if reasons else ""}


def _said(result: Any) -> str:
    return str(getattr(result, "value", result))


def main() -> None:
    logging.disable(logging.ERROR)
    cases = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for case in cases:
        if "statements" in case:
            write_parquet(Path(case["statements"]), Path(case["parquet"]))
    print(json.dumps({case["name"]: verdict(case) for case in cases}))


if __name__ == "__main__":
    main()
