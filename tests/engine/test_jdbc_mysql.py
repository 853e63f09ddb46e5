"""Tables of a real MariaDB, read with the MySQL driver: `mysql_session.py`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.engine.database_values import table
from tests.mariadb_server import mariadb
from tests.maven_jars import MYSQL, jars
from tests.processes import ended

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Half an hour on either side of a midnight, for the instants in UTC.
TABLES = (
    """
CREATE DATABASE shop;
USE shop;
SET SESSION sql_mode = '', time_zone = '+00:00';
CREATE USER 'reader'@'127.0.0.1' IDENTIFIED BY 's3cr3t-P4ss!';
GRANT SELECT ON shop.* TO 'reader'@'127.0.0.1';
CREATE TABLE orders (
    id bigint unsigned PRIMARY KEY, ds date, at timestamp NULL, local datetime,
    text_day varchar(10), ok tinyint(1), small tinyint unsigned, medium int unsigned,
    `Mixed Case` text
);
INSERT INTO orders
SELECT seq, date '2024-03-01' + interval (seq % 2) day,
       timestamp('2024-03-01 23:30:00') + interval (seq % 2) hour,
       timestamp('2024-03-01 23:30:00') + interval (seq % 2) hour,
       date_format(date '2024-03-01' + interval (seq % 2) day, '%Y%m%d'), 1, 200, 4000000000, 'x'
FROM seq_1_to_1000;
CREATE TABLE zero (id int PRIMARY KEY, d date, t time);
INSERT INTO zero VALUES (1, '0000-00-00', '23:30:00');
"""
    + table("mysql")
    + table("mysql chosen", "chosen_values")
)


def test_days_and_types_are_those_of_the_database(tmp_path: Path) -> None:
    driver = jars(MYSQL)
    with mariadb() as server:
        server.run(TABLES)
        address = f"mysql://reader:s3cr3t-P4ss%21@127.0.0.1:{server.port}/shop"
        without_zero = {
            **{"conn_type": "mysql", "host": "127.0.0.1", "port": server.port, "schema": "shop"},
            **{"login": "reader", "password": "s3cr3t-P4ss!"},
            "extra": {"jdbc": {"zeroDateTimeBehavior": "CONVERT_TO_NULL"}},
        }
        script = str(Path(__file__).with_name("mysql_session.py"))
        done = ended(
            [sys.executable, script, driver],
            cwd=tmp_path,
            # A zone that is neither that of the session nor that of the server.
            env={
                **os.environ,
                "DQX_CONN_SHOP": address,
                "DQX_CONN_NO_ZERO": json.dumps(without_zero),
                "TZ": "Europe/London",
            },
        )
    assert done.returncode == 0, done.stderr[-3000:]
