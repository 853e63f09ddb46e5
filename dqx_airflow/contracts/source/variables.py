"""Variables of ODCS 3.2: `${NAME}` and `${NAME:-default}` in any string value.

RFC 0050 of Bitol: a reference is resolved before its value is used, an unset or empty variable
takes the default, verbatim, and without one it is an error. Values are not searched for references
again, and nothing escapes one. The document keeps its text: clauses show it as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dqx_airflow.contracts.source.yaml_document import Document, Node, Path, Scalar, show_path
from dqx_airflow.contracts.source.yaml_document import Sequence as SequenceNode
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.errors import RequestError
from dqx_airflow.values.redact import holds_credentials, is_secret_setting

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*(?:[.-]\w+)*")
_OF_READERS = {
    *("description", "businessName", "authoritativeDefinitions", "support", "team", "price"),
    *("roles", "tenant", "domain", "dataProduct", "context", "synonyms", "businessImpact"),
}
"""What is below these keys is for readers of the document: unresolved references stay there."""
_OF_PLACES = {
    *("server", "type", "environment", "format", "location", "path", "delimiter", "encoding"),
    *("endpointUrl", "project", "catalog", "database", "namespace", "dataset", "schema"),
}
"""The keys of a server that locate data. The others are for its clients, and may be secret."""
_PLACEHOLDERS = {
    *("model", "table", "table_name", "object", "schema", "dataset", "database", "catalog"),
    *("project", "field", "column", "property", "column_name"),
}
"""In SQL, these are the placeholders of the rule itself."""


def given_variables(
    words: Iterable[str], environment: Mapping[str, str], option: str = "--variable"
) -> dict[str, str]:
    """The variables of `NAME=VALUE`, or of `NAME` for one of the environment.

    :raises RequestError: a word has another form, or may be a secret.
    """
    found = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not _NAME.fullmatch(name):
            hint = "write NAME=VALUE, or NAME to read the environment"
            raise RequestError(f"{option} {name}: not the name of a variable", hint)
        if is_given or name in environment:
            found[name] = value if is_given else environment[name]
        if is_secret_setting(name) or holds_credentials(found.get(name, "")):
            hint = "the results keep the values of contracts: name a connection to read the data"
            raise RequestError(f"{option} {name} may be a secret", hint)
    return found


@dataclass(slots=True)
class Variables:
    """The variables of one contract; None keeps all references. Other dialects and versions have
    none: a reference there is text, which a warning says."""

    known: Mapping[str, str] | None
    report: Callable[[Diagnostic], None]
    are_defined: bool
    _resolved: dict[int, tuple[Node, Node]] = field(default_factory=dict)

    def in_document(self, document: Document) -> Document:
        """The document with the values of its references."""
        if document.root is None or self.known is None or "${" not in document.source.text:
            return document
        return replace(document, root=self._node(document.root))

    def _node(self, node: Node) -> Node:
        if id(node) in self._resolved:  # several aliases of one anchor
            return self._resolved[id(node)][1]
        resolved = node
        if isinstance(node, Scalar):
            resolved = self._scalar(node)
        elif isinstance(node, SequenceNode):
            resolved = replace(node, items=tuple(map(self._node, node.items)))
        else:
            entries = {
                key: replace(entry, node=self._node(entry.node))
                for key, entry in node.entries.items()
            }
            resolved = replace(node, entries=entries)
        self._resolved[id(node)] = node, resolved
        return resolved

    def _scalar(self, node: Scalar) -> Scalar:
        if not isinstance(node.value, str) or not _REFERENCE.search(node.text):
            return node
        text = _REFERENCE.sub(lambda match: self._value(match, node), node.text)
        if text == node.text:
            return node
        return replace(node, value=text, text=text, written=node.text)

    def _value(self, match: re.Match[str], node: Scalar) -> str:
        assert self.known is not None
        name, has_default, default = match[1].partition(":-")
        if node.path[-1:] == ("query",) and name.lower() in _PLACEHOLDERS and not has_default:
            return match[0]
        if not self.are_defined:
            if _NAME.fullmatch(name) and _is_used(node.path):
                message = f"{match[0]} is text here: variables begin with ODCS 3.2"
                hint = "write apiVersion: v3.2.0, or the value itself"
                self.report(Diagnostic(message, node.span, "W023", help=hint))
            return match[0]
        value = self.known.get(name) or (default if has_default else None)
        if value is None and _is_used(node.path):
            where = show_path(node.path)
            if _NAME.fullmatch(name):
                message = f"{where} has the unknown variable '{name}'"
                hint = (
                    f"list it in [contracts.variables] of dqx.toml, --variable {name}=VALUE or "
                    f"variables= of the gate, or write a default: ${{{name}:-value}}"
                )
            else:
                message = f"{where} has {match[0]}, which is not a variable"
                hint = "write ${NAME} or ${NAME:-default}"
            self.report(Diagnostic(message, node.span, "E429", help=hint))
        return match[0] if value is None else value


def _is_used(path: Path) -> bool:
    """True for a value that decides what is checked, and where."""
    if path[:1] == ("servers",):
        return len(path) > 2 and path[2] in _OF_PLACES
    return not _OF_READERS & set(path)
