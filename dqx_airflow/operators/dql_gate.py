"""The gate that enforces a DQL suite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.gate import GateOperator

if TYPE_CHECKING:
    from datetime import date

    from dqx_airflow.values import GateRequest, SourceFile


class DqlGateOperator(GateOperator):
    """Stops the pipeline if the data violates a rule of a DQL suite.

    The suite is checked on the worker before anything is submitted. A failed rule at or above
    `fail_on` fails the task without a retry, so that everything downstream (with the trigger rule
    `all_success`) is `upstream_failed`.

    :param suite: the path of a `.dql` file, relative to the DAG's file or to the working directory;
        or the suite itself. Imports are searched in its folder, in the DAG's folder, and in the
        folders of the environment variable DQL_PATH. (templated; files are read without rendering)
    """

    template_fields: Sequence[str] = (*GateOperator.template_fields, "suite")

    def __init__(self, *, suite: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def read_source(self, context: Any, on: date) -> SourceFile:
        """The file of the suite, or the text that was given as one.

        :raises GateMisconfigured: it cannot be read.
        """
        from dqx_airflow.operators.sources import find_source

        self._found = find_source(self.suite, context, kind="suite", signs="{\n")
        return self._found.source

    def check_source(self, request: GateRequest) -> GateRequest:
        """The request with all files that the suite imports.

        :raises GateMisconfigured: the suite has errors, alone or with the datasets.
        """
        from dqx_airflow.dql.check import check_source
        from dqx_airflow.dql.imports import FileReader, Reader, no_imports, search_path
        from dqx_airflow.operators.sources import tell
        from dqx_airflow.plan.resolve import check_datasets

        read: Reader = no_imports
        place = self._found.place
        if place is not None:
            root = self._found.folder or place.parent
            read = FileReader(request.suite.name, place, root, search_path(os.environ))
        checked = check_source(request.suite, read, needs_suite=True)
        found = list(checked.diagnostics)
        if checked.suite is not None and not checked.errors:
            found += check_datasets(checked.suite, request.datasets)
        tell(found, checked.sources, self.log, kind="suite")
        return replace(request, imports=checked.imports)
