"""Checks of Airflow itself: its database, the Spark connection, our entry points; and whether a
gate can write its results, and its lineage events arrive.

Airflow is queried by its own command. Its output contains passwords, so it is parsed and never
displayed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import dqx_airflow
from dqx_airflow.cli.doctor_checks import finding
from dqx_airflow.cli.doctor_checks.finding import Answer, problem, warning
from dqx_airflow.errors import DqxError

TIMEOUT_S = 45.0
"""Airflow's command needs 2 s on a quiet machine."""

_MARK = "dqx settings: "
"""Airflow logs to the same output."""

REINSTALL = "pip install --force-reinstall --no-deps dqx-airflow"


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a subprocess. `code` is None if it did not end in time."""

    code: int | None
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The line with the message of a traceback."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].strip() if lines else "no output"


def database(env: Mapping[str, str] = os.environ) -> Answer:
    """Is there a metadata database with today's tables?"""
    if finding.installed_version("apache-airflow") is None:
        return not_checked()
    migrate = "airflow db migrate"
    if not is_set_up(env):
        return problem(
            f"no database yet: nothing is set up in AIRFLOW_HOME ({airflow_home(env)})",
            f"set AIRFLOW_HOME to the folder in use, or create a new database: {migrate}",
        )
    reply = _airflow(["db", "check-migrations", "--migration-wait-timeout", "0"], env)
    if reply.code == 0:
        return finding.ok(f"migrated (AIRFLOW_HOME is {airflow_home(env)})")
    if "unapplied migrations" in reply.err:
        return problem(f"not migrated (AIRFLOW_HOME is {airflow_home(env)})", migrate)
    if reply.code is None:
        return warning(f"no response within {TIMEOUT_S:g} s", "try it manually: airflow db check")
    return warning(
        f"unreachable: {reply.last_line}",
        "expected on a worker of Airflow 3; elsewhere check AIRFLOW_HOME and "
        "[database] sql_alchemy_conn",
    )


@dataclass(frozen=True, slots=True)
class ConnectionNeed:
    """The purpose of a connection: suitable types, an example, and the effect of its absence."""

    types: tuple[str, ...]
    host: str
    others: str
    missing: str
    without_host: str = ""
    complain: Callable[[str, str], Answer] = problem


SPARK_CONNECTION = ConnectionNeed(
    ("spark", "spark_connect", "sc"),
    "local[2]",
    " (or the master of your cluster)",
    "gates would silently run on master yarn",
    "without a host the master is yarn: set one, such as local[2] or spark://master",
)
RESULTS_CONNECTION = ConnectionNeed(
    ("dqx",),
    "s3://BUCKET/FOLDER",
    "",
    "gates have no results store",
    "write the results root into its host, such as s3://BUCKET/FOLDER",
)


def gate_settings(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of gates about their results in section `[dqx]` of Airflow's configuration."""
    names = ("results_conn_id", "results_root")
    variables = {name: env.get(f"AIRFLOW__DQX__{name.upper()}") for name in names}
    if finding.installed_version("apache-airflow") is None or not is_set_up(env):
        return {name: value for name, value in variables.items() if value}
    program = (
        "import json; from airflow.configuration import conf; "
        f"found = {{name: conf.get('dqx', name, fallback=None) for name in {names!r}}}; "
        f"print({_MARK!r} + json.dumps(found))"
    )
    reply = ask([sys.executable, "-c", program], env)
    answers = [line for line in reply.out.splitlines() if line.startswith(_MARK)]
    # Variables also count if Airflow does not respond in time.
    settings = json.loads(answers[-1].removeprefix(_MARK)) if answers else variables
    return {name: value for name, value in settings.items() if value}


def connection(
    conn_id: str, env: Mapping[str, str] = os.environ, kind: ConnectionNeed = SPARK_CONNECTION
) -> Answer:
    """Does the connection exist? SparkSubmitOperator takes master `yarn` for an unknown one."""
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    if value := env.get(variable):
        described = parse_connection(value)
        if described is None:
            return problem(
                f"{variable} is neither JSON nor a URI",
                f"""{variable}='{{"conn_type": "{kind.types[0]}", "host": "{kind.host}"}}'""",
            )
        return _judge_connection(described, f"from {variable}", kind)
    if finding.installed_version("apache-airflow") is None:
        return not_checked()
    host = f" --conn-host '{kind.host}'{kind.others}" if kind.host else ""
    add = f"airflow connections add {conn_id} --conn-type {kind.types[0]}{host}"
    missing = f"connection {conn_id!r} does not exist: {kind.missing}"
    if not is_set_up(env):
        return kind.complain(missing, f"airflow db migrate, then {add}")
    reply = _airflow(["connections", "get", conn_id, "-o", "json"], env)
    listed = listed_connection(reply.out, conn_id)
    if listed is not None:
        return _judge_connection(listed, "from Airflow", kind)
    # Airflow reports the same if its database lacks the tables.
    if "not found" in (reply.out + reply.err).lower():
        return kind.complain(missing, add)
    cause = f"no response within {TIMEOUT_S:g} s" if reply.code is None else reply.last_line
    return warning(
        f"Airflow could not look it up: {cause}",
        f"try it manually: airflow connections get {conn_id}",
    )


@dataclass(frozen=True, slots=True)
class ConnectionSummary:
    """The harmless part of a connection."""

    conn_type: str
    host: str


def parse_connection(value: str) -> ConnectionSummary | None:
    """The harmless part of an AIRFLOW_CONN_ variable, JSON or URI; None for neither."""
    if value.lstrip().startswith("{"):
        try:
            return _summary(json.loads(value))
        except ValueError:
            return None
    try:
        parts = urlsplit(value)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # such as an unclosed bracket in the host
        return None
    conn_type = parts.scheme.replace("-", "_")  # as Airflow reads it: a scheme may not hold `_`
    return ConnectionSummary(conn_type, unquote(host)) if conn_type else None


def listed_connection(out: str, conn_id: str) -> ConnectionSummary | None:
    """The connection in the output of `airflow connections get -o json`, among other lines."""
    decoder = json.JSONDecoder()
    for start in (bracket.start() for bracket in re.finditer(r"\[", out)):
        try:
            rows, _ = decoder.raw_decode(out, start)
        except ValueError:
            continue
        for row in rows:
            if isinstance(row, dict) and row.get("conn_id") == conn_id:
                return _summary(row)
    return None


def _summary(fields: dict[str, Any]) -> ConnectionSummary:
    host = str(fields.get("host") or "")
    if port := fields.get("port"):
        host = f"{host}:{port}"
    # Airflow accepts a whole URL as host; what stands before an @ is a credential.
    return ConnectionSummary(str(fields.get("conn_type") or ""), re.sub(r"[^/]*@", "", host))


def _judge_connection(summary: ConnectionSummary, origin: str, kind: ConnectionNeed) -> Answer:
    described = f"type {summary.conn_type or 'unknown'}, host {summary.host or 'none'} ({origin})"
    if summary.conn_type not in kind.types:
        return warning(described, f"its type should be {' or '.join(kind.types[:2])}")
    if not summary.host and kind.without_host:
        return warning(described, kind.without_host)
    return finding.ok(described)


def airflow_home(env: Mapping[str, str] = os.environ) -> Path:
    return Path(env.get("AIRFLOW_HOME") or "~/airflow").expanduser()


def is_set_up(env: Mapping[str, str] = os.environ) -> bool:
    """Whether Airflow was configured here. Querying it otherwise would create a home for it."""
    if any(re.match(r"AIRFLOW__(DATABASE|CORE)__SQL_ALCHEMY_CONN", name) for name in env):
        return True
    config = Path(env.get("AIRFLOW_CONFIG") or airflow_home(env) / "airflow.cfg").expanduser()
    return config.is_file() or (airflow_home(env) / "airflow.db").is_file()


def not_checked() -> Answer:
    return warning(
        "not checked: Airflow is not in this Python environment",
        "run dql doctor in the environment of the Airflow worker",
    )


def entry_points(env: Mapping[str, str] = os.environ) -> Answer:
    """Are provider and plugin registered with Airflow, and do they import?"""
    registered = tuple(metadata.distribution(finding.DISTRIBUTION).entry_points)
    providers = [point for point in registered if point.group == "apache_airflow_provider"]
    plugins = [point for point in registered if point.group == "airflow.plugins"]
    if not providers:
        return problem("the installed package registers no Airflow provider", REINSTALL)
    for point in providers:
        try:
            info = point.load()()
        except Exception as error:
            return problem(f"provider {point.value}: {type(error).__name__}: {error}", REINSTALL)
        if info.get("package-name") != finding.DISTRIBUTION:
            return problem(
                f"provider {point.value} belongs to another package: {info.get('name')}", REINSTALL
            )
    provider = "provider " + ", ".join(point.value for point in providers)
    if not plugins:
        return finding.ok(f"{provider}; no plugin is registered")
    plugin_names = ", ".join(point.value for point in plugins)
    if finding.installed_version("apache-airflow") is None:
        return finding.ok(
            f"{provider}; plugin {plugin_names}, not loaded, since Airflow is not installed here"
        )
    reply = load_apart(plugins, env)
    if reply.code is None:
        return warning(
            f"{provider}; plugin {plugin_names} was not loaded within {TIMEOUT_S:g} s",
            "run dql doctor again when the machine is less busy",
        )
    if reply.code != 0:
        cause = reply.last_line
        return problem(f"{provider}; plugin {plugin_names} does not load: {cause}", REINSTALL)
    return finding.ok(f"{provider}; plugin {plugin_names}")


def load_apart(points: list[metadata.EntryPoint], env: Mapping[str, str]) -> Reply:
    """Loads entry points that import Airflow, in a separate process.

    It gets an AIRFLOW_HOME of its own, since importing Airflow writes into it.
    """
    program = "; ".join(
        f"EntryPoint(name={point.name!r}, value={point.value!r}, group={point.group!r}).load()"
        for point in points
    )
    with tempfile.TemporaryDirectory(prefix="dqx-doctor-") as home:
        return ask(
            [sys.executable, "-c", f"from importlib.metadata import EntryPoint; {program}"],
            {**env, "AIRFLOW_HOME": home},
        )


def _airflow(arguments: list[str], env: Mapping[str, str]) -> Reply:
    own_airflow = Path(sys.executable).with_name("airflow")
    program = (
        str(own_airflow) if own_airflow.is_file() else shutil.which("airflow", path=env.get("PATH"))
    )
    start = [program] if program else [sys.executable, "-m", "airflow"]
    return ask([*start, *arguments], env)


def ask(
    command: list[str],
    env: Mapping[str, str],
    timeout_s: float = TIMEOUT_S,
    folder: Path | None = None,
) -> Reply:
    """Runs a command to its end, without a terminal."""
    try:
        done = subprocess.run(  # noqa: S603 (Airflow and this Python)
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout_s,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Reply(None, "", "")
    return Reply(done.returncode, done.stdout, done.stderr)


def webhooks(env: Mapping[str, str] = os.environ) -> Answer:
    """Can events be delivered over the connections in `webhook_conn_id`?"""
    if finding.installed_version("apache-airflow") is None or not is_set_up(env):
        return finding.ok("not checked: Airflow is not set up here")
    program = (
        "import json; from dqx_airflow.operators.webhooks import webhook_mistakes; "
        f"print({_MARK!r} + json.dumps(webhook_mistakes()))"
    )
    reply = ask([sys.executable, "-c", program], env)
    answers = [line for line in reply.out.splitlines() if line.startswith(_MARK)]
    if not answers:
        cause = f"no response within {TIMEOUT_S:g} s" if reply.code is None else reply.last_line
        return warning(f"Airflow could not be asked: {cause}", "run dql doctor again on a worker")
    mistakes: dict[str, str | None] = json.loads(answers[-1].removeprefix(_MARK))
    if not mistakes:
        return finding.ok("none: webhook_conn_id in section [dqx] is not set")
    wrong = [f"{conn_id}: {mistake}" for conn_id, mistake in mistakes.items() if mistake]
    if wrong:
        return problem("; ".join(wrong), "gates lose their events until the connection is mended")
    return finding.ok(", ".join(mistakes))


def results_store(given: str | None, env: Mapping[str, str] = os.environ) -> Answer:
    """Can the results be written where gates write them?

    :param given: the root on the command line; by default the root of the gates in Airflow.
    """
    root = given
    if root is None:
        settings = gate_settings(env)
        if conn_id := settings.get("results_conn_id"):
            return connection(conn_id, env, RESULTS_CONNECTION)
        root = settings.get("results_root")
    if not root:
        root_of_commands = env.get("DQX_RESULTS_ROOT")
        meant = (
            f", such as {root_of_commands}, which DQX_RESULTS_ROOT names for the command line"
            if root_of_commands
            else ""
        )
        return warning(
            "no default results root: each gate needs the argument results_root",
            f"set AIRFLOW__DQX__RESULTS_ROOT to a path or URI{meant}",
        )
    from dqx_airflow.results.store import ResultsStore
    from dqx_airflow.values.json_form import storage_options_of

    try:
        ResultsStore(root, storage_options_of(env)).check_writable()
        outlived = _outlived_proofs(root, env)
    except DqxError as error:
        return problem(error.problem, error.hint or "choose a root that this user may write to")
    if outlived is not None:
        again = f"dql doctor --prove --connection ... --results-root {root}"
        return warning(f"{root} is writable; {outlived}", again)
    return finding.ok(f"{root} is writable")


def _outlived_proofs(root: str, env: Mapping[str, str]) -> str | None:
    """The engines that have to be proven again; None if there are none.

    :raises StoreError: the store cannot be read.
    """
    from dqx_airflow.results.proofs import gates_not_proven, read_proofs
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.values.json_form import storage_options_of

    results = StoredResults(root, storage_options_of(env))
    proven: dict[str, tuple[str, str]] = {}
    for proof in read_proofs(results):
        engine = json.loads(proof.engine or "{}")
        version = str(engine.pop("dqx_airflow", None))
        engine.pop("cases", None)
        engine_text = f"Spark {proof.spark_version} was proven for dqx_airflow {version}"
        proven.setdefault(json.dumps(engine, sort_keys=True), (version, engine_text))
    outlived = [text for version, text in proven.values() if version != dqx_airflow.__version__]
    outlived += [f"{gate}: {mark}" for gate, mark in gates_not_proven(results).items()]
    if not outlived:
        return None
    rest = f"; and {len(outlived) - 3} more" if len(outlived) > 3 else ""
    return "; ".join(dict.fromkeys(outlived[:3])) + rest


def lineage() -> Answer:
    """Is OpenLineage configured, and does its server respond? An outage never fails a gate."""
    from dqx_airflow.lineage.emitter import LineageEmitter

    with LineageEmitter() as emitter:
        lineage_check = emitter.check()
    if not lineage_check.ok:
        return warning(
            lineage_check.line,
            "gates run without it and keep their events; check OPENLINEAGE_URL, "
            "OPENLINEAGE__TRANSPORT or openlineage.yml",
        )
    is_default = "no OpenLineage transport is configured" in lineage_check.line
    return finding.ok(
        lineage_check.line, "set OPENLINEAGE_URL to send them to a server" if is_default else ""
    )
