"""From the datasets as a DAG gives them to the `DatasetRef`s of a request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeAlias

from dqx_airflow.operators.outcome import GateMisconfigured
from dqx_airflow.values import FORMATS, DatasetRef

DatasetSetting: TypeAlias = "str | os.PathLike[str] | DatasetRef | Mapping[str, Any]"

_SETTINGS = tuple(field.name for field in fields(DatasetRef) if field.name != "name")


def dataset_ref(name: str, given: DatasetSetting, render: Callable[[Any], Any]) -> DatasetRef:
    """The dataset `name`: a path, a table, or its settings.

    :param render: renders the templates of a `DatasetRef`; Airflow has rendered all else.
    :raises GateMisconfigured: it makes no sense.
    """
    if isinstance(given, os.PathLike):
        return DatasetRef(name, path=os.fspath(given))
    if isinstance(given, str):
        given = {"path" if "/" in given else "table": given}
    elif isinstance(given, DatasetRef):
        given = {key: render(value) for key, value in asdict(given).items() if key in _SETTINGS}
    if not isinstance(given, Mapping):
        raise GateMisconfigured(
            f"dataset '{name}' is {given!r}: write a path, a table, or a mapping with "
            f"{', '.join(_SETTINGS)}"
        )
    unknown = [str(key) for key in given if key not in _SETTINGS]
    if unknown:
        raise GateMisconfigured(
            f"dataset '{name}' has unknown settings {', '.join(unknown)}: "
            f"there are {', '.join(_SETTINGS)}"
        )
    settings = {key: value for key, value in given.items() if value not in (None, "")}
    if ("path" in settings) == ("table" in settings):
        raise GateMisconfigured(f"dataset '{name}': give it a path or a table, and not both")
    if settings.get("format", FORMATS[0]) not in FORMATS:
        raise GateMisconfigured(
            f"dataset '{name}' has format={settings['format']!r}: write one of {', '.join(FORMATS)}"
        )
    options, version = settings.pop("options", ()), settings.pop("version", None)
    return DatasetRef(
        name,
        options=_options(name, options),
        version=_version(name, version),
        **{key: str(value) for key, value in settings.items()},
    )


def _options(name: str, given: Any) -> tuple[tuple[str, str], ...]:
    try:
        pairs = given.items() if isinstance(given, Mapping) else given
        return tuple((str(key), str(text)) for key, text in pairs)
    except (TypeError, ValueError):
        raise GateMisconfigured(
            f"dataset '{name}' has options={given!r}: write a mapping, {{'header': 'true'}}"
        ) from None


def _version(name: str, given: Any) -> int | None:
    """A version may come from a template, as text."""
    try:
        return None if given is None else int(given)
    except (TypeError, ValueError):
        raise GateMisconfigured(
            f"dataset '{name}' has version={given!r}: write the number of a Delta version"
        ) from None
