"""A parsed call of a run, and its meaning: the requests, or the mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.config.settings import (
    Output,
    Settings,
    Unsupported,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.values import (
    GateRequest,
    Selection,
)


@dataclass(frozen=True, slots=True)
class Options:
    """The typed options. None stands for those not given. `run_options` are those of `RunOptions`
    that were typed, by name. `data` to `unsupported` are for contracts only, `shadow` for a single
    suite."""

    paths: tuple[Path, ...]
    connection: str | None = None
    date: str | None = None
    skip_dates: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    config: Path | None = None
    output: Output | None = None
    results: str | None = None
    recompute: bool = False
    run_options: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    server: str | None = None
    expect_version: str | None = None
    models: tuple[str, ...] = ()
    is_strict: bool = False
    unsupported: Unsupported | None = None
    shadow: Path | None = None
    selection: Selection | None = None
    output_file: Path | None = None
    watch: bool = False


@dataclass(frozen=True, slots=True)
class RunCall:
    """The work to do, or the mistakes in the call.

    `sources` are the texts to which the diagnostics refer, `files` all files that were read or
    searched. Without errors there is at least one request.
    """

    requests: tuple[GateRequest, ...]
    settings: Settings
    output: Output
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    files: frozenset[Path]

    @property
    def has_errors(self) -> bool:
        return bool(errors_of(self.diagnostics))

    @property
    def dates(self) -> tuple[date, ...]:
        """The judged dates, in order."""
        return tuple(dict.fromkeys(request.run_key.date for request in self.requests))

    @property
    def shared_scans(self) -> tuple[tuple[GateRequest, ...], ...]:
        """The requests grouped by the scans that they share: those of suites over a common
        dataset."""
        scans: list[list[GateRequest]] = []
        for request in self.requests:
            own = next((one for one in scans if _shares_scan(request, one)), None)
            if own is None:
                scans.append([request])
            else:
                own.append(request)
        return tuple(map(tuple, scans))


def _shares_scan(request: GateRequest, others: Sequence[GateRequest]) -> bool:
    """True if the request reads a dataset of the others, and means the same by each name."""
    known = {ref.name: ref for other in others for ref in other.datasets}
    common = [ref for ref in request.datasets if ref.name in known]
    return bool(common) and all(known[ref.name] == ref for ref in common)
