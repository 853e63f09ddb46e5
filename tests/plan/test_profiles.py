"""What must hold cannot be muted by a profile, whatever the gate and the date are."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow.api import MemoryDatabase, Suite
from dqx_airflow.errors import RequestError, SourceError

DAY = date(2024, 12, 25)
PERIOD = "from december(20) to december(31)"


def _suite(*profiles: str) -> Suite:
    checks = """check "C" on orders {
        assert num_rows() >= 1000 name "rows" severity P0
        assert num_rows() > 0 name "some" severity P0
        @required assert count(x) > 5 name "mild" severity P2
    }"""
    return Suite.from_string(f'suite "S" {{ {checks} {" ".join(profiles)} }}')


@pytest.mark.parametrize(
    ("rule", "fail_on", "muted"),
    [
        ('downgrade assertion "rows" in "C" to P1', "P0", "fail_on=P0 pass in spite of 'rows'"),
        ('downgrade check "C" to P1', "P0", "fail_on=P0 pass in spite of 'some'"),
        ('downgrade assertion "mild" in "C" to P3', "P2", "fail_on=P2 pass in spite of 'mild'"),
        ('downgrade assertion "rows" in "C" to P1', "P1", None),
        ('downgrade assertion "mild" in "C" to P3', "P1", None),
        ('downgrade assertion "mild" in "C" to P3', "P3", None),
    ],
)
def test_a_downgrade_below_the_own_fail_on_of_a_gate_is_refused(
    rule: str, fail_on: str, muted: str | None
) -> None:
    database = MemoryDatabase({"orders": [{"x": 1}]})
    if muted is None:
        assert _suite(f'profile "P" {{ {PERIOD} {rule} }}').run(database, DAY, fail_on=fail_on)
    else:
        with pytest.raises(SourceError, match=muted):
            _suite(f'profile "P" {{ {PERIOD} {rule} }}').run(database, DAY, fail_on=fail_on)
    allowed = _suite(f'@allow_required profile "P" {{ {PERIOD} {rule} }}')
    assert allowed.run(database, DAY, fail_on=fail_on)


def test_profiles_of_the_same_date_do_not_mute_together() -> None:
    database = MemoryDatabase({"orders": [{"x": 1}]})
    once = 'profile "A" { from december(20) to december(25) scale check "C" by 5x }'
    twice = 'profile "B" { from december(25) to december(31) scale check "C" by 4x }'
    suite = _suite(once, twice)
    for day in (date(2024, 12, 24), date(2024, 12, 26)):
        assert suite.run(database, day)
    with pytest.raises(RequestError, match=r"profiles 'A', 'B' .* factor 20 .* disable 'rows'"):
        suite.run(database, DAY)
    assert _suite(once, f"@allow_required {twice}").run(database, DAY)
