"""The signature of the call around a position, with the argument that is being typed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dqx_airflow.dql.callables import IN_ROWS, MEASURES
from dqx_airflow.dql.printer import show_macro_head
from dqx_airflow.editor import vocabulary
from dqx_airflow.editor.parsed_file import ParsedFile

_SEPARATOR = re.compile(r",\s*(?![^\[]*\])")


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature as text, with its parameters; `active` is the number of the one at the position,
    counted from 0."""

    label: str
    doc: str
    parameters: tuple[str, ...]
    active: int


def signature_at(reading: ParsedFile, offset: int) -> Signature | None:
    """The signature of the innermost call around an offset; None outside of calls."""
    near = reading.nearby(offset)
    call = vocabulary.call_at(near.text, offset - near.shift)
    if call is None:
        return None
    if call.is_macro:
        defined = reading.scope.macros.get(call.name)
        if defined is None:
            return None
        label = show_macro_head(defined.macro, call.name)
        return _signature(label, "", call.argument)
    called = (IN_ROWS if call.in_row else MEASURES).get(call.name) or MEASURES.get(call.name)
    return _signature(called.signature, called.doc, call.argument) if called else None


def _signature(label: str, doc: str, argument: int) -> Signature:
    """A signature whose last parameter takes all further arguments."""
    inside = label[label.find("(") + 1 : label.rfind(")")]
    parameters = tuple(filter(None, _SEPARATOR.split(inside)))
    return Signature(label, doc, parameters, min(argument, max(len(parameters) - 1, 0)))
