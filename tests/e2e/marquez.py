"""A real Marquez, queried as its web pages do.

DQX_TEST_MARQUEZ is the address of one that may be filled, such as http://127.0.0.1:5000. Version
0.51.1 was tried, on Postgres 15 and without its search.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen


@dataclass(frozen=True)
class Marquez:
    """A Marquez at an address."""

    address: str

    def send(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            body = json.dumps(event).encode()
            headers = {"Content-Type": "application/json"}
            with urlopen(Request(f"{self.address}/api/v1/lineage", body, headers), timeout=60):
                pass

    def dataset(self, namespace: str, name: str) -> dict[str, Any]:
        return self._ask(f"namespaces/{quote(namespace, safe='')}/datasets/{quote(name, safe='')}")

    def versions(self, namespace: str, name: str) -> list[dict[str, Any]]:
        place = f"namespaces/{quote(namespace, safe='')}/datasets/{quote(name, safe='')}"
        found: list[dict[str, Any]] = self._ask(f"{place}/versions?limit=100")["versions"]
        return found

    def job(self, namespace: str, name: str) -> dict[str, Any]:
        return self._ask(f"namespaces/{quote(namespace, safe='')}/jobs/{quote(name, safe='')}")

    def runs(self, namespace: str, name: str) -> list[dict[str, Any]]:
        place = f"namespaces/{quote(namespace, safe='')}/jobs/{quote(name, safe='')}"
        found: list[dict[str, Any]] = self._ask(f"{place}/runs")["runs"]
        return found

    def edges_around(self, namespace: str, name: str) -> set[tuple[str, str]]:
        """The graph around a dataset: pairs of names, from data to job and from job to data."""
        node = quote(f"dataset:{namespace}:{name}", safe="")
        graph = self._ask(f"lineage?nodeId={node}&depth=20")["graph"]
        names = {item["id"]: item["data"]["name"] for item in graph}
        return {
            (names[edge["origin"]], names[edge["destination"]])
            for item in graph
            for edge in item["outEdges"]
        }

    def _ask(self, path: str) -> Any:
        with urlopen(f"{self.address}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)
