"""The gate that enforces a DQL suite."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.gate import GateOperator
from dqx_airflow.operators.gate_arguments import Templated, declared_arguments
from dqx_airflow.operators.templates import given_fields, is_open

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from dqx_airflow.dql.check import Checked
    from dqx_airflow.dql.import_readers import Reader
    from dqx_airflow.dql.nodes import Suite
    from dqx_airflow.operators.gate_source import FoundSource
    from dqx_airflow.values import DatasetRef, GateRequest, Selection, ShadowSuite, SourceFile

_SIGNS = "{\n"
"""A substring of every suite, and of no path."""


class DqlGateOperator(GateOperator):
    """Stops the pipeline if the data violates a rule of a DQL suite.

    The suite is checked on the worker before anything is submitted. A failed rule at or above
    `fail_on` fails the task without a retry, so that everything downstream (with the trigger rule
    `all_success`) is `upstream_failed`.

    The arguments in groups, in addition to the arguments of all gates:

    - What: `suite`, `shadow`

    :param suite: the path of a `.dql` file, relative to the DAG's file or to the working directory;
        or the source of a suite; or a list of these. The suites of a list share one scan, and each
        has a separate report; the worst outcome is the gate's. Imports are searched in the
        suite's folder, in the DAG's folder, and in the folders of the environment variable
        DQL_PATH. (templated; files are read without rendering)
    :param shadow: a second suite, given like `suite`, that is evaluated in the same scan, such as a
        proposed version of it. Its verdicts are stored and logged, but do not affect the outcome,
        alerts or promotions. If it has errors, they are logged, and the gate runs without it. It
        uses the datasets of the gate, and needs a gate with a single suite. (templated)
    """

    def __init__(
        self,
        *,
        suite: Templated[str | os.PathLike[str] | Sequence[str | os.PathLike[str]]],
        shadow: Templated[str | os.PathLike[str] | None] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.suite = suite
        self.shadow = shadow
        own_settings = DqlGateOperator.own_arguments.open_settings_of(self)
        self.open_settings += own_settings
        self._written |= DqlGateOperator.own_arguments.written_in(self, own_settings)

    own_arguments = declared_arguments(__init__)
    settings = (*GateOperator.settings, *own_arguments.settings)
    template_fields: Sequence[str] = given_fields(
        *GateOperator.template_fields, *own_arguments.templated, settings=settings
    )
    checked_arguments = (*GateOperator.checked_arguments, *own_arguments.names)
    true_or_false = (*GateOperator.true_or_false, *own_arguments.true_or_false)

    def own_mistakes(self) -> Iterator[str]:
        """Returns the errors in several suites."""
        if isinstance(self.suite, list | tuple):
            if not self.suite:
                yield "suite=[]: write the path of a suite, or several paths"
            if isinstance(self.shadow, str | os.PathLike) and len(self.suite) > 1:
                yield "shadow needs a single suite: use a separate gate for the suite with a shadow"

    def read_source(self, context: Any, on: date) -> SourceFile:
        """Returns the file of the first suite, or the text that was given instead.

        :raises GateMisconfiguredError: a suite cannot be read.
        """
        from dqx_airflow.operators.gate_source import dag_folder, find_source

        self._folder = dag_folder(context)
        self._found = [
            find_source(suite, self._folder, kind="suite", signs=_SIGNS)
            for suite in suites_of(self.suite)
        ]
        self.source_file = self._found[0].path
        return self._found[0].source

    def check_source(self, request: GateRequest) -> GateRequest:
        """Returns the request with all files that the suites import; for several suites with their
        parts.

        :raises GateMisconfiguredError: a suite has errors, by itself or with the datasets, or two
            suites have the same name.
        """
        from dqx_airflow.operators.gate_source import log_diagnostics
        from dqx_airflow.plan.dataset_needs import check_datasets
        from dqx_airflow.values import GateOrigin, GatePart

        checked = [_checked(source)[0] for source in self._found]
        chosen = self._chosen(request, checked)
        suites: dict[str, GatePart] = {}
        for source, result, (suite, selection) in zip(self._found, checked, chosen, strict=True):
            diagnostics = list(result.diagnostics)
            if suite is not None:
                diagnostics += check_datasets(suite, request.datasets, request.fail_on)
            log_diagnostics(diagnostics, result.sources, self.log, kind="suite")
            name = result.valid_suite.name.value
            if name in suites:
                raise GateMisconfiguredError(_namesakes(name))
            if suite is None:
                self.log.warning("suite '%s' is not run: none of its assertions is selected", name)
                continue
            suites[name] = GatePart(
                request.run_key, source.source, result.imports, selection=selection
            )
        shadow = self._shadow(request.datasets)
        first = next(iter(suites.values()))
        request = replace(
            request,
            suite=first.suite or request.suite,
            imports=first.imports,
            shadow=shadow,
            selection=first.selection,
        )
        if len(self._found) == 1:
            return request
        parts = []
        for key in request.run_keys:
            for name, part in suites.items():
                own = replace(key, gate=f"{key.gate}/{name}")
                parts.append(GatePart(own) if part is first else replace(part, run_key=own))
        origin = replace(request.origin or GateOrigin(), job=request.run_key.gate)
        return replace(request, run_key=parts[0].run_key, more=tuple(parts[1:]), origin=origin)

    def _chosen(
        self, request: GateRequest, checked: Sequence[Checked]
    ) -> list[tuple[Suite | None, Selection | None]]:
        """Each suite reduced to its selected assertions, with its part of the selection; None for
        a suite without any. If a suite has errors, nothing is selected.

        :raises GateMisconfiguredError: nothing is selected, or something that does not exist.
        """
        from dqx_airflow.operators.gate_source import selected_suites

        sound = [
            result.suite for result in checked if result.suite is not None and not result.errors
        ]
        if request.selection is None or len(sound) < len(checked):
            return [
                (None if result.errors else result.suite, request.selection) for result in checked
            ]
        sources = [suite.source for suite in self._found]
        return selected_suites(request, list(zip(sound, sources, strict=True)))

    def _shadow(self, datasets: Sequence[DatasetRef]) -> ShadowSuite | None:
        """The shadow suite, None without one. If it cannot be judged, `problem` has the reason."""
        if self.shadow is None:
            return None
        from dqx_airflow.operators.gate_source import find_source
        from dqx_airflow.plan.selection import shadow_suite
        from dqx_airflow.values import ShadowSuite

        try:
            source = find_source(self.shadow, self._folder, kind="shadow", signs=_SIGNS)
            name = os.path.basename(source.source.name)
            shadow = shadow_suite(source.source, _reader(source), datasets, name)
        except Exception as error:  # an error in a shadow never stops a gate
            shadow = ShadowSuite(os.path.basename(str(self.shadow))[:80], problem=str(error))
        if shadow.problem is not None:
            self.log.warning("shadow %s cannot be evaluated: %s", shadow.name, shadow.problem)
        return shadow

    def source_mistakes(
        self, folder: Path, datasets: Sequence[DatasetRef] | None
    ) -> tuple[list[str], Sequence[Path]]:
        """Returns the errors in a suite that is not a template, also with these datasets."""
        from dqx_airflow.operators.gate_source import errors_in, find_source

        if is_open(self.suite) or (self.is_set_by_function and not self.suite):
            return [], ()
        mistakes: list[str] = []
        files: list[Path] = []
        names: set[str] = set()
        readable: list[_ReadSuite] = []
        for given in suites_of(self.suite):
            if is_open(given):
                continue
            try:
                source = find_source(given, folder, kind="suite", signs=_SIGNS)
            except GateMisconfiguredError as error:
                mistakes.append(str(error))
                continue
            checked, own_files = _checked(source)
            files += [*source.searched, *own_files]
            mistakes += errors_in(checked.diagnostics, checked.sources, _named(source))
            if checked.suite is None:
                continue
            name = checked.suite.name.value
            if name in names:
                mistakes.append(_namesakes(name))
            names.add(name)
            if not checked.errors:
                readable.append(_ReadSuite(checked.suite, source, checked))
        mistakes += self._mistakes_in_readable(readable, datasets)
        return mistakes, files

    def _mistakes_in_readable(
        self, readable: Sequence[_ReadSuite], datasets: Sequence[DatasetRef] | None
    ) -> list[str]:
        """Mistakes in the selection of assertions, and in the selected ones with the datasets."""
        from dqx_airflow.operators.data_mistakes import unchecked_promotions
        from dqx_airflow.operators.gate_source import errors_in, selectable_suites
        from dqx_airflow.operators.mistakes import known_selection
        from dqx_airflow.plan.dataset_needs import check_datasets

        mistakes: list[str] = []
        selected: Sequence[Suite | None] = [read.suite for read in readable]
        selection = known_selection(self)
        if selection is not None and len(readable) == len(suites_of(self.suite)):
            pairs = [(read.suite, read.source.source) for read in readable]
            selected, mistakes = selectable_suites(selection, pairs, datasets or ())
        if datasets is None:
            return mistakes
        if len(readable) == len(suites_of(self.suite)) and not self.promote_partial:
            mistakes += unchecked_promotions(self, [read.suite for read in readable], datasets)
        for chosen, read in zip(selected, readable, strict=True):
            if chosen is not None:
                diagnostics = check_datasets(chosen, datasets)
                mistakes += errors_in(diagnostics, read.checked.sources, _named(read.source))
        return mistakes


@dataclass(frozen=True, slots=True)
class _ReadSuite:
    """A suite without errors, with its source and its diagnostics."""

    suite: Suite
    source: FoundSource
    checked: Checked


def _named(source: FoundSource) -> str:
    """The name of a suite in messages."""
    return f"the suite {source.source.name}"


def suites_of(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[str | os.PathLike[str], ...]:
    """The suites in an argument, one or several."""
    # Other types are rejected by the search for the file.
    return tuple(given) if isinstance(given, list | tuple) else (cast("str", given),)


def _namesakes(name: str) -> str:
    return f"two suites are named '{name}', so one would hide the other in the results: rename one"


def _checked(source: FoundSource) -> tuple[Checked, tuple[Path, ...]]:
    """The suite with its diagnostics, and the files that were read for it."""
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.import_readers import FileReader

    read = _reader(source)
    checked = check_source(source.source, read, needs_suite=True)
    return checked, read.files if isinstance(read, FileReader) else ()


def _reader(source: FoundSource) -> Reader:
    """A reader of the imports of a suite."""
    from dqx_airflow.dql.import_readers import FileReader, no_imports, search_path

    if source.path is None:
        return no_imports
    root = source.folder or source.path.parent
    return FileReader(source.source.name, source.path, root, search_path(os.environ))
