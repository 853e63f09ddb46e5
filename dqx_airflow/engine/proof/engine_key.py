"""What identifies an engine, for which alone a proof holds; and the proofs in the package."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.session.sail import engine_version, sail_version
from dqx_airflow.engine.session.spark_session import SQL_DEFAULTS, settings_of
from dqx_airflow.errors import SparkError
from dqx_airflow.values import EngineProof
from dqx_airflow.values.json_form import from_json
from dqx_airflow.values.request import ANSI

PROOF_OF_SAIL = "sail.json"


def engine_key(spark: SparkSession) -> tuple[str, dict[str, Any]]:
    """What identifies an engine for proofs, and its readable form: its version, the kind of
    session, the settings that may change a value, and our version, whose SQL it computes.

    :raises SparkError: the session hides its settings.
    """
    settings = settings_of(spark)
    if settings is None:
        raise SparkError("this Spark hides its settings, so nothing can be proven about it")
    engine = {
        "spark": engine_version(spark),
        "session": type(spark).__module__.split(".")[-2],
        "settings": {name: value for name, value in sorted(settings.items()) if value is not None},
        "dqx_airflow": dqx_airflow.__version__,
        "cases": digest_of_cases(),
    }
    text = json.dumps(engine, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16], engine


def known_proof(spark: SparkSession, proven: EngineProof | None = None) -> EngineProof | None:
    """What is known about an engine; of Sail, what the package knows as well.

    :param proven: the proof of a user, if there is one.
    :raises SparkError: it is a version of Sail that was not tried, or not with these settings.
    """
    version = sail_version(spark)
    if version is None:
        return proven
    shipped = proof_of_sail()
    if proven is not None:
        return replace(proven, doubts=tuple(sorted({*proven.doubts, *shipped.doubts})))
    needed = [
        f"set {name}={SQL_DEFAULTS[name]}"
        for name in ("spark.sql.session.timeZone", ANSI)
        if spark.conf.get(name, None) != SQL_DEFAULTS[name]
    ]
    if version != shipped.spark_version:
        needed.append(f"pip install pysail=={shipped.spark_version}")
    if not needed:
        return shipped
    raise SparkError(
        f"Sail {version} was not tried with these settings, so nothing is judged over it",
        f"{', '.join(needed)}, or prove this one into the results root of the gate: "
        "dql doctor --prove --results-root ...",
    )


@cache
def proof_of_sail() -> EngineProof:
    """The proof of the version of Sail that was tried, which is its `spark_version`."""
    text = files(__package__).joinpath(PROOF_OF_SAIL).read_text(encoding="utf-8")
    return from_json(EngineProof, text)


def digest_of_cases() -> str:
    """What a proof was made with: the same in a checkout, a wheel and a bundle."""
    digest = hashlib.sha256()
    folder = files(__package__).joinpath("cases")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]
