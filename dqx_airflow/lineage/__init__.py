"""Lineage: the activity of a gate as OpenLineage events, and their safe delivery.

`events` builds the events and `emitter` sends them. Importing this package imports neither, since
both use the OpenLineage client: only the job and the command line need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FILE = "openlineage.yml"
_PREFIX = "OPENLINEAGE"
_DISABLED = "OPENLINEAGE_DISABLED"


def is_configured(env: Mapping[str, str]) -> bool:
    """False if OpenLineage finds no configuration, or is disabled: it then sends no event.

    :param env: the variables of the process.
    """
    if env.get(_DISABLED, "").lower().strip() == "true":
        return False
    places = (Path(_FILE), Path("~/.openlineage").expanduser() / _FILE)
    return any(name.startswith(_PREFIX) for name in env) or any(map(Path.is_file, places))
