"""The `dql package` verb: writes the job bundle, and prints what else a driver needs."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.errors import StoreError

if TYPE_CHECKING:
    from dqx_airflow.cli.package.bundle import Bundle


def package(
    output: Annotated[
        Path | None,
        typer.Option(
            help="The bundle to write; default: dqx-airflow-VERSION.zip in the working directory."
        ),
    ] = None,
    jvm_archive: Annotated[
        Path | None,
        typer.Option(
            help="Write an archive of the JVM's classes to this path instead of a bundle."
        ),
    ] = None,
) -> None:
    """Write the bundle for a driver in the cluster: this package and its dependencies, as a zip for
    --py-files.

    It contains the pure Python packages that a gate imports. The output explains how to provide the
    compiled ones. With --jvm-archive, write an archive with which a driver on this machine starts
    faster.
    """
    try:
        if jvm_archive is not None:
            typer.echo(_archive(jvm_archive.absolute()))
        if output is not None or jvm_archive is None:
            typer.echo(_bundle(output))
    except OSError as error:
        path = error.filename or "it"
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def _bundle(output: Path | None) -> str:
    import dqx_airflow
    from dqx_airflow.cli.package.bundle import versions_of_native, write_bundle

    path = output or Path(f"dqx-airflow-{dqx_airflow.__version__}.zip")
    return recipe(write_bundle(path.absolute()), versions_of_native())


def _archive(path: Path) -> str:
    from dqx_airflow.cli.package.jvm_archive import write_archive

    size = write_archive(path)
    return f"""\
wrote {path}: {size / 1e6:.0f} MB, for the Java and the Spark of this machine

Gates whose driver runs on this machine use it with
  AIRFLOW__DQX__JVM_ARCHIVE={path}
and `dql run` with this in [connection] of dqx.toml:
  jvm_archive = '{path}'"""


def recipe(bundle: Bundle, native: tuple[tuple[str, str], ...]) -> str:
    """What was written, and how to use it together with the packages that are not in it."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    needs = " ".join(f"{name}=={version}" for name, version in native)
    machine = platform.machine()
    platforms = " ".join(
        f"--platform {tag}_{machine}" for tag in ("manylinux_2_28", "manylinux2014")
    )
    (_, version), *others = bundle.packages
    return f"""\
wrote {bundle.path}: {bundle.size / 1e6:.1f} MB
dqx-airflow {version} and {len(others)} packages, with byte code for Python {python}

Pass it to a gate:
  DqlGateOperator(..., py_files="{bundle.path}")

Compiled packages are not included. The Python of the driver needs:
  pip install {needs}

If you cannot install them there, pass them to the gate. For Linux and Python {python}:
  pip install --target native --only-binary :all: {platforms} \\
    --python-version {python} {needs}
  tar -C native -czf native.tar.gz .
and in cluster mode, on YARN:
  DqlGateOperator(..., deploy_mode="cluster", archives="native.tar.gz#native",
    conf={{"spark.yarn.appMasterEnv.PYTHONPATH": "native"}})
or on Kubernetes:
  DqlGateOperator(..., deploy_mode="cluster", archives="native.tar.gz#native",
    conf={{"spark.kubernetes.driverEnv.PYTHONPATH": "native",
          "spark.kubernetes.file.upload.path": "s3a://lake/uploads"}})  # a folder of yours"""
