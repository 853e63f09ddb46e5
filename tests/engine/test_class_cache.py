"""The cache of classes: what is taken from it and kept in it, and that no fault of it counts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark import SparkContext

from dqx_airflow.datasets.class_cache import ClassCache
from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.session import class_cache
from dqx_airflow.engine.session.class_cache import CACHE, with_cached_classes
from tests.processes import ended, environment

LOCAL = connection_of("local[2]")
SUITE = 'suite "S" {\n  check "C" on o {\n    assert num_rows() > 0\n  }\n}\n'


@pytest.fixture(autouse=True)
def without_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(class_cache.atexit, "register", lambda *given: None)


def options(env: dict[str, str], connection: str = "local[2]", **settings: str) -> str:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    found = with_cached_classes(connection_of(connection), given, {**os.environ, **env})
    return found.get(DRIVER_OPTIONS, "")


def test_the_first_jvm_writes_an_archive_and_the_next_one_starts_from_it(tmp_path: Path) -> None:
    env = {CACHE: str(tmp_path / "cache")}
    first = options(env)
    assert "-XX:ArchiveClassesAtExit=" in first
    made = Path(first.split("ArchiveClassesAtExit=")[1].split()[0])
    made.write_bytes(b"classes")
    cache = class_cache.cache_for({}, {**os.environ, **env})
    assert cache is not None
    others = [cache.folder / f"java_{number}-3.jsa" for number in range(4)]
    for number, other in enumerate(others):
        other.write_bytes(b"old")
        os.utime(other, (number, number))
    cache.keep(made, has_ended_well=True)
    archive = cache.archive()
    assert archive is not None
    assert not made.exists()
    assert [other.exists() for other in others] == [False, False, True, True]
    second = options(env)
    assert f"-XX:SharedArchiveFile={archive}" in second
    assert "-XX:+VerifySharedSpaces" in second
    archive.write_bytes(b"clas")  # truncated: it would crash the JVM
    assert "ArchiveClassesAtExit" in options(env)
    assert "SharedArchiveFile" not in options(env)
    assert str(archive) not in options(env, spark_jars="other.jar")


@pytest.mark.parametrize("is_written", [True, False])
def test_a_jvm_that_wrote_nothing_or_failed_is_not_asked_again(
    tmp_path: Path, is_written: bool
) -> None:
    env = {CACHE: str(tmp_path)}
    cache = class_cache.cache_for({}, {**os.environ, **env})
    assert cache is not None
    if is_written:
        cache.begun().write_bytes(b"half")
    cache.keep(cache.begun(), has_ended_well=not is_written)
    assert cache.archive() is None
    assert options(env) == ""
    assert [file.suffix for file in tmp_path.iterdir()] == [".none"]


def test_a_killed_process_leaves_nothing_for_long(tmp_path: Path) -> None:
    env = {CACHE: str(tmp_path)}
    cache = class_cache.cache_for({}, {**os.environ, **env})
    assert cache is not None
    killed, at_work = tmp_path / f"{cache.key}.1.tmp", tmp_path / f"{cache.key}.2.tmp"
    for file in (killed, at_work):
        file.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(killed, (two_days_ago, two_days_ago))
    cache.keep(cache.begun(), has_ended_well=False)
    assert (killed.exists(), at_work.exists()) == (False, True)
    assert not cache.is_due()
    (mark,) = tmp_path.glob("*.none")
    os.utime(mark, (two_days_ago, two_days_ago - 30 * 24 * 3600))
    assert cache.is_due(), "it is tried again after a month"


def test_there_is_no_cache_unless_asked_for_nor_for_a_spark_elsewhere(tmp_path: Path) -> None:
    env = {CACHE: str(tmp_path)}
    assert options({CACHE: ""}) == ""
    assert options({CACHE: "classes"}) == ""
    assert options(env, connection="spark://host:7077") == ""
    assert options(env, connection="sail") == ""
    own = "-XX:SharedArchiveFile=mine.jsa"
    assert options(env, spark_driver_defaultJavaOptions=own) == own
    assert options({**env, "SPARK_SUBMIT_OPTS": own}) == ""
    assert options(env, spark_driver_extraJavaOptions="-Xshare:off") == ""
    assert not list(tmp_path.iterdir())


def test_a_folder_that_others_may_write_or_that_cannot_be_written_is_no_cache(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    file = tmp_path / "file"
    file.touch()
    assert options({CACHE: str(shared)}) == ""
    assert options({CACHE: str(file)}) == ""
    assert options({CACHE: str(file / "below")}) == ""
    configured = tmp_path / "conf"
    configured.mkdir()
    (configured / "spark-defaults.conf").touch()
    env = {CACHE: str(tmp_path / "cache"), "SPARK_CONF_DIR": str(configured)}
    assert options(env) == ""  # Java takes no folder with files into an archive


@pytest.mark.slow
@pytest.mark.nightly
def test_gates_pass_with_and_without_and_over_a_damaged_archive(tmp_path: Path) -> None:
    (tmp_path / "s.dql").write_text(SUITE)
    (tmp_path / "o.csv").write_text("i\n1\n")
    folder = tmp_path / "cache"
    log = tmp_path / "classes.log"

    def run() -> int:
        """The number of classes that the JVM took from the archive."""
        log.unlink(missing_ok=True)
        env = environment(DQX_JVM_CACHE=str(folder))
        env["SPARK_SUBMIT_OPTS"] += f" -Xlog:class+load:file={log}"
        words = ["dql", "run", "s.dql", "--dataset", "o=o.csv", "--date", "2024-01-01"]
        done = ended([*words, "--format", "json"], cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(("{", "[")), done.stdout[:300]
        return log.read_text(errors="replace").count("shared objects file (top)")

    assert run() == 0
    (archive,) = folder.iterdir()
    assert run() > 5000
    whole = archive.read_bytes()
    archive.chmod(0o600)
    middle = len(whole) // 2
    archive.write_bytes(whole[:middle] + bytes(100_000) + whole[middle + 100_000 :])
    assert run() == 0
    archive.write_bytes(whole[:middle])
    Path(folder, f"{archive.stem.partition('-')[0]}.none").touch()  # so that none is written again
    assert run() == 0


def test_a_cache_takes_only_whole_archives(tmp_path: Path) -> None:
    cache = ClassCache(tmp_path, "key")
    (tmp_path / "key-4.jsa").write_bytes(b"123")
    assert cache.archive() is None
    (tmp_path / "key-3.jsa").write_bytes(b"123")
    assert cache.archive() == tmp_path / "key-3.jsa"
