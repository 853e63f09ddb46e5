"""The JSON form of the values, and a gate request as arguments of an application.

A request is split into short arguments: on Linux one argument is limited to 128 KiB, and Airflow's
Spark hook masks the command with a regular expression that takes quadratic time in the longest word
(minutes for 100 kB). It is compressed, not encrypted: a request holds no secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeVar

from dqx_airflow.errors import RequestError
from dqx_airflow.values.exact import exact_text, nearest_float, parse_exact
from dqx_airflow.values.report import MetricResult, MetricValue, Verdict
from dqx_airflow.values.request import BatchRequest, GateRequest, JobRequest

T = TypeVar("T")

PART_OF_SECOND = re.compile(r"(?<=:[0-9]{2})[.,]([0-9]+)")
"""Matches the fraction of a second in a timestamp, with its point or comma."""


def to_json(value: Any) -> str:
    """The JSON form of any value of this package, with stable key order."""
    return json.dumps(_converter().unstructure(value), ensure_ascii=False, allow_nan=False)


def from_json(kind: type[T], text: str | bytes) -> T:
    """The value whose JSON form is `text`.

    :raises ValueError: `text` is not the JSON form of a `kind`; the message names the key.
    """

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
        _CONVERTER.register_unstructure_hook_func(_is_metric_value, number_of_json)
        _CONVERTER.register_structure_hook_func(_is_metric_value, _checked_value)
        for kind, names in _VALUES.items():
            _with_exact_strings(_CONVERTER, kind, names)
    return _CONVERTER


def _with_exact_strings(converter: Any, kind: type, names: tuple[str, ...]) -> None:
    """Makes `converter` write fractions as a JSON number, which may be rounded, and as an exact
    string under a second key."""
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


def number_of_json(value: MetricValue) -> MetricValue:
    """A fraction as the nearest float, or as exact text beyond all floats; other values as they
    are."""
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


FLAG = "--request"
FILE_FLAG = "--request-file"
"""The flag of a job before the address of its request, among whatever a service adds."""
STORAGE_VARIABLE = "DQX_RESULTS_STORAGE"
"""The environment variable with the storage options of the results, a JSON object. They may be
secret, so they are not part of the request."""


EXIT_REPORTED = 0
"""The exit code of a job that has written its report, whatever the outcome."""
EXIT_SOURCE = 2
"""The exit code of a job whose suite has errors."""
EXIT_INFRASTRUCTURE = 4
"""The exit code of a job without a report, because something failed."""
EXIT_TAKEN = 5
"""The exit code of a job that did nothing, because another one has taken its request."""
EXIT_TIMED_OUT = 124
"""The exit code of a job that exceeded its time limit, the same as from `timeout(1)`."""

_LONGEST_ARGUMENT = 500
_LARGEST_REQUEST = 64 * 2**20
_OF_A_BATCH = b"batch "
"""The beginning of a packed request for several gates; the JSON form follows."""


def to_arguments(request: JobRequest) -> list[str]:
    """The arguments that pass the request to the job."""
    content = to_json(request).encode()
    if isinstance(request, BatchRequest):
        content = _OF_A_BATCH + content
    text = base64.urlsafe_b64encode(zlib.compress(content, level=9)).decode()
    cuts = range(0, len(text), _LONGEST_ARGUMENT)
    return [FLAG, *(text[start : start + _LONGEST_ARGUMENT] for start in cuts)]


def from_arguments(arguments: Sequence[str]) -> JobRequest:
    """The request of a gate, or of a batch of gates, that `to_arguments` packed.

    :raises RequestError: these are not such arguments.
    """
    if len(arguments) < 2 or arguments[0] != FLAG:
        message = "the job received no request"
        raise RequestError(message, f"a gate operator submits the job and passes `{FLAG} ...`")
    try:
        packed = base64.urlsafe_b64decode("".join(arguments[1:]))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _LARGEST_REQUEST)
        if not unpacker.eof:
            raise ValueError("it is truncated or too large")
        if text.startswith(_OF_A_BATCH):
            return from_json(BatchRequest, text.removeprefix(_OF_A_BATCH))
        return from_json(GateRequest, text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise RequestError(
            f"the request cannot be read: {error}",
            "the job and the operator must have the same version of dqx-airflow",
        ) from error


def storage_text(options: Mapping[str, str]) -> str:
    """The value of `DQX_RESULTS_STORAGE` for these storage options."""
    return json.dumps({**options})


def storage_options_of(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The storage options in an environment; None if there are none.

    :raises RequestError: the variable has an invalid value.
    """
    text = environment.get(STORAGE_VARIABLE, "")
    if not text.strip():
        return None
    try:
        options = json.loads(text)
        if not isinstance(options, dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise RequestError(
            f"the environment variable {STORAGE_VARIABLE} is not a JSON object",
            'write the storage options, such as {"aws_region": "eu-central-1"}',
        ) from None
    return {str(key): str(value) for key, value in options.items()}


def setting_text(value: object) -> str:
    """A setting as Spark, databases and storages write it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def iso_timestamp(text: str) -> datetime:
    """The timestamp in ISO form, with the time zone that it has, or none.

    Python 3.10 by itself takes fractions of three or six digits only, and no `Z`.

    :raises ValueError: it is not one.
    """
    padded = PART_OF_SECOND.sub(lambda part: f".{part[1][:6]:0<6}", text)
    return datetime.fromisoformat(re.sub("Z$", "+00:00", padded))
