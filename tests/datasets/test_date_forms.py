from __future__ import annotations

from datetime import date, timedelta

import pytest

from dqx_airflow.datasets.date_forms import dates_in_other_forms
from dqx_airflow.datasets.date_pattern import ISO, date_text

DAY = date(2024, 3, 2)

IN_OTHER_FORMS = """
2024-3-2
2024.03.02
2024/3/2
2024-03-02 00:00:00
2024-03-02T00:00:00
2024-03-02T00:00:00Z
2024-03-02T23:59:59.999999+01:00
2024-03-02+00:00
20240302
20240302T000000
20240302120000
02.03.2024
03/02/2024
02032024
Mar 2 2024
2-MAR-24
2. M\u00e4rz 2024
Sat, 02 Mar 2024 00:00:00 GMT
24-03-02
240302
02024-03-02
\uff12\uff10\uff12\uff14-\uff10\uff13-\uff10\uff12
\u0662\u0660\u0662\u0664-\u0660\u0663-\u0660\u0662
2024-03-0\u200b2
2024\u5e743\u67082\u65e5
2024-062
2024062
2024-W09-6
2024W096
1709337600
1709337600000
1709337600000000
19784
batch-2024-03-02
""".strip().splitlines()

NOT_DATES = ["", "junk", "latest", "__unknown__", "2024-03", "2024-W09", "v1", "9" * 400]

PATTERNS = [
    "yyyy-MM-dd",
    "yyyyMMdd",
    "yyMMdd",
    "dd.MM.yyyy",
    "d/M/yy",
    "MMddyyyy",
    "yyyy/dd/MM",
    "MM-yyyy-dd",
    "Mdyyyy",
    "dMyy",
    "uuuuMd",
]


@pytest.mark.parametrize("text", [*IN_OTHER_FORMS, "2024-03-02 ", "\u200b2024-03-02"])
def test_a_date_is_known_in_other_forms(text: str) -> None:
    assert DAY in dates_in_other_forms(text, ISO)


@pytest.mark.parametrize("text", NOT_DATES)
def test_other_strings_are_no_dates(text: str) -> None:
    assert not dates_in_other_forms(text, ISO)


@pytest.mark.parametrize("text", ["2024-03-01T02:03:02", "01.03.2024 03:02:00", "20240301T240302"])
def test_a_time_is_not_read_as_a_date(text: str) -> None:
    assert DAY not in dates_in_other_forms(text, ISO)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_date_that_the_pattern_writes_is_in_no_other_form(pattern: str) -> None:
    for days in range(0, 1500, 7):
        text = date_text(pattern, date(2022, 1, 1) + timedelta(days))
        assert not dates_in_other_forms(text, pattern), text
