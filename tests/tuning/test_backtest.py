"""A backtest gives the verdicts that a gate would have given, for any values of the tunables."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.dql import nodes
from dqx_airflow.plan.measurements import Measurements
from dqx_airflow.results.past_days import PastDay, StoredVerdict, past_days
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_labels import Label, write_labels
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.tunables import with_values
from dqx_airflow.values import Status
from tests.sound_suites import sound_suite
from tests.tuning.stored_days import SUITE, day, orders, store_days, stored, verdict_of

EVERYTHING = """\
suite "Everything" {
    availability_threshold 50%
    const SHARE = 5% tunable [0%, 100%]
    const LEAST = 10 tunable [1, 100]
    const HIGHEST = LEAST * 3
    const FACTOR = 0.5 tunable [0.1, 2.0]
    const SPREAD = 2 tunable [1, 5]
    const AGE = 1 day tunable [1 hour, 10 days]
    const UNUSED = 3 tunable [1, 5]

    check "C" on orders, returns {
        assert null_count(email, dataset orders) / num_rows(dataset orders) < SHARE name "share"
        assert num_rows(dataset orders) between LEAST and HIGHEST name "between" tags [volume]
        assert sum(price, dataset orders) >= FACTOR * sum(price, dataset orders, lag 1) name "lag"
        assert day_over_day(num_rows(dataset orders)) < FACTOR name "change"
        assert num_rows(dataset orders) within SPREAD stddev of 5 days name "band" tags [volume]
        assert stddev(average(price, dataset orders), n 4) < FACTOR name "window"
        assert freshness(seen, dataset orders) < AGE name "age"
        assert average(price, dataset orders) * FACTOR != 1.5 name "left"
        assert coalesce(average(price, dataset orders, lag 2), LEAST) > 5 name "default"
        assert percentile(price, SHARE, dataset orders) < LEAST name "argument"
        assert minimum(price, dataset orders) is not None name "there"
        assert num_rows(dataset returns) / num_rows(dataset orders) < SHARE name "returns"
        assert sum(price, dataset orders) / num_rows(dataset returns) < LEAST name "quotient"
        assert maximum(price, dataset orders) == 9.5 tolerance 0.5 name "fixed"
    }
    check "Rows" on orders {
        assert each row: price > LEAST name "rows"
        assert 90% of rows: price > 1 name "most rows"
        assert column price exists name "column"
    }
    profile "Quiet" { from 2024-12-05 to 2024-12-07 scale tag "volume" by 2.0x }
    profile "Off" { from 2024-12-07 to 2024-12-08
        disable assertion "change" in "C" downgrade tag "volume" to P3 }
}
"""
NOON = timedelta(hours=12)


@pytest.fixture(scope="module")
def everything() -> MemoryDatabase:
    choices = random.Random(5)
    rows, returns = [], []
    for number in range(14):
        if number == 6:
            continue  # a day without data
        at = datetime.combine(day(number), datetime.min.time()) + choices.random() * NOON * 2
        for _ in range(choices.randrange(5, 40)):
            email = None if choices.random() < 0.1 else "a@x.org"
            price = None if choices.random() < 0.1 else round(choices.random() * 10, 2)
            rows.append({"email": email, "price": price, "seen": at, "ds": day(number)})
        returns += [{"ds": day(number)}] * choices.randrange(0, 4)
    return MemoryDatabase(
        {"orders": rows, "returns": returns}, date_columns={"orders": "ds", "returns": "ds"}
    )


def ran_at(on: date) -> datetime:
    return datetime.combine(on, datetime.min.time(), timezone.utc) + timedelta(hours=20)


@pytest.mark.parametrize("trials", [16, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_any_values_give_the_verdicts_of_a_gate_with_these_values(
    everything: MemoryDatabase, tmp_path: Path, trials: int
) -> None:
    days = [day(number) for number in range(14)]
    store, suite = ResultsStore(str(tmp_path)), Suite.from_string(EVERYTHING)
    skips = {day(9): [day(8)]}
    for on in days:
        report = suite.run(
            everything, on, now=ran_at(on), skip_dates=skips.get(on, ()), allow_empty=True
        ).report
        store.write(stored(report, "gate", started_at=ran_at(on)))
    past = past_days(str(tmp_path), "Everything", days[0], days[-1])
    backtest = Backtest(sound_suite(EVERYTHING), past)
    assert backtest.dates == tuple(days)
    choices, seen = random.Random(11), set()
    for trial in range(trials):
        values = {
            one.name: (
                choices.randint(one.min_bound, one.max_bound)
                if isinstance(one.value, int)
                else choices.uniform(one.min_bound, one.max_bound)
            )
            for one in backtest.tunables
            if trial == 0 or choices.random() < 0.7
        }
        values = {} if trial == 0 else values
        judged = backtest.judge(values)
        fresh = Suite.from_string(EVERYTHING)
        for name, value in values.items():
            fresh.set_param(name, value)
        for index, on in enumerate(days):
            skip = skips.get(on, ())
            real = fresh.run(everything, on, now=ran_at(on), skip_dates=skip, allow_empty=True)
            for row, result in enumerate(real.assertions):
                status = judged.statuses[row][index]
                is_argument = result.name in ("argument", "rows") and values
                if status is None and is_argument:
                    continue
                assert (result.name, on, status) == (result.name, on, result.status), values
                seen.add((result.name, status))
                if trial > 1:
                    continue
                slow = verdict_of(backtest, row, index, values)
                assert slow is not None
                assert (slow.value, slow.reason) == (result.value, result.reason)
    names = {name for name, _ in seen}
    assert names == {one.name for one in backtest.assertions}
    assert {("between", Status.PASSED), ("between", Status.FAILED), ("band", Status.SKIPPED),
            ("change", Status.SKIPPED)} <= seen  # fmt: skip
    reached = {one.name: one.tunables for one in backtest.assertions}
    assert reached["between"] == {"LEAST"}
    assert reached["argument"] == {"SHARE", "LEAST"}
    assert reached["fixed"] == frozenset()
    row = [one.name for one in backtest.assertions].index("argument")
    assert backtest.judge({"SHARE": 0.9}).statuses[row] == (None,) * 14, "never measured"
    assert backtest.profiles[5] == ("Quiet",)


def test_labels_are_aligned_with_the_verdicts(tmp_path: Path) -> None:
    root = str(tmp_path)
    store_days(root, orders({number: (20 - number, 0) for number in range(5)}), range(5))
    label = Label("orders_gate", day(2), "Volume", "orders.volume.min_rows", True, "ada")
    write_labels(root, [label])
    backtest = Backtest(sound_suite(SUITE), past_days(root, "Orders", day(0), day(4)))
    names = [one.name for one in backtest.assertions]
    row = names.index("orders.volume.min_rows")
    assert backtest.labels[row] == (None, None, True, None, None)
    assert backtest.assertions[row].cost.false_negative == 200
    assert backtest.compared(row) == (20, 19, 18, 17, 32)
    assert backtest.judge({"LEAST": 19}).statuses[row] == (
        *[Status.PASSED] * 2,
        *[Status.FAILED] * 2,
        Status.PASSED,
    )
    assert backtest.judge({"LEAST": 19}).count(Status.FAILED) == 2


def test_days_without_a_comparable_value_are_unknown(tmp_path: Path) -> None:
    root = str(tmp_path)
    store_days(root, orders(dict.fromkeys(range(3), (20, 1))), range(3))
    past = past_days(root, "Orders", day(0), day(3))
    other = SUITE.replace("null_count(email)", "null_count(phone)")
    backtest = Backtest(sound_suite(other), past)
    assert backtest.judge().statuses[0] == (None,) * 3
    assert backtest.why_unknown(0, 0) == "no stored value of null_count(phone) of 'orders'"
    assert backtest.judge().statuses[1] == (Status.PASSED,) * 3
    masked = frozenset({'["orders","null_count",["phone"],0]'})
    hidden = replace(past[0], measured=replace(past[0].measured, hidden=masked))
    why = Backtest(sound_suite(other), [hidden, *past[1:]]).why_unknown(0, 0)
    assert why == "null_count(phone) of 'orders' is hidden: it derives from masked columns"
    moved = replace(past[-1], measured=replace(past[-1].measured, reads={"orders": "elsewhere"}))
    backtest = Backtest(sound_suite(SUITE), [*past[:-1], moved])
    assert backtest.judge().statuses[1] == (None, None, Status.PASSED)
    assert "was different" in (backtest.why_unknown(1, 0) or "")
    other = SUITE.replace("severity P2", "severity P0 tags [volume]").replace("< 0.5", "< 0.25")
    assert None not in Backtest(sound_suite(other), past).judge().statuses[2], "no metric changed"


def test_days_of_an_older_version_are_judged_by_their_values() -> None:
    key = ("Completeness", "orders.completeness.email_null")
    expression = "null_count(email) / num_rows()"

    def past(value: object, status: Status, what: str = expression) -> PastDay:
        stored = {key: StoredVerdict(status, what, value)}  # type: ignore[arg-type]
        return PastDay(day(len(days)), Measurements(), verdicts=stored)

    days: list[PastDay] = []
    for value, status, what in (
        (0.04, Status.PASSED, expression),
        (0.06, Status.FAILED, expression),
        (None, Status.FAILED, expression),
        (0.04, Status.PASSED, "null_count(email)"),
        (None, Status.SKIPPED, expression),
    ):
        days.append(past(value, status, what))
    backtest = Backtest(sound_suite(SUITE), days)
    passed, failed = Status.PASSED, Status.FAILED
    assert backtest.judge().statuses[0] == (passed, failed, failed, None, None)
    assert backtest.judge({"MAX_NULLS": 0.1}).statuses[0] == (passed, passed, failed, None, None)
    assert backtest.judge().statuses[1] == (None,) * 5
    verdict = verdict_of(backtest, 0, 2)
    assert verdict is not None
    assert "no value" in (verdict.reason or "")


@pytest.mark.nightly
def test_thousands_of_values_are_tried_in_a_minute(everything: MemoryDatabase) -> None:
    """A bound that is loose, against losing the quick way by accident."""
    checks = "".join(f'assert sum(price) / num_rows() > LIMIT_{n} name "a{n}"\n' for n in range(50))
    consts = "".join(f"const LIMIT_{n} = 1.0 tunable [0.0, 9.0]\n" for n in range(50))
    suite = sound_suite(f'suite "S" {{ {consts} check "C" on orders {{ {checks} }} }}')
    values = {'["orders","sum",["price"],0]': 40, '["orders","num_rows",[],0]': 10}
    days = [PastDay(day(number), Measurements(values)) for number in range(90)]
    backtest = Backtest(suite, days)
    started = time.perf_counter()
    for number in range(20):
        assert backtest.judge({f"LIMIT_{number}": number / 4}).count(None) == 0
    assert time.perf_counter() - started < 4


MOVING = """\
suite "Moving" {{
    const X = 2 tunable [0, 100]
    const Y = 0.5 tunable [0.1, 9.0]
    check "C" on orders {{ assert {claim} name "c" }}
    profile "Mondays" {{ from weekday(monday) to weekday(monday) scale check "C" by 2.0x }}
}}
"""
COUNT, TOTAL = '["orders","num_rows",[],0]', '["orders","sum",["price"],0]'


def moving(claim: str) -> nodes.Suite:
    return sound_suite(MOVING.format(claim=claim))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("claim", "is_quick"),
    [
        ("num_rows() >= X", True),
        ("num_rows() < X", True),
        ("num_rows() between X and 40", True),
        ("num_rows() between X and Y * sum(price)", True),
        ("num_rows() not between 1 and 4", True),
        ("num_rows() not between X and 40", False),
        ("num_rows() not between X and Y * sum(price)", False),
        ("num_rows() > sum(price) * Y", True),
        ("num_rows() <= Y * usual(num_rows(), n 3)", True),
        ("num_rows() > Y + X", False),
        ("num_rows() == X", False),
        ("num_rows() * Y > X", False),
    ],
)
def test_the_failing_days_of_a_value_match_its_verdicts(claim: str, is_quick: bool) -> None:
    chance = random.Random(3)
    days = [
        PastDay(
            day(number),
            Measurements({COUNT: chance.randrange(6), TOTAL: chance.choice([-2, 0, 1.5, 4, None])}),
        )
        for number in range(40)
    ]
    backtest = Backtest(moving(claim), days)
    failing = backtest.failing_days(0)
    assert (failing is not None) == is_quick
    for x, y in [(0, 0.5), (2, 0.1), (3, 0.5), (4, 1.0), (5, 9.0), (100, 1.5)]:
        statuses = backtest.judge({"X": x, "Y": y}).statuses[0]
        if failing is not None:
            bits = sum(1 << n for n, one in enumerate(statuses) if one is Status.FAILED)
            assert failing.at({"X": x, "Y": y}) == bits, (x, y)
        in_full = Backtest(with_values(backtest.suite, {"X": x, "Y": y}), days).judge()
        assert statuses == in_full.statuses[0], (x, y)


def test_an_overflow_within_coalesce_of_a_limit_fails_as_in_a_gate() -> None:
    suite = moving("num_rows() <= coalesce(sum(price) * X, 1000)")
    days = [PastDay(day(number), Measurements({COUNT: 3, TOTAL: 1e307})) for number in range(3)]
    in_full = Backtest(with_values(suite, {"X": 100}), days).judge()
    assert set(in_full.statuses[0]) == {Status.FAILED}
    assert Backtest(suite, days).judge({"X": 100}).statuses == in_full.statuses
    assert Backtest(suite, days).judge().count(Status.PASSED) == 3
