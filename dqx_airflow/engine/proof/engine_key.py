"""What identifies an engine: a proof holds for it alone."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.session.spark_session import settings_of
from dqx_airflow.errors import SparkError


def engine_key(spark: SparkSession) -> tuple[str, dict[str, Any]]:
    """What identifies an engine for proofs, and its readable form: its version, the kind of
    session, the settings that may change a value, and our version, whose SQL it computes.

    :raises SparkError: the session hides its settings.
    """
    settings = settings_of(spark)
    if settings is None:
        raise SparkError("this Spark hides its settings, so nothing can be proven about it")
    engine = {
        "spark": spark.version,
        "session": type(spark).__module__.split(".")[-2],
        "settings": {name: value for name, value in sorted(settings.items()) if value is not None},
        "dqx_airflow": dqx_airflow.__version__,
        "cases": digest_of_cases(),
    }
    text = json.dumps(engine, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16], engine


def digest_of_cases() -> str:
    """What a proof was made with: the same in a checkout, a wheel and a bundle."""
    digest = hashlib.sha256()
    folder = files(__package__).joinpath("cases")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]
