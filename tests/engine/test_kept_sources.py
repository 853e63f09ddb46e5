"""The job stores the sources that it used, and reports promotions that did not happen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import ImportedFile, SourceFile
from tests.engine.lake import ORDERS, TODAY, Run, delta, request

pytestmark = pytest.mark.spark

CONTRACT = SourceFile(
    "orders.yaml",
    "dataContractSpecification: 1.2.1\n"
    "id: urn:orders\n"
    "info: {title: Orders, version: 2.3.0}\n"
    "models:\n"
    "  orders:\n"
    "    fields:\n"
    "      id:\n"
    "        required: true\n"
    "      price:\n"
    "        required: true\n",
)
LIBRARY = SourceFile("common.dql", "export const LEAST = 1\n")
SUITE = """\
suite "Orders" {
    import "common.dql"
    check "All" on orders {
        assert num_rows() > LEAST
    }
}
"""


def test_a_suite_is_stored_with_its_imports(run: Run, tmp_path: Path) -> None:
    imports = (ImportedFile("suite.dql", "common.dql", LIBRARY),)
    gate = request(tmp_path, SUITE, [delta(tmp_path, "orders", ORDERS)], imports=imports)
    report = run(gate)
    assert StoredResults(gate.results_root).sources_of(report) == (gate.suite, LIBRARY)
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report


def test_a_contract_is_stored_as_written_and_its_broken_line_is_found(
    run: Run, tmp_path: Path
) -> None:
    orders = delta(tmp_path, "orders", ORDERS)
    enforced = enforce(CONTRACT, on=TODAY).over([orders])
    gate = replace(
        request(tmp_path, "", [orders]), suite=enforced.suite, contract=enforced.contract
    )
    report = run(gate)
    kept, compiled = StoredResults(gate.results_root).sources_of(report)
    assert (kept, compiled) == (CONTRACT, gate.suite)
    (broken,) = [verdict for verdict in report.verdicts if verdict.status == "failed"]
    assert broken.span is not None
    assert broken.span.file == kept.name
    assert kept.text.splitlines()[broken.span.line - 1] == broken.source_line
    assert report.contract is not None
    assert report.contract.sources == (), "the report names the texts, the store keeps them"


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [0, 99])
def test_a_report_has_its_promotion_target_even_if_nothing_was_promoted(
    run: Run, tmp_path: Path, rows: int
) -> None:
    target = str(tmp_path / "silver")
    gate = request(
        tmp_path,
        f"assert num_rows() > {rows}",
        [delta(tmp_path, "orders", ORDERS)],
        promote_to=(("orders", target),),
    )
    (snapshot,) = run(gate).datasets
    assert snapshot.promote_to == target
    assert (snapshot.promotion is None) == (rows == 99)
