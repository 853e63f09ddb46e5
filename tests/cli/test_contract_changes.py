"""`dql contract diff`, `registry`, `consumers`, `evolve`, `codeowners` and `rfc`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import EnforcedContract, GateReport
from tests.command_line import Called, dql
from tests.made_reports import report_at

CONTRACT = """\
contract:
  id: bronze.wagers
  version: 1.0.0
  owner: {team: Casino Data}
  description: One row for each wager.
  consumers:
    - {team: bi, use_case: Dashboard}
    - {team: mail@example.com}
  schema:
    columns:
      - name: amount
        type: int
        nullable: false
        min: 1
        unit: USD
        semantic: Coin-in of a hand.
      - {name: game, type: string}
"""
LOOSER = CONTRACT.replace("1.0.0", "1.1.0").replace("min: 1", "min: 0")
BROKEN = CONTRACT.replace("1.0.0", "1.1.0").replace("unit: USD", "unit: cents")


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    for name, text in (("old", CONTRACT), ("looser", LOOSER), ("broken", BROKEN)):
        (here / f"{name}.yaml").write_text(text)
    return here


def contract(*arguments: str) -> Called:
    return dql("contract", *arguments)


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def test_diff_reports_every_change_and_the_required_bump() -> None:
    result = contract("diff", "old.yaml", "looser.yaml")
    assert result.returncode == 0
    assert "bronze.wagers 1.0.0 → 1.1.0: 1 change; a minor bump is required" in result.output
    assert "`minimum` is loosened: >= 1 → >= 0" in result.output
    assert "wagers.amount.minimum (looser.yaml:14)" in result.output


def test_diff_exits_with_1_if_the_bump_is_too_small() -> None:
    result = contract("diff", "old.yaml", "broken.yaml")
    assert result.returncode == 1
    assert "too low: the version goes from 1.0.0 to 1.1.0, and a major bump is required: 2.0.0" in (
        result.output
    )


def test_diff_of_the_same_file_reports_no_changes() -> None:
    result = contract("diff", "old.yaml", "old.yaml")
    assert (result.returncode, result.output) == (0, "bronze.wagers 1.0.0 → 1.0.0: no changes\n")


def test_diff_for_scripts_holds_everything() -> None:
    found = json.loads(contract("diff", "old.yaml", "broken.yaml", "--format", "json").stdout)
    (change,) = found.pop("changes")
    assert found == {
        "id": "bronze.wagers",
        "old_version": "1.0.0",
        "new_version": "1.1.0",
        "due": "major",
        "declared": "minor",
        "falls_short": True,
        "shortfall": "the version goes from 1.0.0 to 1.1.0, and a major bump is required: "
        "2.0.0 or higher",
    }
    assert change == {
        "kind": "unit_changed",
        "class": "breaking",
        "bump": "major",
        "breaks": ["consumer"],
        "path": "wagers.amount",
        "message": "the unit of amount changes: USD → cents",
        "reason": "calculations are wrong by the factor between the units",
        "old": "USD",
        "new": "cents",
        "old_span": {"file": "old.yaml", "line": 11, "column": 9},
        "new_span": {"file": "broken.yaml", "line": 11, "column": 9},
    }


def test_diff_for_pull_requests_is_a_table() -> None:
    output = contract("diff", "old.yaml", "broken.yaml", "--format", "markdown").output
    assert "| **major** | consumer | `wagers.amount` | the unit of amount changes" in output
    assert "❌ too low" in output


def test_diff_for_github_marks_the_lines() -> None:
    output = contract("diff", "old.yaml", "broken.yaml", "--format", "github").output
    first, second = output.splitlines()
    assert first.startswith("::error file=broken.yaml,line=1,")
    assert second.startswith("::error file=broken.yaml,line=11,")


def test_the_bump_of_a_semantic_change_can_be_chosen(folder: Path) -> None:
    other = CONTRACT.replace("1.0.0", "1.1.0").replace("Coin-in of", "Coin-out of")
    (folder / "other.yaml").write_text(other)
    assert contract("diff", "old.yaml", "other.yaml").returncode == 1
    assert contract("diff", "old.yaml", "other.yaml", "--semantic", "minor").returncode == 0


def test_diff_reads_files_at_revisions(folder: Path) -> None:
    git("init", "-q")
    (folder / "contracts").mkdir()
    path = folder / "contracts" / "wagers.yaml"
    path.write_text(CONTRACT)
    git("add", "-A")
    git("commit", "-qm", "one")
    path.write_text(BROKEN)
    git("commit", "-qam", "two")
    path.write_text(LOOSER)
    for arguments, code in (
        (("--git", "HEAD~1", "contracts/wagers.yaml"), 0),
        (("HEAD~1:contracts/wagers.yaml", "HEAD:contracts/wagers.yaml"), 1),
        (("HEAD~1:contracts/wagers.yaml", "contracts/wagers.yaml"), 0),
    ):
        result = contract("diff", *arguments)
        assert result.returncode == code, result.output
    output = contract(
        "diff", "HEAD~1:contracts/wagers.yaml", "HEAD:contracts/wagers.yaml", "--format", "github"
    ).output
    assert "::error file=contracts/wagers.yaml,line=11," in output


def test_diff_follows_references_at_the_same_revision(folder: Path) -> None:
    git("init", "-q")
    main = (
        "dataContractSpecification: 1.1.0\nid: o\ninfo: {title: O, version: 1.0.0}\n"
        "models: {o: {fields: {id: {$ref: part.yaml}}}}\n"
    )
    (folder / "main.yaml").write_text(main)
    (folder / "part.yaml").write_text("type: int\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (folder / "part.yaml").write_text("type: bigint\n")
    output = contract("diff", "--git", "HEAD", "main.yaml").output
    assert "the type of id is widened: int → bigint" in output


def test_diff_of_folders_reports_new_moved_renamed_and_deleted_contracts(folder: Path) -> None:
    git("init", "-q")
    place = folder / "contracts"
    place.mkdir()
    for name in ("stays", "moves", "leaves"):
        (place / f"{name}.yaml").write_text(CONTRACT.replace("bronze.wagers", f"bronze.{name}"))
    (place / "ended.yaml").write_text(
        CONTRACT.replace("bronze.wagers", "bronze.ended").replace(
            "  schema:", "  lifecycle: {status: sunset}\n  schema:"
        )
    )
    (place / "compose.yaml").write_text("services: {}\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (place / "later").mkdir()
    (place / "moves.yaml").rename(place / "later" / "moved.yaml")
    (place / "ended.yaml").unlink()
    (place / "new.yaml").write_text(CONTRACT.replace("bronze.wagers", "bronze.new"))
    result = contract("diff", "--git", "HEAD", "contracts")
    assert result.returncode == 0, result.output
    assert "bronze.new 1.0.0: a new contract" in result.output
    assert "bronze.ended 1.0.0: deleted after its sunset" in result.output
    assert "5 contracts compared, none changed" in result.output
    printed = contract("diff", "--git", "HEAD", "contracts/later/moved.yaml").output
    assert printed == "1 contract compared, none changed\n", "hooks name the new path alone"
    (place / "leaves.yaml").unlink()
    for path in ("contracts", "contracts/leaves.yaml"):
        result = contract("diff", "--git", "HEAD", path)
        assert result.returncode == 1, result.output
        assert "bronze.leaves 1.0.0: deleted while consumers may rely on" in result.output
    printed = contract("diff", "--git", "HEAD", "contracts", "--format", "github").output
    assert "::error file=contracts/leaves.yaml" in printed
    found = json.loads(contract("diff", "--git", "HEAD", "contracts", "--format", "json").output)
    assert {item["id"]: item.get("status") for item in found} == {
        "bronze.stays": None,
        "bronze.moves": None,
        "bronze.leaves": "deleted",
        "bronze.ended": "deleted",
        "bronze.new": "new",
    }
    assert contract("diff", "--git", "HEAD", "nowhere").returncode == 2
    assert contract("diff", "--git", "no-such-branch", "contracts").returncode == 2


def test_a_replaced_version_that_a_consumer_pins_is_reported(folder: Path) -> None:
    git("init", "-q")
    path = folder / "wagers.yaml"
    path.write_text(CONTRACT.replace("use_case: Dashboard", "pin: '1'"))
    git("add", "-A")
    git("commit", "-qm", "one")
    path.write_text(path.read_text().replace("1.0.0", "2.0.0"))
    result = contract("diff", "--git", "HEAD", "wagers.yaml")
    assert result.returncode == 1
    assert "bi pins 1, and no contract has this version any longer" in result.output
    path.write_text(path.read_text().replace("pin: '1'", "pin: '2'"))
    assert contract("diff", "--git", "HEAD", "wagers.yaml").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old.yaml",), "write OLD NEW, or --git REV PATH..."),
        (("old.yaml", "missing.yaml"), "missing.yaml: file not found"),
        (("old.yaml", "HEAD:old.yaml"), "HEAD:old.yaml: not found in git"),
        (("old.yaml", "--output=x:old.yaml"), "no such option: --output"),
        (("--git", "--output=x", "old.yaml"), "is not a revision"),
        (("old.yaml", "text.yaml"), "E403"),
    ],
)
def test_diff_exits_with_2_if_there_is_nothing_to_compare(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "text.yaml").write_text("no contract\n")
    result = contract("diff", *arguments)
    assert result.returncode == 2
    assert message in result.output
    assert not (folder / "x").exists()


@pytest.fixture(params=["published", "delta:published"])
def registry(request: pytest.FixtureRequest) -> Callable[..., Called]:
    """Calls a verb of the registry, in a folder and in a Delta table."""

    def call(verb: str, *arguments: str) -> Called:
        return contract("registry", verb, *arguments, "--registry", request.param)

    return call


def test_the_registry_publishes_lists_and_shows(registry: Callable[..., Called]) -> None:
    result = registry("publish", "old.yaml", "--today", "2026-01-05")
    assert (result.returncode, result.output) == (0, "bronze.wagers 1.0.0 published\n")
    assert "is already published" in registry("publish", "old.yaml", "--today", "2026-01-06").output
    assert registry("publish", "looser.yaml", "--today", "2026-01-07").returncode == 0
    rows = json.loads(registry("list", "--format", "json").output)
    assert [(row["id"], row["version"], row["versions"]) for row in rows] == [
        ("bronze.wagers", "1.1.0", 2)
    ]
    shown = registry("show", "bronze.wagers").output
    assert "1.0.0    2026-01-05" in shown
    assert registry("show", "bronze.wagers", "--version", "1.0").output == CONTRACT
    assert "Casino Data" in registry("list").output


def test_the_registry_refuses_a_version_bump_that_is_too_small(
    registry: Callable[..., Called],
) -> None:
    registry("publish", "old.yaml", "--today", "2026-01-05")
    result = registry("publish", "broken.yaml", "--today", "2026-01-06")
    assert result.returncode == 1
    assert "refused: broken.yaml: the version goes from 1.0.0 to 1.1.0" in result.output
    assert "help: the unit of amount changes: USD → cents" in result.output


def test_a_folder_of_contracts_is_published_as_a_whole(
    folder: Path, registry: Callable[..., Called]
) -> None:
    (folder / "contracts").mkdir()
    (folder / "contracts" / "wagers.yaml").write_text(CONTRACT)
    (folder / "contracts" / "players.yml").write_text(CONTRACT.replace("wagers", "players"))
    (folder / "contracts" / "other.yaml").write_text("jobs: []\n")
    assert registry("publish", "contracts").output.splitlines() == [
        "bronze.players 1.0.0 published",
        "bronze.wagers 1.0.0 published",
    ]


def test_an_empty_registry_is_reported(registry: Callable[..., Called]) -> None:
    assert registry("list").output == "no contracts are published yet\n"


def test_a_dry_run_publishes_nothing(folder: Path, registry: Callable[..., Called]) -> None:
    result = registry("publish", "old.yaml", "--dry-run")
    assert result.output == "bronze.wagers 1.0.0 can be published\n"
    assert not (folder / "published").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "bronze.wager"), "did you mean 'bronze.wagers'?"),
        (("show", "bronze.wagers", "--version", "3"), "there is 1.0.0"),
        (("consumers", "silver"), "no published version of silver"),
        (("publish", "missing.yaml"), "no contract found at missing.yaml"),
    ],
)
def test_the_registry_names_the_alternatives(
    arguments: tuple[str, ...], message: str, registry: Callable[..., Called]
) -> None:
    registry("publish", "old.yaml", "--today", "2026-01-05")
    result = registry(*arguments)
    assert result.returncode == 2
    assert message in result.output


def test_consumers_of_a_version_that_ends_are_listed(
    folder: Path, registry: Callable[..., Called]
) -> None:
    more = "  lifecycle: {status: deprecated}\n"
    (folder / "ending.yaml").write_text(LOOSER + more)
    registry("publish", "old.yaml", "--today", "2026-01-05")
    assert registry("consumers", "bronze.wagers", "--outdated").output == "no outdated consumers\n"
    registry("publish", "ending.yaml", "--today", "2026-01-06")
    result = registry("consumers", "bronze.wagers", "--outdated", "--format", "json")
    assert result.returncode == 1
    assert [row["consumer"] for row in json.loads(result.output)] == ["bi", "mail@example.com"]


def test_gates_that_enforced_a_version_recently_are_its_consumers(
    folder: Path, registry: Callable[..., Called]
) -> None:
    registry("publish", "old.yaml", "--today", "2026-01-05")
    (folder / "two.yaml").write_text(BROKEN.replace("1.1.0", "2.0.0"))
    registry("publish", "two.yaml", "--today", "2026-01-06")
    store = ResultsStore(str(folder / "results"))
    for gate, version, day, pin in (
        ("silver", "1.0.0", 7, "1"),
        ("silver", "1.0.0", 6, None),
        ("gold", "2.0.0", 7, None),
        ("past", "1.0.0", 1, None),
    ):
        moment = datetime(2026, 1, day, 23, tzinfo=timezone.utc)
        store.write(enforced(gate, version, moment, pin))
    result = registry(
        *("consumers", "bronze.wagers", "--results-root", "results", "--today", "2026-01-08"),
        *("--days", "3", "--outdated", "--format", "json"),
    )
    assert result.returncode == 1
    assert json.loads(result.output) == [
        {
            "consumer": "silver",
            "use_case": "gate: 2 runs, most recently on 2026-01-07",
            "pin": "1",
            "version": "1.0.0",
            "concern": "version 2.0.0 is published",
            "file": None,
            "line": None,
        }
    ]


def enforced(gate: str, version: str, moment: datetime, pin: str | None) -> GateReport:
    """The report of a gate that has enforced a version."""
    contract = EnforcedContract("bronze.wagers", version, "fabric", pin=pin)
    return report_at(moment, gate=gate, contract=contract)


def test_evolve_prints_statements() -> None:
    result = contract("evolve", "old.yaml", "broken.yaml", "--table", "lh.wagers")
    assert result.returncode == 0
    assert "ALTER TABLE `lh`.`wagers` DROP COLUMN `amount`;" in result.output
    result = contract("evolve", "old.yaml", "broken.yaml", "--table", "lh.wagers", "--versioned")
    assert "CREATE OR REPLACE VIEW `lh`.`wagers` AS SELECT * FROM `lh`.`wagers_v2`" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--table", "lh.wagers", "--model", "wager"), "did you mean 'wagers'?"),
        (("--table", "lh..wagers"), "is not a table name"),
    ],
)
def test_evolve_reports_invalid_options(options: tuple[str, ...], message: str) -> None:
    result = contract("evolve", "old.yaml", "broken.yaml", *options)
    assert result.returncode == 2
    assert message in result.output


def test_codeowners_ask_the_owner_and_every_consumer() -> None:
    assert (
        contract("codeowners", "old.yaml").output == "old.yaml @casino-data @bi mail@example.com\n"
    )
    assert (
        "@acme/casino-data @acme/bi" in contract("codeowners", "old.yaml", "--org", "acme").output
    )


def test_an_rfc_states_what_is_known_and_asks_for_the_rest() -> None:
    output = contract("rfc", "old.yaml").output
    assert output.startswith("# RFC: bronze.wagers contract v1.0.0\n\n## Purpose\n\nOne row for")
    assert "- bi: Dashboard\n" in output
    assert "| amount | int | no | Coin-in of a hand. (USD) |" in output
    assert "- What does `game` mean?" in output
    assert "How many days of notice do consumers get" in output
