"""The interface of a cluster for tests, and the files that its drivers get."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.processes import environment, output_of


class Cluster(Protocol):
    """A cluster of this machine, and how a gate gets there."""

    connection: dict[str, Any]
    """The Spark connection."""
    variables: dict[str, str]
    """The environment of a worker and of the triggerer."""
    conf: dict[str, str]
    """The settings in client and in cluster mode."""
    refused: tuple[dict[str, Any], str]
    """Arguments that it refuses, and its message."""

    def in_cluster(self, bundle: Bundle) -> dict[str, Any]:
        """The arguments of a gate in cluster mode."""

    def drivers(self) -> list[str]:
        """The newest first."""

    def fate(self, driver: str) -> str:
        """WAITING, RUNNING, SUCCEEDED, FAILED or KILLED."""

    def kill(self, driver: str) -> str:
        """Ends it as an administrator would; returns the message of its gate, as a pattern."""


@dataclass(frozen=True)
class Bundle:
    """The files that a driver in the cluster gets, and a Python that has nothing else."""

    code: Path
    native: Path
    python: Path


def kube_config(server: str, token: str = "hush", **cluster: str) -> dict[str, Any]:
    """The configuration of a client of Kubernetes."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": {"token": token}}],
    }


def packaged(folder: Path) -> Bundle:
    """As the recipe of `dql package` says, word by word."""
    code = folder / "job.zip"

    def run(*command: str) -> str:
        return output_of(command, cwd=folder, env=environment())

    output = run("dql", "package", "--output", str(code))
    (recipe,) = re.findall(r"^  (pip install --target.*?-czf \S+ \.)$", output, re.M | re.S)
    run("bash", "-ec", recipe)
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "bare"))
    return Bundle(code, folder / "native.tar.gz", folder / "bare" / "bin" / "python")
