"""Gates between the tasks of an Airflow pipeline that stop bad data.

Importing this package is cheap: the public names are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqx_airflow.api import Context as Context
    from dqx_airflow.api import Contract as Contract
    from dqx_airflow.api import ContractRegistry as ContractRegistry
    from dqx_airflow.api import ContractValidator as ContractValidator
    from dqx_airflow.api import ContractViolationError as ContractViolationError
    from dqx_airflow.api import DatedResults as DatedResults
    from dqx_airflow.api import DatesFailedError as DatesFailedError
    from dqx_airflow.api import Interpreter as Interpreter
    from dqx_airflow.api import MemoryDatabase as MemoryDatabase
    from dqx_airflow.api import MetricProvider as MetricProvider
    from dqx_airflow.api import Results as Results
    from dqx_airflow.api import SparkDatabase as SparkDatabase
    from dqx_airflow.api import StoredDatabase as StoredDatabase
    from dqx_airflow.api import Suite as Suite
    from dqx_airflow.api import SuiteFailedError as SuiteFailedError
    from dqx_airflow.api import Table as Table
    from dqx_airflow.api import TunableChoice as TunableChoice
    from dqx_airflow.api import TunableFloat as TunableFloat
    from dqx_airflow.api import TunableInt as TunableInt
    from dqx_airflow.api import TunablePercent as TunablePercent
    from dqx_airflow.api import VerificationSuite as VerificationSuite
    from dqx_airflow.api import assert_contract as assert_contract
    from dqx_airflow.api import check as check
    from dqx_airflow.api import read_validated as read_validated
    from dqx_airflow.operators import ContractGateOperator as ContractGateOperator
    from dqx_airflow.operators import DqlGateOperator as DqlGateOperator
    from dqx_airflow.values import DatasetRef as DatasetRef
    from dqx_airflow.values import GateReport as GateReport
    from dqx_airflow.values import GateRequest as GateRequest
    from dqx_airflow.values import Outcome as Outcome
    from dqx_airflow.values import Severity as Severity
    from dqx_airflow.values import Status as Status
    from dqx_airflow.values import Verdict as Verdict

__version__ = "0.3.0"


def lazy_names(
    package: str, modules: Mapping[str, str], root: str | None = None
) -> tuple[list[str], Callable[[str], Any]]:
    """The names of a package, from those of its modules, and its `__getattr__`, which imports the
    module of a name on first use.

    :param root: where the modules are, if not in the package.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{root or package}.{homes[name]}"), name)

    return [*homes], named


_NAMES, __getattr__ = lazy_names(
    __name__,
    {
        "values": "DatasetRef GateReport GateRequest Outcome Severity Status Verdict",
        "operators": "ContractGateOperator DqlGateOperator",
        "api": "Context Contract ContractRegistry ContractValidator ContractViolationError "
        "DatedResults DatesFailedError Interpreter MemoryDatabase MetricProvider Results "
        "SparkDatabase StoredDatabase Suite SuiteFailedError Table TunableChoice TunableFloat "
        "TunableInt TunablePercent VerificationSuite assert_contract check read_validated",
    },
)

__all__ = ["__version__", *_NAMES]  # noqa: PLE0604 (the names are those of the table)


def get_provider_info() -> dict[str, Any]:
    """The entry of this package under Admin, Providers in Airflow. Called in every process."""
    import json
    from importlib.resources import files

    page = files("dqx_airflow.operators").joinpath("provider_info.json").read_text("utf-8")
    return {**json.loads(page), "versions": [__version__]}
