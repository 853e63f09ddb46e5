"""The review queue: a proposal waits for a person, and is written on approval."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from dqx_airflow.dql import History, Suite
from dqx_airflow.errors import ChangeRefusedError, RequestError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.tuning.proposals import (
    Proposal,
    ProposalStage,
    ProposedValue,
    decide,
    proposal_from_json,
    propose,
    read_proposals,
)
from dqx_airflow.tuning.review import Approval, ReviewQueue, apply_proposals, require_allowed
from dqx_airflow.tuning.suite_file import SuiteFile
from tests.command_line import dql_prints

SUITE = """\
suite "Orders" {
    const MAX_NULLS = 5% tunable [0%, 20%]   # agreed with sales
    const LEAST = 100 tunable [1, 1000]

    check "C" on orders {
        assert null_count(email) / num_rows() < MAX_NULLS name "nulls"
        assert num_rows() >= LEAST name "rows" severity P0 tags [volume]
        @human_review
        assert sum(price) > LEAST name "sum" tags [money]
        @cost(false_positive=2, false_negative=50)
        @experimental   # proposed in May
        assert average(price) > 1 name "price"
        @experimental
        assert maximum(price) < 9 name "most"
    }
}
"""
PROFILE = 'profile "Quiet" { from december(24) to december(26) scale tag "money" by 2.0x }'
HARMFUL = 'profile "Quiet" { from december(24) to december(26) scale tag "volume" by 2.0x }'


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DQX_RESULTS_ROOT", "results")
    Path("suite.dql").write_text(SUITE)
    return here


_AUTHOR = ("--author", "ada")


def dql(*arguments: str, code: int = 0) -> str:
    """A call of a verb of `dql tune`; a decision has an author."""
    verb, *more = arguments
    author = () if verb in ("review", "apply") else _AUTHOR
    return dql_prints("tune", verb, "suite.dql", *more, *author, code=code)


def nulls(new: float, **more: object) -> Proposal:
    change = ProposedValue("MAX_NULLS", 0.05, new)
    return Proposal("Orders", "autotuner", (change,), **more)  # type: ignore[arg-type]


def stages() -> list[str]:
    return [one.stage.value for one in read_proposals("results")]


def test_a_proposal_is_approved_and_written_with_its_history(here: Path) -> None:
    made = nulls(0.0725, reason="3 false alarms", evidence={"false_alarms": [3, 0]})
    propose("results", made)
    assert made.id in dql("review")
    (listed,) = json.loads(dql("review", "--format", "json"))
    assert proposal_from_json(json.dumps(listed)) == proposal_from_json(made.to_json())
    output = dql("approve", made.id[:6], "--reason", "looks right")
    assert output == f"approved and applied: MAX_NULLS: 0.05 -> 0.0725 ({made.id} by autotuner)\n"
    assert Path("suite.dql").read_text() == SUITE.replace("= 5% ", "= 7.25% ")
    approval, change = History("suite.dql.history").entries
    assert (approval["action"], approval["author"], approval["id"]) == ("approve", "ada", made.id)
    assert (change["action"], change["agent"], change["new"], change["approved_by"]) == (
        "set_param",
        "autotuner",
        0.0725,
        "ada",
    )
    assert stages() == ["applied"]
    assert dql("review") == "no pending proposals\n"


def test_a_row_fits_a_screen_and_the_rest_stands_below_it(here: Path) -> None:
    counts = {"before": {"false_alarms": 6, "missed": 1}, "after": {"false_alarms": 0, "missed": 1}}
    change = {"date": "2024-12-07", "label": False}
    reason = "on 91 held-out days: " + "what passes today, and what would pass; " * 10
    made = nulls(0.0725, reason=reason, evidence={"held_out": counts, "changes": [change]})
    propose("results", made)
    _, row, *details = dql("review").splitlines()
    assert len(row) <= 120
    assert row.endswith("MAX_NULLS: 0.05 -> 0.0725  false alarms 6 -> 0, missed 1 -> 1")
    assert f"  {reason}" in details
    assert "  changed verdicts: 2024-12-07 (false alarm)" in details


def test_a_proposal_is_rejected_with_a_reason(here: Path) -> None:
    made = nulls(0.07)
    propose("results", made)
    assert "missing option '--reason'" in dql("reject", made.id, code=2)
    dql("reject", made.id, "--reason", "too aggressive")
    assert Path("suite.dql").read_text() == SUITE
    (found,) = read_proposals("results", "Orders")
    assert (found.stage, found.agent, found.reason) == (
        ProposalStage.REJECTED,
        "ada",
        "too aggressive",
    )
    assert f"{made.id} is rejected already, by ada" in dql("approve", made.id, code=2)
    assert "no pending proposal has the id zz" in dql("approve", "zz", code=2)


def test_several_are_decided_at_once_and_none_if_an_id_is_wrong(here: Path) -> None:
    first, second = nulls(0.06), Proposal("Orders", "tuner", profile=PROFILE)
    propose("results", first)
    propose("results", second)
    assert "no pending" in dql("approve", first.id, "zz", code=2)
    assert Path("suite.dql").read_text() == SUITE
    before = Path("suite.dql").read_text()
    assert "add --yes" in dql("approve", first.id, second.id, code=2)
    assert "would write 2 proposals" in dql("approve", first.id, second.id, "--dry-run")
    assert Path("suite.dql").read_text() == before
    assert len(dql("approve", first.id, second.id, "--yes").splitlines()) == 2
    assert stages() == ["applied", "applied"]


def test_of_several_none_is_approved_if_one_is_outdated_by_another(here: Path) -> None:
    first, second = nulls(0.06), nulls(0.07)
    propose("results", first)
    propose("results", second)
    assert "E604" in dql("approve", first.id, second.id, "--yes", code=2)
    assert Path("suite.dql").read_text() == SUITE
    assert not Path("suite.dql.history").exists()
    assert stages() == ["proposed", "proposed"]


def test_each_of_several_can_be_rolled_back(here: Path) -> None:
    made = [nulls(0.06), Proposal("Orders", "tuner", profile=PROFILE)]
    for proposal in made:
        propose("results", proposal)
    assert dql("approve", made[0].id, made[0].id, made[1].id, "--yes").count("approved") == 2
    entries = History("suite.dql.history").entries
    assert [entry["action"] for entry in entries] == [
        "approve",
        "set_param",
        "approve",
        "add_profile",
    ]
    dql_prints("tune", "rollback", "suite.dql", "--to-entry", "2", "--yes", *_AUTHOR)
    assert Path("suite.dql").read_text() == SUITE.replace("= 5% ", "= 6% ")


def test_of_two_people_who_decide_at_once_the_first_one_counts(here: Path) -> None:
    for turn in range(5):
        Path("suite.dql").write_text(SUITE)
        made = nulls(0.06 + turn / 1000)
        propose("results", made)
        start = Barrier(2)

        def decided(by: Callable[[ReviewQueue], None], start: Barrier = start) -> str | None:
            results = StoredResults("results")
            queue = ReviewQueue(SuiteFile(Path("suite.dql"), "suite.dql"), "Orders", results)
            start.wait()
            try:
                by(queue)
            except RequestError as error:
                return str(error)
            return None

        def approve(queue: ReviewQueue, made: Proposal = made) -> None:
            queue.approve([made], "ada", None)

        def reject(queue: ReviewQueue, made: Proposal = made) -> None:
            queue.reject(made, "grace", "too aggressive")

        with ThreadPoolExecutor(2) as both:
            refused = [*both.map(decided, (approve, reject))]
        assert len([one for one in refused if one is None]) == 1, refused
        is_approved = refused[0] is None
        by = "ada" if is_approved else "grace"
        assert re.search(f"{made.id} is (approved|applied|rejected) already, by {by}", str(refused))
        assert (Path("suite.dql").read_text() != SUITE) == is_approved
        assert stages()[-1] == ("applied" if is_approved else "rejected")


def test_a_proposal_approved_elsewhere_is_applied_once(here: Path) -> None:
    first, second = nulls(0.06), Proposal("Orders", "tuner", profile=PROFILE)
    propose("results", first)
    propose("results", second)
    decide("results", [first], ProposalStage.APPROVED, "grace")
    decide("results", [second], ProposalStage.APPROVED, "grace")
    assert len(dql("apply").splitlines()) == 2
    text = Path("suite.dql").read_text()
    assert text == SUITE.replace("= 5% ", "= 6% ")[:-2] + f"\n    {PROFILE}\n}}\n"
    assert [entry["action"] for entry in History("suite.dql.history").entries] == [
        "approve",
        "set_param",
        "approve",
        "add_profile",
    ]
    assert dql("apply") == "no approved proposals to apply\n"
    assert stages() == ["applied", "applied"]


def test_applying_again_after_a_crash_changes_nothing(here: Path) -> None:
    file = SuiteFile(Path("suite.dql"), "suite.dql")
    for proposal in (nulls(0.06), Proposal("Orders", "tuner", profile=PROFILE)):
        apply_proposals(file, [Approval(proposal, "ada")])
        text, count = Path("suite.dql").read_text(), len(file.history.entries)
        apply_proposals(file, [Approval(proposal, "ada")])
        assert (Path("suite.dql").read_text(), len(file.history.entries)) == (text, count)


def test_approving_a_value_already_in_the_file_changes_nothing(here: Path) -> None:
    made = nulls(0.06)
    propose("results", made)
    Path("suite.dql").write_text(SUITE.replace("= 5% ", "= 6% "))
    dql("approve", made.id)
    history = History("suite.dql.history")
    assert [entry["action"] for entry in history.entries] == ["approve"]
    assert history.changes() == ()
    assert stages() == ["applied"]


def test_a_change_of_an_algorithm_waits_for_review_in_the_history(here: Path) -> None:
    suite = Suite.load("suite.dql")
    suite.set_param("LEAST", 150, agent="rl_optimizer", reason="Episode 42")
    suite.save()
    (entry,) = History("suite.dql.history").entries
    assert "LEAST: 100 -> 150" in dql("review")
    dql("approve", entry["id"])
    assert Path("suite.dql").read_text() == SUITE.replace("= 100 ", "= 150 ")
    assert dql("review") == "no pending proposals\n"
    suite = Suite.load("suite.dql")
    suite.set_param("LEAST", 160, agent="rl_optimizer")
    suite.save()
    entry = History("suite.dql.history").entries[-1]
    dql("reject", entry["id"], "--reason", "no")
    assert dql("review") == "no pending proposals\n"


@pytest.mark.parametrize(
    ("proposal", "code"),
    [
        (Proposal("Orders", "tuner", (ProposedValue("LEAST", 100, 50),)), "E602"),
        (Proposal("Orders", "tuner", (ProposedValue("MAX_NULLS", 0.05, 0.9),)), "E601"),
        (Proposal("Orders", "tuner", (ProposedValue("MAX_NULLS", 0.03, 0.06),)), "E604"),
        (Proposal("Orders", "tuner", (ProposedValue("NULLS", 0.03, 0.06),)), "E603"),
        (Proposal("Orders", "tuner", profile=HARMFUL), "E602"),
        (Proposal("Orders", "tuner", profile="profile {"), "E007"),
        (Proposal("Orders", "tuner", profile=f"{PROFILE} const X = 5"), "E603"),
    ],
)
def test_a_row_in_the_store_grants_no_permission(here: Path, proposal: Proposal, code: str) -> None:
    propose("results", proposal)
    assert f"error[{code}]" in dql("approve", proposal.id, code=2)
    assert Path("suite.dql").read_text() == SUITE
    assert stages() == ["proposed"]
    assert not Path("suite.dql.history").exists()


def test_a_proposal_can_be_checked_before_it_is_made(here: Path) -> None:
    file = SuiteFile(Path("suite.dql"), "suite.dql")
    require_allowed(file, nulls(0.06))
    with pytest.raises(ChangeRefusedError, match="E602"):
        require_allowed(file, Proposal("Orders", "t", (ProposedValue("LEAST", 100, 50),)))


WRONG = '{"suite": "a", "agent": "b", "changes": [{"param": "X", "old": true, "new": 1}]}'


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"suite": 1}', WRONG])
def test_an_invalid_proposal_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="not a proposal"):
        proposal_from_json(text)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1e400", "true", '"5%"', "null"])
def test_a_proposal_of_nan_or_infinity_is_refused(value: str) -> None:
    text = (
        f'{{"suite": "S", "agent": "a", "changes": [{{"param": "X", "old": {value}, "new": 1}}]}}'
    )
    with pytest.raises(RequestError, match="not a proposal"):
        proposal_from_json(text)


@pytest.mark.parametrize(
    ("unit", "shown"),
    [("percent", "X: 5% -> 12.5%"), ("duration", "X: 0.05 seconds -> 0.125 seconds"),
     ("unheard of", "X: 0.05 -> 0.125"), (None, "X: 0.05 -> 0.125")],
)  # fmt: skip
def test_values_are_shown_as_the_suite_writes_them(unit: str | None, shown: str) -> None:
    change = {"param": "X", "old": 0.05, "new": 0.125, "unit": unit}
    proposal = proposal_from_json(json.dumps({"suite": "S", "agent": "a", "changes": [change]}))
    assert str(proposal.changes[0]) == shown
    assert str(proposal_from_json(proposal.to_json()).changes[0]) == shown


def test_an_experimental_assertion_is_enforced(here: Path) -> None:
    output = dql("enforce", "--assertion", "price")
    assert output == "enforced: 'price' of check 'C' can then block\n"
    dql("enforce", "--assertion", "most")
    text = Path("suite.dql").read_text()
    assert text == SUITE.replace("@experimental   #", "   #").replace("        @experimental\n", "")
    (first, _) = History("suite.dql.history").entries
    assert (first["action"], first["assertion"], first["author"]) == ("enforce", "price", "ada")
    assert "it can already block" in dql("enforce", "--assertion", "price", code=2)
    assert "no assertion named 'prise'" in dql("enforce", "--assertion", "prise", code=2)


def test_an_enforcement_that_breaks_the_suite_is_refused(here: Path) -> None:
    text = (
        'suite "S" { check "C" on orders {\n@experimental\nassert num_rows() > 1 name "a" '
        'severity P0\nassert sum(x) > 1 name "b" }\n'
        'profile "P" { from may(1) to may(2) disable assertion "a" in "C" } }\n'
    )
    Path("suite.dql").write_text(text)
    assert "error[E304]" in dql("enforce", "--assertion", "a", code=2)
    assert Path("suite.dql").read_text() == text
    Path("suite.dql").write_text(
        'suite "S" { macro m(x) { @experimental assert sum({x}) > 1 name "a" }\n'
        'check "C" on orders { use m(y) } }\n'
    )
    assert "is generated by a macro" in dql("enforce", "--assertion", "a", code=2)
