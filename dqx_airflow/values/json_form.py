"""The JSON form of the values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeVar

from dqx_airflow.values.exact import exact_text, nearest_float, parse_exact
from dqx_airflow.values.report import MetricResult, MetricValue, Verdict

T = TypeVar("T")


def to_json(value: Any) -> str:
    """The JSON form of any value of this package, with stable key order."""
    import json

    return json.dumps(_converter().unstructure(value), ensure_ascii=False, allow_nan=False)


def from_json(kind: type[T], text: str | bytes) -> T:
    """The value whose JSON form is `text`.

    :raises ValueError: `text` is not the JSON form of a `kind`; the message names the key.
    """
    import json

    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
        value: T = _converter().structure(json.loads(text), kind)
        return value
    except BaseValidationError as error:
        raise ValueError(f"not a {kind.__name__}: {'; '.join(transform_error(error))}") from error
    except TypeError as error:  # `null` or a number instead of an object
        raise ValueError(f"not a {kind.__name__}: {error}") from error


_EXACTLY = "_exactly"
"""The suffix of a key in JSON for the exact form of a number that JSON would round."""


def _converter() -> Any:
    global _CONVERTER
    if _CONVERTER is None:
        from cattrs.preconf.json import make_converter

        _CONVERTER = make_converter()
        _CONVERTER.register_unstructure_hook_func(_is_metric_value, _number_of_json)
        _CONVERTER.register_structure_hook_func(_is_metric_value, _checked_value)
        for kind, names in _VALUES.items():
            _with_exact_strings(_CONVERTER, kind, names)
    return _CONVERTER


def _with_exact_strings(converter: Any, kind: type, names: tuple[str, ...]) -> None:
    """A fraction is a JSON number, which may be rounded, together with an exact string."""
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

    unstructure: Any = make_dict_unstructure_fn(kind, converter)
    structure: Any = make_dict_structure_fn(kind, converter)

    def unstructured(value: Any) -> dict[str, Any]:
        fields: dict[str, Any] = unstructure(value)
        for name in names:
            if isinstance(number := getattr(value, name), Fraction):
                fields[f"{name}{_EXACTLY}"] = exact_text(number)
        return fields

    def read(given: Any, _: Any) -> Any:
        if isinstance(given, dict):
            exactly = {name: given[key] for name in names if (key := f"{name}{_EXACTLY}") in given}
            given = {**given, **{name: parse_exact(str(text)) for name, text in exactly.items()}}
        return structure(given, kind)

    converter.register_unstructure_hook(kind, unstructured)
    converter.register_structure_hook(kind, read)


def _number_of_json(value: MetricValue) -> MetricValue:
    if not isinstance(value, Fraction):
        return value
    near = nearest_float(value)
    return near if math.isfinite(near) else exact_text(value)


def _is_metric_value(kind: Any) -> bool:
    return bool(kind == MetricValue)


def _checked_value(value: Any, _: Any) -> MetricValue:
    if isinstance(value, int | float | Fraction | str | None):
        return value
    raise TypeError(f"not a metric value: {value!r}")


_VALUES = {Verdict: ("value", "scaled_value", "threshold"), MetricResult: ("value",)}


_CONVERTER: Any = None
