"""The users of a contract in code: DAGs and jobs in Python, and DataLex blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dqx_airflow.contracts.datalex.binding import reference_of
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.source.references import FolderReader, no_files
from dqx_airflow.contracts.uses.consumers import ConsumerUse
from dqx_airflow.contracts.uses.python_code import ContractCall, contract_calls
from dqx_airflow.dql.syntax.datalex_blocks import is_block_file, read_blocks
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile

CODE_ENDINGS = (".py", ".dql")


@dataclass(frozen=True, slots=True)
class UsesInCode:
    """The uses of a contract, and what could not be analysed: a missing path, a file that is not
    Python."""

    uses: tuple[ConsumerUse, ...]
    unknown: tuple[str, ...]


def uses_in(files: Iterable[Path], contract_id: str) -> UsesInCode:
    """The uses of a contract in files, in order.

    The path of a contract is resolved as by a gate: next to the file that names it, then in the
    working directory.
    """
    reader = _FileReader(contract_id)
    for file in files:
        reader.read(file)
    return UsesInCode(tuple(reader.uses), tuple(reader.unknown))


@dataclass(slots=True)
class _FileReader:
    contract_id: str
    uses: list[ConsumerUse] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    _contracts: dict[Path, Contract | None] = field(default_factory=dict)

    def read(self, file: Path) -> None:
        source = read_source(file, str(file))
        if isinstance(source, Unreadable):
            self.unknown.append(f"{file}: {source.reason}")
        elif file.suffix == ".dql":
            self.uses += _in_blocks(source, self.contract_id)
        else:
            self._read_python(source, file)

    def _read_python(self, source: SourceFile, file: Path) -> None:
        calls = contract_calls(source, file)
        if isinstance(calls, str):
            self.unknown.append(f"{file}: {calls}")
            return
        for call in calls:
            contract = self._contract(call, file)
            if isinstance(contract, str):
                self.unknown.append(f"{file}:{call.span.line}: {call.function}: {contract}")
            elif contract.id == self.contract_id:
                version = contract.version if call.pin is None else None
                name = call.name or file.stem
                self.uses.append(ConsumerUse(name, call.function, call.pin, version, call.span))

    def _contract(self, call: ContractCall, file: Path) -> Contract | str:
        """The contract that a call names, or why it is unknown."""
        if call.contract is None:
            return "its contract is not known before it runs"
        if "\n" in call.contract:
            source = SourceFile(file.name, call.contract)
            inlined = read_contract(source, no_files, variables=None).contract
            return inlined or "its source is not a contract"
        for place in (file.parent / call.contract, Path(call.contract)):
            if os.path.isfile(place):
                contract = self._contract_at(place)
                return contract or f"{call.contract} contains no contract"
        return f"there is no {call.contract}"

    def _contract_at(self, place: Path) -> Contract | None:
        if place not in self._contracts:
            source = read_source(place, place.name)
            self._contracts[place] = (
                read_contract(source, FolderReader(place.parent), variables=None).contract
                if isinstance(source, SourceFile)
                else None
            )
        return self._contracts[place]


def _in_blocks(source: SourceFile, contract_id: str) -> Iterator[ConsumerUse]:
    if not is_block_file(source.text):
        return
    for block in read_blocks(source).blocks:
        reference = reference_of(block)
        if reference is not None and reference[0] == contract_id:
            pin = str(reference[1]) if reference[1] is not None else None
            use = f"block, {block.text('status') or 'draft'}"
            yield ConsumerUse(block.name, use, pin, span=block.span_of("datalex_contract"))
