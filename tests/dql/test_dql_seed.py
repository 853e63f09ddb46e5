"""Every example of the language's description is accepted, within the suite it belongs to."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import Level
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.import_readers import FileReader
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile
from tests.sound_suites import sound_suite

SUITES = sorted(Path(__file__).parent.glob("seed/*.dql"))


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_an_example_of_the_seed_is_accepted_and_can_be_planned(path: Path) -> None:
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    suite = sound_suite(source, FileReader(path.name, path, path.parent))
    names = datasets_of(suite.checks)
    datasets = [DatasetRef(name, path="there", date_column="day") for name in names]
    assert not check_datasets(suite, datasets)
    plan = resolve(suite, source, datasets, date(2024, 11, 29))
    written = sum(len(check.assertions) for check in suite.checks)
    assert len(plan.assertions) == written + len(names)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_an_example_of_the_seed_warns_only_about_missing_names_and_bodies(path: Path) -> None:
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    found = check_source(source, FileReader(path.name, path, path.parent)).diagnostics
    warnings = {item.code for item in found if item.level is Level.WARNING}
    assert warnings <= {"W001", "W012"}  # a name; the body of a suite
