"""The gates as `@task.dql_gate` and `@task.contract_gate`: a function returns what is enforced."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import (
    DecoratedOperator,
    TaskDecorator,
    context_merge,
    determine_kwargs,
    task_decorator_factory,
)

from dqx_airflow.operators.contract_gate import ContractGateOperator
from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.gate import GateOperator
from dqx_airflow.operators.templates import given_fields

if TYPE_CHECKING:
    from dqx_airflow.datasets.settings import DatasetSetting


class _DecoratedGate(DecoratedOperator, GateOperator):
    """A gate whose datasets, or whose source, a function returns when the task runs.

    The result is used without rendering templates: the function knows the context.
    """

    source_field = ""
    """The argument for the source, `suite` or `contract`."""
    is_set_by_function = True
    takes_several = False
    """Whether there may be several sources."""

    def execute(self, context: Any) -> str:
        """Calls the function, and runs the gate with what it returns.

        :raises GateMisconfiguredError: the function returned something else than a source or
            datasets.
        """
        context_merge(context, self.op_kwargs)
        arguments = determine_kwargs(self.python_callable, self.op_args, context)
        returned = self.python_callable(*self.op_args, **arguments)
        if isinstance(returned, Mapping):
            self.datasets = returned
        elif isinstance(returned, str | os.PathLike) or self._is_several(returned):
            setattr(self, self.source_field, returned)
        else:
            several = ", or a list of suites" if self.takes_several else ""
            raise GateMisconfiguredError(
                f"the function of task {self.task_id} returned {returned!r}: return the datasets, "
                f"a mapping of names to paths or tables, or the {self.source_field}{several}"
            )
        return GateOperator.execute(self, context)

    def _is_several(self, returned: object) -> bool:
        return (
            self.takes_several
            and isinstance(returned, list | tuple)
            and bool(returned)
            and all(isinstance(source, str | os.PathLike) for source in returned)
        )


class _DecoratedDqlGate(_DecoratedGate, DqlGateOperator):
    template_fields = given_fields(
        *DecoratedOperator.template_fields,
        *DqlGateOperator.template_fields,
        settings=DqlGateOperator.settings,
    )
    custom_operator_name = "@task.dql_gate"
    source_field = "suite"
    takes_several = True

    def __init__(
        self,
        *,
        suite: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "",
        datasets: Mapping[str, DatasetSetting] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(suite=suite, datasets=datasets or {}, **kwargs)


class _DecoratedContractGate(_DecoratedGate, ContractGateOperator):
    template_fields = given_fields(
        *DecoratedOperator.template_fields,
        *ContractGateOperator.template_fields,
        settings=ContractGateOperator.settings,
    )
    custom_operator_name = "@task.contract_gate"
    source_field = "contract"

    def __init__(self, *, contract: str | os.PathLike[str] = "", **kwargs: Any) -> None:
        super().__init__(contract=contract, **kwargs)


def dql_gate_task(
    python_callable: Callable[..., Any] | None = None, **kwargs: Any
) -> TaskDecorator:
    """`@task.dql_gate(suite="orders.dql")`: the function returns the datasets, or the
    suite, or a list of suites.

    :param python_callable: the function.
    :param kwargs: the arguments of `DqlGateOperator`.
    """
    return _decorator(_DecoratedDqlGate, python_callable, kwargs)


def contract_gate_task(
    python_callable: Callable[..., Any] | None = None, **kwargs: Any
) -> TaskDecorator:
    """`@task.contract_gate(contract="orders.yaml")`: the function returns the datasets, or the
    contract.

    :param python_callable: the function.
    :param kwargs: the arguments of `ContractGateOperator`.
    """
    return _decorator(_DecoratedContractGate, python_callable, kwargs)


def _decorator(
    kind: type[_DecoratedGate], python_callable: Callable[..., Any] | None, given: Mapping[str, Any]
) -> TaskDecorator:
    """Airflow's decorator, which also checks its arguments: they are everything that the DAG says
    about a gate that is mapped over the arguments of its function."""
    from dqx_airflow.operators.parse_check import require_sound_partial

    make = task_decorator_factory(decorated_operator_class=kind, **given)

    def decorated(function: Callable[..., Any]) -> Any:
        require_sound_partial(kind, {"task_id": function.__name__, **given})
        return make(function)

    return cast(
        "TaskDecorator", decorated if python_callable is None else decorated(python_callable)
    )
