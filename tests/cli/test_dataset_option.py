"""`--dataset [NAME=]LOCATION`: one form in all commands, whose name may be left out where there is
one dataset."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.cli.arguments import Options, datasets_of
from dqx_airflow.cli.calls import RunCall, read_call
from dqx_airflow.datasets.settings import datasets_of_arguments
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef
from tests.cli.test_output import COMMANDS

TODAY = date(2024, 3, 2)
ONE = 'suite "One" { check "C" on orders { assert num_rows() > 0 name "r" } }'
OTHER = 'suite "Other" { check "C" on customers { assert num_rows() > 0 name "r" } }'
TWO = (
    'suite "Two" { check "C" on orders { assert num_rows() > 0 name "r" '
    'assert each row: c in values(c, dataset customers) name "c" } }'
)


def test_all_commands_show_the_same_form() -> None:
    shown = {
        name: each.metavar
        for name, command in COMMANDS.items()
        for each in command.params
        if "--dataset" in each.opts and name != "import"  # rules have a name, and no location
    }
    assert len(shown) > 10
    assert {form.partition("[?")[0] for form in shown.values()} == {"[NAME=]LOCATION"}


@pytest.mark.parametrize(
    ("text", "name", "location"),
    [
        ("orders=o.csv", "orders", "o.csv"),
        ("o.csv", "", "o.csv"),
        ("lake/ds=2024-12-25", "", "lake/ds=2024-12-25"),
        ("./ds=2024-12-25", "", "./ds=2024-12-25"),
        ("s3://lake/ds=2024-12-25", "", "s3://lake/ds=2024-12-25"),
        ("table:sales.orders?filter=a%3D1", "", "sales.orders"),
        ("o.csv?format=csv&keys=id", "", "o.csv"),
        ("bronze.orders=lake/ds=1", "bronze.orders", "lake/ds=1"),
    ],
)
def test_a_name_is_before_the_path(text: str, name: str, location: str) -> None:
    refs, problems = datasets_of_arguments([text])
    assert problems == []
    assert [(ref.name, ref.location) for ref in refs.values()] == [(name, location)]


@pytest.mark.parametrize("text", ["", "=o.csv", " =o.csv", "orders=", "?format=csv"])
def test_a_location_is_needed(text: str) -> None:
    refs, (problem,) = datasets_of_arguments([text])
    assert refs == {}
    assert "missing the dataset name or its location" in problem.message


def call(here: Path, *datasets: str, toml: str = "", **suites: str) -> RunCall:
    (here / "dqx.toml").write_text(toml)
    for name, text in suites.items():
        (here / f"{name}.dql").write_text(text)
    paths = tuple(here / f"{name}.dql" for name in suites)
    return read_call(Options(paths, datasets=list(datasets)), TODAY)


def refs(found: RunCall) -> dict[str, DatasetRef]:
    return {ref.name: ref for request in found.valid_requests for ref in request.datasets}


def test_the_only_dataset_of_a_suite_needs_no_name(here: Path) -> None:
    (ref,) = refs(call(here, "o.csv?date_column=ds", one=ONE)).values()
    assert (ref.name, ref.path, ref.format, ref.date_column) == ("orders", "o.csv", "csv", "ds")


def test_it_takes_precedence_over_the_settings_and_keeps_their_masks(here: Path) -> None:
    toml = '[datasets.orders]\npath = "lake/orders"\nmasked = ["email"]\n'
    (ref,) = refs(call(here, "o.csv", toml=toml, one=ONE)).values()
    assert (ref.path, ref.masked) == ("o.csv", ("email",))


@pytest.mark.parametrize(
    ("datasets", "suites", "message"),
    [
        (["o.csv"], {"two": TWO}, "o.csv has no name, and the datasets are orders, customers"),
        (["o.csv"], {"one": ONE, "other": OTHER}, "would be each of orders, customers"),
        (["o.csv", "orders=p.csv"], {"one": ONE}, "'orders' is given twice"),
        (["o.csv", "p.csv"], {"one": ONE}, "two datasets have no name"),
        (["orders"], {"one": ONE}, "the location of dataset 'orders' is missing"),
        (["o.csv?fromat=csv"], {"one": ONE}, "unknown dataset setting 'fromat'"),
    ],
)
def test_where_it_may_be_another_dataset_it_is_an_error(
    here: Path, datasets: list[str], suites: dict[str, str], message: str
) -> None:
    found = call(here, *datasets, **suites)
    assert [each.message for each in found.diagnostics if message in each.message] != []
    assert found.has_errors


def test_a_mistake_in_it_is_the_only_one(here: Path) -> None:
    (error,) = call(here, "o.csv?date_colum=ds", one=ONE).diagnostics
    assert "date_colum" in error.message


def test_a_draft_takes_the_format_of_the_files_and_refuses_what_it_would_ignore(here: Path) -> None:
    folder = here / "lake"
    folder.mkdir()
    (folder / "part.csv").write_text("a\n1\n")
    (ref,) = datasets_of(["lake"], ("format",))
    assert ref.format == "csv"
    with pytest.raises(RequestError, match="filter cannot be considered"):
        datasets_of(["lake?filter=a"], ("format",))
