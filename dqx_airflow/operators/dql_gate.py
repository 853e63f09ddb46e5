"""The gate that enforces a DQL suite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dqx_airflow.operators.outcome import GateMisconfigured
from dqx_airflow.operators.submit import GateOperator, dag_folder
from dqx_airflow.values import GateRequest, SourceFile

INLINE_NAME = "<inline suite>"


class DqlGateOperator(GateOperator):
    """Stops the pipeline where the data breaks a rule of a DQL suite.

    The suite is checked on the worker before anything is submitted. A failed rule at or above
    `fail_on` fails the task without a retry, so that everything downstream (with the trigger rule
    `all_success`) is `upstream_failed`.

    :param suite: the path of a `.dql` file, relative to the DAG's file or to the working directory;
        or the text of a suite. What it imports is looked for beside it, in the DAG's folder, and
        in the folders of the environment variable DQL_PATH. (templated; a file is read as it is)
    """

    template_fields: Sequence[str] = (*GateOperator.template_fields, "suite")

    def __init__(self, *, suite: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def read_source(self, context: Any) -> SourceFile:
        if not isinstance(self.suite, str | os.PathLike) or not str(self.suite).strip():
            raise GateMisconfigured(
                f"suite={self.suite!r}: give the path of a .dql file, or a suite"
            )
        from dqx_airflow.dql.source import read_source

        suite = os.fspath(self.suite)
        self._place: Path | None = None
        self._folder = dag_folder(context)
        if "{" in suite or "\n" in suite:
            return SourceFile(INLINE_NAME, suite)
        given = Path(os.path.expanduser(suite))
        folder = self._folder
        places = [given] if given.is_absolute() or folder is None else [folder / given, given]
        for place in places:
            source = read_source(place, suite)
            if isinstance(source, SourceFile):
                self._place = place
                return source
            if not source.is_missing:
                raise GateMisconfigured(f"the suite {place}: {source.reason}")
        looked = " or ".join(str(place.absolute()) for place in places)
        raise GateMisconfigured(
            f"there is no suite {suite}: looked for {looked}; give its path relative to the file "
            "of the DAG, or absolute"
        )

    def check_source(self, request: GateRequest) -> GateRequest:
        from dqx_airflow.diagnostics.diagnostic import Level
        from dqx_airflow.diagnostics.text import draw, shown
        from dqx_airflow.dql.check import check_source
        from dqx_airflow.dql.imports import FileReader, Reader, no_imports, search_path
        from dqx_airflow.plan.resolve import check_datasets

        read: Reader = no_imports
        if self._place is not None:
            root = self._folder or self._place.parent
            read = FileReader(request.suite.name, self._place, root, search_path(os.environ))
        checked = check_source(request.suite, read, needs_suite=True)
        found = list(checked.diagnostics)
        if checked.suite is not None and not checked.errors:
            found += check_datasets(checked.suite, request.datasets)
        kept, rest = shown(found)
        for diagnostic in kept:
            log = self.log.error if diagnostic.level is Level.ERROR else self.log.warning
            log("%s", draw([diagnostic], checked.sources))
        if rest:
            self.log.error("%s", rest)
        errors = [diagnostic for diagnostic in found if diagnostic.level is Level.ERROR]
        if errors:
            first = errors[0]
            many = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
            hint = first.help or first.label
            raise GateMisconfigured(
                f"the suite {first.span.file} has {many} in line {first.span.line}: "
                f"{first.message}{f' ({hint})' if hint else ''}"
            )
        return replace(request, imports=checked.imports)
