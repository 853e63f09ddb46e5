"""`dql check`, as users and scripts call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.command_line import Called, dql
from tests.processes import ended

GOOD = 'suite "S" { check "C" on t { assert num_rows() > 0 name "n" } }\n'
BAD = 'suite "S" {\n  check "C" on t {\n    assert avg(price) > 5, name "50%: n"\n  }\n}\n'


def check(*arguments: str | Path) -> Called:
    return dql("check", *arguments)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.dql"
    path.write_text(BAD.replace(",", ""))
    return path


def test_a_sound_suite_exits_0(tmp_path: Path) -> None:
    (tmp_path / "good.dql").write_text(GOOD)
    found = check(tmp_path)
    assert (found.returncode, found.stdout) == (0, "1 file checked, no errors\n")


def test_an_error_exits_2_and_is_drawn(bad: Path) -> None:
    program = str(Path(sys.executable).parent / "dql")
    real = ended([program, "check", bad])
    found = check(bad)
    assert (real.returncode, real.stdout, real.stderr) == (2, found.stdout, found.stderr)
    assert found.returncode == 2
    assert "did you mean 'average'?" in found.stdout
    assert found.stdout.endswith("\n\n1 file checked, 1 error; see `dql explain E001`\n")
    assert "\033[" not in found.stdout


def test_json_has_the_location_and_the_code(bad: Path) -> None:
    (diagnostic,) = json.loads(check(bad, "--format", "json").stdout)
    assert diagnostic["code"] == "E001"
    assert diagnostic["level"] == "error"
    assert (diagnostic["span"]["line"], diagnostic["span"]["column"]) == (3, 12)


def test_github_gets_one_escaped_annotation_a_line(bad: Path) -> None:
    found = check(bad, "--format", "github").stdout
    assert found == (
        f"::error file={bad},line=3,endLine=3,col=12,endColumn=15,title=E001::"
        "unknown metric 'avg'%0Adid you mean 'average'?\n"
    )


def test_sarif_names_the_rules_that_occur(bad: Path) -> None:
    log = json.loads(check(bad, "--format", "sarif").stdout)
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "E001"
    assert rule["fullDescription"]["text"].startswith("No metric has this name")
    assert "assert average(price) > 0" in rule["help"]["markdown"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


@pytest.mark.nightly
def test_of_thousands_of_errors_people_see_a_hundred_and_scripts_all(tmp_path: Path) -> None:
    path = tmp_path / "many.dql"
    lines = "\n".join(f'assert avg(price) > {i} name "{i}"' for i in range(1500))
    path.write_text(f'suite "S" {{ check "C" on t {{\n{lines}\n}} }}\n')
    text = check(path).stdout
    assert text.count("error[E001]") == 100
    assert "\n\n... and 1,400 more errors\n\n1 file checked, 1,500 errors;" in text
    assert len(json.loads(check(path, "--format", "json").stdout)) == 1500


@pytest.mark.parametrize("format", ["text", "json", "github", "sarif"])
def test_another_encoding_is_a_diagnostic_in_every_format(tmp_path: Path, format: str) -> None:
    path = tmp_path / "latin.dql"
    path.write_bytes(
        b'suite "S" {\n  check "Gr\xf6\xdfe" on t { assert num_rows() > 0 name "n" }\n}\n'
    )
    found = check(path, "--format", format)
    assert (found.returncode, found.stderr) == (2, "")
    assert "E010" in found.stdout
    assert "iconv -f Windows-1252 -t UTF-8" in found.stdout
    if format == "text":
        assert found.stdout.startswith(
            f"error[E010]: this is not UTF-8 text\n --> {path}:2:12\n  |\n"
            '2 |   check "Größe" on t { assert num_rows() > 0 name "n" }\n  |            ^\n'
        )


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00\x01\x02", b""])
def test_binary_content_exits_2_without_a_traceback(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dql"
    path.write_bytes(content)
    found = check(path)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr + found.stdout


def test_imports_are_followed_and_checked_once(tmp_path: Path) -> None:
    (tmp_path / "library.dql").write_text(
        'export macro bad(column) { assert avg({column}) > 0 name "{column}" }\n'
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.dql").write_text(
            f'import "library.dql"\nsuite "{name}" {{ check "C" on t {{ use bad(price) }} }}\n'
        )
    found = check(tmp_path)
    assert found.returncode == 2
    assert "library.dql:1:35" in found.stdout
    assert "used here" in found.stdout


def test_a_missing_path_exits_2_and_is_reported(tmp_path: Path) -> None:
    found = check(tmp_path / "nowhere")
    assert found.returncode == 2
    assert "no .dql file found at" in found.stderr
