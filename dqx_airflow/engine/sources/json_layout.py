"""The layout of JSON files: one value per line, or documents and arrays over several lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import option_of
from dqx_airflow.engine.sources.listing import DataFile, read_each
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

_LINE_BREAK = re.compile(r"[\r\n]")
_MOST_BYTES = 1_000_000


def with_json_layout(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> DatasetRef:
    """The dataset with `multiLine` if its JSON files are documents and no option decides.

    Otherwise Spark reads one value per line. Files that cannot be read count as lines: Spark
    reports what is wrong with them.

    :raises DatasetError: some files are documents, and others are not.
    """
    if ref.format != "json" or option_of(ref, "multiLine") is not None:
        return ref
    filled = [file for file in files if file.size > 0]
    try:
        answers = read_each(location, filled, _is_document)
    except (OSError, ValueError):
        return ref
    documents = [file.path for file, answer in zip(filled, answers, strict=True) if answer]
    lines = [file.path for file, answer in zip(filled, answers, strict=True) if answer is False]
    if documents and lines:
        raise DatasetError(
            f"dataset '{ref.name}': {documents[0]} is a JSON document, {lines[0]} has one value a "
            "line",
            "separate them by folders or by a glob: one reader cannot read both",
        )
    if not documents:
        return ref
    return replace(ref, options=(*ref.options, ("multiLine", "true")))


def _is_document(system: FileSystem, file: DataFile) -> bool | None:
    """True for a value over several lines; None if both layouts read the same, or neither.

    :raises OSError: the file cannot be read.
    """
    with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
        head = stream.read(_MOST_BYTES)
    text = head.decode("utf-8-sig", errors="replace").strip()
    first_line = _LINE_BREAK.split(text, maxsplit=1)[0]
    try:
        _, end = json.JSONDecoder(parse_int=str).raw_decode(text)
    except json.JSONDecodeError as error:
        # The readable beginning of a large value is enough to decide.
        return True if len(head) == _MOST_BYTES and error.pos > len(first_line) else None
    except RecursionError:
        return None
    if end > len(first_line):
        return True
    return False if text != first_line else None
