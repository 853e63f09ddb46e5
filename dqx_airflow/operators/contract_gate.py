"""The gate that enforces a data contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dqx_airflow.operators.exceptions import GateMisconfiguredError, as_misconfigured
from dqx_airflow.operators.gate import GateOperator
from dqx_airflow.operators.gate_arguments import Setting, Templated, declared_arguments, one_of
from dqx_airflow.operators.templates import given_fields, has_open, is_open
from dqx_airflow.values.blank import name_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from airflow.sdk.definitions.deadline import DeadlineAlert

    from dqx_airflow.contracts.enforcement.enforced_contract import Enforcement, Unsupported
    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.gate_source import FoundSource
    from dqx_airflow.values import DatasetRef, GateRequest, SourceFile

_MOST_SHOWN = 20
_SIGNS = "\n"
"""A substring of every contract, and of no path."""


class ContractGateOperator(GateOperator):
    """Stops the pipeline if the data violates a data contract.

    The contract is read and compiled on the worker before anything is submitted. A contract with
    errors, with a version other than the pinned one, or past its end fails the task within a
    second. A violated clause at or above `fail_on` fails the task without a retry, and so does a
    clause that describes a check but cannot be enforced. The log lists the clauses that are not
    checked.

    The arguments in groups, in addition to the arguments of all gates:

    - What: `contract`, `data`, `datasets`, `server`, `expect_version`, `models`, `variables`
    - When it fails: `strict`, `unsupported`

    :param contract: the path of a contract (DCS, ODCS, and the formats of `dql contract --help`),
        relative to the DAG's file or to the working directory; or the contract itself. `$ref` is
        followed within the folder of the contract. (templated; files are read without rendering)
    :param data: the data of a contract with one model: a path, a table, or its settings.
        (templated)
    :param datasets: the data of the models, by name, and the datasets that they reference; others
        are looked up in the contract's servers. (templated)
    :param server: the server of the contract to read the data from; required if the contract has
        several. (templated)
    :param expect_version: the version that this gate relies on: `2`, `2.3` or `2.3.0`. Any other
        version fails the task before any data is read, and so does a template without a result.
        (templated)
    :param models: the model or models to enforce; by default all of them. (templated)
    :param strict: treats columns that are not in the contract as violations, even if the contract
        does not require it. (templated)
    :param unsupported: how to treat a clause that describes a check but cannot be enforced. With
        "error" it breaks the gate, as an assertion of the same severity that could not be
        evaluated; with "warn" it is a warning. Clauses that the contract itself accepts
        (`x-dqx-accepted`) are neither. (templated)
    :param variables: the values of `${NAME}` that the contract may know, such as
        `{"LAKE": "s3://lake"}`; None takes the value from the environment of the worker. They are
        parts of the suite that the results keep: give no secrets. (templated)
    """

    def __init__(
        self,
        *,
        contract: Templated[str | os.PathLike[str]],
        data: Templated[DatasetSetting | None] = None,
        datasets: Mapping[str, DatasetSetting] | None = None,
        server: Templated[str | None] = None,
        expect_version: Templated[str | int | None] = None,
        models: Setting[str | Sequence[str]] = (),
        strict: Setting[bool] = False,
        unsupported: Setting[Unsupported] = "error",
        variables: Templated[Mapping[str, str | None] | None] = None,
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
        self.variables = variables
        own_settings = ContractGateOperator.own_arguments.open_settings_of(self)
        self.open_settings += own_settings
        self._written |= ContractGateOperator.own_arguments.written_in(self, own_settings)

    own_arguments = declared_arguments(__init__, inherited=["datasets"])
    settings = (*GateOperator.settings, *own_arguments.settings)
    template_fields: Sequence[str] = given_fields(
        *GateOperator.template_fields, *own_arguments.templated, settings=settings
    )
    checked_arguments = (*GateOperator.checked_arguments, *own_arguments.names)
    true_or_false = (*GateOperator.true_or_false, *own_arguments.true_or_false)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **GateOperator.template_fields_renderers,
        "contract": "yaml",
        "data": "json",
        "variables": "json",
    }
    names_all_datasets = False

    def read_settings(self) -> None:
        """Gives the settings that were templates values of their types."""
        super().read_settings()
        ContractGateOperator.own_arguments.read_settings(self, self.open_settings)

    def read_source(self, context: Any, on: date) -> SourceFile:
        """Returns the file of the contract; its warnings go into the log of the task.

        :raises GateMisconfiguredError: it cannot be read, has errors, or is not of the expected
            version.
        """
        from dqx_airflow.operators.gate_source import dag_folder, find_source, log_diagnostics

        source = find_source(self.contract, dag_folder(context), kind="contract", signs=_SIGNS)
        enforcement = self._enforced(source, on)
        log_diagnostics(enforcement.diagnostics, enforcement.sources, self.log, kind="contract")
        if enforcement.refused:
            raise GateMisconfiguredError("; ".join(enforcement.refused))
        for warning in enforcement.warnings:
            self.log.warning("%s", warning)
        self._found = source
        self._enforcement = enforcement
        self.source_file = source.path
        return enforcement.source

    def _enforced(self, source: FoundSource, on: date | None) -> Enforcement:
        """Compiles the contract for a date; pins the version only if it is known."""
        from dqx_airflow.contracts.enforcement.enforced_contract import enforce
        from dqx_airflow.contracts.references import FolderReader, no_files
        from dqx_airflow.values import SourceFile

        read = no_files if source.path is None else FolderReader(source.path.parent)
        # The file is resolved in its own folder, by its own name.
        named = source.source
        if source.path is not None:
            named = SourceFile(source.path.name, named.text)
        pin = self.expect_version
        return enforce(
            named,
            read,
            on=on,
            expect_version=None if pin is None or is_open(pin) else str(pin),
            models=(self.models,) if isinstance(self.models, str) else tuple(self.models),
            is_strict=self.strict is True,  # a template is not known before the run
            variables=self._known_variables(),
        )

    def _known_variables(self) -> dict[str, str]:
        """The values of `variables`, without those that are open until the run.

        :raises GateMisconfiguredError: one is invalid, or may be a secret.
        """
        from dqx_airflow.contracts.variables import named_variables

        with as_misconfigured():
            return named_variables(self.variables or {}, os.environ)

    def own_mistakes(self) -> Iterator[str]:
        """Returns the errors in the arguments that only a contract gate has."""
        from dqx_airflow.operators.data_mistakes import examine_dataset

        yield from one_of("unsupported", self.unsupported, ("error", "warn"))
        pin = self.expect_version
        # 2.10 is 2.1 as a number.
        if pin is not None and not is_open(pin) and type(pin) not in (str, int):
            yield f"expect_version={pin!r}: write a string, such as '2' or '2.3'"
        if not (self.server is None or isinstance(self.server, str) or is_open(self.server)):
            yield f"server={self.server!r}: write the name of a server of the contract"
        if not self._are_models_named():
            yield f"models={self.models!r}: write the name of a model, or a list of names"
        if self.data is not None and not any(name_errors({"data": self.data})):
            yield from examine_dataset("data", self.data).mistakes
        if not self._are_variables_strings():
            yield f"variables={self.variables!r}: write a mapping of names to strings or None"

    def _are_models_named(self) -> bool:
        if isinstance(self.models, str):
            return True
        if is_open(self.models):
            return True
        return isinstance(self.models, list | tuple) and all(
            isinstance(model, str) or is_open(model) for model in self.models
        )

    def _are_variables_strings(self) -> bool:
        given = self.variables
        if given is None or is_open(given):
            return True
        if not isinstance(given, Mapping):
            return False
        texts = (value for value in given.values() if value)
        return all(isinstance(text, str) or is_open(text) for text in texts)

    def source_mistakes(
        self, folder: Path, datasets: Sequence[DatasetRef] | None
    ) -> tuple[list[str], Sequence[Path]]:
        """Returns the errors in a contract that is not a template, and in its pin."""
        from dqx_airflow.operators.gate_source import errors_in, find_source

        if is_open(self.contract) or (self.is_set_by_function and not self.contract):
            return [], ()
        given = self.variables or {}
        # Only the worker knows the values that are open.
        is_known = not has_open(given) and not has_open(self.models)
        if [*self.own_mistakes()] or not is_known or None in given.values():
            return [], ()
        try:
            file = find_source(self.contract, folder, kind="contract", signs=_SIGNS)
        except GateMisconfiguredError as error:
            return [str(error)], ()
        enforcement = self._enforced(file, None)
        mistakes = errors_in(
            enforcement.diagnostics, enforcement.sources, f"the contract {file.source.name}"
        )
        mistakes += enforcement.refused
        if not mistakes:
            mistakes = self._selection_mistakes(enforcement, datasets or ())
        if not mistakes:
            mistakes = self._location_mistakes(enforcement)
        if file.path is None:
            return mistakes, ()
        files = (file.path.parent / source for source in enforcement.sources)
        return mistakes, (*file.searched, *files)

    def _selection_mistakes(
        self, enforcement: Enforcement, datasets: Sequence[DatasetRef]
    ) -> list[str]:
        """Mistakes in the selection of clauses, as far as it is known before the run."""
        from dqx_airflow.operators.gate_source import selectable_suites
        from dqx_airflow.operators.mistakes import known_selection

        selection = known_selection(self)
        if selection is None:
            return []
        enforced = enforcement.over(datasets)
        pairs = [(enforced.checked.valid_suite, enforced.suite)]
        _, mistakes = selectable_suites(selection, pairs, datasets, enforced.contract)
        return mistakes

    def _location_mistakes(self, enforcement: Enforcement) -> list[str]:
        """Mistakes in the locations of the models, as far as they are known before the run."""
        from dqx_airflow.operators.data_mistakes import examine_dataset, location_mistakes

        given = (self.data, self.datasets, self.server, self.models)
        if any(map(is_open, given)) or self.is_set_by_function:
            return []
        if not isinstance(self.datasets or {}, Mapping):
            return []  # the check of the datasets reports it
        self._enforcement = enforcement
        try:
            settings = self.dataset_settings(lambda value: value)
        except GateMisconfiguredError as error:
            return [str(error)]
        return location_mistakes(
            self, [examine_dataset(name, given).ref for name, given in settings.items()]
        )

    def dataset_arguments(self) -> list[tuple[str, Any]]:
        """Returns the datasets and their settings in the DAG, `data` first."""
        named = [] if self.data is None else [("data", self.data)]
        return [*named, *super().dataset_arguments()]

    def dataset_settings(self, render: Callable[[Any], Any]) -> Mapping[str, DatasetSetting]:
        """Returns the datasets as given; for other models those from the servers of the contract.

        :param render: renders the templates in a setting.
        :raises GateMisconfiguredError: a model has no dataset, or an invalid one.
        """
        from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings
        from dqx_airflow.operators.gate_request import rendered

        given = {} if self.datasets is None else dict(super().dataset_settings(render))
        contract = self._enforcement.contract
        assert contract is not None
        if self.data is not None:
            if len(contract.models) != 1 or contract.models[0].name in given:
                raise GateMisconfiguredError(
                    "data is for a contract of one model, which has no entry in datasets: "
                    f"write datasets for {', '.join(model.name for model in contract.models)}"
                )
            given[contract.models[0].name] = rendered("data", self.data, render)
        with as_misconfigured():
            return dataset_settings(contract, given, self.server)

    def check_source(self, request: GateRequest) -> GateRequest:
        """Returns the request with the compiled suite and the contract; over a range of dates with
        a suite and a contract for each date, since clauses may depend on it.

        :raises GateMisconfiguredError: the suite does not fit the datasets, nothing is selected, or
            the contract is not in force on one of the dates.
        """
        unchecked: dict[str, None] = {}
        compiled = self._compiled(request, self._enforcement, unchecked)
        parts = []
        for part in request.more:
            on = part.run_key.date
            enforcement = self._enforced(self._found, on)
            if enforcement.refused:
                raise GateMisconfiguredError(f"on {on}: {'; '.join(enforcement.refused)}")
            own = self._compiled(replace(request, run_key=part.run_key), enforcement, unchecked)
            is_same = (own.suite, own.contract) == (compiled.suite, compiled.contract)
            parts.append(
                part
                if is_same
                else replace(part, suite=own.suite, contract=own.contract, selection=own.selection)
            )
        for line in list(unchecked)[:_MOST_SHOWN]:
            self.log.warning("%s", line)
        if (more := len(unchecked) - _MOST_SHOWN) > 0:
            self.log.warning("not checked: %d more; see `dql contract clauses`", more)
        return replace(compiled, more=tuple(parts))

    def _compiled(
        self, request: GateRequest, enforcement: Enforcement, unchecked: dict[str, None]
    ) -> GateRequest:
        """The request for the contract as it is enforced on its date.

        :param unchecked: collects the clauses that are not checked.
        :raises GateMisconfiguredError: the suite does not fit the datasets, or nothing is selected.
        """
        from dqx_airflow.operators.gate_source import selected_suite

        enforced = enforcement.over(
            request.datasets, on=request.run_key.date, unsupported=self.unsupported
        )
        if enforced.objections:
            raise GateMisconfiguredError("; ".join(enforced.objections))
        unchecked.update(dict.fromkeys(enforced.account))
        compiled = replace(request, suite=enforced.suite, contract=enforced.contract)
        if request.selection is not None:
            selected_suite(compiled, enforced.checked.valid_suite)
        return compiled


def contract_deadline(
    contract: str | os.PathLike[str], callback: Any, reference: Any = None
) -> DeadlineAlert:
    """Returns the deadline of a DAG by the freshness in a contract, for `DAG(deadline=...)`:
    Airflow runs the callback if a run of the DAG has not succeeded by then, whatever kept it from
    that.

    It is the shortest freshness after the beginning of the date whose data the run brings. The file
    is read whenever the DAG is parsed. From Airflow 3.1 on.

    :param contract: the path of a contract, relative to the file of this call, or absolute.
    :param callback: an `AsyncCallback` or a `SyncCallback` of Airflow.
    :param reference: when the time begins, a `DeadlineReference`; by default the logical date.
    :raises GateMisconfiguredError: the contract cannot be read, has errors, or has no freshness.
    """
    from datetime import timedelta

    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

    from dqx_airflow.contracts.demands import Fresh
    from dqx_airflow.contracts.enforcement.lint import lint
    from dqx_airflow.contracts.read import read_contract
    from dqx_airflow.contracts.references import FolderReader, no_files
    from dqx_airflow.operators.gate_source import errors_in, find_source

    folder = Path(sys._getframe(1).f_code.co_filename).parent
    found = find_source(contract, folder, kind="contract", signs=_SIGNS)
    read = no_files if found.path is None else FolderReader(found.path.parent)
    known = read_contract(found.source, read)
    name = f"contract {found.source.name}"
    rules = known.contract.rules() if known.contract is not None and not known.errors else ()
    ages = [
        rule.demand.age_s
        for _, _, rule in rules
        if rule.name.startswith("freshness") and isinstance(rule.demand, Fresh)
    ]
    if not ages:
        # A freshness of a field that does not exist is none, and only lint says so.
        linted = lint(known.contract) if known.contract is not None else ()
        mistakes = errors_in([*known.diagnostics, *linted], known.sources, name)
        lacking = f"{name} has no freshness: the deadline is that in slaProperties or servicelevels"
        raise GateMisconfiguredError("; ".join(mistakes) or lacking)
    start = reference or DeadlineReference.DAGRUN_LOGICAL_DATE
    return DeadlineAlert(start, timedelta(seconds=min(ages)), callback)
