"""Converts a gate request to arguments of an application, and back.

A request is split into short arguments: on Linux one argument is limited to 128 KiB, and Airflow's
Spark hook masks the command with a regular expression that takes quadratic time in the longest word
(minutes for 100 kB). It is compressed, not encrypted: a request holds no secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence

from dqx_airflow.errors import RequestError
from dqx_airflow.values import GateRequest, from_json, to_json

FLAG = "--request"
STORAGE_VARIABLE = "DQX_RESULTS_STORAGE"
"""The environment variable with the storage options of the results, a JSON object. They may be
secret, so they are not part of the request."""


EXIT_TIMED_OUT = 124
"""The exit code of a job that exceeded its time limit, that of `timeout(1)`."""

_LONGEST_ARGUMENT = 500
_LARGEST_REQUEST = 64 * 2**20


def to_arguments(request: GateRequest) -> list[str]:
    """The arguments that pass the request to the job."""
    packed = zlib.compress(to_json(request).encode(), level=9)
    text = base64.urlsafe_b64encode(packed).decode()
    cuts = range(0, len(text), _LONGEST_ARGUMENT)
    return [FLAG, *(text[start : start + _LONGEST_ARGUMENT] for start in cuts)]


def from_arguments(arguments: Sequence[str]) -> GateRequest:
    """The request that `to_arguments` packed.

    :raises RequestError: these are not such arguments.
    """
    if len(arguments) < 2 or arguments[0] != FLAG:
        raise RequestError(
            "the job received no request",
            f"a gate operator submits the job and passes `{FLAG} ...`",
        )
    try:
        packed = base64.urlsafe_b64decode("".join(arguments[1:]))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _LARGEST_REQUEST)
        if not unpacker.eof:
            raise ValueError("it is truncated or too large")
        return from_json(GateRequest, text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise RequestError(
            f"the request cannot be read: {error}",
            "the job and the operator must have the same version of dqx-airflow",
        ) from error


def storage_text(options: Mapping[str, str]) -> str:
    """The value of the variable for these storage options."""
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
