"""Identifies an engine, for which alone a proof holds, and finds the proofs for the engine of a
gate.

On another version or with other settings, only the doubts of a proof remain, and not its mark,
until that engine is proven.

"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.proof.operations import widened
from dqx_airflow.engine.session.engines import VERSIONS, switches_in
from dqx_airflow.engine.session.sail import engine_version, sail_version
from dqx_airflow.engine.session.spark_session import SQL_DEFAULTS, settings_of
from dqx_airflow.engine.session.spark_versions import are_of_one_release
from dqx_airflow.errors import SparkError
from dqx_airflow.values import EngineProof
from dqx_airflow.values.engine_proof import PROVE_AGAIN
from dqx_airflow.values.json_form import from_json
from dqx_airflow.values.request import ANSI

PROOF_OF_SAIL = "sail.json"

_OURS = ("dqx_airflow", "cases")
"""The parts of an engine's readable form that are ours."""
_MOST_NAMED = 3
"""How many of the ways in which two engines differ a mark names."""
_LONGEST = 60
"""How much of the value of a setting a mark shows."""


@dataclass(frozen=True, slots=True)
class KnownEngine:
    """The facts about an engine from proofs.

    `doubts` are the traits of requests that are not judged on it. `mark` is a line for reports.
    `outlived` describes the other engine of the proof, if there is no proof for this one.

    """

    doubts: tuple[str, ...] = ()
    mark: str | None = None
    outlived: str | None = None

    @property
    def is_proven(self) -> bool:
        return self.mark is not None and self.outlived is None


def engine_key(spark: SparkSession) -> tuple[str, dict[str, Any]]:
    """The digest that identifies an engine for proofs, and its readable form: its version and
    build, the kind of session, the plugins and settings that may change a value, and our version,
    whose SQL it computes.

    :raises SparkError: the session hides its settings.
    """
    every = settings_of(spark)
    if every is None:
        raise SparkError("this Spark hides its settings, so nothing can be proven about it")
    settings = {name: value for name, value in sorted(every.items()) if value is not None}
    switches = switches_in(settings)
    versions = {name: settings.pop(name) for name in VERSIONS if name in settings}
    engine = {
        **_anonymous_engine(spark),
        "engine": {**switches, **versions},
        "settings": {name: value for name, value in settings.items() if name not in switches},
    }
    text = json.dumps(engine, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16], engine


def _anonymous_engine(spark: SparkSession) -> dict[str, Any]:
    """The readable form of an engine that hides its settings."""
    return {
        "spark": engine_version(spark),
        "session": type(spark).__module__.split(".")[-2],
        "dqx_airflow": dqx_airflow.__version__,
        "cases": digest_of_cases(),
    }


def known_engine(spark: SparkSession, proofs: Sequence[EngineProof] = ()) -> KnownEngine:
    """The facts about an engine from proofs; for Sail, also from the proof in the package.

    :param proofs: the proofs in a results store, for any engine.
    :raises SparkError: this version of Sail was not tried, or not with these settings.

    """
    known = _known_by(spark, proofs) if proofs else KnownEngine()
    version = sail_version(spark)
    if version is None:
        return known
    shipped = proof_of_sail()
    doubts = tuple(sorted({*known.doubts, *shipped.doubts}))
    if known.is_proven:
        return replace(known, doubts=doubts)
    needed = [
        f"set {name}={SQL_DEFAULTS[name]}"
        for name in ("spark.sql.session.timeZone", ANSI)
        if spark.conf.get(name, None) != SQL_DEFAULTS[name]
    ]
    if version != shipped.spark_version:
        needed.append(f"pip install pysail=={shipped.spark_version}")
    if not needed:
        marks = (shipped.mark, known.mark)
        return replace(known, doubts=doubts, mark="; ".join(filter(None, marks)))
    raise SparkError(
        f"Sail {version} was not tried with these settings, so nothing is evaluated over it",
        f"{', '.join(needed)}, or prove this one into the results root of the gate: "
        "dql doctor --prove --results-root ...",
    )


def _known_by(spark: SparkSession, proofs: Sequence[EngineProof]) -> KnownEngine:
    """The facts about an engine from the proofs of a store: from its own proof, or else from the
    proofs of the nearest engines."""
    try:
        key, engine = engine_key(spark)
    except SparkError:
        key = ""
        engine = _anonymous_engine(spark)
    ordered = sorted(proofs, key=lambda proof: proof.at, reverse=True)
    for proof in ordered:
        if proof.key == key:
            return KnownEngine(proof.doubts, proof.mark)
    nearest = _nearest(engine, ordered)
    doubts = tuple(sorted(widened(doubt for proof in nearest for doubt in proof.doubts)))
    if not nearest:
        return KnownEngine()
    proven = _engine_of(nearest[0])
    if not doubts and _distance(engine, proven) == _OTHER:
        return KnownEngine()
    outlived = _difference_between(proven, engine)
    held = f"; until then these stay in doubt: {', '.join(doubts)}" if doubts else ""
    return KnownEngine(doubts, f"{outlived}: {PROVE_AGAIN}{held}", outlived)


def _engine_of(proof: EngineProof) -> dict[str, Any]:
    """The readable form of the engine of a proof, with less in it if another version wrote it."""
    try:
        engine = json.loads(proof.engine)
    except ValueError:
        engine = None
    parts = engine if isinstance(engine, dict) else {}
    # Whatever a store has there, its doubts count.
    for name in ("engine", "settings"):
        if not isinstance(parts.get(name), dict):
            parts.pop(name, None)
    return {"spark": proof.spark_version, **parts}


_SAME, _ALIKE, _OTHER = range(3)
"""How far a proven engine is from another: only our version differs; also settings, or the patch of
Spark; the engine itself, although it is a Spark too."""


def _nearest(engine: Mapping[str, Any], ordered: Sequence[EngineProof]) -> list[EngineProof]:
    """The newest proof of each of the nearest engines, the newest first.

    :param ordered: all proofs, the newest first.
    """
    by_distance: dict[int, dict[str, EngineProof]] = {_SAME: {}, _ALIKE: {}, _OTHER: {}}
    for proof in ordered:
        proven = _engine_of(proof)
        distance = _distance(engine, proven)
        if distance is not None:
            without_ours = {name: part for name, part in proven.items() if name not in _OURS}
            identity = json.dumps(without_ours, sort_keys=True)
            by_distance[distance].setdefault(identity, proof)
    for found in by_distance.values():
        if found:
            return [*found.values()]
    return []


def _distance(engine: Mapping[str, Any], proven: Mapping[str, Any]) -> int | None:
    """The distance of a proven engine: `_SAME`, `_ALIKE` or `_OTHER`; None between Sail and Spark,
    which have no code in common."""
    spark = str(engine["spark"])
    proven_spark = str(proven["spark"])
    if ("Sail" in spark) is not ("Sail" in proven_spark):
        return None
    if all(engine.get(part) == proven.get(part) for part in ("spark", "session", "settings")):
        # A proof of version 0.3 does not contain the build.
        if "engine" not in proven and not _switches(engine):
            return _SAME
        if engine.get("engine") == proven.get("engine"):
            return _SAME
    has_settings = "settings" in engine
    is_alike = _switches(engine) == _switches(proven)
    if has_settings and is_alike and are_of_one_release(spark, proven_spark):
        return _ALIKE
    return _OTHER


def _switches(engine: Mapping[str, Any]) -> dict[str, Any]:
    parts = engine.get("engine", {})
    return {name: value for name, value in parts.items() if name not in VERSIONS}


def _difference_between(proven: Mapping[str, Any], engine: Mapping[str, Any]) -> str:
    """The difference of two engines: `proven for dqx_airflow 0.3.0, not for dqx_airflow 0.4.0`."""
    pairs = [
        (f"{name} {proven.get(part)}", f"{name} {engine.get(part)}")
        for name, part in (("dqx_airflow", "dqx_airflow"), ("Spark", "spark"))
        if proven.get(part) != engine.get(part)
    ]
    if "settings" not in engine:
        pairs.append(("known settings", "a session that hides them"))
    else:
        for part in ("engine", "settings"):
            before = proven.get(part, {})
            now = engine[part]
            if part == "engine" and part not in proven:
                now = _switches(engine)
            pairs += [
                (_shown_setting(name, before), _shown_setting(name, now))
                for name in sorted({*before, *now})
                if before.get(name) != now.get(name)
            ]
    if proven.get("session") != engine.get("session"):
        pairs.append((f"a {proven.get('session')} session", f"a {engine.get('session')} session"))
    if not pairs:
        pairs.append(("other conformance cases", "today's"))
    shown = pairs[:_MOST_NAMED]
    rest = f" and {len(pairs) - len(shown)} more" if len(pairs) > len(shown) else ""
    befores, nows = (", ".join(side) for side in zip(*shown, strict=True))
    return f"proven for {befores}{rest}, not for {nows}{rest}"


def _shown_setting(name: str, settings: Mapping[str, Any]) -> str:
    if name not in settings:
        return f"{name} not set"
    value = str(settings[name])
    return f"{name}={value if len(value) <= _LONGEST else value[:_LONGEST] + '...'}"


@cache
def proof_of_sail() -> EngineProof:
    """The proof of the version of Sail that was tried, which is its `spark_version`."""
    text = files(__package__).joinpath(PROOF_OF_SAIL).read_text(encoding="utf-8")
    return from_json(EngineProof, text)


@cache
def digest_of_cases() -> str:
    """The digest of the conformance cases: the same in a checkout, a wheel and a bundle."""
    digest = hashlib.sha256()
    folder = files(__package__).joinpath("cases")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]
