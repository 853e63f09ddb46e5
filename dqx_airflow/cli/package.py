"""`dql package`: writes what a gate needs where its driver runs, a job bundle or a JVM archive."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import typer

import dqx_airflow
from dqx_airflow.cli.command import template
from dqx_airflow.cli.job_bundle import Bundle, versions_of_native, write_bundle
from dqx_airflow.cli.jvm_archive import write_archive
from dqx_airflow.errors import StoreError


def package(output: Path | None = None, jvm_archive: Path | None = None) -> None:
    """Write the bundle for a driver in the cluster.

    It is this package with its dependencies, a zip for --py-files, and next to it gate_job.py, the
    program for services.

    It contains the pure Python packages that a gate imports. The output explains how to provide the
    compiled ones. With --jvm-archive, write an archive with which a driver on this machine starts
    faster.

    :param output: The bundle to write; default: dqx-airflow-VERSION.zip in the working directory.
    :param jvm_archive: Write an archive of the JVM's classes to this path instead of a bundle.
    """
    try:
        if jvm_archive is not None:
            archive = jvm_archive.absolute()
            megabytes = write_archive(archive) / 1e6
            text = template("archive.txt").format(path=archive, megabytes=megabytes)
            typer.echo(text, nl=False)
        if output is not None or jvm_archive is None:
            bundle = output or Path(f"dqx-airflow-{dqx_airflow.__version__}.zip")
            typer.echo(recipe(write_bundle(bundle.absolute()), versions_of_native()))
    except OSError as error:
        path = error.filename or "it"
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def recipe(bundle: Bundle, native: tuple[tuple[str, str], ...]) -> str:
    """Instructions for a written bundle, and for the packages that it does not contain."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    needs = " ".join(f"{name}=={version}" for name, version in native)
    machine = platform.machine()
    platforms = " ".join(
        f"--platform {tag}_{machine}" for tag in ("manylinux_2_28", "manylinux2014")
    )
    (_, version), *others = bundle.packages
    return (
        template("bundle.txt")
        .rstrip()
        .format(
            path=bundle.path,
            megabytes=bundle.size / 1e6,
            version=version,
            others=len(others),
            python=python,
            needs=needs,
            platforms=platforms,
        )
    )
