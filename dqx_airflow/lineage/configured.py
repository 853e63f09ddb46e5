"""Whether anybody wants events. Standard library only: OpenLineage takes a while to import."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FILE = "openlineage.yml"
_PREFIX = "OPENLINEAGE"
_DISABLED = "OPENLINEAGE_DISABLED"


def is_configured(env: Mapping[str, str]) -> bool:
    """False where OpenLineage finds no configuration, or is disabled: it sends no event then.

    :param env: the variables of the process.
    """
    if env.get(_DISABLED, "").lower().strip() == "true":
        return False
    places = (Path(_FILE), Path("~/.openlineage").expanduser() / _FILE)
    return any(name.startswith(_PREFIX) for name in env) or any(map(Path.is_file, places))
