"""The results store of a command: one option for its root, and one order in which the root is
looked up, for all commands that read or write a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dqx_airflow.errors import NoStoreError, RequestError

if TYPE_CHECKING:
    from dqx_airflow.datasets.dqx_toml import Settings
    from dqx_airflow.results.query import StoredResults

ROOT_VARIABLE = "DQX_RESULTS_ROOT"
"""The environment variable with the results root of commands."""

AIRFLOW_VARIABLE = "AIRFLOW__DQX__RESULTS_ROOT"
"""The environment variable with the results root of the gates in Airflow."""

ResultsRootOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--results-root",
        "-R",
        metavar="ROOT",
        envvar=ROOT_VARIABLE,
        help="The root of the results store: a path or URI; default: results_root in dqx.toml, "
        "then Airflow's setting.",
    ),
]

HOW_TO_GIVE = (
    f"add --results-root ROOT, set the variable {ROOT_VARIABLE}, or write results_root under "
    "[defaults] in dqx.toml"
)


def root_in(settings: Settings, given: str | None) -> str | None:
    """The results root of a call: of the option, else of the environment, else of the `dqx.toml`
    that applies, else the one of the gates in Airflow; None if there is none."""
    # The MCP server and the pytest plugin have no options: they read the variable here.
    typed = given or os.environ.get(ROOT_VARIABLE)
    return typed or settings.results_root or os.environ.get(AIRFLOW_VARIABLE) or None


def known_root(given: str | None, folder: Path = Path(), config: Path | None = None) -> str | None:
    """The results root of a call over the nearest `dqx.toml`, from a folder or else from here.

    :param config: the `dqx.toml` of the call instead.
    :raises SourceError: the file has a mistake, and the root is not given otherwise.
    """
    if typed := given or os.environ.get(ROOT_VARIABLE):
        return typed
    from dqx_airflow.datasets.dqx_toml import Settings, find_settings, read_settings
    from dqx_airflow.diagnostics.diagnostic import errors_of
    from dqx_airflow.diagnostics.renderers import drawn_error

    path = config or find_settings(folder) or find_settings(Path())
    settings = Settings() if path is None else read_settings(path)
    if mistakes := errors_of(settings.problems):
        raise drawn_error(mistakes, {str(path): settings.text})
    return root_in(settings, None)


def results_of(
    given: str | None, folder: Path = Path(), config: Path | None = None
) -> StoredResults:
    """The results store of a call, whether or not there is one at its root.

    :raises RequestError: no root is given anywhere.
    """
    from dqx_airflow.results.query import StoredResults

    root = known_root(given, folder, config)
    if root is None:
        raise RequestError("no results root given", HOW_TO_GIVE)
    return StoredResults(root, storage_options())


def existing_results(given: str | None, folder: Path = Path()) -> StoredResults:
    """The results store of a call.

    :raises RequestError: no root is given anywhere.
    :raises NoStoreError: there is no store at the root.
    """
    results = results_of(given, folder)
    results.require_some()
    return results


def optional_results(
    given: str | None, folder: Path = Path(), config: Path | None = None
) -> StoredResults | None:
    """The results store of a call that can do without one: None if no root is given, or if the one
    in `dqx.toml` or of Airflow has no store yet.

    :raises NoStoreError: there is no store at the root that was typed.
    """
    root = known_root(given, folder, config)
    if root is None:
        return None
    results = results_of(root)
    try:
        results.require_some()
    except NoStoreError:
        if given:
            raise
        return None
    return results


def storage_options() -> dict[str, str] | None:
    """The options for access to the storage, from the environment."""
    from dqx_airflow.values.json_form import storage_options_of

    return storage_options_of(os.environ)
