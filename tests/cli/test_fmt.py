"""`dql fmt`, as users, editors and scripts call it."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from tests.command_line import Called, dql
from tests.processes import ended

UNTIDY = 'suite "S" { check "C" on t { assert a()>0 # why\n} }\n'
TIDY = 'suite "S" {\n    check "C" on t {\n        assert a() > 0  # why\n    }\n}\n'
BROKEN = 'suite "S" {\n    check "C" on t {\n        assert a( > 0\n    }\n}\n'


def fmt(*arguments: str | Path, cwd: Path | None = None, stdin: str = "") -> Called:
    return dql("fmt", *arguments, cwd=cwd, stdin=stdin)


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "tidy.dql").write_text(TIDY)
    (tmp_path / "untidy.dql").write_text(UNTIDY)
    (tmp_path / "deep" / "untidy.dql").write_text(UNTIDY)
    (tmp_path / "notes.txt").write_text(UNTIDY)
    return tmp_path


def test_a_folder_is_formatted_in_place_and_the_changes_are_named(suites: Path) -> None:
    found = fmt(".", "tidy.dql", cwd=suites)
    assert found.returncode == 0
    assert found.stdout == (
        "reformatted: deep/untidy.dql\nreformatted: untidy.dql\n"
        "2 files reformatted, 1 left unchanged\n"
    )
    assert {path.read_text() for path in suites.rglob("*.dql")} == {TIDY}
    assert (suites / "notes.txt").read_text() == UNTIDY
    assert fmt(".", cwd=suites).stdout == "3 files left unchanged\n"
    assert len(list(suites.rglob("*"))) == 5


def test_check_names_what_would_change_and_changes_nothing(suites: Path) -> None:
    found = fmt("--check", ".", cwd=suites)
    assert found.returncode == 1
    assert found.stdout == (
        "would be reformatted: deep/untidy.dql\nwould be reformatted: untidy.dql\n"
        "2 files would be reformatted, 1 left unchanged\n"
    )
    assert (suites / "untidy.dql").read_text() == UNTIDY
    assert fmt("--check", "tidy.dql", cwd=suites).returncode == 0


def test_diff_prints_a_patch_and_changes_nothing(suites: Path) -> None:
    (suites / "untidy.dql").write_text(UNTIDY.rstrip("\n"))
    found = fmt("--diff", "untidy.dql", "tidy.dql", cwd=suites)
    assert found.returncode == 1
    assert found.stdout == (
        "--- untidy.dql\n+++ untidy.dql (formatted)\n@@ -1,2 +1,5 @@\n"
        '-suite "S" { check "C" on t { assert a()>0 # why\n'
        "-} }\n\\ No newline at end of file\n"
        '+suite "S" {\n+    check "C" on t {\n+        assert a() > 0  # why\n+    }\n+}\n'
    )
    assert found.stderr.endswith("1 file would be reformatted, 1 left unchanged\n")
    assert (suites / "untidy.dql").read_text() == UNTIDY.rstrip("\n")


def test_standard_input_comes_out_formatted() -> None:
    program = str(Path(sys.executable).parent / "dql")
    real = ended([program, "fmt", "-"], input=UNTIDY)
    assert (real.returncode, real.stdout) == (0, TIDY)
    found = fmt("-", stdin=UNTIDY)
    assert (found.returncode, found.stdout) == (0, TIDY)
    assert fmt("-", "--check", stdin=UNTIDY).returncode == 1
    assert fmt("-", "--check", stdin=TIDY).returncode == 0
    broken = fmt("-", stdin=BROKEN)
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "<stdin>:3:19" in broken.stderr


@pytest.mark.parametrize("options", [(), ("--check",), ("--diff",)])
def test_a_file_that_cannot_be_formatted_does_not_stop_the_others(
    suites: Path, options: tuple[str, ...]
) -> None:
    (suites / "broken.dql").write_text(BROKEN)
    (suites / "latin.dql").write_bytes(b"suite \xe4")
    (suites / "empty.dql").write_bytes(b"")
    found = fmt(".", "nowhere.dql", *options, cwd=suites)
    assert found.returncode == 2
    assert "broken.dql:3:19" in found.stderr
    assert "this is not UTF-8 text\n --> latin.dql:1:7" in found.stderr
    assert "the file has no suite" in found.stderr
    assert "error: no .dql file found at nowhere.dql" in found.stderr
    assert "1 left unchanged, 3 not formatted\n" in found.stdout + found.stderr
    assert "Traceback" not in found.stderr
    assert (suites / "broken.dql").read_text() == BROKEN
    assert (suites / "empty.dql").read_bytes() == b""
    assert (suites / "untidy.dql").read_text() == (UNTIDY if options else TIDY)


def test_crlf_line_ends_are_a_change(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_bytes(b"\xef\xbb\xbf" + TIDY.replace("\n", "\r\n").encode())
    assert fmt("--check", path).returncode == 1
    assert fmt(path).returncode == 0
    assert path.read_bytes() == TIDY.encode()


def test_the_mode_of_a_file_and_a_link_to_it_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "suite.dql", tmp_path / "link.dql"
    path.write_text(UNTIDY)
    path.chmod(0o640)
    link.symlink_to(path)
    assert fmt(link).returncode == 0
    assert link.is_symlink()
    assert path.read_text() == TIDY
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
