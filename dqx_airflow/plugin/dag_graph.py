"""The order of the tasks in a DAG, read from its serialized form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DagGraph:
    """The tasks of a DAG by their ids, each with its direct successors."""

    following: Mapping[str, frozenset[str]]

    def after(self, task_id: str) -> frozenset[str]:
        """All tasks downstream of a task."""
        return _reached(self.following, task_id)

    def before(self, task_id: str) -> frozenset[str]:
        """All tasks upstream of a task."""
        preceding: dict[str, set[str]] = {}
        for task, followers in self.following.items():
            for follower in followers:
                preceding.setdefault(follower, set()).add(task)
        return _reached(preceding, task_id)


def graph_of(data: object) -> DagGraph:
    """The graph of a serialized DAG; an empty one for invalid input."""
    tasks = _get(_get(data, "dag"), "tasks")
    upstream: dict[str, frozenset[str]] = {}
    for task in tasks if isinstance(tasks, list) else ():
        fields = _get(task, "__var") or task
        task_id, following = _get(fields, "task_id"), _get(fields, "downstream_task_ids")
        if isinstance(task_id, str):
            ids = following if isinstance(following, list) else ()
            upstream[task_id] = frozenset(follower for follower in ids if isinstance(follower, str))
    return DagGraph(upstream)


def _get(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _reached(edges: Mapping[str, Iterable[str]], start: str) -> frozenset[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = set(edges.get(waiting.pop(), ())) - seen
        seen |= fresh
        waiting += fresh
    return frozenset(seen)
