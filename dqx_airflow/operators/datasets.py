"""From the datasets as a DAG gives them to those of a request, and to their quarantine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dqx_airflow import datasets
from dqx_airflow.datasets import DatasetSetting, settings_of
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.outcome import GateMisconfigured
from dqx_airflow.values import DatasetRef

_FOLDER_NAME = re.compile(r"\w[\w.-]*")


def dataset_ref(name: str, given: DatasetSetting, render: Callable[[Any], Any]) -> DatasetRef:
    """The dataset `name`: a path, a table, or its settings.

    :param render: renders the templates of a `DatasetRef`; Airflow has rendered all else.
    :raises GateMisconfigured: it makes no sense.
    """
    if isinstance(given, DatasetRef):
        given = {key: render(value) for key, value in settings_of(given).items()}
    try:
        return datasets.dataset_ref(name, given)
    except RequestError as error:
        raise GateMisconfigured(str(error)) from None


def quarantine_paths(
    given: str | Mapping[str, str] | None, datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The path of the quarantine of each dataset that has one.

    :param given: a mapping of datasets to paths; or a folder, in which each dataset has its own.
    :raises GateMisconfigured: it makes no sense.
    """
    if not given:
        return ()
    if isinstance(given, Mapping):
        unknown = [str(name) for name in given if name not in datasets]
        if unknown:
            raise GateMisconfigured(
                f"quarantine names {', '.join(unknown)}: the datasets are {', '.join(datasets)}"
            )
        return tuple((str(name), str(path)) for name, path in given.items() if path)
    if not isinstance(given, str | os.PathLike):
        raise GateMisconfigured(
            f"quarantine={given!r}: write a folder, or a mapping of datasets to paths"
        )
    folder = os.fspath(given).rstrip("/")
    unfit = [name for name in datasets if not _FOLDER_NAME.fullmatch(name)]
    if unfit:
        raise GateMisconfigured(
            f"dataset '{unfit[0]}' cannot be the name of a folder: "
            "write quarantine as a mapping of datasets to paths"
        )
    return tuple((name, f"{folder}/{name}") for name in datasets)
