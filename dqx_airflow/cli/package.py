"""`dql package`: what a gate needs where its driver runs. The job bundle is our code and the pure
Python packages that it imports, as a zip for `--py-files`; an archive has the classes that the JVM
of a gate loads.

The same packages give the same bytes. Compiled code is left out: `NATIVE` must be installed where
the driver runs, everything else works without its compiled parts.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path, PurePosixPath
from shutil import copyfile
from tempfile import TemporaryDirectory

import typer

import dqx_airflow
from dqx_airflow.cli.command import template
from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS, for_a_short_life, while_archiving
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.errors import SparkError, StoreError
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from dqx_airflow.values.files import replacing, shipped
from dqx_airflow.values.json_form import to_arguments

NATIVE = ("pyarrow", "deltalake", "numpy")

_PURE = ("cattrs", "lark", "openlineage-python", "pyyaml", "sqlglot", "sympy", "tzdata")
# A job has no terminal, no editor and no Airflow, and gets contracts as compiled suites.
_LEFT_OUT = {"api", "cli", "contracts", "dags_examples", "docs", "editor", "importing"}
_LEFT_OUT |= {"operators", "spark_jobs", "tuning", "ui", "plan/in_memory"}
# A gate reads what `dql doctor --prove` found, and proves nothing itself. The cases stay: their
# digest says for which of them a proof holds.
_LEFT_OUT |= {f"engine/proof/{name}.py" for name in ("cases", "prove")}
# Alerts are shown in the UI, faults planted by `dql mutate`, and templates filled by commands.
_LEFT_OUT |= {"results/alerts.py", "engine/faults.py", "diagnostics/templates.py"}
_COMPILED = {".so", ".pyd", ".pyx", ".pxd", ".dylib"}
_FOLDERS_LEFT_OUT = {"__pycache__", "tests", "benchmarks", ".."}
# Large, and rarely needed.
_SOURCES_ONLY = "/(sympy|mpmath)/"
_NAME = re.compile(r"[\w.-]+")
# The earliest timestamp in a zip.
_MOMENT = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A written bundle; `packages` are the names and versions of its contents."""

    path: Path
    size: int
    packages: tuple[tuple[str, str], ...]


def write_bundle(path: Path) -> Bundle:
    """Writes the bundle atomically: a job that starts meanwhile sees the old or the new one."""
    distributions = sorted(_with_required(_PURE), key=lambda package: package.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, replacing(path) as part:
        staged = Path(folder)
        for name, file in chain(_our_files(), *map(_files_of, distributions)):
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            copyfile(file, staged / name)
        _compile(staged)
        _zip(staged, part)
    copyfile(shipped("spark_jobs/gate_job.py"), path.with_name("gate_job.py"))
    own_package = ("dqx-airflow", dqx_airflow.__version__)
    packages = (own_package, *((package.name, package.version) for package in distributions))
    return Bundle(path, path.stat().st_size, packages)


def versions_of_native() -> tuple[tuple[str, str], ...]:
    """The packages that are not in the bundle, in the versions installed here."""
    return tuple((name, distribution(name).version) for name in NATIVE)


def _with_required(names: Iterable[str]) -> Iterable[Distribution]:
    """The installed packages with these names, and everything that they require."""
    distributions: dict[str, Distribution] = {}
    waiting = [*names]
    while waiting:
        try:
            package = distribution(waiting.pop())
        except PackageNotFoundError:
            continue  # required for another Python, or on another system
        if package.name not in distributions:
            distributions[package.name] = package
            required = (text for text in package.requires or () if "extra ==" not in text)
            waiting += [name[0] for text in required if (name := _NAME.match(text))]
    return distributions.values()


def _our_files() -> Iterator[tuple[str, Path]]:
    # Copied from the folder: an editable checkout lists no files.
    home = Path(dqx_airflow.__file__).parent
    for file in home.rglob("*"):
        inside = file.relative_to(home)
        is_left_out = any(path.as_posix() in _LEFT_OUT for path in (inside, *inside.parents))
        if file.is_file() and not is_left_out and _is_wanted(inside):
            yield str(PurePosixPath(home.name, *inside.parts)), file


def _files_of(package: Distribution) -> Iterator[tuple[str, Path]]:
    for file in package.files or ():
        if _is_wanted(file) and not _is_record(file):
            yield str(file), Path(str(file.locate()))


def _compile(folder: Path) -> None:
    """Adds byte code next to the modules: Python recompiles modules in a zip on every import.

    Another version of Python ignores it. The process is fresh, with fixed hashes: the byte code
    depends on what a process has seen before.
    """
    options = ["-m", "compileall", "-b", "-q", "--invalidation-mode", "unchecked-hash"]
    subprocess.run(  # noqa: S603 (this Python, no shell)
        [sys.executable, *options, "-s", str(folder), "-x", _SOURCES_ONLY, str(folder)],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=False,  # a file for newer Pythons than this one stays uncompiled
        capture_output=True,
    )


def _zip(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member in sorted(folder.rglob("*")):
            # Folders, too: without an entry, Python does not find a package without modules.
            name = member.relative_to(folder).as_posix() + ("/" if member.is_dir() else "")
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.create_system = 3  # Unix, wherever it was made
            entry.external_attr = (0o755 if member.is_dir() else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, b"" if member.is_dir() else member.read_bytes())


def _is_wanted(file: PurePosixPath | Path) -> bool:
    return file.suffix not in _COMPILED | {".pyi"} and not set(file.parts) & _FOLDERS_LEFT_OUT


def _is_record(file: PurePosixPath) -> bool:
    """True for a record of an installer, but not for the metadata or the license of a package."""
    is_note = file.parts[0].endswith(".dist-info") and file.parts[1] != "licenses"
    return is_note and not file.name.startswith(("METADATA", "LICENSE", "COPYING", "NOTICE"))


_TODAY = date(2024, 5, 17)
_ROWS = 2000
_TAIL = 10
_JVM_MESSAGE = re.compile(r"^\[[\d.]+s\]\[\w+ *\]\[cds.*?\] *(.*)$", re.M)


def write_archive(path: Path) -> int:
    """Writes the archive atomically and returns its size: an incomplete one would crash a JVM.

    :raises SparkError: Spark did not run, or its Java does not support archives.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, replacing(path) as made:
        output = _run_gate(typical_request(Path(folder)), while_archiving(str(made)))
        if not made.is_file():
            messages = _JVM_MESSAGE.findall(output)
            raise SparkError(
                f"Java wrote no archive: {messages[-1] if messages else 'no reason given'}",
                "a Java without a base archive makes one by `java -Xshare:dump`; SPARK_CONF_DIR "
                "must be empty or missing, since Java takes no folders with files into an archive",
            )
    return path.stat().st_size


def typical_request(folder: Path) -> GateRequest:
    """The request of a typical gate, with its data in a folder."""
    suite = Path(__file__).with_name("typical.dql")
    _write_tables(folder)
    return GateRequest(
        run_key=RunKey("typical", _TODAY, "archive"),
        attempt=Attempt(1, "archive"),
        suite=SourceFile(suite.name, suite.read_text(encoding="utf-8")),
        datasets=(
            DatasetRef("orders", str(folder / "orders"), date_column="ds"),
            DatasetRef("countries", str(folder / "countries")),
        ),
        results_root=str(folder / "results"),
    )


def _write_tables(folder: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    numbers = range(_ROWS)
    noon = datetime(_TODAY.year, _TODAY.month, _TODAY.day, 12, tzinfo=timezone.utc)
    money = pa.decimal128(18, 2)
    orders = {
        "id": pa.array(numbers, pa.int64()),
        "code": pa.array([f"A{number:04}" for number in numbers]),
        "country": pa.array([("CH", "DE", "FR")[number % 3] for number in numbers]),
        "email": pa.array([f"{number}@example.com" if number % 5 else None for number in numbers]),
        "amount": pa.array([float(number % 900) for number in numbers]),
        "price": pa.array([Decimal(number % 900) for number in numbers], money),
        "ordered_at": pa.array([noon + timedelta(seconds=number) for number in numbers]),
        "ds": pa.array([_TODAY - timedelta(days=number % 2) for number in numbers]),
    }
    write_deltalake(str(folder / "orders"), pa.table(orders), partition_by=["ds"])
    countries = pa.table({"code": ["CH", "DE", "FR"]})
    write_deltalake(str(folder / "countries"), countries)


def _run_gate(request: GateRequest, options: str) -> str:
    """Runs the gate like an operator, and returns its output with the output of its JVM."""
    path = os.environ.get("PATH", os.defpath)
    if shutil.which("spark-submit") is None:
        path = os.pathsep.join([str(Path(sys.executable).parent), path])
    program = shutil.which("spark-submit", path=path)
    if program is None:
        raise SparkError("program 'spark-submit' not found", "pip install 'dqx-airflow[spark]'")
    conf = {DRIVER_OPTIONS: options, "spark.pyspark.driver.python": sys.executable}
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    env = {**os.environ, **java_environment(), "PATH": path, "OPENLINEAGE_DISABLED": "true"}
    job = [str(shipped("spark_jobs/gate_job.py")), *to_arguments(request)]
    done = subprocess.run(  # noqa: S603 (our own job, no shell)
        [program, "--master", "local[2]", *settings, *job],
        env={**env, **for_a_short_life(env)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-_TAIL:])
        raise SparkError(f"the gate that is to be archived failed:\n{tail}", "try `dql doctor`")
    return done.stdout


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
