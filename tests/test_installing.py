"""The install recipes of the docs, and the remedies that messages print: pip resolves them."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from dqx_airflow.cli.doctor_checks.finding import in_order, wanted_range
from dqx_airflow.cli.doctor_checks.services import services
from dqx_airflow.cli.doctor_checks.spark import PysparkInstall, judge_pyspark
from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_versions import (
    equal_pins,
    installed_mixture,
    require_pair,
    require_supported,
)
from dqx_airflow.errors import SparkError
from tests.processes import output_of

PROVIDERS = ("apache-spark", "openlineage")

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "dqx_airflow" / "docs").rglob("*.md")))


def _of_pages() -> list[str]:
    commands = []
    for page in PAGES:
        text = re.sub(r"\$DQX_WHEEL", "dqx-airflow", page.read_text("utf-8"))
        for found in re.findall(r"pip install [^`\n|&]+", text):
            words = found.split(" #")[0].strip().strip(")")
            if "requirements.lock" not in words and not re.search(r"[A-Z]{4}|\.whl|\.\.", words):
                commands.append(words)
    return commands


def _refused(server: str, client: str) -> str:
    with pytest.raises(SparkError) as raised:
        require_pair(server, client, "sc://lake")
    return str(raised.value.hint)


def _of_messages() -> list[str]:
    with pytest.raises(SparkError) as too_old:
        require_supported("3.3.2")
    mixed = (
        PysparkInstall(pyspark="4.3.0", client="4.2.0", source="4.3.0", jars=("4.3.0",)),
        PysparkInstall(pyspark="4.0.5", client="4.0.4", source="4.0.5", jars=("4.0.5",)),
        PysparkInstall(pyspark="4.1.4", source="4.1.4"),
        PysparkInstall(pyspark="3.5.9", client="4.2.0", source="4.2.0", jars=("3.5.9",)),
        PysparkInstall(client="4.2.0", databricks="16.1.7", source="3.5.2"),
        PysparkInstall(pyspark="3.4.1", source="3.4.1", jars=("3.4.1",)),
        PysparkInstall(client="4.1.3", source="4.1.3"),
        PysparkInstall(),
    )
    return [
        str(too_old.value.hint),
        *(judge_pyspark(install, None)[2] for install in mixed),
        *(equal_pins(version) for version in ("3.5.9", "4.0.5", "4.1.4", "4.2.0", "4.3.0")),
        _refused("3.5.9", "4.2.0"),
        _refused("4.2.0", "3.5.9"),
        spark_versions.connect_packages(),
        spark_versions.CLIENT_OF_3,
    ]


@cache
def _of_literals() -> tuple[str, ...]:
    """The commands that the code of the package writes out."""
    commands: list[str] = []
    for file in sorted((ROOT / "dqx_airflow").rglob("*.py")):
        text = file.read_text("utf-8")
        if "pip install" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        parts = {id(part) for node in nodes for part in getattr(node, "values", ())}
        for node in nodes:
            if isinstance(node, ast.Constant) and id(node) not in parts:
                commands += re.findall(r"pip install [^`\n|&]+", str(node.value))
    return tuple(commands)


def _of_extras() -> list[str]:
    """Each extra by itself, and what `dql doctor` says where a provider is missing."""
    found = metadata.metadata("dqx-airflow")
    extras = found.get_all("Provides-Extra") or []
    providers = (f"apache-airflow-providers-{each.provider}" for each in services().values())
    return [
        *(f"pip install 'dqx-airflow[{extra}]'" for extra in extras if extra != "dev"),
        *(f"pip install '{name}{in_order(wanted_range(name))}'" for name in providers),
    ]


def _requirements(command: str) -> list[str]:
    """What the command asks for; our own package is this checkout."""
    words = shlex.split(command.partition("pip install ")[2].partition(", ")[0])
    wanted = [word for word in words if not word.startswith("-")]
    return [
        re.sub(r"^dqx-airflow(\[[^]]*\])?(==.+)?$", rf"dqx-airflow\1 @ {ROOT.as_uri()}", word)
        for word in wanted
    ]


@pytest.mark.slow
def test_every_remedy_is_a_command_of_pip() -> None:
    for remedy in (*_of_messages(), *_of_literals(), *_of_extras()):
        for wanted in map(Requirement, _requirements(remedy)):
            assert wanted.name, remedy
    assert len(_of_pages()) > 5
    assert len(_of_literals()) > 10


def _packages_of(extra: str) -> set[str]:
    """The packages that an extra requires, itself or through other extras of ours."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    wanted: set[str] = set()
    for requirement in map(Requirement, extras[extra]):
        if requirement.name == "dqx-airflow":
            wanted = wanted.union(*map(_packages_of, requirement.extras))
        else:
            wanted.add(requirement.name)
    return wanted


@pytest.mark.parametrize("extra", ["amazon", "databricks", "google", "kubernetes", "livy", "local"])
def test_the_extra_of_a_worker_brings_all_that_a_dag_file_imports(extra: str) -> None:
    operators = {"apache-airflow", *(f"apache-airflow-providers-{name}" for name in PROVIDERS)}
    assert operators <= _packages_of(extra)


def test_a_mixture_is_told_with_every_owner_of_the_folder() -> None:
    assert installed_mixture({"pyspark": "4.2.0", "pyspark-client": "4.2.0"}) is None
    assert installed_mixture({"pyspark": "3.5.9"}) is None
    found = installed_mixture({"pyspark-client": "4.2.0", "databricks-connect": "16.1.7"})
    assert found is not None
    assert found[0] == "mixed versions: pyspark-client 4.2.0, databricks-connect 16.1.7"


@pytest.mark.nightly  # a second of CPU time each, and the package index
@pytest.mark.parametrize(
    "command", sorted({*_of_pages(), *_of_messages(), *_of_literals(), *_of_extras()})
)
def test_pip_resolves_what_docs_and_messages_say(command: str) -> None:
    """Of `pyspark` and `pyspark-client`, if both are wanted, it resolves the same version."""
    printed = output_of(
        [sys.executable, "-m", "uv", "pip", "compile", "-q", "--python-version", "3.12", "-"],
        input="\n".join(_requirements(command)),
    )
    versions = dict(re.findall(r"^(pyspark|pyspark-client)==(\S+)", printed, re.M))
    assert len(set(versions.values())) < 2, versions
