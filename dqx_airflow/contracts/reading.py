"""What readers of the dialects share: taking values from nodes, with an account of every leaf.

A reader asks for what it knows. What it makes a rule of it takes as a `clause`, what it understands
and no data can break it marks as documented; every leaf that nobody asked for ends as unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite

from dqx_airflow.contracts.document import (
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    leaves,
    show_path,
)
from dqx_airflow.contracts.model import Clause, Demand, Literal, Note, Rule, Treatment
from dqx_airflow.contracts.references import References
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.exact import WrittenFloat

UNKNOWN = "unknown here: no rule is made of it"
"""Why a leaf is unsupported that no reader asked for."""


def clause_of(node: Node) -> Clause:
    """The clause that a node is."""
    text = node.text if isinstance(node, Scalar) else ""
    return Clause(show_path(node.path), " ".join(text.split()), node.span)


@dataclass(slots=True)
class Reading:
    """The reading of one document: its references, what was found wrong, what became of leaves."""

    root: Mapping
    references: References
    report: Callable[[Diagnostic], None]
    _treated: dict[tuple[str, Path], tuple[Treatment, str]] = field(default_factory=dict)
    _known: dict[tuple[str, Path], Node] = field(default_factory=dict)

    # Taking values -------------------------------------------------------------------------------

    def mapping(self, node: Mapping | None, key: str) -> Mapping | None:
        """The mapping at a key, its `$ref` resolved; None where there is none."""
        found = node.get(key) if node is not None else None
        return self.resolved(found) if isinstance(found, Mapping) else None

    def resolved(self, node: Mapping) -> Mapping:
        """The mapping with what its `$ref` brings; the reference itself is documented."""
        reference = node.get("$ref")
        if reference is None:
            return node
        self.documented(reference, "what it leads to is read in its place")
        return self.references.resolve(node)

    def mappings(self, node: Mapping | None, key: str) -> Iterator[Mapping]:
        """The mappings in the list at a key."""
        for item in self.items(node, key):
            if isinstance(item, Mapping):
                yield self.resolved(item)

    def items(self, node: Mapping | None, key: str) -> tuple[Node, ...]:
        found = node.get(key) if node is not None else None
        return found.items if isinstance(found, Sequence) else ()

    def text(self, node: Mapping | None, key: str) -> str | None:
        """What is written at a key, numbers and versions as they are spelled."""
        found = node.get(key) if node is not None else None
        if isinstance(found, Scalar) and found.value is not None:
            return found.text
        return None

    def texts(self, node: Mapping | None, key: str) -> tuple[str, ...]:
        """The texts in a list at a key; a text alone is a list of one."""
        found = node.get(key) if node is not None else None
        if isinstance(found, Scalar) and found.value is not None:
            return (found.text,)
        return tuple(item.text for item in self.items(node, key) if isinstance(item, Scalar))

    def truth(self, node: Mapping | None, key: str) -> bool | None:
        found = node.get(key) if node is not None else None
        return found.value if isinstance(found, Scalar) and isinstance(found.value, bool) else None

    def number(self, node: Mapping | None, key: str) -> int | float | None:
        """The finite number at a key; one that is written as a text counts as well."""
        found = node.get(key) if node is not None else None
        if not isinstance(found, Scalar) or isinstance(found.value, bool):
            return None
        value = found.value
        if isinstance(value, str):
            try:
                value = int(value) if value.strip().lstrip("+-").isdigit() else WrittenFloat(value)
            except ValueError:
                return None
        return value if value is not None and isfinite(value) else None

    def literal(self, node: Mapping | None, key: str) -> Literal:
        found = node.get(key) if node is not None else None
        return found.value if isinstance(found, Scalar) else None

    # Accounting for leaves -----------------------------------------------------------------------

    def clause(self, node: Node) -> Clause:
        """The clause that a node is, for a rule that carries it."""
        self._mark(node, Treatment.CHECKED, "")
        return clause_of(node)

    def rule(self, name: str, demand: Demand, *nodes: Node | None) -> Rule:
        """A rule that the nodes make; those that are None are not there."""
        clauses = tuple(self.clause(node) for node in nodes if node is not None)
        return Rule(name, demand, clauses)

    def documented(self, node: Node | None, reason: str = "") -> None:
        """Every leaf below the node is understood, and nothing that data could break."""
        if node is not None:
            self._mark(node, Treatment.DOCUMENTED, reason)

    def unsupported(self, node: Node | None, reason: str) -> None:
        """Every leaf below the node would have to be checked, and is not: the reason says why."""
        if node is not None:
            self._mark(node, Treatment.UNSUPPORTED, reason)

    def documented_keys(self, node: Mapping | None, *keys: str, reason: str = "") -> None:
        """Marks what is at these keys of a mapping as documented."""
        for key in keys:
            self.documented(node.get(key) if node is not None else None, reason)

    def notes(self) -> tuple[Note, ...]:
        """All leaves that no rule carries, in the order of the document.

        Leaves of other files count where something refers to them.
        """
        everywhere = {(leaf.span.file, leaf.path): leaf for leaf in leaves(self.root)}
        notes = []
        for place, leaf in (everywhere | self._known).items():
            unknown = (Treatment.UNSUPPORTED, UNKNOWN)
            treatment, reason = self._treated.get(place, unknown)
            if treatment is not Treatment.CHECKED:
                notes.append(Note(clause_of(leaf), treatment, reason))
        return tuple(notes)

    def _mark(self, node: Node, treatment: Treatment, reason: str) -> None:
        for leaf in leaves(node):
            key = (leaf.span.file, leaf.path)
            self._known[key] = leaf
            before = self._treated.get(key)
            # What one use of a definition checks, another one does not uncheck.
            if before is None or before[0] is not Treatment.CHECKED:
                self._treated[key] = (treatment, reason)
