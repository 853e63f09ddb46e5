"""The same gates and pages on every Airflow, in environments of their own."""

from __future__ import annotations

import pytest

from tests.other_airflows import AIRFLOWS, TESTS, environment_with, python_with
from tests.other_environments import ROOT
from tests.processes import ended


@pytest.mark.nightly
@pytest.mark.parametrize("airflow", AIRFLOWS)
def test_everything_that_depends_on_airflow_is_the_same_on_all(airflow: str) -> None:
    options = ("-n", "0", "-q", "-p", "no:cacheprovider", "-m", "airflow and not nightly")
    done = ended(
        [str(python_with(airflow)), "-m", "pytest", *options, *TESTS],
        cwd=ROOT,
        env=environment_with(airflow),
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
