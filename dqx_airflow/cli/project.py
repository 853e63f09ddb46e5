"""What a command finds where it is called: the settings in `dqx.toml`, suites and contracts
selected by paths, the results store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.datasets.connection import Connection
    from dqx_airflow.datasets.dqx_toml import Settings


def from_here(path: Path) -> str:
    """A path relative to the working directory, if it is below."""
    here, absolute = Path.cwd(), path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(path)


def settings_here() -> Settings:
    """:raises RequestError: they have a mistake."""
    from dqx_airflow.datasets.dqx_toml import Settings, find_settings, read_settings

    path = find_settings(Path())
    settings = read_settings(path) if path is not None else Settings()
    if settings.problems:
        first = settings.problems[0]
        raise RequestError(f"{path}:{first.span.line}: {first.message}")
    return settings


TYPED_VARIABLES: ContextVar[tuple[str, ...]] = ContextVar("TYPED_VARIABLES", default=())
"""Those of `dql contract --variable`."""


def variables_in(settings: Settings) -> dict[str, str]:
    """The variables that contracts may know; those on the command line win.

    :raises RequestError: one is not `NAME=VALUE` or `NAME`.
    """
    from dqx_airflow.contracts.document import given_variables

    return given_variables((*settings.variables, *TYPED_VARIABLES.get()), os.environ)


def connection_in(settings: Settings, address: str | None) -> Connection:
    """The connection of `--connection`, or else that of the settings.

    :raises RequestError: the address is invalid.
    """
    from dqx_airflow.datasets.connection import connection_of

    if address is None:
        return settings.connection
    try:
        return connection_of(address)
    except RequestError as error:
        raise RequestError(f"--connection: {error.problem}", error.hint) from None


SUITE_ENDINGS = frozenset({".dql"})
"""The file name suffix of suites in a folder."""

CONTRACT_ENDINGS = frozenset({".yaml", ".yml", ".json"})
"""The file name suffixes of contracts; every other file is a suite."""


def suite_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without any."""
    files: list[Path] = []
    missing = []
    for path in paths:
        suites = sorted(path.rglob("*.dql")) if path.is_dir() else [path] if path.exists() else []
        files += suites
        if not suites:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def what_to_give(missing: Path, endings: frozenset[str] = SUITE_ENDINGS) -> str:
    """The hint for a path without files of these kinds: those beside it, the nearest name first."""
    from dqx_airflow.diagnostics.diagnostic import did_you_mean

    folder = missing if missing.is_dir() else missing.parent
    beside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    candidates = [name for name in beside if Path(name).suffix in endings]
    kinds = " or ".join(sorted(endings))
    return did_you_mean(missing.name, candidates) or f"give files, or folders with {kinds} files"


ROOT_VARIABLES = ["DQX_RESULTS_ROOT", "AIRFLOW__DQX__RESULTS_ROOT"]
"""The environment variables with the results root, in order of precedence. The second one is the
setting of the gates in Airflow."""


def storage_options() -> dict[str, str] | None:
    """The options for access to the storage, from the environment."""
    from dqx_airflow.values.request_arguments import storage_options_of

    return storage_options_of(os.environ)
