"""The settings in a `dqx.toml`. Mistakes in it are cases of `dql run`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.cli.calls import Options, read_call
from dqx_airflow.datasets.dqx_toml import (
    Defaults,
    Positions,
    RunFormat,
    Settings,
    Unsupported,
    find_settings,
    read_settings,
)
from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS, for_a_short_life, with_archive
from dqx_airflow.datasets.settings import datasets_of_arguments, mistakes_in
from dqx_airflow.datasets.settings_check import check_ref
from dqx_airflow.datasets.spark_address import ConnectionKind, connection_of
from dqx_airflow.diagnostics.diagnostic import Level
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef, Severity

FULL = """
[connection]
type = "databricks"
host = "workspace.cloud.databricks.com"
http_path = "/sql/1.0/warehouses/abc123"

[connection.conf]
spark.sql.ansi.enabled = true
"spark.executor.cores" = 4

[defaults]
date = 2024-12-25
format = "junit"
results_root = "lake/dqx"
fail_on = "P2"
allow_empty = true

[datasets]
returns = "lake/returns"

[datasets.orders]
path = "s3://lake/orders"
format = "csv"
date_column = "ds"
filter = "amount > 0"
keys = ["id", "line"]
masked = ["email"]

[datasets.orders.options]
header = true

[datasets.items]
table = "shop.items"
version = 7

[datasets.latest]
path = "lake/latest"
timestamp = 2024-03-02T06:00:00Z

[datasets.described]
columns = ["a"]
"""


def settings(folder: Path, text: str) -> Settings:
    (folder / "dqx.toml").write_text(text, encoding="utf-8")
    return read_settings(folder / "dqx.toml", "dqx.toml")


def test_every_setting_of_a_file_is_read(tmp_path: Path) -> None:
    found = settings(tmp_path, FULL)
    assert found.problems == ()
    assert str(found.connection) == "databricks://workspace.cloud.databricks.com:443"
    assert found.conf == {"spark.sql.ansi.enabled": "true", "spark.executor.cores": "4"}
    assert found.defaults == Defaults(
        "2024-12-25", RunFormat.JUNIT, "lake/dqx", fail_on=Severity.P2, allow_empty=True
    )
    assert found.results_root == str(tmp_path / "lake/dqx")
    assert found.refs == {
        "returns": DatasetRef("returns", path=str(tmp_path / "lake/returns")),
        "orders": DatasetRef(
            "orders",
            path="s3://lake/orders",
            format="csv",
            date_column="ds",
            filter="amount > 0",
            options=(("header", "true"),),
            keys=("id", "line"),
            masked=("email",),
        ),
        "items": DatasetRef("items", table="shop.items", version=7),
        "latest": DatasetRef(
            "latest", path=str(tmp_path / "lake/latest"), timestamp="2024-03-02T06:00:00+00:00"
        ),
    }


@pytest.mark.parametrize("by_default", [True, False])
def test_the_default_of_trust_log_applies_to_all_datasets(tmp_path: Path, by_default: bool) -> None:
    places = '[datasets]\norders = "lake/orders"\nlines = { path = "/lines", trust_log = false }\n'
    settings(tmp_path, f"[defaults]\ntrust_log = {str(by_default).lower()}\n{places}")
    names = ("orders", "lines", "days")
    checks = "".join(f'check "{name}" on {name} {{ assert num_rows() > 0 }} ' for name in names)
    (tmp_path / "s.dql").write_text(f'suite "S" {{ {checks} }}')
    call = read_call(Options((tmp_path / "s.dql",), datasets=("days=/days",)), date(2024, 3, 2))
    trusted = {ref.name: ref.trust_log for ref in call.requests[0].datasets}
    assert trusted == {"orders": by_default, "lines": False, "days": by_default}


@pytest.mark.parametrize(
    ("by_default", "typed", "let_by"),
    [
        ("", None, None),
        ('[defaults]\nunsupported = "warn"\n', None, "unsupported=warn"),
        ("", Unsupported.WARN, "unsupported=warn"),
        ('[defaults]\nunsupported = "warn"\n', Unsupported.ERROR, None),
    ],
)
def test_unenforceable_clauses_are_errors_by_default(
    tmp_path: Path, by_default: str, typed: Unsupported | None, let_by: str | None
) -> None:
    settings(tmp_path, f'{by_default}[datasets]\norders = "/orders"\n')
    path = tmp_path / "orders.yaml"
    path.write_text(
        "dataContractSpecification: 1.2.1\nid: orders\ninfo: {title: O, version: 1.0.0}\n"
        "models: {orders: {quality: [{type: custom, engine: monte-carlo}]}}\n"
    )
    call = read_call(Options((path,), unsupported=typed), date(2024, 3, 2))
    assert not call.has_errors
    contract = call.requests[0].contract
    assert contract is not None
    assert [clause.let_by for clause in contract.unenforced] == [let_by]


def test_the_example_of_the_module_is_sound(tmp_path: Path) -> None:
    import dqx_airflow.datasets.dqx_toml as module

    example = re.sub(r"^    ", "", (module.__doc__ or "").split("\n\n", 1)[1], flags=re.M)
    (tmp_path / "gate.jsa").touch()
    found = settings(tmp_path, example.partition("\nThe nearest")[0])
    assert found.problems == ()
    assert found.defaults.date == "yesterday"
    assert found.refs["orders"].date_column == "ds"


def test_without_a_file_spark_runs_here_and_the_date_is_today() -> None:
    assert str(Settings().connection) == "local[*]"
    assert Settings().defaults == Defaults(
        None, RunFormat.TEXT, None, fail_on=Severity.P1, allow_empty=False
    )


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert settings(tmp_path, '\ufeff[datasets]\norders = "/orders"\n').refs


def test_the_nearest_file_is_used(tmp_path: Path) -> None:
    home = tmp_path / "suites" / "deep"
    home.mkdir(parents=True)
    settings(tmp_path, "")
    assert find_settings(home) == tmp_path / "dqx.toml"
    settings(home.parent, "")
    assert find_settings(home) == tmp_path / "suites" / "dqx.toml"


@pytest.mark.parametrize(
    ("address", "kind", "servers", "shown"),
    [
        ("local", ConnectionKind.LOCAL, (), "local[1]"),
        ("local[*]", ConnectionKind.LOCAL, (), "local[*]"),
        ("local[4,2]", ConnectionKind.LOCAL, (), "local[4,2]"),
        (
            "spark://a,b:7078",
            ConnectionKind.STANDALONE,
            (("a", 7077), ("b", 7078)),
            "spark://a:7077,b:7078",
        ),
        ("sc://host", ConnectionKind.CONNECT, (("host", 15002),), "sc://host:15002"),
        ("sc://host:1/;token=secret", ConnectionKind.CONNECT, (("host", 1),), "sc://host:1"),
        ("sc://host;token=secret", ConnectionKind.CONNECT, (("host", 15002),), "sc://host:15002"),
        (
            "databricks://host/warehouse",
            ConnectionKind.DATABRICKS,
            (("host", 443),),
            "databricks://host:443",
        ),
    ],
)
def test_an_address_is_shown_without_its_secrets(
    address: str, kind: ConnectionKind, servers: tuple[tuple[str, int], ...], shown: str
) -> None:
    found = connection_of(address)
    assert (found.kind, found.servers, str(found)) == (kind, servers, shown)
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("path", "cluster"),
    [
        ("", None),
        ("/warehouse", None),
        ("/sql/1.0/warehouses/abc123", None),
        ("/0123-456789-abcdefgh", "0123-456789-abcdefgh"),
        ("/sql/protocolv1/o/0/0123-456789-abcdefgh", "0123-456789-abcdefgh"),
    ],
)
def test_databricks_runs_on_the_cluster_of_the_path_or_serverless(
    path: str, cluster: str | None
) -> None:
    assert connection_of(f"databricks://host{path}").cluster == cluster


@pytest.mark.parametrize(
    "address",
    ["", "x", "local[0]", "localhost:7077", "http://a", "sc://", "sc://user:secret@host",
     "spark://a:secret", "sc:///;token=secret", "sc://;token=secret"],
)  # fmt: skip
def test_an_invalid_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(RequestError) as error:
        connection_of(address)
    assert error.value.hint
    assert "secret" not in str(error.value)


def test_a_dataset_of_a_command_line_has_all_settings_decoded() -> None:
    found, problems = datasets_of_arguments(
        [
            "orders=s3://lake/a%3Fb%20c?format=csv&date_column=ds&filter=a %26 1 = 1"
            "&keys=id,line&masked=email&option.header=true&option.sep=%3B",
            "items=table:shop.items?version=3",
            "few=query:SELECT%20*%20FROM%20shop.items",
            "plain=a=b",
        ]
    )
    assert problems == []
    assert tuple(found.values()) == (
        DatasetRef(
            "orders",
            path="s3://lake/a?b c",
            format="csv",
            date_column="ds",
            filter="a & 1 = 1",
            options=(("header", "true"), ("sep", ";")),
            keys=("id", "line"),
            masked=("email",),
        ),
        DatasetRef("items", table="shop.items", version=3),
        DatasetRef("few", query="SELECT * FROM shop.items"),
        DatasetRef("plain", path="a=b"),
    )


def test_an_unsupported_reader_option_is_located() -> None:
    argument = "a=x.csv?option.sep=%3B&option.haeder=true"
    _, (problem,) = datasets_of_arguments([argument])
    assert "has the option 'haeder', which csv does not support" in problem.message
    assert (problem.help or "").startswith("did you mean 'header'?")
    at = slice(problem.span.column - 1, problem.span.end_column - 1)
    assert argument[at] == "option.haeder=true"
    (mistake,) = mistakes_in("a", {"path": "x", "options": {"versionAsOf": "0"}})
    assert (mistake.key, mistake.hint) == (
        "options",
        "write version=... next to the path or the table",
    )


def test_datasets_have_the_options_of_their_format_and_their_own_win(tmp_path: Path) -> None:
    settings(
        tmp_path,
        """
[datasets]
plain = "lake/plain.csv"
delta = "lake/delta"
few = { query = "SELECT 1 AS id" }
shop = { conn_id = "shop", table = "shop.orders", options = { queryTimeout = 9 } }

[datasets.own]
path = "lake/own.csv"
options = { delimiter = ",", Charset = "UTF-8" }

[reader.csv]
sep = ";"
encoding = "ISO-8859-1"
header = false
fs.s3a.endpoint = "http://lake"

[reader.json]
multiLine = true

[reader.jdbc]
fetchsize = 500
queryTimeout = 60
""",
    )
    found = read_settings(tmp_path / "dqx.toml")
    assert found.problems == ()
    given, _ = datasets_of_arguments(["typed=x.json", "odd=x?format=csv&option.sep=|"])
    read = found.as_read({**found.refs, **given})
    rest = {"header": "false", "fs.s3a.endpoint": "http://lake"}
    assert {name: dict(ref.options) for name, ref in read.items()} == {
        "plain": {"sep": ";", "encoding": "ISO-8859-1", **rest},
        "own": {"delimiter": ",", "Charset": "UTF-8", **rest},
        "delta": {},
        "few": {},
        "shop": {"queryTimeout": "9", "fetchsize": "500"},
        "typed": {"multiLine": "true"},
        "odd": {"sep": "|", "encoding": "ISO-8859-1", **rest},
    }
    for ref in read.values():
        check_ref(ref)


@pytest.mark.parametrize("place", ['[datasets]\norders = "lake/orders.csv"\n', ""])
def test_suites_and_contracts_read_with_the_options_of_the_format(
    tmp_path: Path, place: str
) -> None:
    settings(tmp_path, f'{place}[reader.csv]\nsep = ";"\nencoding = "UTF-16"\n')
    suite, contract = tmp_path / "s.dql", tmp_path / "orders.yaml"
    suite.write_text('suite "S" { check "C" on orders { assert num_rows() > 0 } }')
    contract.write_text(
        "dataContractSpecification: 1.2.1\nid: orders\ninfo: {title: O, version: 1.0.0}\n"
        "servers: {lake: {type: local, path: lake/orders.csv, format: csv, delimiter: '|'}}\n"
        "models: {orders: {fields: {id: {type: integer}}}}\n"
    )
    typed = () if place else ("orders=lake/orders.csv",)
    call = read_call(Options((suite,), datasets=typed), date(2024, 3, 2))
    assert not call.has_errors
    assert dict(call.requests[0].datasets[0].options) == {"sep": ";", "encoding": "UTF-16"}
    call = read_call(Options((contract,)), date(2024, 3, 2))
    assert not call.has_errors
    own = {"sep": ";" if place else "|"}
    assert dict(call.requests[0].datasets[0].options) == {**own, "encoding": "UTF-16"}


def test_options_that_a_contract_needs_win_over_those_of_the_format(tmp_path: Path) -> None:
    settings(
        tmp_path, '[datasets]\norders = "lake/o.parquet"\n[reader.parquet]\nmergeSchema = false\n'
    )
    contract = tmp_path / "orders.yaml"
    contract.write_text(
        "dataContractSpecification: 1.2.1\nid: orders\ninfo: {title: O, version: 1.0.0}\n"
        "models: {orders: {fields: {id: {type: integer}}}}\n"
    )
    call = read_call(Options((contract,)), date(2024, 3, 2))
    assert dict(call.requests[0].datasets[0].options) == {"mergeSchema": "true"}


def test_keys_are_found_in_tables_dotted_quoted_and_inline() -> None:
    text = '''a = 1
[ "b c" ] # x
d.e = """
a = 2
"""
f = { g = [1, 2], "h i" = "x, y" }
'''
    positions = Positions("f", text)
    lines = text.split("\n")

    def found(*path: str) -> tuple[str, str]:
        spans = (positions.key(*path), positions.value(*path))
        key, value = (lines[s.line - 1][s.column - 1 : s.end_column - 1] for s in spans)
        return key, value

    assert found("a") == ("a", "1")
    assert found("b c") == ('"b c"', '"b c"')
    assert found("b c", "d", "e") == ("d.e", '"""')
    assert found("b c", "f", "g") == ("g", "[1, 2]")
    assert found("b c", "f", "h i") == ('"h i"', '"x, y"')
    assert found("b c", "unknown") == ('"b c"', '"b c"')


def test_the_example_of_the_page_is_sound(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "dqx_airflow" / "docs" / "configuration.md"
    (example,) = re.findall(
        r"^```toml\n(\[connection.*?)^```$", page.read_text("utf-8"), re.M | re.S
    )
    found = settings(tmp_path, example)
    assert found.problems == ()
    assert str(found.connection) == "spark://spark.example.com:7077"
    assert found.refs["orders"].keys == ("id",)


def test_a_jvm_that_we_start_takes_its_archive_from_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "gate.jsa").touch()
    (tmp_path / "dqx.toml").write_text(
        '[connection]\njvm_archive = "gate.jsa"\n'
        '[connection.conf]\n"spark.driver.defaultJavaOptions" = "-Xss4m"\n'
    )
    settings = read_settings(tmp_path / "dqx.toml")
    assert not settings.problems
    options = settings.session["spark.driver.defaultJavaOptions"].split()
    assert options[0] == f"-XX:SharedArchiveFile={tmp_path}/gate.jsa"
    assert options[-1] == "-Xss4m"
    remote = replace(settings, connection=connection_of("sc://spark.example.com"))
    assert remote.session == {"spark.driver.defaultJavaOptions": "-Xss4m"}


def test_a_missing_archive_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "dqx.toml").write_text('[connection]\njvm_archive = "gate.jsa"\n')
    settings = read_settings(tmp_path / "dqx.toml")
    (problem,) = settings.problems
    assert problem.level is Level.WARNING
    assert problem.span.line == 2
    assert settings.session == {}


@pytest.mark.parametrize("given", ["", "-Xss4m", "-XX:SharedArchiveFile=/mine.jsa"])
def test_given_jvm_options_follow_the_archive(given: str) -> None:
    first, *more = with_archive(given, "/a.jsa").split()
    assert first == "-XX:SharedArchiveFile=/a.jsa"
    assert more[-1:] == [given or "-Xlog:cds+dynamic=off"]


def test_a_jvm_of_a_gate_compiles_late_by_default() -> None:
    ours = for_a_short_life({})[SUBMIT_OPTIONS]
    assert "-XX:Tier4InvocationThreshold=50000" in ours.split()
    # Spark puts these options before those of the driver, and of two values a JVM takes the last.
    merged = for_a_short_life({SUBMIT_OPTIONS: "-XX:TieredStopAtLevel=1"})
    assert merged == {SUBMIT_OPTIONS: f"{ours} -XX:TieredStopAtLevel=1"}
    assert for_a_short_life(merged) == {}


def test_the_archive_may_have_spaces_in_its_path() -> None:
    assert "-XX:SharedArchiveFile='/my lake/a.jsa'" in with_archive("", "/my lake/a.jsa")


ODD_VALUES = [
    *("1" * 330, "-1", "0", "1.5", "nan", "inf", "1e400", "true", "1979-05-27"),
    *('""', '" "', '"x"', f'"{"x" * 3000}"', r'"\u0000"', '"2024-99-99"', '"yesterday-1"'),
    *('"s3://"', '"://"', '"jdbc:"', '"http://[::1"', "[]", "[1]", "[[1]]", "{}", "{a = 1}"),
]


@pytest.mark.few(8, apart=True)
@pytest.mark.parametrize("value", ODD_VALUES)
def test_any_value_of_any_setting_is_valid_or_an_error_at_its_line(
    value: str, tmp_path: Path
) -> None:
    lines = FULL.replace("[datasets]", "max_clock_skew_hours = 24\n[datasets]").splitlines()
    for number, line in enumerate(lines):
        key, equals, _ = line.partition("=")
        if not equals:
            continue
        path = tmp_path / "dqx.toml"
        path.write_text("\n".join((*lines[:number], f"{key}= {value}", *lines[number + 1 :])))
        with suppress(RequestError):
            for name, dataset in read_settings(path).datasets.items():
                datasets_of_arguments({name: dataset})


@pytest.mark.parametrize(
    ("place", "is_same"),
    [
        ("lake/my orders", True),
        ("lake/./x/../my orders/part-0.parquet", True),
        ("link", True),
        ("lake", True),
        ("{folder}/lake/my orders/", True),
        ("file:{folder}/lake/my%20orders", True),
        ("FILE://localhost{folder}/lake/my%20orders", True),
        ("file://{folder}/lake/my%20orders/ds=1", True),
        ("lake/my%20orders", False),
        ("lake/my orders 2", False),
        ("s3a://Lake/orders", True),
        ("S3n://Lake/orders/ds=1", True),
        ("s3://lake/orders", False),
        ("gs://Lake/orders", False),
    ],
)
def test_a_dataset_keeps_what_is_masked_in_the_same_files_however_their_path_is_written(
    here: Path, place: str, is_same: bool
) -> None:
    (here / "lake" / "my orders").mkdir(parents=True)
    (here / "link").symlink_to(here / "lake" / "my orders")
    path = "s3://Lake/orders" if re.match("(s3.?|gs):", place, re.I) else "lake/my orders"
    (here / "dqx.toml").write_text(f'[datasets.orders]\npath = "{path}"\nmasked = ["name"]\n')
    ref = DatasetRef("copy", path=place.format(folder=here), masked=("email",))
    masked = read_settings(here / "dqx.toml").with_masks(ref).masked
    assert masked == (("email", "name") if is_same else ("email",))
