"""The contracts in a command line: files, folders, and files at a git revision."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import relpath
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TypeAlias

import typer

from dqx_airflow.cli.command import CONTRACT_ENDINGS, has_colours, variables_in, what_to_give
from dqx_airflow.cli.exit_codes import EXIT_WRONG
from dqx_airflow.contracts.data_product import DataProduct, read_data_product
from dqx_airflow.contracts.dialects import is_data_product, recognised
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Contract, Model
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader, NotRead
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.datasets.dqx_toml import Settings, find_settings, read_settings
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source, source_of
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile

ContractPair: TypeAlias = tuple[Contract | None, Contract | None]
"""A contract before and after: None if it is new, or deleted."""

PLACE_VARIABLE = "DQX_CONTRACT_REGISTRY"
"""The environment variable with the location of published contracts."""


def contract_pairs(revision: str, paths: Sequence[str]) -> tuple[ContractPair, ...]:
    """Each contract below the paths with its earlier version, including moved and renamed files.

    Contracts are matched by their path, and if that is gone, by their id. A contract that cannot be
    read is reported, and ends the command.
    """
    before = dict(valid_contracts(_git_files(revision, paths)))
    files, missing = contract_files(map(Path, paths))
    _require_known([path for path in missing if not _some_below(path, before)], revision)
    after = dict(valid_contracts((_key(str(file)), file) for file in files))
    new = {contract.id for path, contract in after.items() if path not in before}
    if new - {contract.id for contract in before.values()}:
        before |= {
            path: contract for path, contract in _gone(revision, before) if contract.id in new
        }
    pairs: list[ContractPair] = []
    for path in [path for path in after if path in before]:
        if before[path].id == after[path].id:
            pairs.append((before.pop(path), after.pop(path)))
    for path, contract in list(before.items()):
        moved = [
            new_path for new_path, new_contract in after.items() if new_contract.id == contract.id
        ]
        # Of several versions that were moved, those with the same number belong together.
        moved.sort(key=lambda new_path: after[new_path].version != contract.version)
        if moved:
            pairs.append((before.pop(path), after.pop(moved[0])))
    pairs += [(before.pop(path), after.pop(path)) for path in [*after] if path in before]
    pairs += [(contract, None) for contract in before.values()]
    pairs += [(None, contract) for contract in after.values()]
    return tuple(sorted(pairs, key=_file))


def _some_below(path: Path, names: Iterable[str]) -> bool:
    """Whether a path was one of these files, or has one of them below."""
    return any(PurePosixPath(name).is_relative_to(_key(str(path))) for name in names)


def _require_known(unknown: Sequence[Path], revision: str) -> None:
    """:raises RequestError: there are paths without a contract, now and at the revision."""
    if unknown:
        shown = ", ".join(map(str, unknown))
        raise RequestError(
            f"no contract found at {shown}, neither now nor at {revision}",
            what_to_give(unknown[0], CONTRACT_ENDINGS),
        )


def _gone(revision: str, known_paths: Collection[str]) -> Iterator[tuple[str, Contract]]:
    """The valid contracts of this folder at a revision whose file is gone: one of them may be the
    earlier version of a new one."""
    for path, place in _git_files(revision, ["."]):
        if path not in known_paths and not Path(path).exists():
            result = read_place(place)
            if not isinstance(result, str) and result.contract is not None and not result.errors:
                yield path, result.contract


def _file(pair: ContractPair) -> str:
    contract = pair[1] or pair[0]
    return contract.span.file if contract is not None else ""


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
    listed = git("ls-tree", "-r", "-z", "--name-only", revision, "--", *keys)
    for name in filter(None, listed.decode(errors="replace").split("\0")):
        place = GitFile(revision, name)
        may_be_one = Path(name).suffix in CONTRACT_ENDINGS
        if name in keys or (may_be_one and is_contract(place.read())):
            yield _key(name), place


def _key(path: str) -> str:
    return Path(relpath(path)).as_posix()


GIT_TIMEOUT_S = 60


def git(*arguments: str) -> bytes:
    """The output of git in the working directory.

    :raises RequestError: there is none.
    """
    hint = "run this in a repository that has the revision; in CI, fetch it first"
    command = ["git", *arguments]
    try:
        run = subprocess.run(command, capture_output=True, check=False, timeout=GIT_TIMEOUT_S)  # noqa: S603
    except FileNotFoundError:
        raise RequestError("git is not installed") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"git did not respond: {error}") from error
    if run.returncode == 0:
        return run.stdout
    errors = run.stderr.decode(errors="replace").strip().splitlines()
    raise RequestError(f"git failed: {errors[0] if errors else 'no reason given'}", hint)


@dataclass(frozen=True, slots=True)
class GitFile:
    """A file at a revision; its path is relative to the working directory."""

    revision: str
    path: str

    def read(self) -> SourceFile | NotRead:
        """The text of the file."""
        if self.revision.startswith("-"):
            return NotRead(f"'{self.revision}' is not a revision")
        # `./` makes git resolve the path here, and not at the top of the repository.
        name = f"{self.revision}:./{self.path}"
        if self.path.startswith("/"):
            return NotRead("write the path relative to this folder, without a leading /")
        try:
            content = git("show", "--no-textconv", "--end-of-options", name)
        except RequestError as error:
            return NotRead(f"not found in git: {error.problem}")
        source = source_of(content, f"{self.revision}:{self.path}")
        return NotRead(source.reason) if isinstance(source, Unreadable) else source

    def read_near(self, referrer: str, path: str) -> SourceFile | NotRead:
        """A file next to this one at the same revision."""
        if "://" in path:
            return NotRead("only local files are read: download it and refer to the copy")
        folder = PurePosixPath(self.path).parent
        referrer_folder = PurePosixPath(referrer.removeprefix(f"{self.revision}:")).parent
        place = PurePosixPath(normpath(referrer_folder / path))
        if not place.is_relative_to(normpath(folder)) or ".." in place.parts:
            reason = f"'{path}' is outside the folder of the contract: move it there"
            return NotRead(reason, "outside")
        return GitFile(self.revision, place.as_posix()).read()


def read_versions(places: Iterable[str]) -> tuple[Contract, ...]:
    """The contracts at these places; mistakes in them are printed, and end the command.

    A text such as `HEAD~1:contracts/orders.yaml` names a file at a revision, unless there is a file
    with that name.
    """
    named_places = ((place, _place_of(place)) for place in places)
    return tuple(contract for _, contract in valid_contracts(named_places))


def valid_contracts(places: Iterable[tuple[str, Path | GitFile]]) -> Iterator[tuple[str, Contract]]:
    """The contracts at places, each with the name under which its mistakes are printed. Mistakes
    end the command, after the diagnostics of all contracts are printed."""
    failed = False
    for name, place in places:
        result = read_place(place)
        if isinstance(result, str):
            typer.echo(f"error: {name}: {result}", err=True)
            failed = True
        elif result.contract is None or result.errors:
            typer.echo(
                draw(result.errors, result.sources, colour=has_colours(sys.stderr)), err=True
            )
            failed = True
        else:
            yield name, result.contract
    if failed:
        raise typer.Exit(EXIT_WRONG)


def model_of(contract: Contract, place: str, name: str | None) -> Model:
    """The model with a name, or else the only one.

    :raises RequestError: the model does not exist, or there are several.
    """
    wanted = [model for model in contract.models if name in (None, model.name)]
    if len(wanted) == 1:
        return wanted[0]
    names = [model.name for model in contract.models]
    problem = f"{place} has no model '{name}'" if name else f"{place} has {len(names)} models"
    hint = did_you_mean(name or "", names)
    raise RequestError(problem, f"--model: {hint}" if hint else "")


def _place_of(text: str) -> Path | GitFile:
    revision, colon, path = text.partition(":")
    if Path(text).exists() or not colon or not revision or not path:
        return Path(text)
    return GitFile(revision, path)


def read_place(place: Path | GitFile) -> ReadContract | str:
    """The contract at a location with its diagnostics, or the reason why it cannot be read."""
    if isinstance(place, GitFile):
        file = place.read()
        if isinstance(file, NotRead):
            return file.reason
        return read_contract(file, place.read_near, variables=_variables_at(Path(place.path)))
    source = read_source(place, str(place))
    if isinstance(source, Unreadable):
        return source.reason

    def read_near(referrer: str, path: str) -> SourceFile | NotRead:
        """A file next to the contract; both have paths relative to the working directory."""
        inner = Path(referrer).relative_to(place.parent).as_posix()
        near = FolderReader(place.parent)(inner, path)
        if isinstance(near, NotRead):
            return near
        return replace(near, name=str(place.parent / near.name))

    return read_contract(source, read_near, variables=_variables_at(place))


def _variables_at(place: Path) -> dict[str, str]:
    """The variables that a contract may know, by the nearest `dqx.toml`."""
    path = find_settings(place.parent)
    return variables_in(read_settings(path) if path is not None else Settings())


def product_at(place: Path) -> DataProduct | None:
    """The data product in a file; None if the file is not a data product."""
    source = read_source(place, str(place))
    if isinstance(source, Unreadable) or not is_data_product(read_document(source).root):
        return None
    return read_data_product(read_document(source), _variables_at(place))


def contract_files(
    paths: Iterable[Path], *, with_products: bool = False
) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without a contract.

    A folder may contain other YAML: only files that a dialect recognises count, and with
    `with_products` data products.
    """
    files: list[Path] = []
    missing = []
    for path in paths:
        contracts = [path] if path.is_file() else []
        for file in sorted(path.rglob("*")) if path.is_dir() else ():
            if file.suffix in CONTRACT_ENDINGS:
                source = read_source(file, str(file))
                if is_contract(source, or_product=with_products):
                    contracts.append(file)
        files += contracts
        if not contracts:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def is_contract(source: SourceFile | Unreadable | NotRead, *, or_product: bool = False) -> bool:
    """True for a text that a dialect recognises, and for a data product if these count."""
    root = read_document(source).root if isinstance(source, SourceFile) else None
    is_product = or_product and is_data_product(root)
    return is_product or (isinstance(root, Mapping) and bool(recognised(root)))
