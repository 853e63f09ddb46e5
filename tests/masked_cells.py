"""A table whose masked cells each have a mark, rules of every kind over it, and a search for the
marks in whatever a gate has written or shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from dqx_airflow.values import DatasetRef

TODAY = date(2024, 3, 2)
MARK = re.compile(r"CANARY|471[1-4]0\d\d|4[,.]711|1884\d{4}|1947-11", re.IGNORECASE)
"""A part of every masked value, of sums of all of them, and of nothing else."""

BY_CHANCE = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}"
    r"|(?<=\d\d:\d\d:\d\d)[.,]\d+|\b1[78]\d{11}\b"
)
"""Names of runs and files, digests, and moments, in which the digits of a mark stand by chance."""

_BY_POSITION = ", ".join(f"c{number}" for number in range(14))
AGGREGATES = """
max(tax_id) | max(`Tax_Id`) | max(to_json(struct(*))) | max(to_json(struct(* except (id))))
max(to_json(home)) | max(HOME.street) | max(home['street']) | max(cast(home as string))
array_join(collect_list(tax_id), ',') | to_json(collect_list(struct(*))) | max(tags['CANARYkey'])
max(sha(tax_id)) | count(*) + max(salary) | max(to_json(tags)) | max(hobbies[0]) | sum(salary * 1)
max(concat_ws('', home.*)) | cast(max(seen) as string) | max_by(tax_id, id)
max(struct(tax_id).tax_id) | max(substring(tax_id, 1, 6)) | max(to_json(named_struct('a', home)))
max(cast(tax_id as int)) | max(date(tax_id)) | max(to_csv(struct(*)))
max(cast(struct(*) as string)) | max(_metadata.file_path) | max(to_json(struct(t)))
max(\u017falary)
"""
QUERIES = f"""
select max(tax_id) from t | select max(x.`TAX_ID`) from t x
select max(to_json(struct(*))) from t | select max(c5) from t as s({_BY_POSITION})
select max(c4) from (select * from t) as s({_BY_POSITION})
with s({_BY_POSITION}) as (select * from t) select max(c5) from s
with s({_BY_POSITION}) as (table t) select max(c5) from s
select max(a) from (select 'x' as a union select tax_id from t)
from t |> select tax_id |> aggregate max(tax_id) | from t |> aggregate max(to_json(struct(*)))
select (select max(salary) from t) + 0 | from t select max(tax_id)
select max(u) from t lateral view explode(map_values(tags)) e as u
select max(value) from t unpivot (value for name in (salary))
select max(n) from (select tax_id as n, id from t) where id = 4
select cast(tax_id as int) from t limit 1 | select max(to_json(t)) from t
select to_json(collect_list(struct(t.*))) from t
"""
OPEN = {
    'sql("max(price) + count(*)") == 1': 8,
    'query("select max(id) * count(*) from t") == 1': 16,
    "num_rows(where tax_id is not null) == 1": 4,
    "max_length(tax_id) == 1": 7,
    "psi(tax_id, lag 1) > 99": 0,
    "ks(salary, usual n 1) == 1": 0,
}
"""Rules whose values reveal nothing, and are shown."""


def rules() -> Iterator[str]:
    """Rules of every kind over masked columns; nearly all fail."""
    texts, numbers, times = (
        ("tax_id", "kind", "home.street"),
        ("salary", "pay", "rate"),
        ("born", "seen"),
    )
    for name in (*texts, *numbers, *times):
        yield f"mode({name}) == 1"  # an error for texts: what is compared is of another type
        yield f"mode({name}) is None"
        yield f"first({name}, order_by id) is None"
        yield f"unique_count({name}) == 99"
        yield f"unique({name}) for each {name}"
        yield f"num_rows() > 9 for each ({name}, id)"
        yield f"values({name}) in values({'salary' if name in numbers else 'name'}, dataset r)"
        yield f"each row: {name} is null"
        yield f"90% of rows: {name} is null for each id"
        yield f"entropy({name}) > 99"
        yield f"average(price, where {name} is not null) > 99"
    for name in (*texts, *numbers):
        yield f"psi({name}, lag 1) > 99"
        yield f"js({name}, usual n 1) > 0.99 for each id"
        yield f"any {{ assert psi({name}, lag 1) > 99 assert js({name}, lag 1) > 0.99 }}"
    for name in numbers:
        yield f"ks({name}, lag 1) > 0.99"
        for metric in ("average", "sum", "minimum", "maximum", "median", "variance"):
            yield f"{metric}({name}) == 1"
            yield f"{metric}({name}) == 1 for each id"
            yield f"day_over_day({metric}({name})) > 99"
        yield f"percentile({name}, 0.9) == 1"
        yield f"minimum(price) > maximum({name})"
        yield f"max_z_score({name}) > 99"
        yield f"mean(average({name}), n 2) < 0"
        yield f"sum({name}) / num_rows() < 0"
        yield f"any {{ assert sum({name}) < 0 assert average({name}) < 0 }}"
        yield f"all {{ assert sum({name}) < 0 assert average({name}) < 0 }}"
        yield f"if sum({name}) > 0 then maximum({name}) < 0"
        yield f"coalesce(sum({name}), 0) < 0"
    yield "sum(rate) < 0 for each rate"
    yield "gap_count(salary) == 99"
    yield "gap_count(born) == 99"
    for name in texts:
        yield f'distribution({name}) matches {{"a": 50%, "b": 50%}}'
        yield f'most_common({name}, 2) in ["a"]'
        yield f'each row: {name} in ["a"]'
        yield f'each row: {name} matches "^a$"'
        yield f'minimum({name}) == "a"'
        yield f"repeated_count({name}) == 99"
    for name in times:
        yield f"maximum({name}) > 2000-01-01"
        yield f"each row: {name} > 2000-01-01"
    yield "freshness(seen) < 1 hour"
    yield "rows of t match r on (id)"
    yield "rows of t match r on (id) comparing [tax_id, salary, born]"
    yield "rows of t match r on (tax_id)"
    yield "rows of t match r on (tax_id, salary) comparing [price]"
    for text in (part.strip() for part in re.split(r" \| |\n", AGGREGATES)):
        if text:
            yield f'sql("{text}") == 1'
            yield f'sql("{text}") == 1 for each id'
    for text in (part.strip() for part in re.split(r" \| |\n", QUERIES)):
        if text:
            yield f'query("{text}") == 1'
    yield from OPEN


FEW = (
    *("mode(salary) == 1", "num_rows() > 9 for each (tax_id, id)", "each row: tax_id is null"),
    *("gap_count(salary) == 99", "rows of t match r on (tax_id)"),
    *(
        'sql("max(to_json(struct(*)))") == 1',
        'sql("max(cast(tax_id as int))") == 1',
        'query("select max(to_json(struct(*))) from t") == 1',
    ),
    f'query("select max(c5) from t as s({_BY_POSITION})") == 1',
    *OPEN,
)


def rows(on: date, shift: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "price": float(number),
            "name": f"n{number}",
            "tax_id": f"CANARY{number + shift}",
            "kind": f"CANARY{number % 2}",
            "salary": 4711000 + number + shift,
            "pay": 4711000.0 + number + shift,
            "rate": Decimal(4711000 + number + shift),
            "born": date(1947, 11, 1 + number),
            "seen": datetime(1947, 11, 1 + number, 4, 7, 11, tzinfo=timezone.utc),
            "home": {"street": f"CANARY{number}", "city": f"c{number}"},
            "tags": [("CANARYkey", f"CANARY{number + shift}")],
            "hobbies": [f"CANARY{number}"],
            "ds": on,
        }
        for number in range(1, 5)
    ]


SCHEMA = pa.schema(
    {
        **{"id": pa.int64(), "price": pa.float64(), "name": pa.string(), "tax_id": pa.string()},
        **{"kind": pa.string(), "salary": pa.int64(), "pay": pa.float64()},
        **{"rate": pa.decimal128(18, 2), "born": pa.date32(), "seen": pa.timestamp("us", "UTC")},
        "home": pa.struct({"street": pa.string(), "city": pa.string()}),
        "tags": pa.map_(pa.string(), pa.string()),
        **{"hobbies": pa.list_(pa.string()), "ds": pa.date32()},
    }
)
MASKED = (
    "tax_id",
    "kind",
    "salary",
    "pay",
    "rate",
    "born",
    "seen",
    "home.street",
    "tags",
    "hobbies",
)


def masked_datasets(folder: Path) -> tuple[DatasetRef, DatasetRef]:
    """The datasets `t`, of two days, and `r`."""
    both = pa.Table.from_pylist([*rows(TODAY), *rows(TODAY - timedelta(1))], schema=SCHEMA)
    write_deltalake(str(folder / "t"), both, partition_by=["kind"])
    write_deltalake(str(folder / "r"), pa.Table.from_pylist(rows(TODAY, 1), schema=SCHEMA))
    return (
        DatasetRef("t", path=str(folder / "t"), date_column="ds", masked=MASKED),
        DatasetRef("r", path=str(folder / "r"), masked=MASKED),
    )


def suite_of(asserted: Sequence[str]) -> str:
    """A suite of these rules, which are named `a0`, `a1` ..."""
    known = list(dict.fromkeys(asserted))
    body = "\n".join(f'assert {rule} name "a{nr}"' for nr, rule in enumerate(known))
    return f'suite "T" {{ check "All" on t {{\n{body}\n}} }}'


def leaks(written: dict[str, str]) -> list[str]:
    """Where a mark stands, with what is around it."""
    found = []
    for place, text in written.items():
        # The key stands in the suite, which is shown as it is.
        shown = BY_CHANCE.sub("", text.replace("CANARYkey", ""))
        if (mark := MARK.search(shown)) is not None:
            found.append(f"{place}: {shown[max(0, mark.start() - 200) : mark.end() + 50]}")
    return found
