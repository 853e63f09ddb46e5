"""The current contracts of files and folders, beside those at a revision."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path

from dqx_airflow.cli.contract.files import contract_files, is_contract
from dqx_airflow.cli.contract.versions import GIT_TIMEOUT_S, GitFile, read_place, valid_contracts
from dqx_airflow.cli.project import CONTRACT_ENDINGS
from dqx_airflow.contracts.model import Contract
from dqx_airflow.errors import RequestError


@dataclass(frozen=True, slots=True)
class ContractPair:
    """A contract before and after: None if it is new, or deleted."""

    old: Contract | None
    new: Contract | None


def contract_pairs(revision: str, paths: Sequence[str]) -> tuple[ContractPair, ...]:
    """Each contract below the paths with its earlier version, including moved and renamed files.

    Contracts are matched by their path, and if that is gone, by their id. A contract that cannot be
    read is reported, and ends the command.
    """
    before = dict(valid_contracts(_git_files(revision, paths)))
    after = dict(valid_contracts(_present(paths)))
    new = {contract.id for path, contract in after.items() if path not in before}
    if new - {contract.id for contract in before.values()}:
        before |= {
            path: contract for path, contract in _gone(revision, before) if contract.id in new
        }
    if not before and not after:
        shown = ", ".join(paths)
        raise RequestError(f"no contract found at {shown}, neither now nor at {revision}")
    pairs = []
    for path in [path for path in after if path in before]:
        if before[path].id == after[path].id:
            pairs.append(ContractPair(before.pop(path), after.pop(path)))
    for path, contract in list(before.items()):
        moved = [
            new_path for new_path, new_contract in after.items() if new_contract.id == contract.id
        ]
        # Of several versions that were moved, those with the same number belong together.
        moved.sort(key=lambda new_path: after[new_path].version != contract.version)
        if moved:
            pairs.append(ContractPair(before.pop(path), after.pop(moved[0])))
    for path in [path for path in after if path in before]:
        pairs.append(ContractPair(before.pop(path), after.pop(path)))
    pairs += [ContractPair(contract, None) for contract in before.values()]
    pairs += [ContractPair(None, contract) for contract in after.values()]
    return tuple(sorted(pairs, key=_file))


def _gone(revision: str, known_paths: Collection[str]) -> Iterator[tuple[str, Contract]]:
    """The valid contracts of this folder at a revision whose file is gone: one of them may be the
    earlier version of a new one."""
    for path, place in _git_files(revision, ["."]):
        if path not in known_paths and not Path(path).exists():
            result = read_place(place)
            if not isinstance(result, str) and result.contract is not None and not result.errors:
                yield path, result.contract


def _file(pair: ContractPair) -> str:
    contract = pair.new or pair.old
    return contract.span.file if contract is not None else ""


def _present(paths: Sequence[str]) -> Iterator[tuple[str, Path]]:
    files, _ = contract_files(map(Path, paths))
    return ((_key(str(file)), file) for file in files)


def _git_files(revision: str, paths: Sequence[str]) -> Iterator[tuple[str, GitFile]]:
    """The earlier contracts below the paths."""
    if revision.startswith("-"):
        raise RequestError(f"'{revision}' is not a revision")
    keys = [_key(path) for path in paths]
    outside = [path for path in keys if path.startswith("..")]
    if outside:
        raise RequestError(
            f"{outside[0]} is outside this folder: run the command in a folder that contains both"
        )
    try:
        run = subprocess.run(  # noqa: S603
            ["git", "ls-tree", "-r", "-z", "--name-only", revision, "--", *keys],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except FileNotFoundError:
        raise RequestError("git is not installed") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"git did not respond: {error}") from error
    if run.returncode != 0:
        answer = run.stderr.decode(errors="replace").strip().splitlines()
        raise RequestError(
            f"git cannot list {revision}: {answer[0] if answer else 'no reason given'}"
        )
    for name in filter(None, run.stdout.decode(errors="replace").split("\0")):
        place = GitFile(revision, name)
        is_named = name in keys
        if is_named or Path(name).suffix in CONTRACT_ENDINGS:
            source = place.read()
            if is_named or (not isinstance(source, str) and is_contract(source)):
                yield _key(name), place


def _key(path: str) -> str:
    return Path(relpath(path)).as_posix()
