"""The proof of an engine: what differs is found, explained, and then not judged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lake import Run

from dqx_airflow.engine.proof.cases import ProofCase, proof_cases
from dqx_airflow.engine.proof.differences import blamed
from dqx_airflow.engine.proof.engine_key import engine_key
from dqx_airflow.engine.proof.prove import prove
from dqx_airflow.lineage.events import tags
from dqx_airflow.results.query import StoredResults, find_report, read_proof, write_proof
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, Outcome, RunKey, SourceFile, Status

TEXTS = [case for case in proof_cases() if case.file in ("row_functions.md", "text.md")]
"""Cases of strings, and of much else."""


@pytest.mark.parametrize(
    ("differing", "agreeing", "due"),
    [
        # One that differs wherever it occurs, beside one that agrees elsewhere.
        ([{"sum", "type decimal"}], [{"sum"}], ("type decimal",)),
        # The broadest of those that always differ.
        ([{"a over x", "type x"}, {"b over x", "type x"}], [{"a", "b"}], ("type x",)),
        # One is blamed even if all agree elsewhere: that which differs most often.
        ([{"sum", "in"}], [{"sum"}, {"in"}, {"in"}], ("sum",)),
        # Two causes.
        ([{"a", "c"}, {"b", "c"}], [{"c"}, {"c"}, {"c"}], ("a", "b")),
        ([], [{"a"}], ()),
    ],
)
def test_what_differs_most_often_is_blamed(
    differing: list[set[str]], agreeing: list[set[str]], due: tuple[str, ...]
) -> None:
    assert blamed(differing, agreeing) == due


def request(root: Path, path: Path, body: str) -> GateRequest:
    from datetime import date

    text = f'suite "S" {{ check "C" on words {{\n{body}\n}} }}'
    return GateRequest(
        run_key=RunKey("test.gate", date(2024, 3, 1), "manual"),
        attempt=Attempt(1, "1"),
        suite=SourceFile("suite.dql", text),
        datasets=(DatasetRef("words", str(path), format="parquet"),),
        results_root=str(root),
    )


@pytest.fixture
def words(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "words"
    path.mkdir()
    pq.write_table(pa.table({"word": ["one", "three"], "n": [1, 2]}), path / "a.parquet")
    return path


def other_values(case: ProofCase) -> ProofCase:
    """The case of an engine that counts the characters of strings otherwise."""
    *tables, values = case.blocks
    text = re.sub(r"(?m)^(.*\blength\(.*) => \d+$", r"\1 => 77", values.text)
    return replace(case, blocks=(*tables, replace(values, text=text)))


BODY = """
assert min_length(word) == 3 name "shortest"
assert each row: length(word) < 6 name "length"
assert sum(n) == 3 name "sum"
assert null_count(word) == 0 name "nulls"
"""


@pytest.mark.spark
def test_an_engine_with_our_values_is_marked_in_report_and_lineage(
    spark: Any, run: Run, tmp_path: Path, words: Path
) -> None:
    (tmp_path / "files").mkdir()
    seen: list[tuple[int, int]] = []
    proof = prove(spark, tmp_path / "files", lambda *at: seen.append(at), TEXTS)
    assert (proof.differences, proof.doubts) == ((), ())
    assert proof.agreeing == sum(len(case.lines) for case in TEXTS)
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    root = tmp_path / "results"
    write_proof(str(root), proof)
    assert read_proof(str(root), proof.key) == proof
    report = run(request(root, words, BODY))
    assert report.outcome is Outcome.PASSED
    assert report.engine_proof == proof.mark
    stored = find_report(StoredResults(str(root)), report.run_id)
    assert stored is not None
    assert stored.engine_proof == proof.mark
    facet = tags(report)
    assert facet is not None
    assert ("dqx_engine", proof.mark) in {(tag.key, tag.value) for tag in facet.tags}


@pytest.mark.slow
@pytest.mark.spark
def test_what_differs_on_an_engine_is_broken_there_and_the_rest_is_judged(
    spark: Any, run: Run, tmp_path: Path, words: Path
) -> None:
    (tmp_path / "files").mkdir()
    proof = prove(spark, tmp_path / "files", lambda *_: None, list(map(other_values, TEXTS)))
    assert proof.differences
    assert any("length" in doubt for doubt in proof.doubts), proof.doubts
    root = tmp_path / "results"
    write_proof(str(root), proof)
    report = run(request(root, words, BODY))
    found = {verdict.name: verdict for verdict in report.verdicts}
    assert found["length"].status is Status.ERROR
    assert "found to compute other values with" in (found["length"].reason or "")
    assert found["sum"].status is found["nulls"].status is Status.PASSED
    assert report.outcome is Outcome.BROKEN


@pytest.mark.spark
def test_a_proof_holds_for_the_same_version_and_settings_alone(spark: Any, tmp_path: Path) -> None:
    key, engine = engine_key(spark)
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert engine_key(other)[0] != key
    assert engine["spark"] == spark.version
    assert read_proof(str(tmp_path), key) is None


@pytest.mark.spark
def test_cases_of_files_are_not_tried_where_spark_sees_no_folder(spark: Any) -> None:
    of_files = [case for case in proof_cases() if any(b.kind == "csv" for b in case.blocks)][:1]
    proof = prove(spark, None, lambda *_: None, of_files)
    assert proof.untried == (("Spark sees no folder of this machine", len(of_files[0].lines)),)
    assert "were not tried" in replace(proof, agreeing=1).mark
