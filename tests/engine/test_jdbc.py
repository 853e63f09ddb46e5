"""Tables of a real PostgreSQL, read by a gate in a separate session: `jdbc_session.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.database_values import DOMAINS, table
from tests.maven_jars import POSTGRES, jars
from tests.postgres_server import Postgres, postgres
from tests.processes import ended

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PASSWORD = "s3cr3t-P4ss!"
QUOTED = "s3cr3t-P4ss%21"
TABLES = f"""
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    id bigint PRIMARY KEY, ds date, at timestamptz, local timestamp, text_day varchar(10),
    amount numeric, price numeric(10, 2), uid uuid, doc jsonb, tags text[], ok boolean,
    cost money, "Mixed Case" text, code char(5), codes char(3)[]
);
INSERT INTO shop.orders
SELECT i, date '2024-03-01' + i % 2,
       -- half an hour on either side of a midnight in UTC
       timestamptz '2024-03-01 23:30:00Z' + i % 2 * interval '1 hour',
       timestamp '2024-03-01 23:30:00' + i % 2 * interval '1 hour',
       to_char(date '2024-03-01' + i % 2, 'YYYYMMDD'),
       i / 8.0, i, '00000000-0000-0000-0000-000000000001', '{{"a": 1}}', ARRAY['a', NULL], true,
       12.34, 'x', 'a', ARRAY['a', 'b']
FROM generate_series(1, 1000) i;
CREATE TABLE shop.long (id bigint PRIMARY KEY, ds date);
INSERT INTO shop.long SELECT i, date '2024-03-02' FROM generate_series(1, 250000) i;
CREATE TABLE shop.same (id bigint);
INSERT INTO shop.same VALUES (2);
CREATE TABLE public.same (id bigint);
INSERT INTO public.same VALUES (1);
GRANT SELECT ON shop.same, public.same TO reader;
CREATE TABLE shop.secret (id bigint);
GRANT USAGE ON SCHEMA shop TO reader;
GRANT SELECT ON shop.orders, shop.long TO reader;
CREATE TABLE shop.by_day (ds date, at timestamp);
CREATE INDEX ON shop.by_day (ds);
INSERT INTO shop.by_day
SELECT date '2020-01-01' + i, timestamp '2020-01-01' FROM generate_series(0, 1999) i;
INSERT INTO shop.by_day VALUES ('infinity', NULL), (NULL, NULL);
{DOMAINS}
{table("postgres", "shop.odd_values")}
{table("postgres chosen", "shop.chosen_values")}
-- A column of each type that columns may have, and of arrays of them.
DO $$ DECLARE columns text; BEGIN
    SELECT string_agg(format('c%s %s', t.oid, format_type(t.oid, NULL)), ', ') INTO columns
    FROM pg_type t LEFT JOIN pg_type item ON item.oid = t.typelem
    WHERE t.typtype IN ('b', 'r', 'm', 'e', 'd') AND coalesce(item.typtype NOT IN ('c', 'p'), true)
    AND t.typisdefined AND t.typnamespace::regnamespace::text IN ('pg_catalog', 'public')
    AND t.typname !~ '^(pg_(node_tree|ndistinct|dependencies|mcv_list|brin_)|_?(int2|oid)vector)';
    EXECUTE 'CREATE TABLE shop.every_type (' || columns || ')';
END $$;
CREATE TABLE shop.guarded (id int);
INSERT INTO shop.guarded VALUES (1), (2);
ALTER TABLE shop.guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY first_row ON shop.guarded USING (id = 1);
GRANT SELECT ON ALL TABLES IN SCHEMA shop TO reader;
REVOKE SELECT ON shop.secret FROM reader;
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        server.run(TABLES)
        yield server


def test_a_gate_reads_a_database_and_shows_its_password_nowhere(
    database: Postgres, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{database.port}/postgres"
    connections = {
        "DQX_CONN_SHOP": f"postgres://reader:{QUOTED}@{address}",
        "DQX_CONN_WRONG": f"postgres://reader:not-{QUOTED}@{address}",
        "DQX_CONN_NOWHERE": f"postgres://reader:{QUOTED}@127.0.0.1:1/postgres",
        "DQX_CONN_OF_PATH": f"postgres://reader:{QUOTED}@{address}?options=-csearch_path%3Dshop",
        "DQX_CONN_OTHER": f"mysql://reader:{QUOTED}@{address}",
    }
    script = str(Path(__file__).with_name("jdbc_session.py"))
    done = ended(
        [sys.executable, script, jars(POSTGRES), str(tmp_path)],
        cwd=tmp_path,
        # A zone that is neither that of the session nor that of the server.
        env={**os.environ, **connections, "TZ": "Europe/London"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "events" in {part for path in written for part in path.parts}  # of Spark, with its plans
    assert "lineage.json" in {path.name for path in written}
    assert [path for path in written if b"s3cr3t" in path.read_bytes()] == []
    assert "s3cr3t" not in done.stdout + done.stderr
