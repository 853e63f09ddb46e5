"""The values of examples, in the types of their fields."""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts.demands.wording import literal_text
from dqx_airflow.metrics.comparison import order_key
from dqx_airflow.metrics.types import Family, family_of, fields_of, parts_of
from dqx_airflow.reference.table import value_of


class NoValueError(ValueError):
    """The text is not a value of a type."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def held(value: object, spark_type: str) -> Any:
    """A value of a document, as a table with the type holds it.

    :raises NoValueError: it is not a value of the type, or contains one that is not.
    """
    if value is None:
        return None
    family, types = family_of(spark_type), parts_of(spark_type)
    match value:
        case list() if family is Family.ARRAY:
            return tuple(held(item, types[0]) for item in value)
        case dict() if family is Family.MAP:
            pairs = [(held(key, types[0]), held(item, types[1])) for key, item in value.items()]
            return tuple(sorted(pairs, key=lambda pair: order_key(pair[0])))
        case dict() if fields := fields_of(spark_type):
            return {name: held(value.get(name), inner) for name, inner in fields.items()}
    is_nested = family in (Family.ARRAY, Family.MAP) or bool(fields_of(spark_type))
    converted = None if is_nested else value_of(literal_text(value), spark_type)
    if converted is None:
        raise NoValueError(literal_text(value))
    return converted
