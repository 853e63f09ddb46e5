"""Is there what the gates of a DAG file need to run on a service: the provider, the connection, the
program, a Spark that gates run on, a results root that both sides know?

Airflow reads the DAG file in a process of its own. Nothing is submitted.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dqx_airflow import __version__
from dqx_airflow.cli.doctor_checks import airflow, finding
from dqx_airflow.engine.session.spark_versions import SUPPORTED
from dqx_airflow.errors import RequestError, first_line

_TIMEOUT_S = 120.0
_RAISED = re.compile(r"^(?:\w+\.)*(\w+: .*)", re.M)
_OBJECT_STORE = re.compile(r"(s3a?|gs|az|azure|abfss?|adl)://")
_PACKAGE = re.compile(
    r"[^\s,\"']*dqx_airflow-(?P<wheel>[\d.\w]+)-[^\s,\"']*\.whl|dqx-airflow==(?P<pin>[\d.\w]+)"
)
"""The wheel of this package at an address, or its name and version for an index."""
_READ = """
import json, sys
from dataclasses import asdict
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # Airflow before 3.2
    from airflow.models.dagbag import DagBag
bag = DagBag(sys.argv[1])
for cause in bag.import_errors.values():
    sys.exit(cause)
for task in [task for dag in bag.dags.values() for task in dag.tasks]:
    given = getattr(task, "partial_kwargs", None) or vars(task)
    if (submit := given.get("submit")) is not None:
        roots = {name: given.get(name) for name in ("results_root", "results_conn_id")}
        names = {"name": f"{task.dag_id}.{task.task_id}", "kind": type(submit).__name__}
        print("dqx gate: " + json.dumps({**names, **roots, "fields": asdict(submit)}))
"""


@dataclass(frozen=True, slots=True)
class Service:
    """The requirements of a submitter: the columns of `services.txt`."""

    provider: str
    conn_type: str
    host: str
    program: str = ""
    runtime: str = ""
    too_old: str = ""
    oldest: str = ""


def services() -> dict[str, Service]:
    """The services by the names of their submitters."""
    lines = Path(__file__).with_name("services.txt").read_text("utf-8").splitlines()
    rows = (line.split(" | ") for line in lines if line and not line.startswith("#"))
    return {name: Service(*cells) for name, *cells in rows}


def service_checks(dag_file: Path, root: str | None = None) -> dict[str, finding.Check]:
    """The checks of all gates in a DAG file whose `submit` is a service.

    :param root: the results root of gates without their own; by default Airflow's setting.
    :raises RequestError: Airflow cannot read the file, or none of its gates runs on a service.
    """
    reply = airflow.ask([sys.executable, "-c", _READ, str(dag_file)], os.environ, _TIMEOUT_S)
    if reply.code != 0:
        *_, cause = [reply.last_line, *_RAISED.findall(reply.err)]
        hint = f"correct what `{sys.executable} {dag_file}` shows"
        raise RequestError(f"Airflow cannot read {dag_file}: {cause}", hint)
    lines = [line.partition("dqx gate: ")[2] for line in reply.out.splitlines()]
    gates = [json.loads(line) for line in lines if line]
    if not gates:
        hint = "`dql doctor` alone checks what other gates need"
        raise RequestError(f"no gate in {dag_file} has the argument submit", hint)
    named = ((f"{gate['name']}: ", _checks(gate, root)) for gate in gates)
    return {f"{name}{what}": check for name, checks in named for what, check in checks}


def _checks(gate: Mapping[str, Any], root: str | None) -> Iterator[tuple[str, finding.Check]]:
    if (service := services().get(gate["kind"])) is not None:
        fields = gate["fields"]
        conn_id = next(value for name, value in fields.items() if name.endswith("_conn_id"))
        package = f"apache-airflow-providers-{service.provider}"
        yield "provider", partial(finding.installed, package)
        yield f"connection {conn_id}", partial(connection, conn_id, service)
        yield "program", partial(program, field_at(fields, service.program))
        yield "package", partial(package_there, gate["kind"], fields)
        yield "Spark", partial(spark, field_at(fields, service.runtime), service)
    need = airflow.RESULTS_CONNECTION
    if (root_id := gate["results_conn_id"]) and not gate["results_root"]:
        yield "results root", partial(airflow.connection, root_id, kind=need)
    else:
        yield "results root", partial(results_root, gate["results_root"] or root)


def field_at(fields: Any, path: str) -> str | None:
    """The text at a path of keys in the fields of a submitter, if there is one."""
    for key in path.split():
        fields = fields.get(key) if isinstance(fields, Mapping) else None
    return fields if isinstance(fields, str) else None


def connection(conn_id: str, service: Service) -> finding.Answer:
    """Does the connection exist, with the type of the provider?"""
    is_optional = service.host == "optional"
    host = service.host if "://" in service.host else ""
    need = airflow.ConnectionNeed(
        (service.conn_type,),
        host,
        "",
        "the provider uses the credentials of this machine" if is_optional else "no job can start",
        f"write the address of the service into its host, such as {host}" if host else "",
        finding.warning if is_optional else finding.problem,
    )
    return airflow.connection(conn_id, kind=need)


def program(address: str | None) -> finding.Answer:
    """Is `gate_job.py` where the submitter says, as far as this machine can see?"""
    if address is None or not _OBJECT_STORE.match(address):
        where = address or "a wheel, or the script of a job there"
        return finding.ok(f"{where}: only the service can read it")
    remedy = f"dql package --output dqx-airflow.zip, and copy gate_job.py to {address}"
    return _in_store(address, remedy)


def package_there(kind: str, fields: Any) -> finding.Answer:
    """Does the submitter name this package in the version of this machine, and is its wheel there,
    as far as this machine can see?

    :param fields: the fields of the submitter.
    """
    named = list(_packages_in(fields))
    for text, version in named:
        if version != __version__:
            found = f"{text} is version {version}, and this machine has {__version__}"
            return finding.problem(found, "name the same version on both sides")
    wheels = [text for text, _ in named if text.endswith(".whl")]
    for wheel in filter(_OBJECT_STORE.match, wheels):
        answer = _in_store(wheel, f"uv build --wheel, and copy it from dist/ to {wheel}")
        if answer[0] is not finding.FindingLevel.OK:
            return answer
    if wheels:
        return finding.ok(f"{', '.join(wheels)}: only the service can read it")
    needs_index = [text for text, _ in named]
    if not named and kind == "DatabricksRuns" and "spark_python_task" not in fields["task"]:
        is_given = {"libraries", "environment_key"} & fields["task"].keys()
        needs_index = [] if is_given else [f"dqx-airflow=={__version__}"]
    if needs_index:
        found = f"the service installs {needs_index[0]} from its index, which may not have it"
        return finding.warning(found, "uv build --wheel, upload it, and name the wheel instead")
    return finding.ok("installed there already, or by what only the service knows")


def _packages_in(fields: Any) -> Iterator[tuple[str, str]]:
    """Each text in the fields that names this package with a version, and the version."""
    match fields:
        case str():
            for found in _PACKAGE.finditer(fields):
                yield found[0], found["wheel"] or found["pin"]
        case Mapping():
            for value in fields.values():
                yield from _packages_in(value)
        case list() | tuple():
            for value in fields:
                yield from _packages_in(value)


def _in_store(address: str, remedy: str) -> finding.Answer:
    """Is a file in an object store, as far as this machine can see?"""
    from dqx_airflow.datasets.delta_log import table_files
    from dqx_airflow.values.json_form import storage_options_of

    folder, _, name = address.rpartition("/")
    try:
        files = table_files(folder, storage_options_of(os.environ))
        is_there = files.get_file_info(name).is_file
    except Exception as error:
        cause = f"{address} cannot be read from here: {first_line(error)}"
        return finding.warning(cause, "set DQX_RESULTS_STORAGE, if this machine should reach it")
    if is_there:
        return finding.ok(address)
    return finding.problem(f"{address} does not exist", remedy)


def spark(runtime: str | None, service: Service) -> finding.Answer:
    """Has the runtime that the submitter names a Spark that gates run on?"""
    if runtime and re.match(service.too_old, runtime):
        found = f"{runtime} has an older Spark; gates run on {SUPPORTED}"
        return finding.problem(found, f"name {service.oldest} or newer")
    return finding.ok(runtime or f"the version of the service; gates run on {SUPPORTED}")


def results_root(root: str | None) -> finding.Answer:
    """Can this machine write the results root, and a service know it by the same text?"""
    level, found, remedy = airflow.results_store(root)
    if level is finding.FindingLevel.OK and "://" not in found:
        found = f"{found} here, and by a service only if it mounts the same folder there"
        return finding.warning(found, "a root in an object store, such as s3://BUCKET/FOLDER")
    return level, found, remedy
