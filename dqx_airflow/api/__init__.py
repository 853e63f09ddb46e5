"""The Python API: DQL run from Python, and suites written in Python."""

from dqx_airflow.api.contract import (
    Contract,
    ContractValidator,
    ContractViolationError,
    assert_contract,
)
from dqx_airflow.api.contract_registry import ContractRegistry
from dqx_airflow.api.database import Database, MemoryDatabase, SparkDatabase, StoredDatabase
from dqx_airflow.api.expressions import MetricExpression, MetricProvider
from dqx_airflow.api.run import DatedResults, DatesFailedError, Result, Results, SuiteFailedError
from dqx_airflow.api.suite import Interpreter, Suite
from dqx_airflow.api.validated import read_validated
from dqx_airflow.api.verification import Context, VerificationSuite, check
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.tuning.tunables import (
    Tunable,
    TunableChoice,
    TunableFloat,
    TunableInt,
    TunablePercent,
)

__all__ = [
    "Context",
    "Contract",
    "ContractRegistry",
    "ContractValidator",
    "ContractViolationError",
    "Database",
    "DatedResults",
    "DatesFailedError",
    "Interpreter",
    "MemoryDatabase",
    "MetricExpression",
    "MetricProvider",
    "Result",
    "Results",
    "SparkDatabase",
    "StoredDatabase",
    "Suite",
    "SuiteFailedError",
    "Table",
    "Tunable",
    "TunableChoice",
    "TunableFloat",
    "TunableInt",
    "TunablePercent",
    "VerificationSuite",
    "assert_contract",
    "check",
    "read_validated",
]
