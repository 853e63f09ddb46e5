"""Compression of text files: Spark reads some kinds as if they were plain text, or crashes."""

from __future__ import annotations

import re

_REFUSED = re.compile(
    # Hadoop has formats of its own for the first three. For any other, it takes the first bytes for
    # a length, and the JVM runs out of memory.
    r"\.(lz4|snappy|deflate|"
    r"zip|7z|rar|xz|lzma|br|z|lzo|gzip|zstd|bzip2|tar|tar\.\w+|tgz|tbz2?|txz|tzst)$",
    re.IGNORECASE,
)
_READ = (".gz", ".bz2", ".zst")
_BEGINNINGS = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PK\x03\x04": "zip",
    b"\x1f\x9d": "compress",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
}
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_OF_TAR = slice(257, 262)
"""The position of the magic bytes of a tar archive."""

COMPRESSION_HINT = "use gzip (.gz), bzip2 (.bz2) or zstd (.zst) for each file, or no compression"


def refused_suffix(path: str) -> str | None:
    """The file name suffix of a compression or archive that cannot be read as text."""
    match = _REFUSED.search(path)
    return None if match is None else match[0]


def is_compressed(path: str) -> bool:
    """True for a file whose name says that it is decompressed when it is read."""
    return path.lower().endswith(_READ)


def left_compression(head: bytes) -> str | None:
    """The compression or archive that bytes are still in, such as `zip`; None if none is detected.

    :param head: the first bytes of a file, after the decompression that its name implies.
    """
    if _BZIP2.match(head):
        return "bzip2"
    if head[_OF_TAR] == b"ustar":
        return "tar"
    return next((kind for begin, kind in _BEGINNINGS.items() if head.startswith(begin)), None)
