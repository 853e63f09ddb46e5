"""`dql tune history` and `dql tune rollback`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dqx_airflow.dql import History, Suite
from dqx_airflow.tuning.proposals import Proposal, ProposedForm, ProposedValue
from dqx_airflow.tuning.review import Approval, apply_proposals
from dqx_airflow.tuning.suite_file import SuiteFile
from tests.command_line import dql as called
from tests.command_line import dql_prints as dql

SUITE = """\
suite "Orders" {
    const NULLS = 5% tunable [0%, 20%]     # share
    const LEAST = 800 tunable [100, 2000]
    check "C" on orders {
        assert null_count(email) / num_rows() < NULLS name "nulls"
        assert num_rows() >= LEAST name "rows" severity P0
    }
}
"""
ENTRIES = [
    {"ts": "2024-12-01T10:00:00Z", "action": "set_param", "param": "NULLS", "old": 0.1,
     "new": 0.02, "agent": "rl_optimizer", "episode": 42},
    {"ts": "2024-12-15T14:30:00Z", "action": "set_param", "param": "LEAST", "old": 1000,
     "new": 900, "agent": "autotuner", "reason": 'a "long", season'},
    {"ts": "2024-12-15T14:31:00Z", "action": "propose", "param": "LEAST", "old": 900,
     "new": 100, "agent": "autotuner", "id": "abc"},
    {"ts": "2024-12-20T09:00:00Z", "action": "set_param", "param": "LEAST", "old": 900,
     "new": 800, "agent": "human"},
    {"ts": "2024-12-21T09:00:00Z", "action": "set_param", "param": "NULLS", "old": 0.02,
     "new": 0.05, "agent": "human"},
    {"ts": "2024-12-22T09:00:00Z", "action": "set_param", "param": "GONE", "old": 1,
     "new": 2, "agent": "human"},
]  # fmt: skip


@pytest.fixture
def path(here: Path) -> Path:
    Path("suite.dql").write_text(SUITE)
    for entry in ENTRIES:
        History("suite.dql.history").log(entry)
    return Path("suite.dql")


def test_a_history_is_shown_in_three_formats(path: Path) -> None:
    table = dql("tune", "history", str(path)).splitlines()
    assert table[0].split() == [
        "entry",
        "at",
        "action",
        "tunable",
        "old",
        "new",
        "author",
        "reason",
        "id",
    ]
    assert table[2].split("  ")[-1].strip() == 'a "long", season' or "season" in table[2]
    (first, *_) = json.loads(
        dql("tune", "history", str(path), "--format", "json", "--tunable", "NULLS")
    )
    assert first == {
        "entry": 1,
        "at": "2024-12-01T10:00:00Z",
        "action": "set_param",
        "tunable": "NULLS",
        "old": 0.1,
        "new": ENTRIES[0]["new"],
        "author": "rl_optimizer",
        "episode": 42,
    }
    rows = [*csv.DictReader(io.StringIO(dql("tune", "history", str(path), "--format", "csv")))]
    assert len(rows) == 6
    assert (rows[0]["episode"], rows[1]["reason"]) == ("42", 'a "long", season')
    assert dql("tune", "history", str(path), "--tunable", "X") == "no changes of X\n"


def test_damaged_lines_are_reported_on_stderr(path: Path) -> None:
    with Path("suite.dql.history").open("a") as file:
        file.write('{"torn')
    done = called("tune", "history", path, "--format", "json")
    assert len(json.loads(done.stdout)) == 6
    assert "warning[W050]" in done.stderr
    assert "suite.dql.history:7:1" in done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("to", "values"),
    [
        ("2024-11-30", {"NULLS": 0.1, "LEAST": 1000}),
        ("2024-12-15", {"NULLS": 0.02, "LEAST": 900}),
        ("2024-12-15T14:00:00Z", {"NULLS": 0.02, "LEAST": 1000}),
        ("1", {"NULLS": 0.02, "LEAST": 1000}),
        ("#4", {"NULLS": 0.02, "LEAST": 800}),
        ("abc", {"NULLS": 0.02, "LEAST": 900}),
    ],
)
def test_rollback_restores_the_tunables(path: Path, to: str, values: dict[str, float]) -> None:
    output = dql("tune", "rollback", str(path), "--to-entry", to, "--dry-run")
    assert path.read_text() == SUITE
    assert "NULLS: 5% -> " in output
    dql("tune", "rollback", str(path), "--to-entry", to, "--yes", "--reason", "too many alarms")
    assert {one.name: one.value for one in Suite.load(path).get_tunable_params()} == values
    assert "]     # share" in path.read_text()
    entries = History("suite.dql.history").entries
    assert entries[:6] == tuple(ENTRIES), "nothing is erased"
    added = entries[6:]
    assert {entry["param"]: entry["new"] for entry in added} == {
        name: value for name, value in values.items() if value not in (0.05, 800)
    }
    assert {(entry["action"], entry["agent"], entry["to"]) for entry in added} == {
        ("rollback", "human", to)
    }
    assert "nothing to change" in dql("tune", "rollback", str(path), "--to-entry", to, "--yes")


SHARE = "null_count(email) / num_rows()"
FORM = ProposedForm(
    "C", "nulls", f"{SHARE} < NULLS", f"{SHARE} <= highest_usual({SHARE})", (), ("NULLS",)
)
DOWN = 'downgrade assertion "nulls" in "C" to P3'
PROFILE = f'profile "Quiet" {{ from december(24) to december(26) {DOWN} }}'


def approve(path: Path, *proposals: Proposal) -> None:
    for proposal in proposals:
        apply_proposals(SuiteFile(path, "suite.dql"), [Approval(proposal, "ada")])


@pytest.mark.more
def test_a_rollback_undoes_forms_and_profiles_and_entry_0_is_before_everything(path: Path) -> None:
    approve(path, Proposal("Orders", "autotuner", form=FORM))
    with_form = path.read_text()
    values = (ProposedValue("LEAST", 800, 900),)
    approve(path, Proposal("Orders", "autotuner", values), Proposal("Orders", "a", profile=PROFILE))
    with_both = path.read_text()
    assert FORM.claim in with_both
    assert PROFILE in with_both
    assert "const NULLS" not in with_both
    shown = dql("tune", "history", str(path))
    assert f"{SHARE} < NULLS" in shown
    assert FORM.claim in shown

    output = dql("tune", "rollback", str(path), "--to-entry", "0", "--dry-run")
    assert "undone: the form of nulls (entry 8)" in output
    assert 'undone: profile "Quiet" (entry 12)' in output
    assert path.read_text() == with_both

    dql("tune", "rollback", str(path), "--to-entry", "8", "--yes")
    assert path.read_text() == with_form
    before = dql("tune", "rollback", str(path), "--to-entry", "0", "--yes")
    assert "undone: the form of nulls (entry 8)" in before
    assert "NULLS: 5% -> 10%" in before
    assert "LEAST: 800 -> 1000" in before
    assert path.read_text() == SUITE.replace("5%", "10%").replace("800", "1000")
    assert "nothing to change" in dql("tune", "rollback", str(path), "--to-entry", "0", "--yes")

    assert "the form of nulls" in dql("tune", "history", str(path))
    dql("tune", "rollback", str(path), "--to-entry", "12", "--yes")
    assert path.read_text() == with_both, "a rollback of a rollback"


@pytest.mark.few(1)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_profile_and_a_form_of_one_proposal_are_undone_together(
    path: Path, line_end: str
) -> None:
    path.write_text(SUITE, newline=line_end)
    values = (ProposedValue("LEAST", 800, 900),)
    approve(path, Proposal("Orders", "human", values, profile=PROFILE, form=FORM))
    dql("tune", "rollback", str(path), "--to-entry", "6", "--yes")
    assert path.read_bytes() == SUITE.replace("\n", line_end).encode()


def test_a_form_whose_place_was_edited_is_not_undone_but_named(path: Path) -> None:
    approve(path, Proposal("Orders", "autotuner", form=FORM))
    edited = path.read_text().replace('name "nulls"', 'name "nulls" severity P2')
    path.write_text(edited)
    output = dql("tune", "rollback", str(path), "--to-entry", "6", "--yes")
    named = "warning: the form of nulls (entry 8) is not undone, the suite differs: write"
    assert f"{named} `{FORM.before}` for `{FORM.claim}` again" in output
    assert path.read_text() == edited
    path.write_text(SUITE)
    assert "not undone" not in dql("tune", "rollback", str(path), "--to-entry", "6", "--yes")


def test_a_rollback_can_be_undone(path: Path) -> None:
    dql("tune", "rollback", str(path), "--to-entry", "2024-11-30", "--yes")
    dql("tune", "rollback", str(path), "--to-entry", "6", "--yes")
    assert path.read_text() == SUITE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tune", "history", "none.dql"], "suite none.dql not found"),
        (
            ["tune", "rollback", "suite.dql", "--to-entry", "99", "--yes"],
            "neither a history entry nor a date",
        ),
        (["tune", "rollback", "none.dql", "--to-entry", "1", "--yes"], "E010"),
    ],
)
def test_invalid_calls_are_reported(path: Path, arguments: list[str], message: str) -> None:
    assert message in dql(*arguments, code=2)


def test_values_that_no_longer_fit_are_refused(path: Path) -> None:
    path.write_text(SUITE.replace("[100, 2000]", "[700, 850]"))
    output = dql("tune", "rollback", str(path), "--to-entry", "2024-12-15", "--yes", code=2)
    assert "E601" in output
    assert "LEAST cannot be 900" in output
    assert "5% tunable" in path.read_text()
