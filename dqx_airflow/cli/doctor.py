"""`dql doctor`: whether this machine can run gates, and how to fix it if not."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli.command import TextFormatOption, TextOrJson, of_spark
from dqx_airflow.cli.stores import known_root

if TYPE_CHECKING:
    from dqx_airflow.cli.doctor_checks.finding import Check, Finding


Installation: TypeAlias = Literal["worker", "driver", "local", "sail", "connect"]


def doctor(
    connection: str | None = None,
    installation: Annotated[Installation, typer.Option("--for")] = "local",
    results_root: Annotated[
        str | None, typer.Option("--results-root", "-R", metavar="ROOT")
    ] = None,
    prove: Annotated[bool, typer.Option("--prove")] = False,
    folder: Annotated[Path | None, typer.Option(exists=True, file_okay=False)] = None,
    submit: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
    format: TextFormatOption = "text",
) -> None:
    """Check Python, Spark, Java, Airflow, the results store and lineage.

    Prints the findings and how to fix them. Exit code 1 if there is a problem with this kind of
    installation.

    :param connection: The Airflow connection that gates use for Spark; default: spark_default. With
        --prove an address, as for dql run.
    :param installation: The kind of installation: an Airflow worker whose gates run on a cluster, a
        service or a server; the driver of a cluster; Airflow with a local Spark; Sail; or a client
        of a Spark Connect server.
    :param results_root: The root of the results store; default: the setting of
        gates in the Airflow configuration; with --prove as for all commands.
    :param prove: Run the conformance cases on the Spark of --connection, show what differs, and
        store the result in the results root. Exit code 1 if a value differs.
    :param folder: With --prove: a folder that this machine and Spark both see, for the cases of
        files.
    :param submit: Check only what those gates of this DAG file need that run on a service.
    """
    import logging

    # Logs of the checked parts are in the findings; here they would interrupt the output.
    logging.getLogger().addHandler(logging.NullHandler())
    if prove:
        raise typer.Exit(0 if _prove(connection, results_root, folder, format) else 1)
    from dqx_airflow.cli.doctor_checks.finding import FindingLevel, examine

    if submit is None:
        name = connection or "spark_default"
        checks = checks_of(installation, name, results_root, os.environ)
    else:
        from dqx_airflow.cli.doctor_checks.services import service_checks

        checks = service_checks(submit, results_root)
    from rich.console import Console

    # Progress is for terminals: with a pipe on either side there are none.
    progress = Console(stderr=True)
    is_shown = format == "text" and progress.is_terminal and sys.stdout.isatty()
    status = progress.status("Checking Python, Spark, Java and Airflow")
    with status if is_shown else nullcontext():
        findings = examine(checks)
    if format == "json":
        typer.echo(as_json(findings))
    else:
        print_findings(findings)
    if any(finding.level is FindingLevel.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _prove(
    connection: str | None, results_root: str | None, folder: Path | None, format: TextOrJson
) -> bool:
    """Proves the engine; returns whether it has the expected value in every case."""
    prove_engine = of_spark("dqx_airflow.cli.doctor_checks.prove").prove_engine
    root = known_root(results_root)
    return bool(prove_engine(connection, root, folder, as_json=format == "json"))


def checks_of(
    installation: Installation, connection: str, results_root: str | None, env: Mapping[str, str]
) -> dict[str, Check]:
    """The checks of a kind of installation in the order of their display: prerequisites first."""
    from dqx_airflow.cli.doctor_checks import airflow, finding, packages, spark

    checks: dict[str, Check] = {"Python": finding.python_version, "packages": packages.importable}
    match installation:
        case "local":
            checks["pyspark"] = partial(spark.pyspark_coherent, env=env)
            checks["spark-submit"] = partial(spark.spark_submit, env=env)
            checks["Java"] = partial(spark.java, env)
            checks |= _airflow_checks(connection, env)
        case "worker":
            checks["pyspark"] = partial(spark.pyspark_coherent, env=env, needs_jars=False)
            if spark.find_submit(env) is not None:
                checks["spark-submit"] = partial(spark.spark_submit, env=env)
                checks["Java"] = partial(spark.java, env)
            checks |= _airflow_checks(connection, env)
        case "driver":
            checks["pyspark"] = partial(spark.pyspark_coherent, env=env)
            checks["Java"] = partial(spark.java, env)
        case "sail":
            checks["Sail"] = partial(finding.installed, "pysail")
            checks["pyspark"] = partial(spark.pyspark_coherent, env=env, needs_jars=False)
        case "connect":
            checks["pyspark"] = partial(spark.pyspark_coherent, env=env, needs_jars=False)
    if installation not in ("local", "worker"):
        results_root = known_root(results_root)
    if results_root is not None or installation in ("local", "worker"):
        checks["results store"] = partial(airflow.results_store, results_root, env)
    if installation in ("local", "worker"):
        checks["webhooks"] = partial(airflow.webhooks, env)
    checks["lineage"] = airflow.lineage
    return checks


def _airflow_checks(connection: str, env: Mapping[str, str]) -> dict[str, Check]:
    """The checks of an Airflow that runs gates."""
    from dqx_airflow.cli.doctor_checks import airflow, finding

    provider = "apache-airflow-providers"
    return {
        "Airflow": partial(finding.installed, "apache-airflow"),
        "Spark provider": partial(finding.installed, f"{provider}-apache-spark"),
        # Gates and their own events work without it; the events of the Airflow task are missing.
        "OpenLineage provider": partial(
            finding.installed, f"{provider}-openlineage", finding.warning
        ),
        "Airflow database": partial(airflow.database, env),
        f"connection {connection}": partial(airflow.connection, connection, env),
        "entry points": partial(airflow.entry_points, env),
    }


def as_json(findings: tuple[Finding, ...]) -> str:
    """An object whose list `findings` contains an object for each."""
    from dqx_airflow.cli.json_objects import finding_object
    from dqx_airflow.diagnostics.machine_formats import json_text

    return json_text({"findings": list(map(finding_object, findings))})


def print_findings(findings: tuple[Finding, ...]) -> None:
    """Prints a line for each finding, and one below it with the fix if there is one."""
    from rich.console import Console
    from rich.text import Text

    from dqx_airflow.cli.doctor_checks.finding import FindingLevel

    console = Console(highlight=False, emoji=False, markup=False)
    colours = {
        FindingLevel.OK: "green",
        FindingLevel.WARNING: "yellow",
        FindingLevel.PROBLEM: "bold red",
    }
    width = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        line = Text(f"{finding.level.value:<8}", style=colours[finding.level])
        line.append(f"{_without_controls(finding.name):<{width}}  ", style="bold")
        line.append(_without_controls(finding.found), style="default not bold")
        console.print(line, soft_wrap=True)
        if finding.remedy:
            remedy = f"{'':8}{'':{width}}  -> {_without_controls(finding.remedy)}"
            console.print(Text(remedy), soft_wrap=True)
    counts = {level: sum(finding.level is level for finding in findings) for level in FindingLevel}
    summary = (
        _counted(counts[FindingLevel.PROBLEM], "problem"),
        _counted(counts[FindingLevel.WARNING], "warning"),
    )
    console.print(Text(", ".join(summary)), soft_wrap=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _without_controls(text: str) -> str:
    """External text on one line, without control characters for a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
