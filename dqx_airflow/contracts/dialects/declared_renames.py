"""Declared renames since the previous version, which a comparison need not guess.

    x-dqx-renamed:
- {model: purchases, from: orders}
- {model: purchases, field: address.zip, from: address.postcode}

In ODCS it is a custom property with the list as its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dqx_airflow.contracts.column_paths import dotted_path
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.extensions import at_the_top
from dqx_airflow.contracts.model import Model, Renamed
from dqx_airflow.contracts.source.yaml_document import Mapping, Sequence
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.nearest import did_you_mean

KEY = "x-dqx-renamed"
_FORM = "write {model: orders, field: amount, from: total}"


def read_renames(reading: ClauseReader, models: Iterable[Model]) -> Iterator[Renamed]:
    """The renames of the document. Incomplete ones, and those of unknown elements, are reported and
    ignored."""
    node = at_the_top(reading, KEY)
    reading.documented(node, "renames since the previous version")
    known = {model.name: model for model in models}
    for item in node.items if isinstance(node, Sequence) else (node,) if node else ():
        mapping = item if isinstance(item, Mapping) else None
        model, path = reading.text(mapping, "model"), reading.text(mapping, "field")
        old = reading.text(mapping, "from")
        if model is None or old is None:
            missing = "model" if model is None else "from"
            message = f"the rename has no '{missing}'"
            reading.report(Diagnostic(message, item.span, "E405", help=_FORM))
        elif model not in known:
            message = f"unknown model '{model}'"
            hint = did_you_mean(model, known)
            reading.report(Diagnostic(message, item.span, "E420", help=hint))
        elif path is None:
            yield Renamed(model, None, old)
        else:
            column, before = dotted_path(path), dotted_path(old)
            if known[model].field_at(column) is None:
                hint = did_you_mean(path, [field.path for field in known[model].walk()])
                message = f"'{model}' has no field '{path}'"
                reading.report(Diagnostic(message, item.span, "E420", help=hint))
            else:
                yield Renamed(model, column, before)
