"""Records the verdicts of the other tools on the tables in `truth`, in the environment of one of
them.

`python tests/importing/record_verdicts.py TOOL` writes `truth/TOOL.verdicts.json`: for each table
the verdict of each rule, in the order of the rules: true where it holds. The versions that were
recorded are in the file. Needed: `pydeequ` with pyspark 3.5, and the jar of Deequ in the
environment variable `DEEQU_JAR`; for `dqdl` no more than pyspark 3.5, and there also the jar of
its parser; `great_expectations` with pandas; `pandera[io]` with pandas;
`databricks-labs-dqx` with pandas, pyspark; `soda-core-duckdb` 3.x, for `soda_4` `soda-duckdb`;
`dbt-duckdb`, and a folder of dbt-utils in the environment variable `DBT_UTILS`; `cuallee` and
`spark-expectations` each with pandas and pyspark 3.5.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "truth"
TABLES: dict[str, list[dict[str, Any]]] = json.loads((HERE / "tables.json").read_text())
TYPES = {"id": "bigint", "amount": "double", "tax": "double"}


def frame(rows: list[dict[str, Any]]) -> Any:
    """The rows for pandas: NULL is None, so that strings and numbers have the same NULL."""
    import pandas as pd

    kinds = {name: "Int64" if kind == "bigint" else "Float64" for name, kind in TYPES.items()}
    return pd.DataFrame(rows).astype({name: kinds.get(name, "object") for name in rows[0]})


def great_expectations(rows: list[dict[str, Any]]) -> list[bool]:
    import great_expectations as gx
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("orders")
    whole = asset.add_batch_definition_whole_dataframe("all")
    batch = whole.get_batch({"dataframe": frame(rows)})
    # Histograms fail on the NULL of Float64.
    plain = whole.get_batch({"dataframe": frame(rows).astype({"amount": "float64"})})
    found = []
    for one in json.loads((HERE / "great_expectations.json").read_text())["expectations"]:
        configured = ExpectationConfiguration(type=one["type"], kwargs=one["kwargs"])
        data = plain if "kl_divergence" in one["type"] else batch
        found.append(bool(data.validate(configured.to_domain_obj()).success))
    return found


def pandera(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """By column and check, since a schema reports what fails."""
    from pandera.errors import SchemaErrors
    from pandera.io.pandas_io import from_yaml

    schema = from_yaml((HERE / "pandera.yml").read_text())
    verdicts = {}
    for name, column in schema.columns.items():
        verdicts[f"{name}: unique"] = True
        verdicts[f"{name}: nullable: false"] = True
        verdicts |= {f"{name}: {check.name}": True for check in column.checks}
    try:
        schema.validate(frame(rows), lazy=True)
    except SchemaErrors as errors:
        for column, check in zip(
            errors.failure_cases["column"], errors.failure_cases["check"], strict=True
        ):
            kind = {"not_nullable": "nullable: false", "field_uniqueness": "unique"}.get(
                check, str(check).split("(")[0]
            )
            assert f"{column}: {kind}" in verdicts, (column, check)
            verdicts[f"{column}: {kind}"] = False
        for error in errors.schema_errors:  # NULL that is there twice is not among the cases
            if error.check == "field_uniqueness":
                verdicts[f"{error.schema.name}: unique"] = False
    return verdicts


def soda(rows: list[dict[str, Any]]) -> list[bool]:
    from soda.scan import Scan

    scan = Scan()
    scan.set_data_source_name("duckdb")
    scan.add_duckdb_connection(_duckdb(rows))
    scan.add_sodacl_yaml_str((HERE / "soda.yml").read_text())
    scan.execute()
    assert not scan.has_error_logs(), scan.get_error_logs_text()
    checks = sorted(scan._checks, key=lambda check: check.check_cfg.location.line)
    return [check.outcome.value == "pass" for check in checks]


def soda_4(rows: list[dict[str, Any]]) -> list[bool | None]:
    """By the names of the checks, in the order of the file."""
    from ruamel.yaml import YAML  # comes with it
    from soda_core.contracts.api import verify_contract_locally

    contract = HERE / "soda_4.yml"
    with tempfile.TemporaryDirectory() as folder:
        _duckdb(rows, f"{folder}/t.db").close()
        source = Path(folder, "source.yml")
        database = f"connection: {{database: {folder}/t.db}}\n"
        source.write_text(f"type: duckdb\nname: files\n{database}")
        session = verify_contract_locally(str(source), contract_file_path=str(contract))
    (result,) = session.contract_verification_results
    outcomes = {"PASSED": True, "FAILED": False}
    found = {one.check.name: outcomes.get(one.outcome.value) for one in result.check_results}
    written = YAML(typ="safe").load(contract)
    owners = [*written["columns"], written]
    checks = [check for owner in owners for check in owner.get("checks", ())]
    return [found[next(iter(check.values()))["name"]] for check in checks]


def _duckdb(rows: list[dict[str, Any]], path: str = ":memory:") -> Any:
    import duckdb

    connection = duckdb.connect(path)
    columns = ", ".join(f"{name} {TYPES.get(name, 'varchar')}" for name in rows[0])
    connection.execute(f"CREATE TABLE orders ({columns})")
    marks = ", ".join("?" for _ in rows[0])
    for row in rows:
        connection.execute(f"INSERT INTO orders VALUES ({marks})", list(row.values()))
    return connection


def databricks_dqx(rows: list[dict[str, Any]]) -> list[bool]:
    import yaml
    from databricks.labs.dqx.engine import DQEngineCore

    data = _in_spark(rows)
    found = []
    for check in yaml.safe_load((HERE / "databricks_dqx.yml").read_text()):
        each = check["check"].pop("for_each_column", None)
        for column in each or [None]:
            if column is not None:
                check["check"]["arguments"] = {"column": column}
            engine = DQEngineCore(workspace_client=_no_workspace(), spark=data.sparkSession)
            _, bad = engine.apply_checks_by_metadata_and_split(data, [check])
            found.append(bad.count() == 0)
    return found


def cuallee(rows: list[dict[str, Any]]) -> list[bool]:
    """On Spark, in the order of the lines."""
    names: dict[str, Any] = {}
    exec((HERE / "cuallee.txt").read_text(), names)
    result = names["check"].validate(_in_spark(rows)).collect()
    return [one["status"] == "PASS" for one in sorted(result, key=lambda one: one["id"])]


def spark_expectations(rows: list[dict[str, Any]]) -> list[bool]:
    """By the statuses of its own actions: of rows, of the source, and of the rows that are left."""
    import yaml
    from pyspark.sql import functions as spark_functions
    from spark_expectations.core.context import SparkExpectationsContext
    from spark_expectations.utils.actions import SparkExpectationsActions as Actions

    frame = _in_spark(rows)
    context = SparkExpectationsContext("shop", frame.sparkSession)
    document = yaml.safe_load((HERE / "spark_expectations.yml").read_text())
    given: dict[str, list[dict[str, Any]]] = {}
    for rule in document["rules"]:
        stages = {f"enable_for_{one}_dq_validation": True for one in ("source", "target")}
        defaults = {"action_if_failed": "ignore", "table_name": "orders", "product_id": "shop"}
        rule |= {**defaults, **stages, **rule}
        given.setdefault(f"{rule['rule_type']}_rules", []).append(rule)
    run = Actions.run_dq_rules
    judged = run(context, frame, given, "row_dq")
    names = [rule["rule"] for rule in given["row_dq_rules"]]
    statuses = [judged[f"row_dq_{name}"]["status"] for name in names]
    found = {
        name: judged.filter(status == "fail").count() == 0
        for name, status in zip(names, statuses, strict=True)
    }
    dropped = spark_functions.lit(False)
    for rule, status in zip(given["row_dq_rules"], statuses, strict=True):
        if rule["action_if_failed"] == "drop":
            dropped = dropped | (status == "fail")
    left = judged.filter(~dropped).select(frame.columns)
    for stage, data, source in (("", frame, True), (": target", left, False)):
        data.createOrReplaceTempView("orders")
        context.set_supported_df_query_dq()
        for kind in ("agg_dq", "query_dq") if source else ("agg_dq",):
            results = run(context, data, given, kind, source, not source).first()[0]
            found |= {f"{one['rule']}{stage}": one["status"] == "pass" for one in results}
    due = []
    for rule in document["rules"]:
        stages = ["", ": target"] if rule["rule_type"] == "agg_dq" else [""]
        due += [found[f"{rule['rule']}{stage}"] for stage in stages]
    return due


def _in_spark(rows: list[dict[str, Any]]) -> Any:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = spark.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    columns = ", ".join(f"{name} {TYPES.get(name, 'string')}" for name in rows[0])
    return session.createDataFrame([tuple(row.values()) for row in rows], columns)


def deequ(rows: list[dict[str, Any]]) -> list[bool]:
    """Each constraint in a check of its own, which has a name."""
    os.environ.setdefault("SPARK_VERSION", "3.5")
    from pydeequ import checks, scala_utils
    from pydeequ.verification import VerificationSuite
    from pyspark.sql import SparkSession

    # Deequ compares the functions of constraints, which PyDeequ does not provide for.
    scala_utils.ScalaFunction1.hashCode = lambda function: id(function) & 0x7FFFFFFF
    scala_utils.ScalaFunction1.equals = lambda _, other: False
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = spark.config("spark.jars", os.environ["DEEQU_JAR"]).getOrCreate()
    columns = ", ".join(f"{name} {TYPES.get(name, 'string')}" for name in rows[0])
    data = session.createDataFrame([tuple(row.values()) for row in rows], columns)
    text = (HERE / "deequ.txt").read_text().split('orders")\n')[1].rstrip(")\n")
    lines = [line.strip() for line in (text + ")").splitlines()]
    suite = VerificationSuite(session).onData(data)
    for number, line in enumerate(lines):
        check = checks.Check(session, checks.CheckLevel.Error, str(number))
        suite = suite.addCheck(eval(f"check{line}", {**vars(checks), "check": check}))
    found = {
        one["check"]: one["constraint_status"] == "Success" for one in suite.run().checkResults
    }
    return [found[str(number)] for number in range(len(lines))]


def dqdl(rows: list[dict[str, Any]]) -> list[bool]:
    """In one run: each rule is found by its text, which the outcome has with other blanks."""
    from pyspark.sql import DataFrame, SparkSession

    quick = {
        "spark.jars": os.environ["DEEQU_JAR"],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    session = SparkSession.builder.master("local[1]").config(map=quick).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    columns = ", ".join(f"{name} {TYPES.get(name, 'string')}" for name in rows[0])
    data = session.createDataFrame([tuple(row.values()) for row in rows], columns)
    data = data.coalesce(1).cache()
    data.createOrReplaceTempView("primary")
    text = (HERE / "dqdl.txt").read_text()
    engine = getattr(session._jvm.com.amazon.deequ.dqdl, "EvaluateDataQuality$")
    outcomes = DataFrame(getattr(engine, "MODULE$").process(data._jdf, text), session).collect()
    found = {"".join(one["Rule"].split()): one["Outcome"] == "Passed" for one in outcomes}
    lines = text.strip().removeprefix("Rules = [").removesuffix("]").strip().split(",\n")
    return [found["".join(line.split())] for line in lines]


def _no_workspace() -> Any:
    from unittest.mock import MagicMock

    return MagicMock()


def dbt(rows: list[dict[str, Any]]) -> list[bool]:
    """In the order of the file, by the ids of the tests, which end in their number."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "models").mkdir()
        (home / "models" / "schema.yml").write_text((HERE / "dbt.yml").read_text())
        (home / "models" / "orders.sql").write_text("SELECT * FROM main.given")
        project = "name: t\nversion: '1.0.0'\nconfig-version: 2\nprofile: t\n"
        (home / "dbt_project.yml").write_text(project)
        package = f"packages: [{{local: {os.environ['DBT_UTILS']}}}]\n"
        (home / "packages.yml").write_text(package)
        profile = f"t:\n  target: d\n  outputs:\n    d: {{type: duckdb, path: {home}/t.db}}\n"
        (home / "profiles.yml").write_text(profile)
        connection = _duckdb(rows, f"{home}/t.db")
        connection.execute("ALTER TABLE orders RENAME TO given")
        connection.close()
        places = ["--project-dir", folder, "--profiles-dir", folder]
        for verb in ("deps", "build"):
            command = [str(Path(sys.executable).parent / "dbt"), verb, *places]
            subprocess.run(command, capture_output=True, check=False)
        results = json.loads((home / "target" / "run_results.json").read_text())["results"]
        manifest = json.loads((home / "target" / "manifest.json").read_text())["nodes"]
        verdicts = {one["unique_id"]: one["status"] for one in results}
        tests = [node for key, node in manifest.items() if key.startswith("test.")]
        keys = {
            (
                node["column_name"],
                node["test_metadata"]["name"],
                str(node["config"]["where"]),
            ): verdicts[node["unique_id"]] == "pass"
            for node in tests
        }
        named = {node["name"]: verdicts[node["unique_id"]] == "pass" for node in tests}
        due = [
            ("id", "unique", "None"),
            ("id", "not_null", "None"),
            ("status", "accepted_values", "None"),
            ("amount", "accepted_values", "None"),
            ("amount", "not_null", "status = 'paid'"),
        ]
        return [keys[one] for one in due] + [named[one] for one in _NAMED]


_NAMED = (
    *("combination", "ranges_of_ids", "ranges", "ranges_of_some"),
    *("range", "not_empty", "proportion", "expression"),
)
"""The tests of dbt that have a name, in the order of the file."""


RUN: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], tuple[str, ...]]] = {
    "great_expectations": (great_expectations, ("great_expectations", "pandas")),
    "pandera": (pandera, ("pandera", "pandas")),
    "soda": (soda, ("soda-core", "duckdb")),
    "soda_4": (soda_4, ("soda-core", "soda-duckdb")),
    "deequ": (deequ, ("pydeequ", "pyspark")),
    "dqdl": (dqdl, ("pyspark",)),
    "cuallee": (cuallee, ("cuallee", "pyspark")),
    "spark_expectations": (spark_expectations, ("spark-expectations", "pyspark")),
    "databricks_dqx": (databricks_dqx, ("databricks-labs-dqx", "pyspark")),
    "dbt": (dbt, ("dbt-core", "dbt-duckdb")),
}


if __name__ == "__main__":
    tool = sys.argv[1]
    run, packages = RUN[tool]
    recorded = {
        "versions": {name: version(name) for name in packages},
        "verdicts": {name: run(rows) for name, rows in TABLES.items()},
    }
    (HERE / f"{tool}.verdicts.json").write_text(json.dumps(recorded, indent=1) + "\n")
    os._exit(0)  # PyDeequ leaves a server of callbacks open
