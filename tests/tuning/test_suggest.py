"""A suggested suite has its evidence, is formatted, and passes on its data."""

from __future__ import annotations

import json
import random
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.cli.calls import Options, read_call
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.tuning.column_tables import read_files
from dqx_airflow.values import SourceFile, Status
from tests.command_line import dql

FIRST = date(2024, 3, 1)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_has_the_rows_that_spark_reads(tmp_path: Path, kind: str) -> None:
    for place in ("part-0", "archive", "archive/day=1", "_tmp", "day=1/_tmp"):
        folder = tmp_path if place == "part-0" else tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "csv":
            (folder / "part-0.csv").write_text("id\n1\n2\n")
        else:
            pq.write_table(pa.table({"id": [1, 2]}), folder / "part-0.parquet")
    assert read_files(str(tmp_path), kind, lambda table: table.rows) == 2


def orders(days: int = 30, *, newest: datetime | None = None) -> list[dict[str, Any]]:
    """Orders of some days, with fewer of them on Sundays."""
    chance, rows = random.Random(3), []
    for number in range(days):
        on = FIRST + timedelta(days=number)
        for _ in range(10 if on.weekday() == 6 else chance.randint(20, 24)):
            rows.append(
                {
                    "id": len(rows),
                    "code": f"M{len(rows):05d}",
                    "status": chance.choice(["open", 'paid "cash"', "\\"]),
                    "amount": round(chance.gauss(50, 20), 2),
                    "qty": chance.randint(-1, 9),
                    "note": f"n{chance.random()}" if chance.random() > 0.1 else None,
                    "odd name": 1 if on.day > 3 else None,
                    "email": f"user{len(rows)}@example.org",
                    "void": None,
                    "ds": on,
                    "updated_at": newest
                    or datetime(on.year, on.month, on.day, tzinfo=timezone.utc),
                }
            )
    return rows


def written(rows: list[dict[str, Any]], path: Path) -> str:
    table = pa.Table.from_pylist(rows)
    void = pa.array([None] * len(rows), pa.string())
    pq.write_table(table.set_column(table.column_names.index("void"), "void", void), path)
    return str(path)


def suggest(*arguments: str, code: int = 0) -> str:
    done = dql("suggest", *arguments)
    assert done.returncode == code, done.output
    return done.output


def verdicts(text: str, rows: list[dict[str, Any]], on: date, **db: Any) -> dict[str, Status]:
    report = Suite.from_string(text).run(MemoryDatabase({"orders": rows}, **db), on).report
    return {one.name: one.status for one in report.verdicts}


@pytest.mark.slow
@pytest.mark.parametrize("column", ["?date_column=ds", "?date_column=updated_at", ""])
def test_the_observed_data_passes_the_draft(tmp_path: Path, column: str) -> None:
    rows = orders()
    text = suggest("--dataset", f"orders={written(rows, tmp_path / 'o.parquet')}{column}")
    checked = check_source(SourceFile("o.dql", text), needs_suite=True)
    assert not checked.diagnostics
    assert format_source(SourceFile("o.dql", text)) == text
    assert text.count("@experimental\n") == text.count("assert ")
    days = {"date_columns": {"orders": column.partition("=")[2]}} if column else {}
    for number in range(30 if column else 1):
        found = verdicts(text, rows, FIRST + timedelta(days=number), **days)
        assert len(found) > 15
        fixed = {name: status for name, status in found.items() if not name.endswith(".level")}
        assert set(fixed.values()) == {Status.PASSED}, found
        levels = {found[name] for name in found.keys() - fixed.keys()}
        assert levels == {Status.SKIPPED} or number >= 14 or not column, found


def drafted(folder: Path, days: list[list[dict[str, Any]]]) -> str:
    """The draft from the rows of the days from FIRST on."""
    rows = [
        {"ds": FIRST + timedelta(days=number), "void": None, **row}
        for number, day in enumerate(days)
        for row in day
    ]
    return suggest("--dataset", f"orders={written(rows, folder / 'o.parquet')}?date_column=ds")


def limits_of(text: str) -> dict[str, float]:
    return {name: float(limit) for name, limit in re.findall(r"const (\w+) = (-?[0-9.]+)", text)}


def test_limits_have_a_margin_from_the_spread_of_the_extremes_of_days(tmp_path: Path) -> None:
    chance = random.Random(5)
    prices = [[chance.uniform(10, 20) for _ in range(chance.randint(90, 110))] for _ in range(30)]
    tails = [[chance.lognormvariate(0, 1) for _ in day] for day in prices]
    days = [
        [
            {"price": price, "tail": tail, "note": None if chance.random() < 0.02 else "n"}
            for price, tail in zip(*both, strict=True)
        ]
        for both in zip(prices, tails, strict=True)
    ]
    limits = limits_of(drafted(tmp_path, days))
    assert 8 < limits["LEAST_PRICE"] < 9.95 < 20.05 < limits["MOST_PRICE"] < 22
    assert 2 * max(map(max, tails)) < limits["MOST_TAIL"] < 20 * max(map(max, tails))
    assert 50 < limits["LEAST_ROWS"] < 86 < 114 < limits["MOST_ROWS"] < 150
    assert 5 < limits["MAX_NULLS_NOTE"] < 20


@pytest.mark.parametrize("bad", [3, 20])
def test_one_bad_day_sets_no_limit_and_is_named(tmp_path: Path, bad: int) -> None:
    chance = random.Random(5)
    days = [
        [
            {
                "price": chance.uniform(10, 20) + (100 if number == bad else 0),
                "cost": chance.uniform(10, 20) - (100 if number == bad else 0),
                "note": None if row < (25 if number == bad else 2) else "n",
            }
            for row in range(40 if number == bad else 100)
        ]
        for number in range(30)
    ]
    text = drafted(tmp_path, days)
    limits = limits_of(text)
    assert 3 < limits["MAX_NULLS_NOTE"] < 15
    assert 20 < limits["MOST_PRICE"] < 30
    assert 0 < limits["LEAST_COST"] < 10
    assert limits["LEAST_ROWS"] == 95
    named = f"; without {FIRST + timedelta(days=bad)}, which is far from all others\n"
    for name in ("note.nulls", "price.most", "cost.least", "rows.least"):
        evidence = text[: text.index(f'"orders.{name}"')].rpartition("# ")[2]
        assert named in evidence, name
    for name in ("price.least", "cost.most", "rows.most"):
        evidence = text[: text.index(f'"orders.{name}"')].rpartition("# ")[2]
        assert named not in evidence, name


def test_parts_of_the_date_have_no_rule_and_near_keys_are_named(tmp_path: Path) -> None:
    days = [
        [
            {
                "month": (FIRST + timedelta(days=number)).month,
                "day_of_month": (FIRST + timedelta(days=number)).day,
                "order_id": 0 if number == row == 1 else number * 50 + row,
                "code": f"{row}",
            }
            for row in range(50)
        ]
        for number in range(30)
    ]
    text = drafted(tmp_path, days)
    assert "order_id is almost a key: 1 rows repeat or lack it" in text
    assert not re.search(r"(minimum|maximum|average)\((month|day_of_month|order_id)\)", text)


def test_each_measure_has_a_claim_about_its_level_that_the_days_satisfy(tmp_path: Path) -> None:
    chance = random.Random(5)
    days = [
        [
            {"even": chance.gauss(50, 5), "wild": level * chance.uniform(0.9, 1.1), "id": row}
            for row in range(50)
        ]
        for level in [*[3] * 18, *[40] * 12]
    ]
    text = drafted(tmp_path, days)
    assert "assert average(even) within usual(average(even))" in text
    assert "assert average(wild) between LEAST_MEAN_WILD and MOST_MEAN_WILD" in text
    assert re.search(r"# 2.* to 4.* on 30 days, too different for `within usual`\n", text)
    limits = limits_of(text)
    assert limits["LEAST_MEAN_WILD"] < 3 < 40 < limits["MOST_MEAN_WILD"]
    assert text.count('.level"') == 2


def test_measures_that_kept_their_order_on_each_day_are_found_when_they_are_swapped(
    tmp_path: Path,
) -> None:
    """Of values that other days have as well, only the order tells that they are swapped."""
    chance = random.Random(6)
    days = []
    for _ in range(31):
        level, humidity = chance.uniform(30, 70), chance.uniform(40, 60)
        temperatures = [chance.gauss(level, 3) for _ in range(24)]
        days.append(
            [
                {
                    "temp": one,
                    "dewp": one - chance.uniform(5, 9),
                    "humid": chance.gauss(humidity, 9),
                }
                for one in temperatures
            ]
        )
    text = drafted(tmp_path, days[:30])
    assert "assert average(dewp) <= average(temp)" in text
    assert 'name "orders.dewp.below.temp"' in text
    assert text.count("below") == 1
    on = FIRST + timedelta(days=30)
    rows = [{**row, "ds": on} for row in days[30]]
    swapped = [{**row, "temp": row["dewp"], "dewp": row["temp"]} for row in rows]
    columns = {"orders": "ds"}
    assert verdicts(text, rows, on, date_columns=columns)["orders.dewp.below.temp"] is Status.PASSED
    assert (
        verdicts(text, swapped, on, date_columns=columns)["orders.dewp.below.temp"] is Status.FAILED
    )


def test_what_was_never_positive_or_negative_has_no_limit_on_the_other_side(tmp_path: Path) -> None:
    chance = random.Random(4)
    level = [chance.choice([1, 30, 900]) for _ in range(30)]
    days = [
        [{"votes": size * chance.uniform(0.5, 1.5), "owed": -row - 0.1} for row in range(20)]
        for size in level
    ]
    limits = limits_of(drafted(tmp_path, days))
    assert limits["LEAST_MEAN_VOTES"] > 0
    assert limits["MOST_OWED"] <= 0


def test_where_some_days_have_values_of_their_own_others_may_have_new_ones(tmp_path: Path) -> None:
    days = [
        [
            {
                "country": "PW" if number == 7 and not row else "TH" if row == 1 else "US",
                "batch": f"b{number}",
            }
            for row in range(80)
        ]
        for number in range(15)
    ]
    text = drafted(tmp_path, days)
    assert 'assert 98.12% of rows: country in ["PW", "TH", "US"]' in text
    assert "of a day up to 1.25% have one that no other has" in text
    assert "batch in" not in text


def test_numbers_at_the_ends_of_their_types_are_drafted_or_left_out(tmp_path: Path) -> None:
    days = [FIRST + timedelta(days=number) for number in range(20)]
    rows = [
        {
            "ds": on,
            "huge": 1e308 if row else -1e308,
            "whole": 2**63 - 1 if row else -(2**63),
            "exact": Decimal(10) ** 30 + row,
            "odd": float("inf") if row else 1.5,
            "once": 1.5 + row if on == days[3] else None,
            "void": None,
        }
        for on in days
        for row in (0, 1)
    ]
    path = written(rows, tmp_path / "o.parquet")
    text = suggest("--dataset", f"orders={path}?date_column=ds")
    assert not check_source(SourceFile("draft.dql", text)).diagnostics
    assert "HUGE" not in text
    limits = dict(re.findall(r"const (\w+) = (-?[0-9]+)", text))
    assert int(limits["LEAST_WHOLE"]) <= -(2**63) < 2**63 - 1 <= int(limits["MOST_WHOLE"])
    assert int(limits["LEAST_EXACT"]) <= 10**30 < 10**30 + 1 <= int(limits["MOST_EXACT"])


LONG_NUMBERS = {
    "bigints": [0, 2**53 + 1, 2**63 - 1],
    "one bigint": [2**63 - 1],
    "decimals": [Decimal("-9986408240300898111.418796714"), Decimal("1234567890123456789.5")],
    "short decimals": [Decimal("0.1"), Decimal("995.95")],
    "doubles": [0.1, 1e23, 1e300],
}


@pytest.mark.parametrize("kind", LONG_NUMBERS)
def test_numbers_of_many_digits_pass_their_draft(tmp_path: Path, kind: str) -> None:
    rows = [{"void": None, "null": number} for number in LONG_NUMBERS[kind]]
    text = suggest("--dataset", f"orders={written(rows, tmp_path / 'o.parquet')}")
    assert not check_source(SourceFile("draft.dql", text)).diagnostics
    assert set(verdicts(text, rows, FIRST).values()) == {Status.PASSED}


def test_a_column_called_null_is_drafted(tmp_path: Path) -> None:
    rows = [{"void": None, "Null": "open" if number % 2 else "paid"} for number in range(40)]
    text = suggest("--dataset", f"orders={written(rows, tmp_path / 'o.parquet')}")
    assert 'each row: `Null` in ["open", "paid"]' in text
    assert set(verdicts(text, rows, FIRST).values()) == {Status.PASSED}


def test_the_draft_has_the_evidence_and_no_personal_value(tmp_path: Path) -> None:
    path = written(orders(), tmp_path / "o.parquet")
    text = suggest("--dataset", f"orders={path}?date_column=ds")
    for part in (
        "on 30 days from 2024-03-01 to 2024-03-30, by ds",
        'assert each row: status in ["\\\\", "open", "paid \\"cash\\""]',
        'assert each row: code matches "^M[0-9]{5}$"',
        "assert duplicate_count([code]) == 0",
        "null_count(`odd name`) / num_rows() <= MAX_NULLS_ODD_NAME",
        "from weekday(sunday)",
        "10 to 10 rows on 4 Sundays",
        "const LEAST_QTY = -1 tunable [-11, 4]",
        "void is always NULL",
        "the newest updated_at is 2024-03-30",
    ):
        assert part in text
    assert "example.org" not in text
    assert "freshness" not in text


def test_fresh_data_gets_a_freshness_assertion(tmp_path: Path) -> None:
    newest = datetime.now(timezone.utc) - timedelta(hours=5)
    text = suggest("--dataset", f"o={written(orders(newest=newest), tmp_path / 'o.parquet')}")
    assert "const MAX_AGE_UPDATED_AT = 12 hours tunable [1 hour, 336 hours]" in text
    assert "assert freshness(updated_at) < MAX_AGE_UPDATED_AT" in text


def test_only_the_last_days_are_read(tmp_path: Path) -> None:
    rows = orders()
    rows[0]["status"] = "unheard of"
    path = written(rows, tmp_path / "o.parquet")
    assert "unheard of" not in suggest("--dataset", f"orders={path}?date_column=ds", "--days", "20")


def test_reader_options_are_those_of_the_settings_and_of_the_dataset(here: Path) -> None:
    Path("dqx.toml").write_text('[reader.csv]\nsep = ";"\nheader = false\n')
    Path("orders.csv").write_text("".join(f"{number};CH\n" for number in range(30)))
    assert "null_count(_c1) == 0" in suggest("--dataset", "orders=orders.csv")
    own = suggest("--dataset", "orders=orders.csv?option.sep=%7C")
    assert "_c1" not in own


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_draft_reads_doubled_quotes_as_gates_with_that_escape_do(here: Path, quote: str) -> None:
    mark = json.dumps(quote)
    Path("dqx.toml").write_text(f"[reader.csv]\nquote = {mark}\nescape = {mark}\n")
    said = f"say {quote}hi{quote}"
    values = [said, "", "plain", f"{quote}a", f"a,{quote}"]
    doubled = [f"{quote}{value.replace(quote, 2 * quote)}{quote}" for value in values]
    rows = [f"{number},{doubled[number % 5]}\n" for number in range(50)]
    Path("notes.csv").write_text("id,note\n" + "".join(rows))
    options = (("quote", quote), ("escape", quote))
    read = read_files("notes.csv", "csv", lambda table: table.column("note").to_pylist(), options)
    assert read == values * 10
    assert "# 50 rows" in suggest("--dataset", "notes=notes.csv")


@pytest.mark.parametrize("name", ["orders", "other"])
def test_a_draft_has_no_value_that_the_settings_or_the_dataset_mask(here: Path, name: str) -> None:
    written(orders(), here / "o.parquet")
    plain = suggest("--dataset", f"{name}=o.parquet?masked=status")
    assert "M[0-9]{5}" in plain
    assert "LEAST_QTY" in plain
    assert "paid" not in plain
    Path("dqx.toml").write_text('[datasets.orders]\npath = "o.parquet"\nmasked = ["QTY", "code"]\n')
    masked = suggest("--dataset", f"{name}=o.parquet?masked=status")
    assert "null_count(qty)" in masked
    assert not re.search(r"M\[0-9\]|LEAST_QTY|paid", masked)
    contract = dql("contract", "init", "--dataset", "o.parquet").output
    of_qty = contract.partition("name: qty\n")[2].partition("- name")[0]
    assert "required" in of_qty
    assert "minimum" not in of_qty
    assert "M[0-9]" not in contract
    call = read_call(
        Options((_suite_of(here),), datasets=("orders=copy.parquet?masked=id",)), date.today()
    )
    assert call.requests[0].datasets[0].masked == ("id", "QTY", "code")


def _suite_of(folder: Path) -> Path:
    suite = folder / "s.dql"
    suite.write_text('suite "S" { check "C" on orders { assert num_rows() > 0 } }')
    return suite


def test_several_datasets_make_one_suite(tmp_path: Path) -> None:
    one, other = (written(orders(20), tmp_path / f"{name}.parquet") for name in "ab")
    target = tmp_path / "shop.dql"
    output = suggest(
        *("--dataset", f"a={one}?date_column=ds", "--dataset", f"b={other}"),
        *("--name", "Shop", "-o", str(target)),
    )
    assert "--date 2024-03-20" in output
    checked = check_source(SourceFile("s.dql", target.read_text()), needs_suite=True)
    assert not checked.diagnostics
    assert "already exists" in suggest("--dataset", f"a={one}", "-o", str(target), code=2)


@pytest.mark.parametrize(
    ("dataset", "code", "message"),
    [
        ("o={path}?date_column=dss", 2, "o has no column 'dss'"),
        ("o={path}?date_column=note", 4, "no string in note of o is a date like yyyy-MM-dd"),
        ("o={path}?date_column=qty", 4, "is of type int64"),
        ("o={path}?filter=qty>1", 2, "filter cannot be considered"),
        ("o=/nowhere/x.parquet", 4, "/nowhere/x.parquet"),
        ("o={folder}/o.orc", 4, "has the format orc"),
    ],
)
def test_an_unreadable_dataset_is_an_error(
    tmp_path: Path, dataset: str, code: int, message: str
) -> None:
    path = written(orders(3), tmp_path / "o.parquet")
    (tmp_path / "o.orc").write_bytes(b"ORC")
    location = dataset.format(path=path, folder=tmp_path)
    assert message in suggest("--dataset", location, code=code)
