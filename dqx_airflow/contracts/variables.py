"""Variables of a contract: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace

from dqx_airflow.contracts.document import Document, Node, Path, Scalar, Sequence, show_path
from dqx_airflow.contracts.key_words import key_words
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span
from dqx_airflow.values.redact import may_be_secret
from dqx_airflow.values.secret_forms import is_secret_setting
from dqx_airflow.values.variables import HOW_TO_NAME, is_variable_name

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_OF_READERS = key_words("for readers")
_OF_PLACES = key_words("for places")
_PLACEHOLDERS = key_words("placeholders")


def given_variables(
    words: Iterable[str], environment: MappingType[str, str], option: str = "--variable"
) -> dict[str, str]:
    """The values of variables by name, from words such as `NAME=VALUE`, or `NAME` for a variable
    of the environment. A `NAME` that the environment lacks is left out.

    :param option: the option or argument with the words, for messages.
    :raises RequestError: a word has another form, or may be a secret.
    """
    given: dict[str, str | None] = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if is_given or name in environment or name not in given:
            given[name] = value if is_given else None
    return named_variables(given, environment, option)


def named_variables(
    given: MappingType[str, str | None],
    environment: MappingType[str, str],
    option: str = "variables:",
) -> dict[str, str]:
    """The values of variables by name. None takes the value of the environment; a variable that it
    lacks is left out.

    :param option: the option or argument with the variables, for messages.
    :raises RequestError: a name or a value has another form, or may be a secret, which results
        would show.
    """
    found = {}
    for name, value in given.items():
        if not is_variable_name(name):
            raise RequestError(f"{option} {name!r} is not the name of a variable", HOW_TO_NAME)
        if not (value is None or isinstance(value, str)):
            raise RequestError(f"{option} {name} is {value!r}", "write a string")
        known = environment.get(name) if value is None else value
        if known is not None:
            found[name] = known
        # The name is checked even if the environment lacks it here: the worker may have it.
        if is_secret_setting(name) or may_be_secret(known or ""):
            hint = "the results keep the values of contracts: name a connection to read the data"
            raise RequestError(f"{option} {name} may be a secret", hint)
    return found


@dataclass(slots=True)
class Variables:
    """The variables of one contract.

    `known` are their values by name; None keeps all references. `are_defined` is False for dialects
    and versions without variables: a reference stays, and is reported as a warning.
    """

    known: MappingType[str, str] | None
    report: Callable[[Diagnostic], None]
    are_defined: bool

    def in_document(self, document: Document) -> Document:
        """The document with the values of its references."""
        if document.root is None or self.known is None or "${" not in document.source.text:
            return document
        return replace(document, root=self._node(document.root, ()))

    def _node(self, node: Node, path: Path) -> Node:
        """The node with the values of the references in it.

        :param path: the path at which the node is used, for an alias not the path of its anchor.
        """
        if isinstance(node, Scalar):
            return self._scalar(node, path)
        if isinstance(node, Sequence):
            items = (self._node(item, (*path, number)) for number, item in enumerate(node.items))
            return replace(node, items=tuple(items))
        entries = (
            replace(entry, node=self._node(entry.node, (*path, entry.key)))
            for entry in node.entries.values()
        )
        return replace(node, entries={entry.key: entry for entry in entries})

    def _scalar(self, node: Scalar, path: Path) -> Scalar:
        if not isinstance(node.value, str) or not _REFERENCE.search(node.text):
            return node
        text = _REFERENCE.sub(lambda match: self._value(match, node.span, path), node.text)
        if text == node.text:
            return node
        return replace(node, value=text, text=text, written=node.text)

    def _value(self, match: re.Match[str], span: Span, path: Path) -> str:
        """The value of a reference; the reference itself if it has none, which is reported."""
        assert self.known is not None
        written = match[0]
        name, has_default, default = match[1].partition(":-")
        is_named = is_variable_name(name)
        if path[-1:] == ("query",) and name.lower() in _PLACEHOLDERS and not has_default:
            return written
        if not self.are_defined:
            if is_named and _is_used(path):
                self.report(mistake("no_variables_yet", span, written=written))
            return written
        value = self.known.get(name) or (default if has_default else None)
        if _is_used(path):
            where = show_path(path)
            if not is_named or "${" in default:
                self.report(mistake("no_variable", span, where=where, written=written))
            elif value is None:
                self.report(mistake("unknown_variable", span, where=where, name=name))
        return written if value is None else value


def _is_used(path: Path) -> bool:
    """True for a value that decides what is checked, and where."""
    if path[:1] == ("servers",):
        return len(path) > 2 and path[2] in _OF_PLACES
    return not _OF_READERS & set(path)
