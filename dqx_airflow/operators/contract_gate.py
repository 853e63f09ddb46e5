"""The gate that enforces a data contract."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateMisconfigured
from dqx_airflow.operators.gate import GateOperator

if TYPE_CHECKING:
    from datetime import date

    from dqx_airflow.contracts.enforcement.enforced_contract import Unsupported
    from dqx_airflow.dataset_settings import DatasetSetting
    from dqx_airflow.values import GateRequest, SourceFile

_MOST_TOLD = 20


class ContractGateOperator(GateOperator):
    """Stops the pipeline if the data violates a data contract.

    The contract is read and compiled on the worker before anything is submitted: a contract with
    errors, with a version other than the pinned one, or past its end fails the task within a
    second. A violated clause at or above `fail_on` fails the task without a retry, and so does a
    clause that states a check and cannot be enforced. The log lists the clauses that are not
    checked.

    :param contract: the path of a contract (DCS, ODCS, and the formats of `dql contract --help`),
        relative to the DAG's file or to the working directory; or the contract itself. `$ref` is
        followed within the folder of the contract. (templated; files are read without rendering)
    :param data: the data of a contract with one model: a path, a table, or its settings.
        (templated)
    :param datasets: the data of the models, by name, and the datasets that they reference; others
        are looked up in the contract's servers. (templated)
    :param server: the server of the contract whose data is read; required if it names several.
        (templated)
    :param expect_version: the version that this gate relies on, `2`, `2.3` or `2.3.0`: any other
        one fails the task before any data is read. (templated)
    :param models: the model or models that are enforced, all of them by default.
    :param strict: columns that the contract does not name are violations, also where it does not
        say so itself.
    :param unsupported: what becomes of a clause that states a check and cannot be enforced: with
        "error" it breaks the gate, as an assertion of its severity that could not be evaluated;
        with "warn" it is a warning. What the contract itself accepts (`x-dqx-accepted`) is neither.
    """

    template_fields: Sequence[str] = (
        *GateOperator.template_fields,
        "contract",
        "data",
        "server",
        "expect_version",
    )

    def __init__(
        self,
        *,
        contract: str | os.PathLike[str],
        data: DatasetSetting | None = None,
        datasets: Mapping[str, DatasetSetting] | None = None,
        server: str | None = None,
        expect_version: str | int | None = None,
        models: str | Sequence[str] = (),
        strict: bool = False,
        unsupported: Unsupported = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(datasets=datasets, **kwargs)
        self.contract = contract
        self.data = data
        self.server = server
        self.expect_version = expect_version
        self.models = models
        self.strict = strict
        self.unsupported = unsupported

    def read_source(self, context: Any, on: date) -> SourceFile:
        """The file of the contract; its warnings go into the log of the task.

        :raises GateMisconfigured: it cannot be read, has errors, or is not of the expected version.
        """
        from dqx_airflow.contracts.enforcement.enforced_contract import enforce
        from dqx_airflow.contracts.source.references import FolderReader, no_files
        from dqx_airflow.operators.sources import find_source, tell
        from dqx_airflow.values import SourceFile

        if self.unsupported not in ("error", "warn"):
            raise GateMisconfigured(f"unsupported={self.unsupported!r}: write error or warn")
        found = find_source(self.contract, context, kind="contract", signs="\n")
        read = no_files if found.place is None else FolderReader(found.place.parent)
        # The file is looked up in its own folder, by its own name.
        named = found.source
        if found.place is not None:
            named = SourceFile(found.place.name, named.text)
        pin = str(self.expect_version) if self.expect_version not in (None, "") else None
        enforcement = enforce(
            named,
            read,
            on=on,
            expect_version=pin,
            models=(self.models,) if isinstance(self.models, str) else tuple(self.models),
            is_strict=self.strict,
        )
        tell(enforcement.diagnostics, enforcement.sources, self.log, kind="contract")
        if enforcement.refused:
            raise GateMisconfigured("; ".join(enforcement.refused))
        for warning in enforcement.warnings:
            self.log.warning("%s", warning)
        self._enforcement = enforcement
        return named

    def dataset_settings(self, render: Callable[[Any], Any]) -> Mapping[str, DatasetSetting]:
        """The datasets as given; of other models those that the servers of the contract name.

        :param render: renders the templates in a setting.
        :raises GateMisconfigured: a model has no dataset, or one that cannot be meant.
        """
        from dqx_airflow.contracts.enforcement.dataset_locations import dataset_settings
        from dqx_airflow.errors import RequestError
        from dqx_airflow.operators.datasets import rendered

        given = {} if self.datasets is None else dict(super().dataset_settings(render))
        contract = self._enforcement.contract
        assert contract is not None
        if self.data is not None and self.data != "":
            if len(contract.models) != 1 or contract.models[0].name in given:
                raise GateMisconfigured(
                    "data is for a contract of one model, which has no entry in datasets: "
                    f"write datasets for {', '.join(model.name for model in contract.models)}"
                )
            given[contract.models[0].name] = rendered(self.data, render)
        try:
            return dataset_settings(contract, given, self.server)
        except RequestError as error:
            raise GateMisconfigured(str(error)) from None

    def check_source(self, request: GateRequest) -> GateRequest:
        """The request with the suite that the contract is compiled to, and with the contract.

        :raises GateMisconfigured: the suite does not fit the datasets.
        """
        on = request.run_key.date
        enforced = self._enforcement.over(request.datasets, on=on, unsupported=self.unsupported)
        if enforced.objections:
            raise GateMisconfigured("; ".join(enforced.objections))
        for line in enforced.account[:_MOST_TOLD]:
            self.log.warning("%s", line)
        if (more := len(enforced.account) - _MOST_TOLD) > 0:
            self.log.warning("not checked: %d more; see `dql contract coverage`", more)
        return replace(request, suite=enforced.suite, contract=enforced.contract)
