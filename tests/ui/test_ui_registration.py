"""How Airflow finds the pages, and what that costs processes that show none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.processes import output_of

pytestmark = pytest.mark.airflow


ADDED = """
import sys
import airflow.sdk
from airflow.providers.common.compat.sdk import AirflowPlugin, BaseOperatorLink, conf
before = set(sys.modules)
import dqx_airflow.ui
print("modules:", *set(sys.modules) - before)
"""


@pytest.mark.nightly
def test_a_worker_pays_next_to_nothing_for_the_plugin(api_settings: Mapping[str, str]) -> None:
    run = [sys.executable, "-c", ADDED]
    environment = {**os.environ, **api_settings}
    printed = output_of(run, env=environment)
    added = set(printed.rpartition("modules:")[2].split())
    # Airflow has loaded the first two if it has asked for the metadata of the package.
    assert added - {"dqx_airflow", "dqx_airflow.operators"} == {
        "dqx_airflow.operators.links",
        "dqx_airflow.ui",
    }


def test_airflow_knows_the_pages_by_the_entry_point(api_server: Any) -> None:
    from airflow import plugins_manager

    (ours,) = [plugin for plugin in plugins_manager.get_plugin_info() if plugin["name"] == "dqx"]
    assert [view["destination"] for view in ours["external_views"]] == ["task_instance", "nav"]
    assert [app["url_prefix"] for app in ours["fastapi_apps"]] == ["/dqx"]
    assert "dqx_airflow.ui:DqxPlugin" in str(ours["source"])


def test_the_tab_and_the_link_meet_at_one_address(api_environment: None) -> None:
    from dqx_airflow.operators.links import TAB_ROUTE
    from dqx_airflow.ui import DqxPlugin

    tab, board = DqxPlugin.external_views
    assert tab["url_route"] == TAB_ROUTE
    assert "map_index={MAP_INDEX}" in tab["href"]
    assert not tab["href"].startswith("/"), "Airflow may live below a path of its host"
    assert not board["href"].startswith("/")


def test_the_provider_names_the_link_and_the_section_of_the_configuration(api_server: Any) -> None:
    from airflow.providers_manager import ProvidersManager

    from dqx_airflow import get_provider_info

    manager = ProvidersManager()
    assert "dqx_airflow.operators.links.GateReportLink" in manager.extra_links_class_names
    assert "results_root" in get_provider_info()["config"]["dqx"]["options"]
    assert "plugins" not in get_provider_info(), "the entry point registers it: not twice"


CONTRACTS = Path(__file__).parents[1] / "contracts" / "examples"


@pytest.mark.more
def test_the_dag_processor_has_imported_what_gates_need_before_it_forks(
    api_settings: Mapping[str, str],
) -> None:
    program = """
import sys
sys.argv[1:] = ["dag-processor"]
import dqx_airflow.ui
needed = "dql.syntax.parser", "contracts.read", "contracts.compile.suite", "operators.parse_check"
missing = [name for name in needed if f"dqx_airflow.{name}" not in sys.modules]

import lark.lexer
from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile
make = lark.lexer.Scanner
lark.lexer.Scanner = lambda *given: missing.append("a scanner") or make(*given)
before = set(sys.modules)
checked = check_source(SourceFile("orders.dql", sys.stdin.read()))

from dqx_airflow.contracts.read import read_contract
for path in CONTRACTS:
    contract = read_contract(SourceFile(path, open(path).read()))
    assert contract.contract is not None, path
missing += [name for name in sys.modules if name not in before]
print(missing, [found.code for found in checked.errors])
"""
    contracts = [*CONTRACTS.glob("*/*.yaml")]
    assert {file.parent.name for file in contracts} >= {"odcs", "fabric", "product", "dcs"}
    program = program.replace("CONTRACTS", repr([str(file) for file in contracts]))
    suite = """suite "Orders" {
    const MOST = 5
    check "All" on orders where country in ["CH", "DE"] {
        @required
        assert null_count(id) / num_rows() < 2% for each country name "orders.id" severity P0
        assert each row: amount <= MOST
    }
    check "SQL" on orders {
        assert query("SELECT count(*) FROM orders WHERE amount < 0") == 0 name "orders.negative"
    }
}"""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **api_settings}
    printed = output_of(command, input=suite, env=environment)
    assert printed.splitlines()[-1] == "[] []"
