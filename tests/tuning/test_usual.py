"""`within usual(...)`: the same limits in a gate and in a backtest, and how they move."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

import pytest

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.metrics.usual_limits import DayBefore, Kind, holidays_of, usual_limits
from dqx_airflow.plan.measurements import Measurements, measurements_from
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values import Status, Verdict
from tests.sound_suites import sound_suite
from tests.tuning.stored_days import verdict_of

LAST = date(2024, 11, 29)
SUITE = """\
suite "Orders" {
    check "Usual" on orders {
        assert num_rows() within usual(num_rows()) name "rows"
        assert null_count(email) / num_rows() <= highest_usual(null_count(email) / num_rows())
            name "nulls"
        assert num_rows() within usual(num_rows(), n 60, holidays "US") for each country
            name "countries"
    }
}
"""


def orders(days: int, today: float = 1.0, seed: int = 1) -> MemoryDatabase:
    """Days of orders until the last one, fewer at weekends, a little more every day."""
    chance, rows = random.Random(seed), []
    for before in range(days, -1, -1):
        on = LAST - timedelta(days=before)
        count = (10 if on.weekday() >= 5 else 40) * 1.004**-before
        count *= today if before == 0 else chance.uniform(0.93, 1.07)
        for number in range(round(count)):
            email = None if chance.random() < 0.05 else "a@x.org"
            rows.append({"ds": on, "email": email, "country": "DE" if number % 2 else "FR"})
    return MemoryDatabase({"orders": rows}, date_columns={"orders": "ds"})


def verdicts(database: MemoryDatabase, text: str = SUITE, on: date = LAST) -> dict[str, Verdict]:
    report = Suite.from_string(text).run(db=database, date=on).report
    return {verdict.name: verdict for verdict in report.verdicts}


def test_a_usual_day_passes_and_a_double_load_fails_with_the_factors_in_the_verdict() -> None:
    usual, double = verdicts(orders(80)), verdicts(orders(80, today=2))
    assert {usual[name].status for name in ("rows", "nulls", "countries")} == {Status.PASSED}
    assert "growth" in usual["rows"].expected
    assert double["rows"].status is double["countries"].status is Status.FAILED
    assert double["countries"].failed_groups == 2
    assert double["nulls"].status is Status.PASSED


def test_with_too_few_days_before_it_is_skipped_and_says_how_many_are_known() -> None:
    found = verdicts(orders(9))["rows"]
    assert found.status is Status.SKIPPED
    assert found.reason is not None
    assert "9 of the 126 days before have a value, at least 14 are needed" in found.reason


@pytest.mark.slow
def test_a_backtest_judges_each_day_as_the_gate_did() -> None:
    database, suite = orders(22, today=2), Suite.from_string(SUITE)
    dates = [LAST - timedelta(days=before) for before in range(22, -1, -1)]
    reports = [suite.run(db=database, date=on).report for on in dates]
    days = [
        PastDay(on, _measured(report.verdicts)) for on, report in zip(dates, reports, strict=True)
    ]
    backtest = Backtest(sound_suite(SUITE), days)
    for row, assertion in enumerate(backtest.assertions):
        own = [
            next(one for one in report.verdicts if one.name == assertion.name) for report in reports
        ]
        assert [one.status for one in own] == list(backtest.judge().statuses[row]), assertion.name
        last = verdict_of(backtest, row, len(days) - 1)
        assert last is not None
        assert (last.status, last.expected) == (own[-1].status, own[-1].expected)
    assert backtest.judge().statuses[0][-1] is Status.FAILED


def _measured(found: Sequence[Verdict]) -> Measurements:
    together = Measurements()
    for verdict in found:
        together |= measurements_from(verdict.measured)
    return together


# How the limits move: days of a volume with weekdays and noise, judged one after the other.


def volumes(
    change: Callable[[int], float], days: int = 200, seed: int = 5
) -> tuple[list[date], list[float]]:
    chance = random.Random(seed)
    dates = [LAST - timedelta(days=days - number) for number in range(days)]
    values = [
        round(
            10000
            * (0.5 if on.weekday() >= 5 else 1)
            * chance.lognormvariate(0, 0.04)
            * change(number)
        )
        for number, on in enumerate(dates)
    ]
    return dates, [float(value) for value in values]


def alarms(
    dates: Sequence[date],
    values: Sequence[float],
    kind: Kind = Kind.VOLUME,
    labels: Mapping[int, bool] | None = None,
    country: str | None = None,
) -> list[int]:
    """The days from the 126th on that are not usual; labels by day, True for an issue."""
    found = []
    for number in range(126, len(dates)):
        lags = {number - day: issue for day, issue in (labels or {}).items() if day < number}
        day = DayBefore(
            dates[number],
            values[number - 126 : number],
            [lag for lag, issue in lags.items() if issue],
            [lag for lag, issue in lags.items() if not issue],
        )
        (limits,) = usual_limits([day], kind, country)
        assert limits is not None
        is_usual = limits.low <= values[number] <= limits.high
        if not is_usual or limits.repeated == values[number]:
            found.append(number)
    return found


@pytest.mark.more
def test_growth_weekdays_and_month_ends_raise_no_alarm() -> None:
    dates, values = volumes(lambda day: 1.004**day)
    month_ends = [
        value * (1.8 if (on + timedelta(days=1)).day == 1 else 1)
        for on, value in zip(dates, values, strict=True)
    ]
    assert alarms(dates, values) == []
    assert alarms(dates, month_ends) == []


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("factor", [0.6, 1.7])
def test_a_shift_alarms_for_two_days_and_its_new_level_is_as_closely_watched(factor: float) -> None:
    dates, values = volumes(lambda day: factor if day >= 150 else 1)
    assert alarms(dates, values) == [150, 151]
    values[185] *= 0.5
    assert alarms(dates, values) == [150, 151, 185]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
def test_a_label_accepts_a_shift_at_once_and_its_new_level_is_as_closely_watched(
    kind: Kind,
) -> None:
    dates, values = volumes(lambda day: 1.7 if day >= 150 else 1)
    values[170] *= 0.5
    assert alarms(dates, values, kind, labels={150: False}) == [150, 170]


def test_a_week_of_lower_prices_alarms_for_two_days() -> None:
    dates, prices = volumes(lambda day: 0.7 if 150 <= day < 157 else 1, days=165)
    assert alarms(dates, prices, Kind.OTHER) == [150, 151]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("factor", [0.001, 3.6])
def test_another_unit_alarms_until_a_person_says_that_it_is_fine(kind: Kind, factor: float) -> None:
    dates, values = volumes(lambda day: factor if day >= 150 else 1, days=180)
    assert alarms(dates, values, kind) == list(range(150, 180))
    said = alarms(dates, values, kind, labels={160: False})
    assert said == list(range(150, 161))


@pytest.mark.few(1)
@pytest.mark.parametrize("level", [0.05, 0.3, 0.55, 0.9])
@pytest.mark.parametrize("factor", [0.001, 0.28])
def test_another_unit_of_a_mean_below_one_alarms_until_a_person_says_that_it_is_fine(
    level: float, factor: float
) -> None:
    chance = random.Random(5)
    dates = [LAST - timedelta(days=180 - number) for number in range(180)]
    means = [
        min(level * chance.lognormvariate(0, 0.04), 1) * (factor if number >= 150 else 1)
        for number in range(180)
    ]
    assert alarms(dates, means, Kind.OTHER) == list(range(150, 180))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
def test_another_sign_does_not_become_usual_by_itself(kind: Kind) -> None:
    dates, values = volumes(lambda day: -1 if day >= 150 else 1, days=180)
    assert alarms(dates, values, kind) == list(range(150, 180))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
def test_a_negative_day_before_does_not_let_another_unit_become_usual(kind: Kind) -> None:
    dates, values = volumes(lambda day: 0.28 if day >= 150 else 1, days=180)
    values[60] = -300
    assert alarms(dates, values, kind) == list(range(150, 180))


@pytest.mark.more
def test_a_negative_day_before_does_not_let_a_double_or_a_half_load_pass() -> None:
    chance = random.Random(8)
    dates = [LAST - timedelta(days=140 - number) for number in range(140)]
    values = [1000 * chance.lognormvariate(0, 0.18) for _ in dates]
    values[60] = -300
    for load in (0.5, 2):
        changed = [*values[:139], load * 1000]
        assert alarms(dates, changed)[-1:] == [139], load


@pytest.mark.slow
def test_a_shift_that_no_one_labels_alarms_for_a_quarter() -> None:
    """Also on the day on which half of the days before have it."""
    dates, values = volumes(lambda day: 3.6 if day >= 150 else 1, days=250)
    assert alarms(dates, values) == list(range(150, 245))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
def test_days_that_differ_by_much_have_limits_from_the_first_weeks_on(kind: Kind) -> None:
    chance = random.Random(5)
    values = [chance.choice([3000, 10_000, 40_000]) for _ in range(60)]
    for known in (14, 20, 40, 60):
        (limits,) = usual_limits([DayBefore(LAST, values[:known])], kind)
        assert limits is not None, known


def test_a_largest_value_far_above_those_of_noisy_days_alarms() -> None:
    """On a scale of factors, five times the level would be within noise; a tenth is on neither."""
    chance = random.Random(5)
    values = [100 * chance.lognormvariate(0, 0.5) for _ in range(126)]
    (limits,) = usual_limits([DayBefore(LAST, values)], Kind.OTHER)
    assert limits is not None
    assert limits.high < 600
    assert limits.low > 0


def test_a_mean_of_nothing_alarms_again_after_one_without_a_label() -> None:
    chance = random.Random(5)
    values = [100 * chance.lognormvariate(0, 0.3) for _ in range(60)]
    values[30] = 0.0
    (limits,) = usual_limits([DayBefore(LAST, values)], Kind.OTHER)
    assert limits is not None
    assert limits.low > 0


@pytest.mark.parametrize(("usual", "wrong"), [(50.0, 5000.0), (50.0, 100.0), (50.0, 0.0)])
def test_incidents_of_a_metric_that_never_varies_do_not_let_another_pass(
    usual: float, wrong: float
) -> None:
    """Even if a quarter of the days has them, and no one labels any."""
    values = [wrong if day % 4 == 1 else usual for day in range(60)]
    chance = random.Random(5)
    chance.shuffle(values)
    (limits,) = usual_limits([DayBefore(LAST, [*values, usual, usual, usual])], Kind.OTHER)
    assert limits is not None
    assert not limits.low <= wrong <= limits.high


@pytest.mark.few(2)
@pytest.mark.parametrize("known", [126, 28, 60])
def test_a_value_that_most_days_share_does_not_make_the_others_alarms(known: int) -> None:
    """Such as a minimum of whole numbers: its days would otherwise have no noise at all."""
    chance = random.Random(5)
    values = [float(chance.choice([3, 3, 3, 3, 3, 3, 2, 4, 2, 5])) for _ in range(known)]
    (limits,) = usual_limits([DayBefore(LAST, values)], Kind.OTHER)
    assert limits is not None
    assert limits.low <= 2 < 5 <= limits.high < 30


def test_limits_of_a_mean_are_farther_away_while_few_weeks_are_known() -> None:
    widths = {}
    for known in (28, 126):
        widths[known] = 0.0
        for seed in range(20):
            chance = random.Random(seed)
            values = [chance.gauss(100, 10) for _ in range(known)]
            (limits,) = usual_limits([DayBefore(LAST, values)], Kind.OTHER)
            assert limits is not None
            widths[known] += (limits.high - limits.low) / 20
    # Five of its standard deviations on either side.
    assert 90 < widths[126] < 130
    assert widths[28] > 0.9 * widths[126]


def test_a_mean_shows_its_factors_too() -> None:
    dates = [LAST - timedelta(days=126 - number) for number in range(126)]
    values = [150.0 if on.weekday() == LAST.weekday() else 100.0 for on in dates]
    chance = random.Random(5)
    values = [value + chance.uniform(-2, 2) for value in values]
    (limits,) = usual_limits([DayBefore(LAST, values)], Kind.OTHER)
    assert limits is not None
    assert limits.text == "Friday x 1.49"


@pytest.mark.parametrize("kind", Kind)
def test_weekdays_that_differ_by_chance_have_no_factor(kind: Kind) -> None:
    """In four weeks, four days make a factor. If it is noise, the next day's limits are wrong."""
    with_factor = 0
    for seed in range(40):
        chance = random.Random(seed)
        values = [10_000 * chance.lognormvariate(0, 0.3) for _ in range(28)]
        (limits,) = usual_limits([DayBefore(LAST, values)], kind)
        assert limits is not None
        with_factor += "Friday" in limits.text
    assert with_factor <= 4


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(("known", "weekend"), [(21, 0.5), (28, 0.6), (126, 0.9)])
def test_weekdays_that_differ_clearly_have_one_factor_each(
    kind: Kind, known: int, weekend: float
) -> None:
    """Three weeks show a half, eighteen show a tenth; the other weekdays have their factor, too."""
    chance = random.Random(5)
    dates = [LAST - timedelta(days=known - number) for number in range(known + 2)]
    values = [
        1000 * (weekend if on.weekday() >= 5 else 1) * chance.lognormvariate(0, 0.05)
        for on in dates
    ]
    friday, saturday = (
        usual_limits([DayBefore(dates[end], values[end - known : end])], kind)[0]
        for end in (known, known + 1)
    )
    assert friday is not None
    assert saturday is not None
    assert saturday.expected == pytest.approx(1000 * weekend, rel=0.06)
    assert friday.expected == pytest.approx(1000, rel=0.06)
    assert "Saturday" in saturday.text


@pytest.mark.parametrize("kind", Kind)
def test_a_fifth_of_incidents_without_labels_does_not_let_another_pass(kind: Kind) -> None:
    passed = 0
    for seed in range(20):
        chance = random.Random(seed)
        values = [10_000 * chance.lognormvariate(0, 0.03) for _ in range(42)]
        for day in chance.sample(range(42), 9):
            values[day] /= 2
        (limits,) = usual_limits([DayBefore(LAST, values)], kind)
        assert limits is not None
        passed += limits.high >= 20_000 or limits.low <= 4_000
    assert passed <= 2


@pytest.mark.more
@pytest.mark.parametrize("kind", Kind)
def test_another_unit_does_not_become_usual_in_a_short_past_either(kind: Kind) -> None:
    chance = random.Random(8)
    values = [1000 * chance.lognormvariate(0, 0.05) for _ in range(40)]
    values[25:] = [value * 100 for value in values[25:]]
    for known in range(26, 40):
        (limits,) = usual_limits([DayBefore(LAST, values[:known])], kind)
        assert limits is not None
        assert not limits.low <= values[known] <= limits.high, known


@pytest.mark.more
def test_a_labelled_campaign_does_not_let_a_later_shift_become_usual() -> None:
    dates, values = volumes(lambda day: 3 if day == 150 else 4 if day >= 165 else 1, days=180)
    assert alarms(dates, values, labels={150: False}) == [150, *range(165, 180)]


@pytest.mark.more
def test_a_double_load_fails_on_a_day_of_the_month_that_varies() -> None:
    chance = random.Random(9)
    dates = [date(2024, 12, 1) - timedelta(days=153 - number) for number in range(154)]
    values = [
        1000 * chance.lognormvariate(0, 0.2) * (4 * chance.uniform(0.6, 1.6) if on.day == 1 else 1)
        for on in dates
    ]
    (limits,) = usual_limits([DayBefore(dates[-1], values[-127:-1])], Kind.VOLUME)
    assert limits is not None
    assert "first day of the month" in limits.text
    assert limits.high < 2 * limits.expected
    assert limits.low > limits.expected / 2


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "always_fails"), [(0.15, True), (0.4, False)])
def test_half_and_double_always_fail_unless_they_are_noise(
    noise: float, always_fails: bool
) -> None:
    """Noise of 40% has half or double within two standard deviations."""
    chance = random.Random(3)
    values = [60 * chance.lognormvariate(0, noise) for _ in range(126)]
    (limits,) = usual_limits([DayBefore(LAST, values)], Kind.VOLUME)
    assert limits is not None
    assert (limits.high < 2 * limits.expected) == always_fails
    assert (limits.low > limits.expected / 2) == always_fails


@pytest.mark.more
def test_a_leak_that_stays_alarms_each_day() -> None:
    dates, values = volumes(lambda day: 4 if day >= 150 else 1, days=180)
    shares = [value / 1e6 for value in values]
    assert alarms(dates, shares, Kind.OTHER) == list(range(150, 180))


@pytest.mark.more
def test_days_of_which_half_and_double_are_noise_have_no_limit_of_a_load() -> None:
    chance = random.Random(1)
    dates = [LAST - timedelta(days=300 - number) for number in range(300)]
    values = [500 * chance.lognormvariate(0, 0.45) for _ in dates]
    assert alarms(dates, values, Kind.OTHER) == []
    assert len(alarms(dates, values, Kind.VOLUME)) <= 3


@pytest.mark.slow
def test_the_day_after_a_campaign_is_usual() -> None:
    dates, campaign = volumes(lambda day: 1.7 if 150 <= day < 155 else 1)
    assert alarms(dates, campaign) == [150, 151]


@pytest.mark.more
def test_labelled_issues_never_enter_the_baseline() -> None:
    dates, values = volumes(lambda day: 0.5 if 150 <= day < 162 else 1)
    assert alarms(dates, values) == [150, 151]
    labelled = alarms(dates, values, labels=dict.fromkeys(range(150, 161), True))
    assert labelled == list(range(150, 162))


@pytest.mark.slow
def test_the_same_value_as_the_day_before_is_a_delivery_read_again() -> None:
    dates, values = volumes(lambda _: 1)
    values[151] = values[150]
    assert alarms(dates, values) == [151]
    assert alarms(dates, [float(round(value, -2)) for value in values]) == []


@pytest.mark.slow
def test_holidays_of_a_country_are_known_also_when_they_move() -> None:
    first = date(2024, 11, 1)
    public = holidays_of("DE-BY", first, first + timedelta(days=250))
    chance, dates = random.Random(1), [first + timedelta(days=number) for number in range(250)]
    values = [10000 * chance.lognormvariate(0, 0.04) * (0.1 if on in public else 1) for on in dates]
    missed = {dates[number] for number in alarms(dates, values)}
    known = {dates[number] for number in alarms(dates, values, country="DE-BY")}
    assert {on for on in public if dates[126] <= on <= dates[-1]} <= missed
    assert known == set()


@pytest.mark.more
def test_a_volume_that_is_zero_on_a_weekday_is_so_again_and_zero_elsewhere_is_not_usual() -> None:
    chance = random.Random(7)
    dates = [LAST - timedelta(days=150 - number) for number in range(150)]
    for size in (10, 1000, 0.37):
        open_days = [size * chance.uniform(0.95, 1.05) for _ in dates]
        sundays = [number for number, on in enumerate(dates) if on.weekday() == 6]
        values = [
            0 if on.weekday() == 6 else value for on, value in zip(dates, open_days, strict=True)
        ]
        assert alarms(dates, values, Kind.VOLUME) == []
        for number, wrong in ((sundays[-1], 1000 + size), (sundays[-1] + 1, 0)):
            changed = [*values[:number], wrong, *values[number + 1 :]]
            assert number in alarms(dates, changed, Kind.VOLUME), (size, wrong)


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", Kind)
def test_no_values_whatever_they_are_make_limits_that_let_everything_pass(kind: Kind) -> None:
    chance = random.Random(3)
    odd = [None, 0, -1, 10**400, -(10**400), 1e308, -1e308, float("inf"), float("nan")]
    for turn in range(300):
        base = chance.choice([0, 1, 5e-324, 1e300, -50, 2**70, 0.5, *odd[3:]])
        values = [chance.choice(odd) if chance.random() < 0.2 else base for _ in range(126)]
        (limits,) = usual_limits([DayBefore(LAST - timedelta(days=turn), values)], kind)
        if limits is not None:
            numbers = (limits.low, limits.high, limits.expected)
            assert [number for number in numbers if not math.isfinite(number)] == []
            assert limits.low <= limits.expected <= limits.high
            assert isinstance(limits.text, str)


def test_shares_near_none_and_near_all_have_limits_of_their_own() -> None:
    chance = random.Random(4)
    dates = [LAST - timedelta(days=150 - number) for number in range(150)]
    rare = [0.0002 * chance.uniform(0.8, 1.2) for _ in dates]
    for values, bad in ((rare, 0.01), ([1 - value for value in rare], 0.99)):
        assert alarms(dates, values, Kind.OTHER) == []
        assert alarms(dates, [*values[:140], bad, *values[141:]], Kind.OTHER) == [140]


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("is_complement", [False, True])
def test_a_single_row_of_few_is_no_alarm_where_a_share_is_none_on_most_days(
    is_complement: bool,
) -> None:
    chance = random.Random(5)
    dates = [LAST - timedelta(days=170 - number) for number in range(170)]
    rows = [chance.randint(150, 250) for _ in dates]
    bad = [sum(chance.random() < 0.003 for _ in range(count)) for count in rows]
    assert sum(number == 0 for number in bad) > 80

    def shares(bad: Sequence[int]) -> list[float]:
        found = [number / count for number, count in zip(bad, rows, strict=True)]
        return [1 - share for share in found] if is_complement else found

    assert alarms(dates, shares(bad), Kind.OTHER) == []
    assert alarms(dates, shares([*bad[:160], 14, *bad[161:]]), Kind.OTHER) == [160]


CHANCE = random.Random(7)
SOME_DAYS = {day: CHANCE.uniform(0.03, 0.3) for day in CHANCE.sample(range(160), 18)}
NEAR_5 = [0.05 * CHANCE.uniform(0.9, 1.1) for _ in range(160)]
NONE_ON_SOME_DAYS: Mapping[str, Callable[[int], float]] = {
    "one leak": lambda day: 0.03 * (day == 90),
    "leaks of any size": lambda day: SOME_DAYS.get(day, 0.0),
    "leaks of four days": lambda day: NEAR_5[day] * (day % 32 < 4),
    "none at weekends": lambda day: NEAR_5[day] * (day % 7 < 5),
    "none on one weekday": lambda day: NEAR_5[day] * (day % 7 < 6),
    "none until a change": lambda day: NEAR_5[day] * (day >= 60),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("is_complement", [False, True])
@pytest.mark.parametrize("case", NONE_ON_SOME_DAYS)
def test_days_without_are_no_days_of_few_rows_if_more_than_chance_decides(
    case: str, is_complement: bool
) -> None:
    """So that what is found does not hide the next one."""
    dates = [LAST - timedelta(days=160 - number) for number in range(161)]
    values = [*(NONE_ON_SOME_DAYS[case](day) for day in range(160)), 0.12]
    shares = [1 - share for share in values] if is_complement else values
    assert alarms(dates, shares, Kind.OTHER)[-1:] == [160]


def test_small_leaks_without_a_label_do_not_hide_a_larger_one() -> None:
    chance = random.Random(6)
    dates = [LAST - timedelta(days=160 - number) for number in range(160)]
    shares = [0.02 * chance.uniform(0.8, 1.25) for _ in dates]
    for day in chance.sample(range(159), 24):
        shares[day] = 0.036
    assert alarms(dates, [*shares[:159], 0.09], Kind.OTHER)[-1:] == [159]
