"""The request of a gate to its job, and the messages for invalid arguments."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dqx_airflow.values import Attempt, DatasetRef, RunKey, Selection, Severity
from tests.operators.gate_stubs import SUITE, FakeRun, FakeTask, Gates, Log, SparkSubmit

pytestmark = pytest.mark.airflow


def the_dataset(gate: Gates, given: Any) -> DatasetRef:
    (ref,) = gate.request(datasets={"orders": given}).datasets
    return ref


# The suite


def test_a_suite_is_found_beside_the_dag(gate: Gates) -> None:
    source = gate.request(suite="orders.dql").suite
    assert (source.name, source.text) == ("orders.dql", SUITE)


def test_a_suite_is_found_in_the_working_directory(
    gate: Gates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.dql").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    assert gate.request(suite="here.dql").suite.text == SUITE
    del gate.context["dag"]
    assert gate.request(suite="here.dql").suite.text == SUITE


@pytest.mark.parametrize("kind", [str, Path])
def test_a_suite_may_have_an_absolute_path(gate: Gates, dag_folder: Path, kind: type) -> None:
    path = dag_folder / "orders.dql"
    source = gate.request(suite=kind(path)).suite
    assert (source.name, source.text) == (str(path), SUITE)


def test_a_suite_below_the_home_folder(
    gate: Gates, dag_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(dag_folder))
    assert gate.request(suite="~/orders.dql").suite.text == SUITE


def test_imports_of_a_suite_are_in_the_request(gate: Gates, tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    (folder / "common").mkdir(parents=True)
    (folder / "common" / "nulls.dql").write_text(
        "export macro nulls(column) { assert null_count({column}) == 0 }\n"
    )
    path = folder / "main.dql"
    path.write_text(
        'import "common/nulls.dql"\nsuite "S" { check "C" on orders { use nulls(id) } }\n'
    )
    request = gate.checked(suite=str(path))
    assert [(item.importer, item.path) for item in request.imports] == [
        (str(path), "common/nulls.dql")
    ]
    assert "export macro nulls" in request.imports[0].file.text


def test_a_shadow_and_its_imports_are_in_the_request(gate: Gates, dag_folder: Path) -> None:
    (dag_folder / "lib.dql").write_text("export const LEAST = 1\n")
    text = SUITE.replace("{\n    check", '{\n    import "lib.dql"\n    check', 1)
    (dag_folder / "next_5.dql").write_text(text)
    request = gate.checked(shadow="next_{{ 2 + 3 }}.dql")
    assert request.shadow is not None
    assert (request.shadow.name, request.shadow.problem) == ("next_5.dql", None)
    assert request.shadow.suite is not None
    assert request.shadow.suite.text == text
    assert [item.file.name for item in request.shadow.imports] == ["lib.dql"]


@pytest.mark.parametrize(
    ("shadow", "message"),
    [
        ("nowhere.dql", "nowhere.dql not found"),
        ("broken.dql", "an error in broken.dql:1"),
        ('suite "A" { check "B" on others { assert num_rows() > 0 name "c" } }', "others"),
        (7, "give the path of a file"),
    ],
)
def test_an_invalid_shadow_is_logged_and_ignored(
    gate: Gates, dag_folder: Path, log: Log, shadow: Any, message: str
) -> None:
    (dag_folder / "broken.dql").write_text("suite {")
    request = gate.checked(shadow=shadow)
    assert request.shadow is not None
    assert request.shadow.suite is None
    assert message in (request.shadow.problem or "")
    (line,) = log.at("warning")
    assert "cannot be evaluated" in line


def test_a_suite_may_be_inline(gate: Gates) -> None:
    source = gate.request(suite=SUITE).suite
    assert (source.name, source.text + "\n") == ("<inline suite>", SUITE)


def test_templates_are_rendered_in_the_path_of_a_suite_and_not_in_its_file(
    gate: Gates, dag_folder: Path
) -> None:
    (dag_folder / "silver.dql").write_text("# {{ ds }}\n" + SUITE)
    source = gate.request(suite="{{ layer }}.dql").suite
    assert (source.name, source.text) == ("silver.dql", "# {{ ds }}\n" + SUITE)


# The datasets


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/lake/{{ layer }}/orders", DatasetRef("orders", path="/lake/silver/orders")),
        ("s3://lake/orders", DatasetRef("orders", path="s3://lake/orders")),
        ("{{ layer }}.orders", DatasetRef("orders", table="silver.orders")),
        ("orders", DatasetRef("orders", table="orders")),
        (Path("lake"), DatasetRef("orders", path="lake")),
        (
            {"path": "/lake/{{ layer }}", "format": "csv", "options": {"header": True}},
            DatasetRef("orders", path="/lake/silver", format="csv", options=(("header", "True"),)),
        ),
        (
            {"table": "t", "date_column": "ds", "filter": "layer = '{{ layer }}'", "version": "7"},
            DatasetRef("orders", table="t", date_column="ds", filter="layer = 'silver'", version=7),
        ),
        ({"path": "/lake", "table": None}, DatasetRef("orders", path="/lake")),
        (
            DatasetRef(
                "x",
                path="/{{ layer }}",
                filter="d = '{{ ds }}'",
                options=(("fs.a", "b"),),
                format="csv",
            ),
            DatasetRef(
                "orders",
                path="/silver",
                filter="d = '2024-05-17'",
                options=(("fs.a", "b"),),
                format="csv",
            ),
        ),
        (
            DatasetRef("x", table="{{ layer }}.t", version=0),
            DatasetRef("orders", table="silver.t", version=0),
        ),
    ],
    ids=str,
)
def test_a_dataset_is_a_path_a_table_or_settings(
    gate: Gates, given: Any, expected: DatasetRef
) -> None:
    assert the_dataset(gate, given) == expected


# The date


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, date(2024, 5, 17)),
        ("{{ ds }}", date(2024, 5, 17)),
        (" 2024-02-29\n", date(2024, 2, 29)),
        ("{{ dag_run.run_after }}", date(2024, 5, 18)),
        ("{{ dag_run.run_after.isoformat() }}", date(2024, 5, 18)),
        ("2024-02-29T23:59:59Z", date(2024, 2, 29)),
        ("2024-02-29T23:59:59-08:00", date(2024, 2, 29)),
        (date(2024, 2, 29), date(2024, 2, 29)),
        (datetime(2024, 2, 29, 23), date(2024, 2, 29)),
    ],
    ids=str,
)
def test_the_date_is_as_given_or_the_logical_date(gate: Gates, given: Any, expected: date) -> None:
    assert gate.request(date=given).run_key.date == expected


# The rest of the request


def test_a_run_key_and_an_attempt_name_the_task_run(gate: Gates) -> None:
    built = gate.request()
    assert built.run_key == RunKey("lake.gate", date(2024, 5, 17), "manual__1")
    assert built.attempt == Attempt(1, "attempt-1")
    assert gate.request(gate="Orders at the door").run_key.gate == ("Orders at the door")


def test_every_map_index_has_a_run_key_of_its_own(gate: Gates, task: FakeTask) -> None:
    keys = set()
    for task.map_index in (-1, 0, 1, 10):
        keys.add(str(gate.request().run_key))
    assert len(keys) == 4


def test_the_results_root_comes_from_the_gate_or_the_configuration(
    gate: Gates, tmp_path: Path
) -> None:
    assert gate.request().results_root == str(tmp_path / "results")
    assert gate.request(results_root="/results/{{ layer }}").results_root == "/results/silver"
    assert gate.request(results_root=tmp_path).results_root == str(tmp_path)


def test_settings_are_in_the_request(gate: Gates) -> None:
    plain = gate.request()
    assert (plain.fail_on, plain.allow_empty, plain.timeout_s) == (Severity.P1, False, None)
    built = gate.request(
        fail_on="P3", allow_empty=True, recompute=True, execution_timeout=timedelta(minutes=2)
    )
    assert (built.fail_on, built.allow_empty, built.timeout_s) == (Severity.P3, True, 120.0)
    assert (plain.recompute, built.recompute) == (False, True)
    assert gate.request(fail_on=Severity.P0).fail_on is Severity.P0


@pytest.mark.parametrize(
    ("of_gate", "of_dataset", "is_trusted"),
    [(True, None, True), (True, False, False), (True, "False", False), (False, True, False)],
)
def test_a_log_is_trusted_unless_gate_or_dataset_turn_it_off(
    gate: Gates, of_gate: bool, of_dataset: bool | str | None, is_trusted: bool
) -> None:
    datasets = {"orders": {"path": "/lake", "trust_log": of_dataset}}
    request = gate.request(datasets=datasets, trust_log=of_gate)
    assert [ref.trust_log for ref in request.datasets] == [is_trusted]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"validation_timeout": 90}, 90.0),
        ({"validation_timeout": timedelta(minutes=2)}, 120.0),
        ({"validation_timeout": 90.5, "execution_timeout": timedelta(minutes=2)}, 90.5),
        ({"validation_timeout": 300, "execution_timeout": timedelta(minutes=2)}, 120.0),
    ],
    ids=str,
)
def test_the_shorter_of_two_timeouts_applies(
    gate: Gates, given: dict[str, Any], seconds: float
) -> None:
    assert gate.request(**given).timeout_s == seconds


@pytest.mark.parametrize("timeout", [0, -1, "90", True, timedelta(0)])
def test_an_invalid_timeout_is_refused(
    gate: Gates, spark_submit: SparkSubmit, timeout: Any
) -> None:
    gate.fails(
        "GateMisconfiguredError", "write a timedelta, or seconds", validation_timeout=timeout
    )
    assert spark_submit.calls == []


def test_the_task_is_the_lineage_parent(gate: Gates) -> None:
    parent = gate.request().parent
    assert parent is not None
    assert (parent.namespace, parent.job) == ("tests", "lake.gate")
    assert (parent.root_namespace, parent.root_job) == ("tests", "lake")
    assert parent.run_id != parent.root_run_id


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ("/lake/quarantine/", (("orders", "/lake/quarantine/orders"),)),
        (Path("/bad"), (("orders", "/bad/orders"),)),
        ("s3://lake/{{ ds }}", (("orders", "s3://lake/2024-05-17/orders"),)),
        ({"orders": "/lake/bad_{{ ds }}"}, (("orders", "/lake/bad_2024-05-17"),)),
        ({"orders": None}, ()),
    ],
    ids=str,
)
def test_a_quarantine_is_a_folder_or_a_path_for_each_dataset(
    gate: Gates, given: Any, expected: tuple[tuple[str, str], ...]
) -> None:
    assert gate.request(quarantine=given).quarantine == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ("/lake/silver/{{ layer }}", (("orders", "/lake/silver/silver"),)),
        (Path("/silver/orders"), (("orders", "/silver/orders"),)),
        ("{{ layer }}.orders", (("orders", "silver.orders"),)),
        ({"orders": "s3://lake/{{ ds }}"}, (("orders", "s3://lake/2024-05-17"),)),
        ({"orders": None}, ()),
    ],
    ids=str,
)
def test_a_promotion_goes_to_a_path_or_a_table(
    gate: Gates, given: Any, expected: tuple[tuple[str, str], ...]
) -> None:
    assert gate.request(promote_to=given).promote_to == expected


def test_a_slice_is_rendered_to_a_string(gate: Gates) -> None:
    given = {"store": "{{ layer }}", "day": date(2024, 5, 17), "number": 7}
    built = gate.request(promote_to="/p", promote_slice=given)
    assert built.promote_slice == (("day", "2024-05-17"), ("number", "7"), ("store", "silver"))


def test_a_dataset_has_keys_and_masked_columns(gate: Gates) -> None:
    for given in (
        {"path": "/a", "keys": ["id", "day"], "masked": "tax_id, home.street"},
        DatasetRef("x", "/a", keys=("id", "day"), masked=("tax_id", "home.street")),
    ):
        ref = the_dataset(gate, given)
        assert (ref.keys, ref.masked) == (("id", "day"), ("tax_id", "home.street"))


def test_the_sample_size_is_in_the_request(gate: Gates) -> None:
    assert gate.request().sample_rows == 20
    assert gate.request(sample_rows=0).sample_rows == 0


def test_every_template_field_is_an_attribute(gate: Gates) -> None:
    made = gate()
    known = type(made).template_fields
    assert {"suite", "datasets", "date", "results_root", "promote_to"} < set(known)
    assert [name for name in known if not hasattr(made, name)] == []


def test_fields_that_a_subclass_sets_are_rendered(gate: Gates) -> None:
    class Marked(type(gate())):  # type: ignore[misc]
        def __init__(self, *, mark: str, **more: Any) -> None:
            super().__init__(**more)
            self.mark = mark
            self.template_fields = (*self.template_fields, "mark")

    made = Marked(mark="{{ ds }}", task_id="gate", **gate.given)
    assert made.template_fields[-1] == "mark"
    made.pool = "small"
    assert made.template_fields[-1] == "mark"
    made.render_template_fields(gate.context)
    assert made.mark == "2024-05-17"


def test_fields_set_after_construction_are_rendered(gate: Gates) -> None:
    made = gate()
    assert "promote_to" not in made.template_fields
    made.promote_to = "/silver/{{ ds }}"
    made.render_template_fields(gate.context)
    assert made.promote_to == "/silver/2024-05-17"


def test_a_gate_is_never_durable(gate: Gates) -> None:
    assert gate().durable is False
    assert gate(durable=True).durable is False


# Misuse: the message says what to type


VALID = {"promote_to": "/p", "quarantine": "/q", "promote_valid": {"max_bad_rows": "1%"}}


class Named(str, Enum):
    WARN = "warn"


OUTPUT_OF_A_TASK = SimpleNamespace(iter_references=list)
"""What no template field has, Airflow does not replace."""


MISUSES: list[tuple[dict[str, Any], str]] = [
    (
        {"suite": "orders.dq"},
        r"suite orders\.dq not found: searched .*/dags/orders\.dq or .*relative",
    ),
    ({"suite": "/no/such.dql"}, r"suite /no/such\.dql not found: searched /no/such\.dql; give"),
    ({"suite": "."}, r"cannot read this file: .*directory"),
    ({"suite": "~nobody-here/x.dql"}, r"suite ~nobody-here/x\.dql not found"),
    ({"suite": "binary.dql"}, r"binary\.dql: this is not .*text"),
    ({"suite": "nul\0.dql"}, r"cannot read this file: .*null"),
    ({"suite": ""}, r"suite='': give the path of a file, or a suite"),
    ({"suite": None}, r"suite=None: give the path"),
    ({"suite": 7}, r"suite=7: give the path"),
    ({"date": "yesterday"}, r"date='yesterday' is not a date: write YYYY-MM-DD"),
    ({"date": "2024-05-171"}, r"is not a date"),
    ({"date": "2024-05-17 or so"}, r"is not a date"),
    ({"date": ""}, r"date='' is not a date: write YYYY-MM-DD, or leave date out"),
    ({"date": "{{ dag_run.conf.get('date') }}"}, r"date='None' is not a date"),
    ({"datasets": {}}, r"no dataset 'orders'.*add 'orders'"),
    ({"datasets": {"orders": None}}, r"dataset 'orders' is None: write a path, a table, or"),
    ({"datasets": {"orders": 5}}, r"dataset 'orders' is 5: write a path"),
    ({"datasets": {"orders": ""}}, r"'orders': give it exactly one of path, table and query"),
    ({"datasets": {"orders": {}}}, r"'orders': give it exactly one of path"),
    ({"datasets": {"orders": {"path": "/a", "table": "b"}}}, r"'orders': give it exactly one of"),
    ({"datasets": {"orders": DatasetRef("orders")}}, r"'orders': give it exactly one"),
    ({"datasets": {"orders": {"path": "/a", 5: "/a"}}}, r"has 5 as a name: write a string"),
    ({"datasets": {"orders": {"path": "/a", "options": "header"}}}, r"options='header': write a"),
    ({"datasets": {"orders": {"path": "/a", "options": 5}}}, r"options=5: write a mapping"),
    ({"datasets": {"orders": {"path": "/a", "masked": [5]}}}, r"masked=\[5\]: write a list"),
    ({"sample_rows": "20"}, r"sample_rows='20': write a number"),
    ({"quarantine": 5}, r"quarantine=5: write a folder, or a mapping"),
    (
        {"quarantine": "/lake", "datasets": {"orders": "/lake/orders"}},
        r"location of dataset 'orders'",
    ),
    ({"promote_to": "{{ '' }}"}, r"promote_to='': the location is empty; write one, or None"),
    ({"promote_to": {"orders": " "}}, r"promote_to={'orders': ' '}: the location is empty"),
    ({"quarantine": {"orders": ""}}, r"quarantine={'orders': ''}: the location is empty"),
    ({"promote_to": 5}, r"promote_to=5: write a path, a table, or a mapping"),
    ({"promote_to": "/lake/orders"}, r"promoted to the location of dataset 'orders': /lake/orders"),
    ({"promote_to": {"order": "/p"}}, r"promote_to has unknown datasets order; available: orders"),
    (
        {"promote_to": "/p", "datasets": {"orders": "/lake/orders", "codes": "/lake/codes"}},
        r"promote_to='/p': ambiguous with the datasets orders, codes; write a mapping",
    ),
    (
        {"promote_to": "/p", "datasets": {"orders": {"query": "SELECT 1"}}},
        r"dataset 'orders' is a query and cannot be promoted",
    ),
    (
        {"promote_to": "/p", "promote_slice": "zurich"},
        r"promote_slice='zurich': write a mapping of columns",
    ),
    ({"promote_to": "/p", "promote_slice": {}}, r"promote_slice=\{\}: write a mapping of columns"),
    (
        {"promote_to": "/p", "promote_slice": {"store": "{{ dag_run.conf.get('store', '') }}"}},
        r"promote_slice has '' for column 'store': write a string",
    ),
    ({"promote_to": "/p", "promote_slice": {"store": ["a"]}}, r"has \['a'\] for column 'store'"),
    (
        {"promote_to": "/p", "on_violation": "warn"},
        r"without the rows of a blocked gate; write promote_blocked=True to promote them",
    ),
    ({"promote_to": "/p", "on_violation": "skip"}, r"write promote_blocked=False if that is meant"),
    ({"promote_to": "/p", "on_violation": Named.WARN}, r"without the rows of a blocked gate"),
    (
        {"promote_to": "/p", "on_violation": "warn", "promote_blocked": OUTPUT_OF_A_TASK},
        r"promote_blocked=.*: a template must not result in a template",
    ),
    (
        {"promote_to": "/p", "on_violation": "skip", "promote_blocked": True},
        r"on_violation='skip' stops: write on_violation='warn'",
    ),
    ({"promote_to": "/p", "promote_blocked": True}, r"on_violation='fail' stops"),
    ({"promote_blocked": False, "on_violation": "warn"}, r"promote_blocked requires promote_to"),
    ({"promote_to": "/p", "promote_blocked": "yes"}, r"promote_blocked='yes': write True or False"),
    (
        {"promote_valid": {"max_bad_rows": "1%"}},
        r"promote_valid requires promote_to: set promote_to as well.*"
        r"promote_valid requires quarantine: set quarantine as well",
    ),
    (
        {"promote_to": "/p", "quarantine": {"other": "/q"}, "promote_valid": {"max_bad_rows": 1}},
        r"quarantine has unknown datasets other",
    ),
    (VALID | {"promote_valid": {}}, r"promote_valid=\{\}: write \{'max_bad_rows': '1%'\}"),
    (
        VALID | {"promote_valid": {"max_bad_row": "1%"}},
        r"promote_valid has the unknown key 'max_bad_row': did you mean 'max_bad_rows'\?",
    ),
    (
        VALID | {"promote_valid": {"max_bad_rows": 1.5}},
        r"max_bad_rows=1.5: write a number of rows, such as 100, or a share",
    ),
    (VALID | {"promote_valid": {"max_bad_rows": "101%"}}, r"max_bad_rows='101%': write a number"),
    (
        VALID | {"promote_valid": {"max_bad_rows": "9" * 400}},
        r"write a number of rows, such as 100",
    ),
    (VALID | {"promote_valid": {"max_bad_rows": 0}}, r"max_bad_rows=0: write a number"),
    (
        VALID | {"promote_blocked": True, "on_violation": "warn"},
        r"promote_valid leaves bad rows out, which promote_blocked=True promotes",
    ),
    (VALID | {"promote_partial": True}, r"remove promote_partial, or promote_valid"),
    ({"fail_on": ["P0"]}, r"fail_on=\['P0'\]: write P0"),
    ({"fail_on": None}, r"fail_on=None: write P0"),
    ({"on_violation": "Fail"}, r"on_violation='Fail': write fail, skip, warn or ask"),
    ({"on_violation": None}, r"on_violation=None: write fail"),
    (
        {"conn_id": "spark_prod"},
        r"Spark connection 'spark_prod' does not exist.*AIRFLOW_CONN_SPARK_PROD",
    ),
    ({"conn_id": "old_binary"}, r"cannot be submitted: .*spark-binary"),
]


@pytest.mark.parametrize(("given", "message"), MISUSES, ids=lambda value: str(value)[:60])
def test_misuse_is_reported_and_nothing_is_submitted(
    gate: Gates,
    spark_submit: SparkSubmit,
    dag_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    message: str,
) -> None:
    (dag_folder / "binary.dql").write_bytes(b"suite \xff\xfe\x00")
    monkeypatch.setenv("AIRFLOW_CONN_OLD_BINARY", "spark://m?spark-binary=spark9-submit")
    gate.fails("GateMisconfiguredError", f"(?s){message}", **given)
    assert spark_submit.calls == []


def test_a_missing_results_root_names_the_setting(
    gate: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    gate.fails("GateMisconfiguredError", "AIRFLOW__DQX__RESULTS_ROOT")


def test_all_the_errors_of_a_suite_are_in_the_log_and_nothing_is_submitted(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    suite = SUITE.replace("null_count", "nul_count").replace("P0", "P7")
    gate.fails(
        "GateMisconfiguredError",
        r"inline suite> has 2 errors, the first in line 3: .*\(did you mean 'null_count'\?\)",
        suite=suite,
    )
    unknown, severity = log.at("error")
    assert "error[E001]" in unknown
    assert "nul_count(id) == 0" in unknown
    assert "^^^" in unknown
    assert "error[E004]" in severity
    assert spark_submit.calls == []


def test_a_warning_of_a_suite_is_logged_and_the_gate_runs(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    suite = SUITE.replace('name "orders.id"', "")
    assert gate.run(suite=suite) == "passed"
    (warning,) = log.at("warning")
    assert "W001" in warning
    assert log.at("error") == []


def test_checking_a_suite_takes_neither_spark_nor_sympy(gate: Gates) -> None:
    before = set(sys.modules)
    gate.fails("GateMisconfiguredError", suite=SUITE.replace("null_count", "nul_count"))
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert loaded.isdisjoint({"pyspark", "py4j", "sympy"})


def test_the_date_of_a_run_is_in_utc_like_ds(gate: Gates) -> None:
    gate.context["dag_run"] = FakeRun(datetime(2024, 5, 17, 23, 30, tzinfo=timezone.utc))
    gate.context["ti"].dag_run = gate.context["dag_run"]
    assert gate.request().run_key.date == date(2024, 5, 17)


# A selection


def test_a_selection_is_rendered_into_the_request(gate: Gates) -> None:
    given = {"only": ["{{ layer }}.*", "orders.id"], "tags": "a, {{ ds }}"}
    built = gate.request(min_severity="{{ '' }}", **given)
    assert built.selection == Selection(("silver.*", "orders.id"), ("a", "2024-05-17"))
    assert gate.request().selection is None
    nothing = gate.request(only="{{ '' }}")
    assert nothing.selection is None


def test_a_selection_is_checked_before_anything_is_submitted(gate: Gates) -> None:
    assert gate.checked(only="{{ 'orders.i?' }}").selection == Selection(("orders.i?",))
    for given, problem in (
        ({"only": "{{ layer }}"}, "no assertion or check is named 'silver'"),
        ({"min_severity": "{{ layer }}"}, "min_severity='silver': write P0, P1, P2 or P3"),
        ({"only": "Completeness", "promote_to": "/lake/silver"}, "promote_to promotes rows that"),
    ):
        with pytest.raises(Exception, match=re.escape(problem)) as caught:
            gate.checked(**given)
        assert type(caught.value).__name__ == "GateMisconfiguredError"
    assert gate.checked(only="Completeness", promote_to="/lake/silver", promote_partial=True)


SECOND = """suite "Second" {
    check "Volume" on orders {
        assert num_rows() > 0 name "orders.rows" severity P0 tags [fast]
    }
}
"""


def test_each_of_several_suites_gets_its_part_of_a_selection(gate: Gates) -> None:
    gate = replace(gate, given={**gate.given, "suite": ["orders.dql", SECOND]})
    both = gate.checked(only=["orders.id", "*rows"]).parts
    assert [part.selection for part in both] == [Selection(("orders.id",)), Selection(("*rows",))]
    (part,) = gate.checked(tags="fast").parts
    assert part.run_key.gate.endswith("/Second")
    assert (part.suite.text, part.selection) == (SECOND.strip(), Selection(tags=("fast",)))
    for given, problem in (
        ({"only": ["orders.id", "orders.row"]}, "no assertion or check is named 'orders.row'"),
        ({"min_severity": "P0", "tags": "fast", "only": "orders.id"}, "no assertion is selected"),
        (
            {"tags": "fast", "promote_to": "/lake/silver", "promote_partial": True},
            "orders.id would not be evaluated",
        ),
    ):
        with pytest.raises(Exception, match=re.escape(problem)):
            gate.checked(**given)
