"""Runs the contracts of the standards' own repositories beside datacontract-cli.

Every contract in these repositories is read; those with data are run by both. Both judge the same
data: files as they are, and for containers and clouds the files or statements that fill them.
`standards.toml` lists these fixtures with the verdicts that the tests of datacontract-cli expect.
The page `contracts/standards.md` of the docs is rewritten.

    python benchmarks/standards.py [--clones FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib
import yaml
from peers.environments import CACHE, ENVIRONMENTS, Engine, interpreter

from dqx_airflow.cli.contract.versions import contract_files
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.coverage import counts, coverage
from dqx_airflow.contracts.enforcement.lint import lint
from dqx_airflow.contracts.model import Treatment
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.diagnostics.diagnostic import Level, title
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile

HERE = Path(__file__).parent
PAGE = HERE.parent / "dqx_airflow" / "docs" / "contracts" / "standards.md"
PEER_PROGRAM = HERE / "peers" / "judge_contracts.py"
PEER = "datacontract-cli"
REPOSITORIES = {
    PEER: "datacontract/datacontract-cli",
    "datacontract-specification": "datacontract/datacontract-specification",
    "open-data-contract-standard": "bitol-io/open-data-contract-standard",
}
PASSING = ("passed", "warned", "warning")
_MOST_SHOWN = 120

HEAD = """
# The standards' own contracts

How `dql contract` handles every contract in the repositories of the two standards and of the Data
Contract CLI. All of them are read, linted and compiled. Those of the Data Contract CLI that have
data are run by it and by `dql contract test`, on the same files. `python benchmarks/standards.py`
writes this page.

## Contracts with data

{agree} of {fixtures} verdicts are the same.

`expected` is the verdict that the tests of the Data Contract CLI expect, `Data Contract CLI` that
of version {version} in this run, with files instead of databases and clouds. If its tests expect a
verdict, we compare with that: without its Delta extension, or with a file that is not named like
the table, the run fails here.
"""
BELOW = """
## Contracts as written

`read` means that a gate can enforce the contract, `lint fails` that it contradicts itself or refers
to something that it does not define. `checked` and `unsupported` count its clauses. `refused`
contracts do not match the schema of their standard.
"""


@dataclass(frozen=True)
class Reading:
    """The result of reading one contract as written. `found` has the first error of each code."""

    name: str
    verdict: str
    checked: int
    unsupported: int
    found: str


@dataclass(frozen=True)
class Fixture:
    """A contract with data. `contract` is a copy with one server, whose data both engines read."""

    name: str
    contract: Path
    expected: str | None
    why: str
    statements: Path | None = None
    parquet: Path | None = None

    @property
    def case(self) -> dict[str, str]:
        """The input of the program that runs datacontract-cli."""
        case = {"name": self.name, "contract": str(self.contract)}
        if self.statements is None:
            return case
        return case | {"statements": str(self.statements), "parquet": str(self.parquet)}


def clone(name: str, folder: Path) -> Path:
    """The checkout of a repository, cloned if it is missing."""
    place = folder / name
    if not place.exists():
        url = f"https://github.com/{REPOSITORIES[name]}"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", url, str(place)], check=True)
    return place


def readings(folder: Path) -> Iterator[Reading]:
    """All contracts below a folder: read, linted, compiled, and their suites checked."""
    files, _ = contract_files([folder])
    for file in files:
        yield reading_of(file, file.relative_to(folder).as_posix())


def reading_of(file: Path, name: str) -> Reading:
    source = read_source(file, file.name)
    if isinstance(source, Unreadable):
        return Reading(name, "refused", 0, 0, source.reason)
    found = read_contract(source, FolderReader(file.parent))
    if found.contract is None or found.errors:
        return Reading(name, "refused", 0, 0, firsts(found.errors))
    compiled = compile_contract(found.contract)
    if wrong := check_source(SourceFile(name, compiled.text), needs_suite=True).errors:
        raise AssertionError(f"{name}: the suite has errors: {wrong}")
    counted = counts(coverage(found.contract, compiled))
    errors = [item for item in lint(found.contract) if item.level is Level.ERROR]
    verdict = "read, lint fails" if errors else "read"
    numbers = counted[Treatment.CHECKED], counted[Treatment.UNSUPPORTED]
    return Reading(name, verdict, *numbers, firsts(errors))


def firsts(errors: Sequence[Any]) -> str:
    """Each code once: the first message of a single code, the titles of several."""
    codes = list(dict.fromkeys(item.code for item in errors))
    if len(codes) == 1:
        return f"{codes[0]}: {errors[0].message}"
    return "; ".join(f"{code}: {title(code)}" for code in codes)


def fixtures(clone: Path, copies: Path) -> Iterator[Fixture]:
    """The fixtures of the table, with copies of their contracts below a folder."""
    root = clone / "tests"
    table = tomllib.loads((HERE / "standards.toml").read_text("utf-8"))["fixture"]
    for entry in table:
        pattern = entry["contract"]
        for file in sorted((root / "fixtures").glob(pattern)):
            if file.name not in entry.get("except", ()):
                for server in entry.get("servers", (None,)):
                    yield fixture(entry, file, server, root, copies)


def fixture(
    entry: Mapping[str, Any], file: Path, server: str | None, root: Path, copies: Path
) -> Fixture:
    name = file.relative_to(root / "fixtures").as_posix()
    expected, why = entry.get("expected"), entry.get("why", "")
    name = " ".join(filter(None, (name, server)))
    document = yaml.safe_load(file.read_text("utf-8"))
    statements = entry.get("statements")
    if statements:
        name += f" ({Path(statements).name})"
    copy = copies / f"{name.replace('/', '_').replace(' ', '_')}.yaml"
    parquet = copy.with_suffix(".parquet") if statements else None
    place = {"format": "parquet", "path": str(parquet)} if parquet else entry.get("place")
    place = {"type": "local", **(place or described_place(document, server))}
    place["path"] = str(root / place["path"])
    is_odcs = "apiVersion" in document
    document["servers"] = [{"server": "here", **place}] if is_odcs else {"here": place}
    copy.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    source = root / "fixtures" / statements if statements else None
    return Fixture(name, copy, expected, why, source, parquet)


def described_place(document: Mapping[str, Any], server: str | None) -> dict[str, str]:
    """The location of the data in the contract: at the named server, or else at the first one."""
    servers = document["servers"]
    named = {it["server"]: it for it in servers} if isinstance(servers, list) else servers
    chosen = named[server or next(iter(named))]
    return {key: chosen[key] for key in ("format", "path", "delimiter") if key in chosen}


def peer_verdicts(found: Sequence[Fixture], folder: Path) -> dict[str, dict[str, str]]:
    """The verdicts of datacontract-cli."""
    python = interpreter(Engine(PEER, "judge_contracts", "datacontract_cli_local"), CACHE).python
    cases = folder / "cases.json"
    cases.write_text(json.dumps([item.case for item in found]), "utf-8")
    command = [str(python), str(PEER_PROGRAM), str(cases)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    verdicts: dict[str, dict[str, str]] = json.loads(run.stdout.splitlines()[-1])
    return verdicts


def own_verdicts(found: Sequence[Fixture], folder: Path) -> dict[str, dict[str, str]]:
    """The verdicts of `dql contract test`, with the worst reason."""
    answer = folder / "own.json"
    program = str(Path(sys.executable).with_name("dql"))
    command = [program, "contract", "test", *(str(item.contract) for item in found)]
    subprocess.run([*command, "--format", "json", "--output", str(answer)], check=False)
    reports = [json.loads(line) for line in answer.read_text("utf-8").splitlines()]
    return {
        item.name: {"result": report["outcome"], "reason": worst(report["verdicts"])}
        for item, report in zip(found, reports, strict=True)
    }


def worst(verdicts: Sequence[Mapping[str, Any]]) -> str:
    left = [it for it in verdicts if it["status"] in ("failed", "error")]
    if not left:
        return ""
    return f"`{left[0]['name']}`" + (f" and {len(left) - 1} more" if left[1:] else "")


def fixture_row(item: Fixture, peer: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """A row of the page: the verdict that their tests expect, theirs, ours, and the reason."""
    reasons = [item.why] if item.why else [peer["reason"], own["reason"]]
    is_same = (item.expected or peer["result"]) in PASSING, own["result"] in PASSING
    why = "" if is_same[0] is is_same[1] else shown("; ".join(filter(None, reasons)))
    return [f"`{item.name}`", item.expected or "", peer["result"], own["result"], why]


def agrees(row: Sequence[str]) -> bool:
    """True if our verdict is the one that their tests expect or, without one, theirs."""
    return ((row[1] or row[2]) in PASSING) is (row[3] in PASSING)


def reading_row(item: Reading) -> list[str]:
    numbers = (item.checked, item.unsupported) if item.verdict != "refused" else ("", "")
    return [f"`{item.name}`", item.verdict, *map(str, numbers), shown(item.found)]


def shown(text: str) -> str:
    """The content of a cell, shortened."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def revision(place: Path) -> str:
    run = subprocess.run(
        ["git", "-C", str(place), "rev-parse", "--short=8", "HEAD"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return run.stdout.strip()


def page(clones: Mapping[str, Path]) -> str:
    """The page of the docs."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(fixtures(clones[PEER], Path(folder)))
        peer = peer_verdicts(found, Path(folder))
        own = own_verdicts(found, Path(folder))
    rows = [fixture_row(item, peer[item.name], own[item.name]) for item in found]
    version = ENVIRONMENTS["datacontract_cli_local"].requirements[0].partition("==")[2]
    agreeing = sum(map(agrees, rows))
    parts = [HEAD.format(version=version, fixtures=len(rows), agree=agreeing).strip()]
    parts += [
        table(("contract", "expected", "Data Contract CLI", "dql", "reason for a difference"), rows)
    ]
    parts += [BELOW.strip()]
    for name, place in clones.items():
        read = list(readings(place))
        refused = sum(item.verdict == "refused" for item in read)
        parts += [f"## {name} ({revision(place)})"]
        parts += [f"{len(read)} contracts: {len(read) - refused} read, {refused} refused."]
        head = ("contract", "ours", "checked", "unsupported", "errors")
        parts += [table(head, map(reading_row, read))]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=Path, default=CACHE / "clones", help="where they are")
    folder = parser.parse_args().clones
    folder.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page({name: clone(name, folder) for name in REPOSITORIES}), "utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
