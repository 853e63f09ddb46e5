"""An empty text is none of the values of an option: commands, dqx.toml and Python, walked whole.

Whatever takes a text refuses an empty and a blank one, or is listed here, with the reason why
nothing is judged less by it.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import dqx_airflow
from dqx_airflow import api, read_validated
from dqx_airflow.cli.main import app
from dqx_airflow.datasets.dqx_toml import read_settings
from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.results.receipts import signing_key
from dqx_airflow.values import DatasetRef, RunOptions
from tests.command_line import dql

EMPTY = ("", " ", "\n\t", "\u200b")


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """The path of every command, and of every group with parameters, from `dql` on."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), get_command(app))]
    while waiting:
        path, command = waiting.pop()
        yield path, command
        for name in getattr(command, "commands", {}):
            waiting.append(((*path, name), command.commands[name]))


def is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))


PARAMETERS = [
    (path, parameter)
    for path, command in commands()
    for parameter in command.params
    if not is_flag(parameter) and parameter.name != "help"
]


def call(path: tuple[str, ...], parameter: Any, text: str) -> list[str]:
    """A call with this text, the arguments before it, and nothing else that a command may want."""
    if parameter.param_type_name == "option":
        return [*path, f"{max(parameter.opts, key=len)}={text}"]
    before = [
        other
        for other_path, other in PARAMETERS
        if other_path == path and other.param_type_name == "argument"
    ]
    return [*path, *(["x"] * before.index(parameter)), text]


def test_the_walk_finds_all_commands() -> None:
    assert len(PARAMETERS) > 250
    names = {(path, parameter.name) for path, parameter in PARAMETERS}
    for known in (
        (("tables", "publish"), "run"),
        (("tables", "verify"), "public_key"),
        (("contract", "test"), "expect_version"),
        (("contract",), "variable"),
        (("results", "show"), "run_id"),
    ):
        assert known in names


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("text", EMPTY)
def test_no_option_of_a_command_takes_an_empty_text(tmp_path: Path, text: str) -> None:
    taken = []
    for path, parameter in PARAMETERS:
        done = dql(*call(path, parameter, text), cwd=tmp_path)
        words = " ".join(done.output.split())
        names = (*parameter.opts, parameter.human_readable_name, parameter.metavar)
        is_named = any(name is not None and name in words for name in names)
        if done.returncode != 2 or not is_named or "Traceback" in words:
            taken.append((*path, parameter.name, done.returncode, words[:200]))
    assert taken == []


def test_an_empty_argument_of_many_is_found(tmp_path: Path) -> None:
    done = dql("check", "a.dql", "", cwd=tmp_path)
    assert (done.returncode, done.output.splitlines()[0]) == (2, "error: PATH... is empty")
    done = dql("run", "a.dql", "--only", "a", "--only", " ", cwd=tmp_path)
    assert (done.returncode, done.output.splitlines()[0]) == (2, "error: --only is empty")


def names_in(variables: Any) -> list[str]:
    return [variables] if isinstance(variables, str) else list(variables or ())


def test_a_blank_variable_is_an_error_and_an_empty_one_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of commands say where something is, and none of them what is checked."""
    variables = {
        name
        for _, parameter in PARAMETERS
        for name in (
            [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or ()
        )
    }
    assert variables == {
        *("DQX_RESULTS_ROOT", "DQX_CONNECTION"),
        *("DQX_LINEAGE_SPOOL", "DQX_CONTRACT_REGISTRY"),
    }
    monkeypatch.setenv("DQX_RESULTS_ROOT", " ")
    assert "DQX_RESULTS_ROOT" in dql("results", "list", cwd=tmp_path).output
    monkeypatch.setenv("DQX_RESULTS_ROOT", "")
    assert "no results root given" in dql("results", "list", cwd=tmp_path).output


@pytest.mark.parametrize("text", EMPTY)
def test_an_empty_key_for_receipts_stops_the_driver(text: str) -> None:
    with pytest.raises(RequestError, match="DQX_RECEIPT_KEY is empty"):
        signing_key({"DQX_RECEIPT_KEY": text})


KEYS = (
    *(("connection", name) for name in ("url", "type", "host", "http_path", "jvm_archive")),
    *(("defaults", name) for name in ("date", "output", "results_root", "unsupported")),
    *(("defaults", name) for name in RunOptions.__dataclass_fields__ if name != "skip_dates"),
    *(
        ("datasets.orders", name)
        for name in DatasetRef.__dataclass_fields__
        if name not in ("name", "options", "trust_log", "lineage_name")
    ),
)
"""The keys of `dqx.toml`. `lineage_name` is what a catalog calls a dataset."""


@pytest.mark.parametrize("text", ["", " "])
@pytest.mark.parametrize(("table", "key"), KEYS)
def test_no_setting_of_a_file_takes_an_empty_text(
    tmp_path: Path, table: str, key: str, text: str
) -> None:
    file = tmp_path / "dqx.toml"
    file.write_text(f"[{table}]\n{key} = '{text}'\n")
    problems = read_settings(file).problems
    assert problems, f"{key} is taken"


@pytest.mark.parametrize("key", EMPTY)
@pytest.mark.parametrize(
    "table",
    [
        "defaults",
        "connection",
        "connection.conf",
        "datasets",
        "datasets.orders",
        "datasets.orders.options",
        "gates",
        "gates.orders",
        "reader",
        "reader.csv",
        "contracts",
        "contracts.variables",
    ],
)
def test_no_table_of_a_file_has_a_blank_key(tmp_path: Path, table: str, key: str) -> None:
    file = tmp_path / "dqx.toml"
    file.write_text(f"[{table}]\n{json.dumps(key)} = 'x'\n", encoding="utf-8")
    found = [problem.message for problem in read_settings(file).problems]
    assert f"a key in [{table}] is blank" in found


def test_a_variable_of_a_file_has_a_name(tmp_path: Path) -> None:
    file = tmp_path / "dqx.toml"
    file.write_text("[contracts]\nenvironment = ['1A']\n[contracts.variables]\n'A=B' = 'x'\n")
    assert [problem.message for problem in read_settings(file).problems] == [
        "invalid value for 'environment'",
        "'A=B' is not the name of a variable",
    ]


@pytest.mark.parametrize("key", ["masked", "keys"])
def test_no_list_of_columns_takes_an_empty_one(tmp_path: Path, key: str) -> None:
    file = tmp_path / "dqx.toml"
    for value in ("['']", "['id', ' ']", "','", "'a,,b'", "'a, ,b'"):
        file.write_text(f"[datasets.orders]\npath = 'lake'\n{key} = {value}\n")
        (problem,) = read_settings(file).problems
        assert f"empty column in {key}" in problem.message


SUITE = 'suite "S" { check "C" on orders { assert num_rows() > 0 name "n" } }'
CONTRACT = """
dataContractSpecification: 1.1.0
id: orders
info: {title: Orders, version: 1.0.0}
models: {orders: {type: table, fields: {id: {type: integer, required: true}}}}
"""
SUMMARY: Mapping[str, Any] = {"outcome": "passed", "validated": {}}


def in_memory() -> api.MemoryDatabase:
    return api.MemoryDatabase({"orders": [{"id": 1}]})


def of_file(text: str, name: str) -> Path:
    Path(name).write_text(text)
    return Path(name)


def contract() -> api.Contract:
    return api.Contract.from_string(CONTRACT)


def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"id": [1]})


def in_check(claim: Callable[[Any, Any, str], object]) -> Callable[[str], object]:
    """A suite in Python with one claim."""

    def run(text: str) -> object:
        @api.check(name="C", datasets=["orders"])
        def checked(mp: Any, ctx: Any) -> None:
            claim(mp, ctx, text)

        return api.VerificationSuite([checked], in_memory(), "S").to_dql()

    return run


def suite() -> api.Suite:
    return api.Suite.from_string(SUITE)


DAY = date(2026, 1, 1)

REFUSED: dict[str, Callable[[str], object]] = {
    "read_validated(dataset)": lambda text: read_validated(None, SUMMARY, text),  # type: ignore[arg-type]
    "read_validated(report)": lambda text: read_validated(None, text, "orders"),  # type: ignore[arg-type]
    "read_validated(results_root)": lambda text: read_validated(
        None,
        SUMMARY,
        "orders",
        verify=True,
        results_root=text,  # type: ignore[arg-type]
    ),
    "read_validated(public_key)": lambda text: read_validated(
        None,
        SUMMARY,
        "orders",
        verify=True,
        public_key=text,  # type: ignore[arg-type]
    ),
    "assert_contract(contract)": lambda text: api.assert_contract(frame(), text),
    "assert_contract(version)": lambda text: api.assert_contract(frame(), contract(), version=text),
    "assert_contract(model)": lambda text: api.assert_contract(frame(), contract(), model=text),
    "Contract.load(path)": api.Contract.load,
    "Contract.load(version)": lambda text: api.Contract.load(
        of_file(CONTRACT, "c.yaml"), version=text
    ),
    "Contract.load(models)": lambda text: api.Contract.load(
        of_file(CONTRACT, "c.yaml"), models=text
    ),
    "Contract.from_string(text)": api.Contract.from_string,
    "Contract.of_model(model)": lambda text: contract().of_model(text),
    "Contract.of_schemas(model)": lambda text: contract().of_schemas(text),
    "Contract.of_schemas(version)": lambda text: contract().of_schemas(version=text),
    "Contract.run(fail_on)": lambda text: contract().run(in_memory(), DAY, fail_on=text),
    "Contract.run(server)": lambda text: contract().run(in_memory(), DAY, server=text),
    "Contract.run_dates(server)": lambda text: contract().run_dates(
        in_memory(), [DAY], server=text
    ),
    "Contract.run_dates(fail_on)": lambda text: contract().run_dates(
        in_memory(), [DAY], fail_on=text
    ),
    "Contract.run_dates(dates)": lambda text: contract().run_dates(in_memory(), text),
    "ContractRegistry(place)": lambda text: api.ContractRegistry(text).ids(),
    "ContractRegistry.get(contract_id)": lambda text: api.ContractRegistry("r").get(text, "1.0.0"),
    "ContractRegistry.get(version)": lambda text: api.ContractRegistry("r").get("orders", text),
    "ContractRegistry.text(contract_id)": lambda text: api.ContractRegistry("r").text(text, "1"),
    "ContractRegistry.text(version)": lambda text: api.ContractRegistry("r").text("orders", text),
    "ContractRegistry.register(path)": lambda text: api.ContractRegistry("r").register(text),
    "ContractRegistry.objections(path)": lambda text: api.ContractRegistry("r").objections(text),
    "ContractValidator(contract)": api.ContractValidator,
    "ContractValidator.validate(model)": lambda text: api.ContractValidator(contract()).validate(
        frame(), model=text
    ),
    "ContractValidator.validate(date_column)": lambda text: api.ContractValidator(
        contract()
    ).validate(frame(), date_column=text),
    "ContractValidator.validate(fail_on)": lambda text: api.ContractValidator(contract()).validate(
        frame(), fail_on=text
    ),
    "ContractValidator.validate(datasets)": lambda text: api.ContractValidator(contract()).validate(
        frame(), datasets={"orders": text}
    ),
    "Context.assert_column(column)": in_check(lambda mp, ctx, text: ctx.assert_column(text)),
    "Context.assert_column(type)": in_check(
        lambda mp, ctx, text: ctx.assert_column("id", type=text)
    ),
    "Context.assert_column(fits)": in_check(
        lambda mp, ctx, text: ctx.assert_column("id", fits=text)
    ),
    "Context.assert_each_row(predicate)": in_check(lambda mp, ctx, text: ctx.assert_each_row(text)),
    "Context.assert_share_of_rows(predicate)": in_check(
        lambda mp, ctx, text: ctx.assert_share_of_rows(0.5, text)
    ),
    "check(name)": lambda text: api.VerificationSuite(
        [api.check(name=text, datasets="orders")(lambda mp, ctx: None)], in_memory(), "S"
    ).to_dql(),
    "check(datasets)": lambda text: api.VerificationSuite(
        [api.check(name="C", datasets=text)(lambda mp, ctx: None)], in_memory(), "S"
    ).to_dql(),
    "check(where)": lambda text: api.check(name="C", where=text),
    "Interpreter(fail_on)": lambda text: api.Interpreter(in_memory(), DAY, fail_on=text).run_string(
        SUITE
    ),
    "Interpreter.run_file(path)": lambda text: api.Interpreter(in_memory(), DAY).run_file(text),
    "Interpreter.run_dates(path)": lambda text: api.Interpreter(in_memory(), DAY).run_dates(
        text, [DAY]
    ),
    "Interpreter.run_dates(dates)": lambda text: api.Interpreter(in_memory(), DAY).run_dates(
        of_file(SUITE, "s.dql"), text
    ),
    "Interpreter.run_string(text)": lambda text: api.Interpreter(in_memory(), DAY).run_string(text),
    "Interpreter.run_string(folder)": lambda text: api.Interpreter(in_memory(), DAY).run_string(
        SUITE, folder=text
    ),
    "MemoryDatabase(date_columns)": lambda text: api.MemoryDatabase(
        {"orders": [{"id": 1}]}, date_columns={"orders": text}
    ),
    "SparkDatabase(datasets)": lambda text: api.SparkDatabase(
        None,
        {"orders": text},  # type: ignore[arg-type]
    ),
    "SparkDatabase(spark)": lambda text: api.SparkDatabase(text, {"orders": "lake/orders"}),
    "StoredDatabase(root)": lambda text: suite().run(api.StoredDatabase(text), DAY),
    "StoredDatabase(gate)": lambda text: api.StoredDatabase("r", gate=text),
    "Suite.load(path)": api.Suite.load,
    "Suite.from_string(text)": api.Suite.from_string,
    "Suite.from_string(folder)": lambda text: api.Suite.from_string(SUITE, folder=text),
    "Suite.get_param(name)": lambda text: suite().get_param(text),
    "Suite.get_param_history(name)": lambda text: suite().get_param_history(text),
    "Suite.set_param(name)": lambda text: suite().set_param(text, 1),
    "Suite.set_param(agent)": lambda text: suite().set_param("n", 1, agent=text),
    "Suite.set_param(reason)": lambda text: suite().set_param("n", 1, reason=text),
    "Suite.is_profile_active(name)": lambda text: suite().is_profile_active(text, DAY),
    "Suite.run(fail_on)": lambda text: suite().run(in_memory(), DAY, fail_on=text),
    "Suite.run_dates(fail_on)": lambda text: suite().run_dates(in_memory(), [DAY], fail_on=text),
    "Suite.run_dates(dates)": lambda text: suite().run_dates(in_memory(), text),
    "TunableChoice(name)": lambda text: api.TunableChoice(text, "a", ("a", "b")),
    "TunableChoice(value)": lambda text: api.TunableChoice("T", text, ("a", "b")),
    "TunableFloat(name)": lambda text: api.TunableFloat(text, 1.0, (0.0, 2.0)),
    "TunableInt(name)": lambda text: api.TunableInt(text, 1, (0, 2)),
    "TunablePercent(name)": lambda text: api.TunablePercent(text, 0.1, (0.0, 1.0)),
    "VerificationSuite(name)": lambda text: api.VerificationSuite(
        [api.check(name="C")(lambda mp, ctx: None)], in_memory(), text
    ).to_dql(),
}

SELECTS = "an empty selection selects everything: more is judged"
LOOKS_UP = "looks something up, and finds nothing"
HARMLESS = {
    **{
        f"{kind}.{verb}({name})": SELECTS
        for kind in ("Suite", "Contract")
        for verb in ("run", "run_dates", "plan")
        for name in ("only", "tags", "exclude_tags", "dimensions", "min_severity")
    },
    "Contract.from_string(variables)": "the values of a contract, which may be empty texts",
    "Contract.load(variables)": "the values of a contract, which may be empty texts",
    "ContractRegistry.history(contract_id)": LOOKS_UP,
    "ContractRegistry.get_latest(contract_id)": LOOKS_UP,
    "TunableChoice(choices)": "the values to choose from, which may be empty texts",
    "VerificationSuite(profiles)": "no profiles, which is the default",
    "VerificationSuite.run(fail_on)": "as Suite.run",
    "VerificationSuite.run_dates(fail_on)": "as Suite.run_dates",
    "VerificationSuite.run_dates(dates)": "as Suite.run_dates",
    "VerificationSuite.get_param(name)": "as Suite.get_param",
    "VerificationSuite.get_param_history(name)": "as Suite.get_param_history",
    "VerificationSuite.set_param(name)": "as Suite.set_param",
    "VerificationSuite.set_param(agent)": "as Suite.set_param",
    "VerificationSuite.set_param(reason)": "as Suite.set_param",
    "MemoryDatabase(tables)": "values of data",
    "StoredDatabase(storage_options)": "the credentials of the storage, which refuses wrong ones",
    "StoredDatabase.query(sql)": "a SELECT, which the engine refuses",
}
"""The effect of an empty text there."""

VALUES = {"Contract", "Result", "Results", "DatedResults", "Verdict", "GateReport", "GateRequest"}
VALUES |= {
    "DatasetRef",
    "Table",
    "ContractViolationError",
    "Tunable",
    "Database",
    "Check",
    "Profile",
}
"""Values that are made by the package, or of which others are made that are checked then."""
INNER = {
    "watched",
    "with_types",
    "day",
    "measure",
    "get",
    "add_note",
    "cast",
    "typed",
    "of_columns",
}
"""Methods that the package calls itself, or that read values which are there."""


def public_texts() -> Iterator[str]:
    """Every argument of the public API that takes a text, as `read_validated(public_key)`."""
    for name in sorted({*api.__all__, "read_validated"}):
        found = getattr(api, name)
        if inspect.isclass(found) and issubclass(found, Exception):
            continue
        members: list[tuple[str, Any]] = []
        if name not in VALUES:
            members.append((name, found))
        if inspect.isclass(found) and name not in (VALUES - {"Contract"}):
            members += [
                (f"{name}.{verb}", member)
                for verb, member in inspect.getmembers(found, callable)
                if not verb.startswith("_") and verb not in INNER
            ]
        for written, member in members:
            # The metrics of `MetricProvider` are those of the language, which names its columns.
            if name in ("MetricProvider", "MetricExpression"):
                continue
            for parameter in inspect.signature(member).parameters.values():
                kind = str(parameter.annotation)
                if ("str" in kind or "Words" in kind) and not parameter.name.startswith("_"):
                    yield f"{written}({parameter.name})"


def test_every_text_of_python_is_tried_or_known_to_be_harmless() -> None:
    assert set(public_texts()) - REFUSED.keys() - HARMLESS.keys() == set()
    assert not REFUSED.keys() & HARMLESS.keys()


@pytest.mark.parametrize("argument", REFUSED)
def test_no_argument_of_python_takes_an_empty_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQX_RESULTS_ROOT", str(tmp_path))
    for text in EMPTY[:2]:
        with pytest.raises((DqxError, KeyError, ValueError)):
            REFUSED[argument](text)


def test_the_package_exports_nothing_else_with_texts() -> None:
    own = {*dqx_airflow.__all__} - {*api.__all__}
    assert own <= {
        *("ContractGateOperator", "DqlGateOperator", "DatasetRef", "GateReport", "GateRequest"),
        *(
            "Outcome",
            "Severity",
            "Status",
            "Verdict",
            "__version__",
            "run_gate",
            "gate_notification",
        ),
    }, own
    assert os.environ.get("DQX_RECEIPT_KEY") is None
