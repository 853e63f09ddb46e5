"""Homes of a registry, which store the entries of published versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

FORMAT = 1
"""The format of entries; other formats are not supported."""


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """A published version in a home: the files of the contract by name, itself first.

    `version` and `dialect` are for users who inspect a home.
    """

    contract_id: str
    number: int
    version: str | None
    dialect: str
    on: date
    digest: str
    files: Mapping[str, str]


class Home(Protocol):
    """Storage of entries. Every method raises `RegistryError` if it cannot be used."""

    def ids(self) -> tuple[str, ...]:
        """The ids of all contracts, in their order."""
        ...

    def entries(self, contract_id: str) -> tuple[VersionEntry, ...]:
        """The entries of a contract, in numerical order."""
        ...

    def add(self, entry: VersionEntry) -> bool:
        """Stores an entry atomically; False if another process has added an entry meanwhile, which
        must be read first."""
        ...
