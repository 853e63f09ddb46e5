"""The registry of contracts in Python: the functions of `dql contract registry`, as methods."""

from __future__ import annotations

import os
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from dqx_airflow.contracts.model import Contract as ContractModel
from dqx_airflow.contracts.publishing import PublishedVersion, newest_of
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.contracts.registry import Publication, registry_at
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RegistryError, RequestError, SourceError

if TYPE_CHECKING:
    pass


class ContractRegistry:
    """The published versions of contracts, which never change.

        registry = ContractRegistry("s3://lake/contracts")
        registry.register("contracts/customers.yaml")
        registry.get_latest("CustomerMaster").version

    :param place: a folder, or a Delta table: its path, a URL, or `delta:PATH` for a new one.
    :raises RegistryError: a registry cannot be at this location.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._registry = registry_at(os.fspath(place))

    def register(self, path: str | os.PathLike[str], *, on: date | None = None) -> str:
        """Publishes the version of the contract in a file, and returns `id:version`.

        A published version stays as it is; publishing the same content again changes nothing.

        :param on: the date of the publication, today by default.
        :raises SourceError: the contract has errors.
        :raises RegistryError: there are objections, such as a breaking change without a major
            version; or the registry cannot be written.
        """
        publication = self._publication(path, on, is_dry=False)
        if publication.objections or publication.published is None:
            first = publication.objections[0]
            problems = "; ".join(item.problem for item in publication.objections)
            raise RegistryError(f"{path}: {problems}", first.hint)
        contract = publication.published.contract
        return f"{contract.id}:{contract.version}"

    def objections(
        self, path: str | os.PathLike[str], *, on: date | None = None
    ) -> tuple[str, ...]:
        """Returns the objections to publishing a version, empty if it may be published. Nothing is
        published.

        :param on: the date of the publication, today by default.
        :raises SourceError: the contract has errors.
        :raises RegistryError: the registry cannot be read.
        """
        publication = self._publication(path, on, is_dry=True)
        return tuple(f"{item.problem}: {item.hint}" for item in publication.objections)

    def ids(self) -> tuple[str, ...]:
        """Returns the ids of all contracts."""
        return self._registry.ids()

    def history(self, contract_id: str) -> tuple[PublishedVersion, ...]:
        """Returns the published versions of a contract, oldest first; empty for an unknown one."""
        return self._registry.versions(contract_id)

    def get_latest(self, contract_id: str) -> ContractModel | None:
        """Returns the highest version of a contract; None if none is published."""
        newest = newest_of(self.history(contract_id))
        return newest.contract if newest is not None else None

    def get(self, contract_id: str, version: str) -> ContractModel:
        """Returns a version of a contract: `2.3.0`, or the highest published one of `2.3` or `2`.

        :raises RequestError: no such version is published.
        """
        return self._published(contract_id, version).contract

    def text(self, contract_id: str, version: str) -> str:
        """Returns the source of a published version.

        :raises RequestError: no such version is published.
        """
        number = self._published(contract_id, version).number
        return next(iter(self._registry.texts(contract_id, number).values()))

    def _published(self, contract_id: str, version: str) -> PublishedVersion:
        """:raises RequestError: no such version is published."""
        published = self.history(contract_id)
        newest = newest_of(published, version)
        if newest is None:
            names = [str(item.contract.version) for item in published] or list(self.ids())
            wanted = f"{contract_id} {version}" if published else contract_id
            raise RequestError(f"{wanted} is not published", did_you_mean(version, names) or "")
        return newest

    def _publication(
        self, path: str | os.PathLike[str], on: date | None, *, is_dry: bool
    ) -> Publication:
        file = Path(path)
        source = read_source(file, file.name)
        if isinstance(source, Unreadable):
            raise SourceError(f"{file}: {source.reason}", diagnostics=(source.diagnostic,))
        reading = read_contract(source, FolderReader(file.parent), variables=None)
        if reading.contract is None or reading.errors:
            raise drawn_error(reading.errors, reading.sources)
        day = on or datetime.now(timezone.utc).date()
        return self._registry.publish(reading.contract, reading.sources, day, is_dry=is_dry)
