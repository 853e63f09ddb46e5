"""The proof of an engine: what differs is found, explained, and then not judged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.diagnostics.verdicts import account
from dqx_airflow.engine.proof.cases import Block, ProofCase, proof_cases, sections
from dqx_airflow.engine.proof.differences import blamed, doubts_of
from dqx_airflow.engine.proof.engine_key import KnownEngine, engine_key, known_engine, proof_of_sail
from dqx_airflow.engine.proof.objection import objection_to_engine
from dqx_airflow.engine.proof.operations import SeenDataset, widened
from dqx_airflow.engine.proof.prove import prove
from dqx_airflow.engine.session.engines import switches_in, versions_of
from dqx_airflow.engine.session.spark_session import settings_of
from dqx_airflow.lineage.events import tags
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.results.proofs import gates_not_proven, read_proofs, write_proof
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.runs import find_report
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    Difference,
    EngineProof,
    GateRequest,
    Outcome,
    RunKey,
    SourceFile,
    Status,
)
from tests.engine.lake import Run
from tests.engine.mixed_suites import plan_of_claims

TEXTS = [case for case in proof_cases() if case.file in ("row_functions.md", "text.md")]
"""Cases of strings, and of much else."""


@pytest.mark.parametrize(
    ("differing", "agreeing", "due"),
    [
        # One that agrees nowhere, beside one that agrees elsewhere.
        ([{"sums over decimal", "type decimal"}], [{"sums over decimal"}], ("type decimal",)),
        # The only operation, although it agrees elsewhere.
        (
            [{"decimal beside a double", "type decimal", "not"}],
            [{"decimal beside a double", "type decimal", "not"}] * 9,
            ("decimal beside a double",),
        ),
        # It explains others, in which an operation was not tried elsewhere.
        (
            [{"rounding over double"}, {"rounding over double", "coalesce over date"}],
            [{"rounding over double"}] * 9,
            ("rounding over double",),
        ),
        # All that agree nowhere: each may be the cause.
        ([{"a over x", "b over x", "c over x"}], [{"c over x"}], ("a over x", "b over x")),
        # If all agree elsewhere: that which explains most, in the largest share of its lines.
        (
            [{"a over x", "c over x"}, {"a over x", "c over x"}, {"a over x", "b over x"}],
            [{"a over x"}] * 9 + [{"b over x"}] * 3 + [{"c over x"}] * 99,
            ("a over x",),
        ),
        # Two causes.
        (
            [{"a over x", "c over x"}, {"b over x", "c over x"}],
            [{"c over x"}] * 3,
            ("a over x", "b over x"),
        ),
        ([], [{"a over x"}], ()),
    ],
)
def test_differences_are_explained_by_what_most_likely_differs(
    differing: list[set[str]], agreeing: list[set[str]], due: tuple[str, ...]
) -> None:
    assert blamed(differing, agreeing) == due


_DOUBTS = Path(__file__).with_name("doubts.md")


@pytest.mark.parametrize(
    ("title", "blocks"),
    [*sections(_DOUBTS.read_text(encoding="utf-8"))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_assertion_is_in_doubt_by_its_own_operands(
    title: str, blocks: tuple[Block, ...]
) -> None:
    (doubts,) = (block for block in blocks if block.kind == "doubts")
    case = ProofCase("doubts.md", title, tuple(block for block in blocks if block is not doubts))
    tables, refs = case.tables()
    datasets = {
        ref.name: SeenDataset(
            Schema.of(ref.name, tables[ref.name].fields), ref.format if ref.path else None
        )
        for ref in refs
    }
    known = KnownEngine(tuple(doubts.text.splitlines()))
    reason = re.compile(r"found to compute other values with ([\w ,]+?)(?:, as in `.*`)?: `dql")
    found = []
    for assertion in plan_of_claims([claim for claim, _ in case.lines], refs).assertions:
        if assertion.is_implicit:
            continue
        traits: set[str] = set()
        for one in assertion.requests:
            if (objection := objection_to_engine(one, datasets, known)) is not None:
                match = reason.search(objection)
                assert match is not None, objection
                traits |= set(match[1].split(", "))
        found.append(", ".join(sorted(traits)) or "none")
    assert [f"{claim} => {value}" for (claim, _), value in zip(case.lines, found, strict=True)] == [
        f"{claim} => {due}" for claim, due in case.lines
    ]


@pytest.mark.more
def test_an_engine_with_the_faults_of_sail_judges_none_of_them() -> None:
    """Also if it is not Sail, and only the proof of a user knows it."""
    proof = proof_of_sail()
    found = {(one.case, one.claim): one.found for one in proof.differences if not one.is_error}
    values = {
        case: [found.get((str(case), claim), due) for claim, due in case.lines]
        for case in proof_cases()
    }
    assert doubts_of(values) == proof.doubts


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
    assert read_proofs(str(root)) == (proof,)
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
def test_a_proof_holds_for_the_same_version_engine_and_settings_alone(
    spark: Any, tmp_path: Path
) -> None:
    key, engine = engine_key(spark)
    assert engine["spark"] == spark.version
    assert spark.version in engine["engine"]["build"]
    for name, value in (
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.rapids.sql.enabled", "true"),
        ("spark.comet.enabled", "true"),
        ("spark.gluten.enabled", "true"),
        ("spark.databricks.photon.enabled", "true"),
        ("spark.databricks.clusterUsageTags.sparkVersion", "15.4.x-photon-scala2.12"),
    ):
        other = spark.newSession()
        other.conf.set(name, value)
        assert engine_key(other)[0] != key, name
        assert settings_of(other) != settings_of(spark), name  # by which states are reused
    assert engine_key(spark.newSession())[0] == key
    assert read_proofs(str(tmp_path)) == ()


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        ({"spark.plugins": "org.apache.spark.CometPlugin"}, ["spark.plugins"]),
        (
            {"spark.rapids.sql.enabled": "true", "spark.rapids.memory.pinnedPool.size": "2g"},
            ["spark.rapids.sql.enabled"],
        ),
        (
            {
                "spark.plugins": "com.example.velocity.VelocityPlugin",
                "spark.velocity.enabled": "true",
                "spark.velocity.token": "hidden",
                "spark.executor.cores": "4",
            },
            ["spark.plugins", "spark.velocity.enabled"],
        ),
        (
            {"spark.shuffle.manager": "org.apache.spark.sql.comet.CometShuffleManager"},
            ["spark.shuffle.manager"],
        ),
        ({"spark.dataproc.lightningEngine.runtime": "native"}, None),
        ({"spark.native.enabled": "true"}, None),
        ({"spark.auron.enable": "true"}, None),
        ({"spark.databricks.clusterUsageTags.clusterId": "0601-1"}, []),
        ({"spark.databricks.delta.retentionDurationCheck.enabled": "false"}, []),
        ({"spark.connect.grpc.binding.port": "15002"}, []),
    ],
)
def test_what_chooses_an_engine_is_known_by_its_name(
    settings: dict[str, str], due: list[str] | None
) -> None:
    assert [*switches_in(settings)] == ([*settings] if due is None else due)


def test_the_versions_of_an_engine_are_its_build_its_runtime_and_its_jars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {
        "spark.jars": "s3://lake/rapids-4-spark_2.12-24.08.1.jar,s3://lake/ours-1.jar",
        "spark.jars.packages": "org.apache.datafusion:comet-spark-spark3.5_2.12:0.9.0,a:b:1",
        "spark.driver.extraClassPath": "/opt/gluten-velox-bundle-spark3.5_2.12-1.4.jar:/opt/x.jar",
    }
    plain = _Session({"version()": "3.5.0 1234abcd"})
    jars = (
        "gluten-velox-bundle-spark3.5_2.12-1.4.jar "
        "org.apache.datafusion:comet-spark-spark3.5_2.12:0.9.0 rapids-4-spark_2.12-24.08.1.jar"
    )
    assert versions_of(plain, {}) == {"build": "3.5.0 1234abcd"}
    assert versions_of(plain, settings) == {"build": "3.5.0 1234abcd", "jars": jars}
    runtime = '{"dbr_version":"15.4.x-photon","u_build_hash":"1"}'
    anonymous = f"3.5.0 {'0' * 40}"
    databricks = _Session({"current_version()": runtime, "version()": anonymous})
    assert versions_of(databricks, {}) == {"build": anonymous, "runtime": runtime}


class _Session:
    """A session over Spark Connect with an answer for each function."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def sql(self, query: str) -> _Session:
        self.query = query
        return self

    def collect(self) -> list[tuple[str]]:
        return [(next(text for call, text in self.answers.items() if call in self.query),)]


DOUBTED = "tests for NULL over string"


def _proof(
    spark: Any, change: Callable[[dict[str, Any]], object] = lambda _: None, **changes: Any
) -> EngineProof:
    """A proof of the engine of a session, or of one that differs by a change."""
    key, engine = engine_key(spark)
    before = json.dumps(engine)
    change(engine)
    return EngineProof(
        key=key if json.dumps(engine) == before else "another",
        engine=json.dumps(engine),
        spark_version=engine["spark"],
        at=changes.pop("at", datetime(2024, 2, 1, tzinfo=timezone.utc)),
        agreeing=1_600,
        differences=(Difference("case", "null_count(s)", "1", "2"),),
        doubts=changes.pop("doubts", (DOUBTED,)),
    )


OLDER = {"dqx_airflow": "0.2.0"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "due"),
    [
        (lambda engine: engine.update(OLDER), "proven for dqx_airflow 0.2.0, not for dqx_airflow"),
        (lambda engine: engine.update(cases="0"), "proven for other conformance cases, not for"),
        (lambda engine: engine.update(spark="4.2.9"), "proven for Spark 4.2.9, not for Spark"),
        (
            lambda engine: engine["settings"].update(
                {"spark.sql.legacy.timeParserPolicy": "LEGACY"}
            ),
            "proven for spark.sql.legacy.timeParserPolicy=LEGACY, not for",
        ),
        (
            lambda engine: engine["engine"].update(build="4.2.0 0"),
            "proven for build=4.2.0 0, not for",
        ),
        (
            lambda engine: engine["engine"].update({"spark.comet.enabled": "true"}),
            "proven for spark.comet.enabled=true, not for spark.comet.enabled not set",
        ),
        (lambda engine: engine.update(session="connect"), "proven for a connect session, not for"),
    ],
    ids=["ours", "cases", "patch", "setting", "build", "plugin", "session"],
)
def test_what_was_in_doubt_stays_so_until_an_engine_is_proven_again(
    spark: Any, change: Callable[[dict[str, Any]], object], due: str
) -> None:
    known = known_engine(spark, [_proof(spark, change)])
    assert known.doubts == (DOUBTED,)
    assert not known.is_proven
    assert (known.mark or "").startswith(due)
    assert f": prove again; until then these stay in doubt: {DOUBTED}" in (known.mark or "")
    proven = _proof(spark, doubts=(), at=datetime(2024, 1, 1, tzinfo=timezone.utc))
    known = known_engine(spark, [_proof(spark, change), proven])
    assert (known.doubts, known.mark) == ((), proven.mark)


@pytest.mark.spark
def test_the_nearest_engine_that_was_proven_says_what_is_in_doubt(spark: Any) -> None:
    def older(engine: dict[str, Any]) -> None:
        engine.update(OLDER)

    def photon(engine: dict[str, Any]) -> None:
        engine["engine"]["spark.databricks.photon.enabled"] = "true"

    def sail(engine: dict[str, Any]) -> None:
        engine["spark"] = "4.2.0 (Sail 0.7.2)"

    first, second = (datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2))
    in_doubt = ("sums over decimal",)
    of_photon = _proof(spark, photon, doubts=in_doubt)
    # The newest of the nearest.
    known = known_engine(
        spark,
        [_proof(spark, older, at=first), _proof(spark, older, at=second, doubts=()), of_photon],
    )
    assert known.doubts == ()
    assert re.fullmatch(
        r"proven for dqx_airflow 0\.2\.0, not for dqx_airflow \S+: prove again", known.mark or ""
    )
    # Another engine passes on its doubts and no mark; one that has no code of Spark, nothing.
    assert known_engine(spark, [of_photon]).doubts == in_doubt
    assert known_engine(spark, [_proof(spark, photon, doubts=())]) == KnownEngine()
    assert known_engine(spark, [_proof(spark, sail)]) == KnownEngine()
    # A proof that cannot be read in full, or has doubts of one operation, is no weaker.
    unknown = replace(of_photon, engine="", doubts=("sum over decimal(10,2)",))
    assert known_engine(spark, [unknown]).doubts == in_doubt


@pytest.mark.spark
def test_after_an_upgrade_a_gate_keeps_its_doubts_and_says_what_to_do(
    spark: Any, run: Run, tmp_path: Path, words: Path
) -> None:
    root = tmp_path / "results"
    write_proof(str(root), _proof(spark, lambda engine: engine.update(OLDER)))
    report = run(request(root, words, BODY))
    found = {verdict.name: verdict for verdict in report.verdicts}
    assert report.outcome is Outcome.BROKEN
    assert found["nulls"].status is Status.ERROR
    assert "tests for NULL over string, as in `null_count(word)`" in (found["nulls"].reason or "")
    assert "(proven for dqx_airflow 0.2.0, not for" in (found["nulls"].reason or "")
    assert found["sum"].status is found["length"].status is Status.PASSED
    mark = report.engine_proof or ""
    assert mark.startswith("proven for dqx_airflow 0.2.0")
    assert "prove again" in mark
    assert mark in "\n".join(account(report))
    stored = find_report(StoredResults(str(root)), report.run_id)
    assert stored is not None
    assert stored.engine_proof == mark
    assert gates_not_proven(str(root)) == {"test.gate": mark}
    facet = tags(report)
    assert facet is not None
    assert "proven on" not in {tag.key: tag.value for tag in facet.tags}["dqx_engine"]


@pytest.mark.spark
def test_cases_of_files_are_not_tried_where_spark_sees_no_folder(spark: Any) -> None:
    of_files = [case for case in proof_cases() if any(b.kind == "csv" for b in case.blocks)][:1]
    proof = prove(spark, None, lambda *_: None, of_files)
    assert proof.untried == (("Spark sees no folder of this machine", len(of_files[0].lines)),)
    assert "were not tried" in replace(proof, agreeing=1).mark


@pytest.mark.parametrize("part", ["engine", "settings"])
@pytest.mark.parametrize("other", [None, [], "x", 1])
@pytest.mark.few(2)
def test_a_proof_with_odd_parts_keeps_its_doubts(spark: Any, part: str, other: object) -> None:
    _, engine = engine_key(spark)
    text = json.dumps({**engine, part: other})
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    proof = EngineProof("other", text, str(spark.version), at, 1, (), ("round over double",))
    assert known_engine(spark, [proof]).doubts == ("rounding over double",)


@pytest.mark.parametrize(
    ("doubt", "trait"),
    [
        ("hour over string", "parts of dates over string"),
        ("rounding over double", "rounding over double"),
        ("minimum over date", "extremes over date"),
        ("violating_rows over date", "violating_rows over date"),
        ("an operation of tomorrow over double", "type double"),
    ],
)
def test_of_an_operation_that_only_a_newer_version_knows_the_type_is_in_doubt(
    doubt: str, trait: str
) -> None:
    assert widened([doubt]) == {trait}
