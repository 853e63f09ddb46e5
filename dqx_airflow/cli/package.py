"""`dql package`: writes what a gate needs where its driver runs, a job bundle or a JVM archive."""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path
from typing import Annotated

import typer

import dqx_airflow
from dqx_airflow.cli.command import ForceOption, template
from dqx_airflow.cli.job_bundle import Bundle, versions_of_native, write_bundle
from dqx_airflow.cli.jvm_archive import write_archive
from dqx_airflow.errors import RequestError, StoreError

_GATE_JOB = b'"""The application that a gate operator submits'
_JVM_ARCHIVES = (b"\xa2\xab\x0b\xf0", b"\xa8\xab\x0b\xf0")
"""The first bytes of static and dynamic archives of the JVM."""


def package(
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    jvm_archive: Path | None = None,
    force: ForceOption = False,
) -> None:
    """Write the bundle for a driver in the cluster.

    It is this package with its dependencies, a zip for --py-files, and next to it gate_job.py, the
    program for services.

    It contains the pure Python packages that a gate imports. The output explains how to provide the
    compiled ones. With --jvm-archive, write an archive with which a driver on this machine starts
    faster. Earlier bundles and archives are replaced, other files only with --force.

    :param output: The bundle to write; default: dqx-airflow-VERSION.zip in the working directory.
    :param jvm_archive: Write an archive of the JVM's classes to this path instead of a bundle.
    """
    bundle = None
    if output is not None or jvm_archive is None:
        bundle = output or Path(f"dqx-airflow-{dqx_airflow.__version__}.zip")
    for file in (bundle, jvm_archive):
        if file is not None and file.is_dir():
            raise RequestError(f"{file} is a folder", "give the path of a file in it")
    if not force:
        _require_replaceable(bundle, jvm_archive)
    try:
        if jvm_archive is not None:
            archive = jvm_archive.absolute()
            megabytes = write_archive(archive) / 1e6
            text = template("archive.txt").format(path=archive, megabytes=megabytes)
            typer.echo(text, nl=False)
        if bundle is not None:
            typer.echo(recipe(write_bundle(bundle.absolute()), versions_of_native()))
    except OSError as error:
        path = error.filename or "it"
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def _require_replaceable(bundle: Path | None, archive: Path | None) -> None:
    """:raises RequestError: one of the files to write is there, and not from an earlier call."""
    foreign = []
    if bundle is not None and bundle.is_file() and not _is_bundle(bundle):
        foreign.append(bundle)
    if bundle is not None:
        program = bundle.with_name("gate_job.py")
        if program.is_file() and not _begins_with(program, _GATE_JOB):
            foreign.append(program)
    if archive is not None and archive.is_file() and not _begins_with(archive, *_JVM_ARCHIVES):
        foreign.append(archive)
    if foreign:
        raise RequestError(
            f"{foreign[0]} already exists, and `dql package` did not write it",
            "choose another file, or add --force",
        )


def _begins_with(path: Path, *beginnings: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(100).startswith(beginnings)


def _is_bundle(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return "dqx_airflow/__init__.py" in file.namelist()
    except zipfile.BadZipFile:
        return False


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
