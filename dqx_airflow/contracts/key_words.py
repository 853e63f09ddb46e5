"""The lists of words in `key_words.txt`, by which keys of contracts are classified."""

from __future__ import annotations

from importlib.resources import files


def listed_key_words(*names: str) -> list[list[str]]:
    """The words in the lines of `key_words.txt` with these names."""
    lines = files(__package__).joinpath("key_words.txt").read_text("utf-8").splitlines()
    return [line.partition(": ")[2].split() for line in lines if line.partition(":")[0] in names]


def key_words(*names: str) -> frozenset[str]:
    """All words in the lines of `key_words.txt` with these names."""
    return frozenset(word for line in listed_key_words(*names) for word in line)
