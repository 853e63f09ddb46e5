"""One call of `dql run`: from the typed options, and the `dqx.toml` that applies, to gate requests;
or to all mistakes. No Spark: every mistake is reported before it is started.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from dqx_airflow import values
from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import Options
from dqx_airflow.cli.stores import root_in
from dqx_airflow.cli.suites import Findings
from dqx_airflow.datasets import dqx_toml
from dqx_airflow.datasets.databases import connection_in, with_lineage_names
from dqx_airflow.datasets.dqx_toml import FILE_NAME, Settings
from dqx_airflow.datasets.settings import (
    argument_name,
    dataset_ref,
    datasets_of_arguments,
    named_alone,
)
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, errors_of, nearest
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.diagnostics.verdicts import SHOWN_ROWS
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.import_readers import FileReader, search_path
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import DEFAULT_SAMPLE_ROWS
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.selection import (
    Selectable,
    choose,
    nothing_selected,
    selectable_assertions,
    shadow_suite,
    unmatched,
    without_unmatched,
)
from dqx_airflow.values import DatasetRef, GateRequest, Selection, SourceFile
from dqx_airflow.values.files import source_location
from dqx_airflow.values.request import dates_of_range, is_range
from dqx_airflow.values.typed_values import DAY_FORMS, typed_day


@dataclass(frozen=True, slots=True)
class CallProblems(Findings):
    """The mistakes in a call; among their sources the values of arguments, by flag."""

    def wrong(self, flag: str, text: str, message: str, hint: str | None = None) -> None:
        """Reports an argument as a whole."""
        lines = [*self.sources[flag].split("\n"), text] if flag in self.sources else [text]
        self.sources[flag] = "\n".join(lines)
        span = values.Span(flag, len(lines), 1, len(lines), len(text) + 1)
        self.diagnostics[Diagnostic(message, span, help=hint or None)] = None

    def warn(self, flag: str, text: str, message: str) -> None:
        """Warns about an argument that is ignored, or possibly meant otherwise."""
        span = values.Span(flag, 1, 1, 1, len(text) + 1)
        self.sources.setdefault(flag, text)
        self.diagnostics[Diagnostic(message, span, is_mild=True)] = None


def with_advice(
    error: Diagnostic, sources: Mapping[str, str], given: Mapping[str, DatasetRef]
) -> Diagnostic:
    """An error of a suite about its datasets, with the `dql run` arguments that fix it."""
    match error.code:
        case "E009":
            span = error.span
            line = sources[span.file].split("\n")[span.line - 1]
            name = line[span.column - 1 : span.end_column - 1]
            nearest_name = nearest(name, given)
            how_to_add = (
                f"add --dataset {name}=PATH, or [datasets.{name}] with a path to {FILE_NAME}"
            )
            advice = f"did you mean '{nearest_name}'?" if nearest_name else how_to_add
        case "E111":
            advice = f"add date_column=COLUMN to its --dataset, or to its table in {FILE_NAME}"
        case _:
            return error
    return replace(error, help=advice)


@dataclass(frozen=True, slots=True)
class RunCall:
    """The work to do, or the mistakes in the call.

    `sources` are the texts to which the diagnostics refer, `files` all files that were read or
    searched, `folders` the folders of contracts by gate. Without errors there is at least one
    request.
    """

    requests: tuple[GateRequest, ...]
    settings: Settings
    format: dqx_toml.RunFormat
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    files: frozenset[Path]
    folders: Mapping[str, Path]

    @property
    def has_errors(self) -> bool:
        return bool(errors_of(self.diagnostics))

    @property
    def valid_requests(self) -> tuple[GateRequest, ...]:
        """The requests.

        :raises SourceError: the call has errors.
        """
        if self.has_errors:
            raise drawn_error(self.diagnostics, self.sources)
        return self.requests

    @property
    def dates(self) -> tuple[date, ...]:
        """The judged dates, in order."""
        return tuple(dict.fromkeys(request.run_key.date for request in self.requests))

    @property
    def shared_scans(self) -> tuple[tuple[GateRequest, ...], ...]:
        """The requests, grouped by the scans that they share: suites over a common dataset share
        one."""
        scans: list[list[GateRequest]] = []
        for request in self.requests:
            shared = next((scan for scan in scans if _shares_scan(request, scan)), None)
            if shared is None:
                scans.append([request])
            else:
                shared.append(request)
        return tuple(map(tuple, scans))


def _shares_scan(request: GateRequest, others: Sequence[GateRequest]) -> bool:
    """True if the request reads a dataset of the others, and means the same by each name."""
    refs_by_name = {ref.name: ref for other in others for ref in other.datasets}
    common = [ref for ref in request.datasets if ref.name in refs_by_name]
    return bool(common) and all(refs_by_name[ref.name] == ref for ref in common)


_FLAGS = {
    "only": "--only",
    "tags": "--tag",
    "exclude_tags": "--exclude-tag",
    "dimensions": "--dimension",
}


def read_call(options: Options, today: date) -> RunCall:
    """The call from the typed options."""
    return _CallReader(options, today).read()


@dataclass(slots=True)
class _CallReader:
    """Collects the meaning of a call, and its mistakes.

    `used` are the datasets that suites use, `unsound` the invalid ones, `selectable` the assertions
    of all suites, `unselected` the suites without a selected one, and `only_names` the names that
    a location without a name stands for.
    """

    options: Options
    today: date
    problems: CallProblems = field(default_factory=CallProblems)
    files: set[Path] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    unsound: set[str] = field(default_factory=set)
    unsupported: dqx_toml.Unsupported = dqx_toml.Unsupported.ERROR
    selectable: list[Selectable] = field(default_factory=list)
    unselected: list[Path] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    folders: dict[str, Path] = field(default_factory=dict)
    only_names: dict[str, None] = field(default_factory=dict)

    def read(self) -> RunCall:
        options = self.options
        suites = self._suite_files()
        self.settings = settings = self._settings(suites)
        self.unsupported = options.unsupported or settings.defaults.unsupported
        dates, date_from = self._data_dates(settings)
        template = self._template(dates[0], date_from)
        given = self._given_datasets()
        datasets = settings.with_given(given)
        if not settings.defaults.trust_log:
            datasets = {name: replace(ref, trust_log=False) for name, ref in datasets.items()}
        self._report_shadow_of_several(suites)
        requests: list[GateRequest] = []
        for suite in suites:
            requests += self._requests(suite, template, dates, datasets)
        self._report_same_names(requests)
        if options.selection is not None:
            self._report_selection(options.selection, is_empty=not requests)
        if suites and not requests:
            self._report_libraries()
        if len(dates) > 1:
            self._warn_of_same_rows(requests)
        if not self.problems.errors:
            self._warn_of_unused(given)
        return RunCall(
            requests=tuple(requests),
            settings=settings,
            format=options.format or settings.defaults.format,
            diagnostics=tuple(self.problems.diagnostics),
            sources=self.problems.sources,
            files=frozenset(self.files),
            folders=self.folders,
        )

    def _suite_files(self) -> list[Path]:
        """The files of suites and contracts at the paths of the call."""
        suites, missing = command.suite_files(self.options.paths)
        self.files.update(suites, missing, (suite.parent / FILE_NAME for suite in suites))
        for path in missing:
            is_contract = path.suffix in command.CONTRACT_ENDINGS
            endings = command.CONTRACT_ENDINGS if is_contract else command.SUITE_ENDINGS
            kind = "contract" if is_contract else ".dql file"
            hint = command.what_to_give(path, endings)
            self.problems.wrong("PATH", str(path), f"no {kind} found at this path", hint)
        return list(suites)

    def _template(self, on: date, date_from: str) -> GateRequest:
        """A request for a date with the options of the call, without a suite and datasets."""
        options = self.options
        skipped = tuple(self._date("--skip-date", text) for text in options.skip_date or ())
        results = root_in(self.settings, options.results_root)
        started = datetime.now(timezone.utc).isoformat()
        return GateRequest(
            run_key=values.RunKey("", on, f"command line {started}"),
            attempt=values.Attempt(1, ""),
            suite=SourceFile("", ""),
            datasets=(),
            results_root=results or "",
            recompute=options.recompute,
            # Without stored results, all requested rows are displayed.
            sample_rows=DEFAULT_SAMPLE_ROWS if results else SHOWN_ROWS,
            date_from=date_from,
            **{**self.settings.defaults.keywords, **options.run_options, "skip_dates": skipped},
        )

    def _given_datasets(self) -> Mapping[str, DatasetRef]:
        """The valid datasets of `--dataset`, by name."""
        typed = self.options.datasets or ()
        given, problems = datasets_of_arguments(typed)
        self.problems.add(problems, {"--dataset": "\n".join(typed)})
        for problem in problems:
            self.unsound.add(argument_name(typed[problem.span.line - 1]))
        return given

    def _report_shadow_of_several(self, suites: Sequence[Path]) -> None:
        shadow = self.options.shadow
        if shadow is not None and len(suites) != 1:
            message = f"a shadow belongs to one suite, but there are {len(suites)}"
            self.problems.wrong("--shadow", str(shadow), message, "give the path of one suite")

    def _report_libraries(self) -> None:
        """Reports that no file has a suite, unless errors explain why there is no request."""
        if not self.problems.errors:
            paths = " ".join(map(str, self.options.paths))
            self.problems.wrong("PATH", paths, "no suite to run: these are library files")

    def _warn_of_same_rows(self, requests: Sequence[GateRequest]) -> None:
        """Warns if several dates would be judged on the same rows."""
        has_dates = any(ref.date_column for request in requests for ref in request.datasets)
        if requests and not has_dates:
            message = "no dataset has a date_column, so all dates would be checked on the same rows"
            self.problems.warn("--date", self.options.date or "", message)

    def _settings(self, suites: Iterable[Path]) -> Settings:
        """The settings of the `dqx.toml` that applies, as given, or else the nearest one; with the
        connection of the call."""
        path = self.options.config or self._nearest_settings(suites)
        settings = Settings()
        if path is not None:
            self.files.add(path)
            name = command.from_here(path)
            settings = dqx_toml.read_settings(path, name)
            self.problems.add(settings.problems, {name: settings.text} if settings.text else {})
            self.unsound |= settings.unsound
        # A connection of the environment is a default, which --engine replaces.
        is_typed = self.options.connection not in (None, os.environ.get("DQX_CONNECTION"))
        if self.options.engine is not None and is_typed:
            message = "--engine and --connection contradict each other"
            self.problems.wrong("--engine", self.options.engine, message, "leave one of them out")
        address = self.options.engine or self.options.connection
        return settings if address is None else self._with_connection(settings, address)

    def _nearest_settings(self, suites: Iterable[Path]) -> Path | None:
        """The nearest `dqx.toml` above all suites; None if there is none, or if they differ."""
        locations = {
            dqx_toml.find_settings(suite.parent) or dqx_toml.find_settings(Path())
            for suite in suites
        }
        if len(locations) > 1:
            names = " and ".join(sorted(str(location or "none") for location in locations))
            message = f"these suites have different {FILE_NAME} files: {names}"
            hint = "run them one by one, or choose one with --config"
            self.problems.wrong("PATH", " ".join(map(str, self.options.paths)), message, hint)
            self.unsound.add("")  # no dataset is known, and none is missing
            return None
        return locations.pop() if locations else None

    def _with_connection(self, settings: Settings, address: str) -> Settings:
        """The settings with the connection of the call instead of their own."""
        try:
            return replace(settings, connection=connection_of(address))
        except RequestError as error:
            self.problems.wrong("--connection", address, error.problem, error.hint)
            return settings

    def _data_dates(self, settings: Settings) -> tuple[tuple[date, ...], str]:
        """The dates of the data, and their origin."""
        if self.options.date is not None:
            typed = self.options.date
            return self._dates(typed), f"from --date {typed}"
        if settings.defaults.date is not None:
            configured = settings.defaults.date
            return (self._date("--date", configured),), f'from date = "{configured}" in {FILE_NAME}'
        return (self.today,), f"today: neither --date nor {FILE_NAME} sets another date"

    def _dates(self, typed: str) -> tuple[date, ...]:
        if not is_range(typed):
            return (self._date("--date", typed),)
        try:
            return dates_of_range(typed, lambda text: typed_day(text, self.today))
        except RequestError as error:
            self.problems.wrong("--date", typed, error.problem, error.hint)
            return (self.today,)

    def _date(self, flag: str, text: str) -> date:
        day = typed_day(text, self.today)
        if day is None:
            self.problems.wrong(flag, text, "invalid date", f"write {DAY_FORMS}")
        return day or self.today

    def _requests(
        self,
        path: Path,
        template: GateRequest,
        dates: Sequence[date],
        given: Mapping[str, DatasetRef],
    ) -> Iterator[GateRequest]:
        """The requests for a suite, one for each date; none if there are errors."""
        request = self._request(path, template, given)
        for on in dates if request is not None else ():
            if request is not None and on != request.run_key.date:
                key = replace(template.run_key, date=on)
                # The clauses of a contract depend on the date, the assertions of a suite do not.
                if request.contract is not None:
                    request = self._request(path, replace(template, run_key=key), given)
                else:
                    request = replace(request, run_key=replace(request.run_key, date=on))
            if request is not None:
                yield request

    def _report_same_names(self, requests: Iterable[GateRequest]) -> None:
        """Reports two suites with the same name in one call: in the results, one would hide the
        other."""
        files: dict[str, str] = {}
        for request in requests:
            gate = request.run_key.gate
            name = request.suite.name
            if request.results_root and files.setdefault(gate, name) != name:
                message = f"two suites are named '{gate}': {files[gate]} and {name}"
                hint = "rename one of them, or run them one by one"
                self.problems.wrong("PATH", name, message, hint)

    def _request(
        self, path: Path, template: GateRequest, given: Mapping[str, DatasetRef]
    ) -> GateRequest | None:
        """The request for a suite; None for a library found in a folder, and if there are
        errors."""
        source = read_source(path, str(path))
        if isinstance(source, Unreadable):
            self.problems.add([source.diagnostic], {str(path): source.text})
            return None
        if path.suffix in command.CONTRACT_ENDINGS:
            if self.options.shadow is not None:
                message = "a contract has no shadow: a shadow runs alongside a DQL suite"
                self.problems.wrong("--shadow", str(self.options.shadow), message)
            return self._contract_request(path, source, template, given)
        reader = FileReader(source.name, path, Path.cwd(), search_path(os.environ))
        is_named = path in self.options.paths
        checked = check_source(source, reader, needs_suite=is_named)
        self.files |= {Path.cwd() / imported.file.name for imported in checked.imports}
        self.problems.add(checked.diagnostics, checked.sources)
        if checked.errors:
            # A missing import may be created: it would be next to the suite.
            self.files |= set(path.parent.glob("*.dql"))
        if checked.suite is None or checked.errors:
            return None
        names = datasets_of(checked.suite.checks)
        self.used.update(names)
        named = self._named_datasets(names, given)
        if named is None:
            return None
        given = self.settings.as_read(named)
        # An invalid dataset has been reported: it is assumed to meet all requirements.
        assumed = {name: DatasetRef(name, date_column="?") for name in self.unsound}
        if "" in self.unsound:
            assumed |= {name: DatasetRef(name, date_column="?") for name in names}
        known_refs = tuple({**given, **assumed}.values())
        suite = checked.suite
        shadow = self.options.shadow
        selection = self.options.selection
        if selection is not None:
            seen_here = selectable_assertions(suite, source, known_refs, template.run_key.date)
            selection = self._selection_in(path, seen_here, selection)
            if selection is None:
                return None
            suite = choose(suite, source, known_refs, template.run_key.date, selection).suite
        datasets = tuple(given[name] for name in datasets_of(suite.checks) if name in given)
        errors = check_datasets(suite, known_refs, template.fail_on)
        self.problems.add([with_advice(error, checked.sources, given) for error in errors], {})
        request = replace(template, suite=source, imports=checked.imports, selection=selection)
        request = self._named(request, checked.suite.name.value, path, datasets)
        return replace(request, shadow=None if shadow is None else self._shadow(shadow, datasets))

    def _named(
        self, request: GateRequest, gate: str, path: Path, datasets: tuple[DatasetRef, ...]
    ) -> GateRequest:
        """The request of a gate with its name, its datasets, and the file with its rules."""
        return replace(
            request,
            run_key=replace(request.run_key, gate=gate),
            attempt=values.Attempt(1, str(uuid.uuid4())),
            datasets=self._with_databases(datasets),
            origin=values.GateOrigin(source=source_location(path)),
        )

    def _selection_in(
        self, path: Path, selectable: Sequence[Selectable], selection: Selection
    ) -> Selection | None:
        """The part of a selection that matches in a suite; None if it selects nothing."""
        self.selectable += selectable
        matched = without_unmatched(selectable, selection)
        if matched is None:
            self.unselected.append(path)
        return matched

    def _report_selection(self, selection: Selection, *, is_empty: bool) -> None:
        """Reports words that select nothing in any suite, and suites with nothing selected."""
        if self.problems.errors:
            return
        for missed in unmatched(self.selectable, selection):
            self.problems.wrong(_FLAGS[missed.criterion], missed.word, missed.problem, missed.hint)
        if self.problems.errors:
            return
        if is_empty and self.unselected:
            error = nothing_selected(self.selectable, selection)
            self.problems.wrong("selection", str(selection), error.problem, error.hint)
        elif self.unselected:
            paths = " ".join(dict.fromkeys(map(str, self.unselected)))
            self.problems.warn("PATH", paths, "not run: no assertion of these is selected")

    def _with_databases(self, refs: tuple[DatasetRef, ...]) -> tuple[DatasetRef, ...]:
        """The datasets, with the lineage names of database tables."""
        connections = {}
        for ref in refs:
            if ref.conn_id is None:
                continue
            try:
                connections[ref.conn_id] = connection_in(os.environ, ref.conn_id)
                with_lineage_names((ref,), connections)
            except RequestError as error:
                message = f"dataset '{ref.name}': {error.problem}"
                self.problems.wrong(
                    "--dataset", f"{ref.name}?conn_id={ref.conn_id}", message, error.hint
                )
                return refs
        return with_lineage_names(refs, connections) if connections else refs

    def _shadow(self, path: Path, datasets: tuple[DatasetRef, ...]) -> values.ShadowSuite:
        """The shadow of a suite. Mistakes in it are warnings: the suite runs without it."""
        source = read_source(path, str(path))
        self.files.add(path)
        reader = FileReader(str(path), path, Path.cwd(), search_path(os.environ))
        shadow = shadow_suite(source, reader, datasets, path.name)
        self.files |= {Path.cwd() / imported.file.name for imported in shadow.imports}
        if shadow.problem is not None:
            self.problems.warn(
                "--shadow", str(path), f"the shadow cannot be evaluated: {shadow.problem}"
            )
        return shadow

    def _contract_request(
        self, path: Path, source: SourceFile, template: GateRequest, given: Mapping[str, DatasetRef]
    ) -> GateRequest | None:
        """The request for a contract; None if there are errors."""
        from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings
        from dqx_airflow.contracts.enforcement.enforced_contract import enforce
        from dqx_airflow.contracts.references import FolderReader

        options = self.options
        try:
            variables = command.variables_in(self.settings)
        except RequestError as error:
            self.problems.wrong("--variable", error.problem, error.problem, error.hint)
            return None
        enforcement = enforce(
            SourceFile(path.name, source.text),
            FolderReader(path.parent),
            on=template.run_key.date,
            expect_version=options.expect_version,
            models=options.models,
            is_strict=options.is_strict,
            variables=variables,
        )
        self.problems.add(enforcement.diagnostics, enforcement.sources)
        for message in enforcement.refused:
            self.problems.wrong("PATH", str(path), message)
        contract = enforcement.contract
        if self.problems.errors or contract is None:
            return None
        for message in enforcement.warnings:
            self.problems.warn("PATH", str(path), message)
        names = [model.name for model in contract.models]
        # A contract may define the table if only the connection is given.
        connections = {
            name: table
            for name, table in self.settings.datasets.items()
            if table.get("conn_id") and name not in given
        }
        named = self._named_datasets(names, given)
        if named is None:
            return None
        refs: dict[str, Any] = {**connections, **named}
        try:
            settings = dataset_settings(contract, refs, options.server, self.settings.reader)
            # What the contract says about its files takes precedence over the options of all files.
            datasets = self.settings.as_read(
                {name: dataset_ref(name, dataset) for name, dataset in settings.items()}
            )
        except RequestError as error:
            hint = error.hint.replace("give the dataset", "add --dataset")
            if hint and len(names) > 1:
                hint += f", or --model {names[0]} to test one model alone"
            self.problems.wrong("PATH", str(path), error.problem, hint)
            return None
        enforced = enforcement.over(
            tuple(datasets.values()), on=template.run_key.date, unsupported=self.unsupported.value
        )
        suite = enforced.checked.valid_suite
        selection = options.selection
        self.used.update(datasets_of(suite.checks))
        if selection is not None:
            seen_here = selectable_assertions(
                suite, enforced.suite, (), template.run_key.date, enforced.contract
            )
            selection = self._selection_in(path, seen_here, selection)
            if selection is None:
                return None
        for message in enforced.objections:
            self.problems.wrong("PATH", str(path), message.replace("in `datasets`", "by --dataset"))
        request = replace(template, suite=enforced.suite, selection=selection)
        request = replace(request, contract=enforced.contract)
        used = tuple(datasets[name] for name in datasets if name in self.used)
        self.folders[contract.id] = Path(command.from_here(path)).parent
        return self._named(request, contract.id, path, used)

    def _named_datasets(
        self, names: Sequence[str], given: Mapping[str, DatasetRef]
    ) -> dict[str, DatasetRef] | None:
        """The datasets by name, of which one without a name belongs to a suite or a contract with
        this dataset alone; None if there is an error."""
        if "" not in given:
            return dict(given)
        typed = {argument_name(text) for text in self.options.datasets or ()}
        try:
            named = named_alone({name: ref for name, ref in given.items() if name in typed}, names)
        except RequestError as error:
            location = given[""].location
            self.problems.wrong("--dataset", location, error.problem, error.hint)
            return None
        location = given[""].location
        if location in names and not Path(location).exists():
            message = f"the location of dataset '{location}' is missing"
            self.problems.wrong("--dataset", location, message, f"write {location}=LOCATION")
            return None
        self.only_names |= dict.fromkeys(names)
        if len(self.only_names) > 1:
            listed = ", ".join(self.only_names)
            message = f"a location without a name would be each of {listed}"
            self.problems.wrong("--dataset", given[""].location, message, "write NAME=LOCATION")
            return None
        masked = {name: self.settings.with_masks(ref) for name, ref in named.items()}
        return {**{name: ref for name, ref in given.items() if name}, **masked}

    def _warn_of_unused(self, given: Mapping[str, DatasetRef]) -> None:
        for line, name in enumerate(given, start=1):
            if name and name not in self.used:
                span = values.Span("--dataset", line, 1, line, len(name) + 1)
                hint = did_you_mean(name, sorted(self.used))
                message = f"dataset '{name}' is not used by any suite"
                self.problems.add([Diagnostic(message, span, help=hint, is_mild=True)], {})
