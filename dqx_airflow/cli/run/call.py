"""The options of a call as typed, and what they mean: the requests, or the mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.config.settings import Output, Settings, Unsupported
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.values import GateRequest, Selection


@dataclass(frozen=True, slots=True)
class Options:
    """The typed options; None if one is not given. `run_options` are those of `RunOptions`, by
    name. `data` to `unsupported` are for contracts only, `shadow` for a single suite."""

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
