"""`dql mcp`: what an agent may ask over the Model Context Protocol, by the official package `mcp`.

Nothing is written but proposals, which wait for someone in `dql tune review`. Calls name only
files below the folder of the server; a library that a suite imports is found as in `dql check`.
Commands run in processes of their own: standard output belongs to the protocol, and no call
inherits the state of another.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date as date_type
from datetime import datetime, timezone
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import dqx_airflow
from dqx_airflow.cli.command import of_extra
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import codes, did_you_mean, page
from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.values import DatasetRef, SourceFile
from dqx_airflow.values.exact import is_finite_number
from dqx_airflow.values.typed_values import DAY_FORMS, typed_day

if TYPE_CHECKING:
    from mcp.server import MCPServer


P = ParamSpec("P")

_AGENT = "mcp"
_MOST_ROWS = 100_000
_LONGEST_S = 300
_PROGRAM = "from dqx_airflow.cli.main import main; main()"
_INSTRUCTIONS = (
    "Rules about data in DQL. Read the resource dql://skill first. Call check after every change "
    "of a suite and do what its help lines say, until it reports no error. Then sample_run and "
    "backtest show whether the rules hold. Limits are changed by propose; someone decides."
)


def mcp() -> None:
    """Serve tools for agents, over the Model Context Protocol.

    They check and explain suites, judge samples and past days, and say why a gate blocked. Files
    are read below the current folder. Nothing is written but proposals for `dql tune review`.
    """
    with of_extra("the server for agents", "mcp", "mcp"):
        server = create_server(Path.cwd())
    server.run()


def create_server(folder: Path) -> MCPServer:
    """The server for the files below a folder."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    tools = Tools(folder.resolve())
    server = MCPServer(
        "dql", version=dqx_airflow.__version__, instructions=_INSTRUCTIONS, log_level="ERROR"
    )
    judging = (tools.sample_run, tools.backtest, tools.mutate, tools.why_blocked)
    reading = (tools.check, tools.explain, *judging)
    for tool in (*reading, tools.propose):
        annotations = ToolAnnotations(read_only_hint=tool in reading, destructive_hint=False)
        server.add_tool(_answering(tool), annotations=annotations)

    def skill() -> str:
        """How to write rules in DQL: the language, the metrics and the loop of a draft."""
        home = files("dqx_airflow") / "docs" / "skill"
        return (home / "SKILL.md").read_text(encoding="utf-8")

    server.resource("dql://skill", mime_type="text/markdown")(skill)
    return server


def _answering(tool: Callable[P, str]) -> Callable[P, str]:
    """Wraps a tool so that it returns its errors as answers, with the advice in them."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def answer(*args: P.args, **given: P.kwargs) -> str:
        try:
            return tool(*args, **given)
        except DqxError as error:
            raise ToolError(str(error)) from None

    return answer


def _day(text: str) -> str:
    """A day as ISO 8601.

    :raises RequestError: it is not one.
    """
    found = typed_day(text.strip(), date_type.today())
    if found is None:
        raise RequestError(f"'{text}' is not a date", f"write {DAY_FORMS}")
    return found.isoformat()


class Tools:
    """The tools; the docstring of each is its description."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self, suite: str, text: str | None = None) -> str:
        """All mistakes of a suite, each with its line and what to write instead.

        suite is the path of a .dql file. With text, that is checked as if it were in this file.
        """
        from dqx_airflow.cli.suites import count_text
        from dqx_airflow.dql.check import check_source
        from dqx_airflow.dql.import_readers import FileReader, search_path
        from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

        path = self._inside(suite)
        source = SourceFile(suite, text) if text is not None else read_source(path, suite)
        if isinstance(source, Unreadable):
            return draw([source.diagnostic], {suite: source.text})
        reader = FileReader(suite, path, self.folder, search_path(os.environ))
        checked = check_source(source, reader)
        found = draw(checked.diagnostics, checked.sources)
        return "\n\n".join(filter(None, (found, count_text(len(checked.errors), "error"))))

    def explain(self, what: str) -> str:
        """The page of a code (E001) or a metric (null_count), or the plan of a suite (a path)."""
        if not what.strip():
            raise RequestError("nothing to explain", "give a code, a metric or the path of a suite")
        if what.upper() in codes():
            return page(what.upper())
        metrics = (files("dqx_airflow") / "docs" / "metrics.md").read_text(encoding="utf-8")
        sections = {
            re.split(r"\W", section)[0]: f"## {section.strip()}"
            for section in metrics.split("\n## ")[1:]
        }
        # A section, such as the one on drift, may be about several metrics.
        also = (text for text in sections.values() if f"`{what}(" in text)
        if (found := sections.get(what) or next(also, None)) is not None:
            return found
        if Path(what).suffix not in (".dql", ".yaml", ".yml", ".json"):
            hint = did_you_mean(what, sections) or ""
            raise RequestError(f"no code, metric or suite {what!r}", hint)
        return self._dql("explain", "--", str(self._inside(what)))

    def sample_run(self, suite: str, datasets: Sequence[str], rows: int = 10_000) -> str:
        """Judges a suite on the first rows of local tables, without Spark: a try, not a verdict.

        datasets are written as for dql run: orders=lake/orders?format=parquet&masked=email; the
        name may be left out if the suite has one dataset. Columns
        that are masked there or in dqx.toml are not read. History and dates are not considered.
        """

        from dqx_airflow.api import MemoryDatabase, Suite

        if rows < 1:
            raise RequestError(f"rows={rows}: a sample has at least one row")
        refs = self._refs(suite, datasets)
        tables = {ref.name: self._sample(ref, min(rows, _MOST_ROWS)) for ref in refs}
        today = datetime.now(timezone.utc).date()
        loaded = Suite.load(self._inside(suite))
        hidden = ", ".join(name for ref in refs for name in ref.masked) or "none"
        note = f"note: a sample without history; masked columns that were not read: {hidden}"
        if hidden != "none":
            note += "; an assertion about one of them is an error only here: keep it"
        return f"{loaded.run(MemoryDatabase(tables), today)}\n{note}"

    def backtest(self, suite: str, gate: str | None = None, proposal: str | None = None) -> str:
        """What the suite would have said on the past 90 days, from stored values.

        proposal is the path of a changed suite, whose verdicts are compared.
        """
        options = [f"--gate={gate}"] if gate else []
        options += [f"--proposal={self._inside(proposal)}"] if proposal else []
        return self._dql("tune", "backtest", *options, "--", str(self._inside(suite)))

    def mutate(self, suite: str, date: str | None = None) -> str:
        """The faults that a suite misses on a good day, and assertions that would not.

        date is a day on which the suite passes, such as 2024-05-17; default: the last one.
        """
        on = [f"--date={_day(date)}"] if date else []
        return self._dql("mutate", *on, "--", str(self._inside(suite)))

    def why_blocked(self, gate: str, date: str | None = None) -> str:
        """The last run of a gate, for data of a date: each assertion, and why it failed.

        date is a day such as 2024-05-17; default: any.
        """

        from dqx_airflow.cli.stores import results_of

        root = results_of(None, self.folder).root
        on = [f"--date={_day(date)}"] if date else []
        which = (f"--results-root={root}", f"--gate={gate}", *on, "--limit=1", "--format=json")
        runs = json.loads(self._dql("results", "list", *which))
        if not runs:
            raise RequestError(f"no run of gate {gate!r} is stored", "see dql results list")
        return self._dql("results", "show", f"--results-root={root}", "--", runs[0]["run_id"])

    def propose(self, suite: str, name: str, value: float, reason: str) -> str:
        """Proposes another value of a tunable constant of a suite; someone decides on it.

        value is a plain number: 0.05 for 5%, seconds for durations. reason is the evidence.
        """
        from dqx_airflow.cli.stores import results_of
        from dqx_airflow.tuning.proposals import Proposal, ProposedValue, propose
        from dqx_airflow.tuning.protection import judge_change
        from dqx_airflow.tuning.suite_file import SuiteFile
        from dqx_airflow.tuning.tunables import tunables_of, units_of, with_values

        if not is_finite_number(value):
            raise RequestError(f"{value} is not a finite number", "0.05 is 5%, 3600 an hour")
        if not reason.strip():
            raise RequestError(
                "a proposal without a reason", "give the evidence: the days, the runs"
            )
        checked = SuiteFile.at(self._inside(suite), os.environ).read()
        before = checked.valid_suite
        tunables = tunables_of(before)
        now = tunables[name].value
        # The protocol has only floats; a whole number is written as one.
        value = int(value) if float(value).is_integer() else value
        judged = judge_change(before, with_values(before, {name: value}), _AGENT)
        if judged.refusals:
            raise RequestError(draw(judged.refusals, checked.sources))
        change = ProposedValue(name, now, value, units_of(before)[name])
        proposal = Proposal(before.name.value, _AGENT, (change,), reason=reason)
        propose(results_of(None, self._inside(suite).parent), proposal)
        return f"{change}, proposal {proposal.id} waits for someone: dql tune review {suite}"

    def _refs(self, suite: str, datasets: Sequence[str]) -> list[DatasetRef]:
        """The datasets with a location below the folder; what dqx.toml masks stays masked."""

        from dqx_airflow.datasets.dqx_toml import find_settings, read_settings
        from dqx_airflow.datasets.settings import datasets_of_arguments, named_alone

        given, problems = datasets_of_arguments(datasets)
        if problems:
            lines = {problem.span.file: "\n".join(datasets) for problem in problems}
            raise RequestError(draw(problems, lines))
        given = named_alone(given, self._datasets_in(suite))
        for ref in given.values():
            if ref.filter or ref.schema:
                raise RequestError(
                    f"the sample of '{ref.name}' would lack its filter or its declared schema",
                    "leave it out, and name columns in the suite as the file has them",
                )
        refs = []
        for ref in given.values():
            path = self._inside(ref.location)
            beside = {find_settings(place.parent) for place in (self._inside(suite), path)}
            found = replace(ref, path=str(path))
            for toml in filter(None, beside):
                found = read_settings(toml).with_masks(found)
            refs.append(found)
        return refs

    def _datasets_in(self, suite: str) -> list[str]:
        from dqx_airflow.cli.arguments import suite_file
        from dqx_airflow.dql.checks.assertions import datasets_of

        return list(datasets_of(suite_file(self._inside(suite)).read().valid_suite.checks))

    def _sample(self, ref: DatasetRef, rows: int) -> Any:
        import pyarrow as pa

        from dqx_airflow.plan.masks import is_masked
        from dqx_airflow.tuning.column_tables import ColumnTable, read_files

        def first(table: ColumnTable) -> Any:
            names = [name for name in table.names if not is_masked(name, ref.masked)]
            return pa.table({name: table.column(name) for name in names}).slice(0, rows)

        version = ref.version if ref.version is not None else ref.timestamp
        return read_files(ref.location, ref.format, first, ref.options, version)

    def _inside(self, place: str) -> Path:
        hint = "name a file below it"
        try:
            path = (self.folder / place).resolve()
        except ValueError as error:
            raise RequestError(f"{place!r} is not a path in {self.folder}: {error}", hint) from None
        if not path.is_relative_to(self.folder):
            raise RequestError(f"{place} is outside of {self.folder}", hint)
        return path

    def _dql(self, *words: str) -> str:
        """Runs a `dql` command, and returns its output.

        :raises RequestError: it takes too long.
        """
        from dqx_airflow.cli.doctor_checks.airflow import ask

        # Values cannot be options.
        program = [sys.executable, "-c", _PROGRAM, *words]
        reply = ask(program, os.environ, _LONGEST_S, self.folder)
        if reply.code is None:
            raise RequestError(f"dql {words[0]} took more than {_LONGEST_S} s")
        if reply.code == 0 or reply.out:
            return reply.out
        raise RequestError(reply.err.strip())
