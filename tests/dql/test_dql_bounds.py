"""Extreme input: thousands of errors, megabytes, bombs. Each ends soon, with a short message."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import Diagnostic, draw
from dqx_airflow.dql import expansion
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.import_readers import FileReader
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE, MOST_WORDS, Unreadable, read_source
from dqx_airflow.dql.syntax.syntax_errors import MOST_SYNTAX_ERRORS
from dqx_airflow.values import SourceFile, Span


def _suite(body: str, before: str = "") -> str:
    return f'suite "S" {{\n{before}\ncheck "C" on orders {{\n{body}\n}}\n}}\n'


def _found(text: str, seconds: float = 4) -> tuple[Diagnostic, ...]:
    """What is found in a text, in time and in short."""
    started = time.process_time()
    checked = check_source(SourceFile("suite.dql", text))
    drawing = draw(checked.diagnostics, checked.sources)
    assert time.process_time() - started < seconds
    assert len(drawing) < 60_000
    return checked.diagnostics


# Thousands

MANY = 2000


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ('assert average(price) > {i} name "a{i}"', 0),
        ('assert avg(price) > {i} name "a{i}"', MANY),
        ('assert average(price >> {i} name "a{i}"', MANY),
        ("use nowhere({i})", MANY),
        ('assert average(price) > "{i}', MANY),
        ('assert average(price) > 1 name "a"', MANY - 1),
        ('assert average(price) > NOWHERE_{i} name "a{i}"', MANY),
    ],
    ids=["sound", "metric", "syntax", "macro", "open string", "same name", "constant"],
)
@pytest.mark.nightly
def test_thousands_of_statements_are_checked_and_drawn_within_seconds(
    line: str, errors: int
) -> None:
    found = _found(_suite("\n".join(line.replace("{i}", str(i)) for i in range(MANY))))
    assert len(found) == errors


def test_a_drawing_has_a_hundred_findings_errors_first_and_counts_the_rest() -> None:
    def finding(line: int, code: str) -> Diagnostic:
        return Diagnostic("found", Span("suite.dql", line, 1, line, 2), code=code)

    warnings = [finding(line, "W001") for line in range(1, 121)]
    errors = [finding(line, "E001") for line in range(200, 290)]
    drawing = draw([*warnings, *errors], {})
    assert (drawing.count("warning["), drawing.count("error[")) == (10, 90)
    assert drawing.index("warning[") < drawing.index("error[")
    assert drawing.endswith("\n\n... and 110 more warnings")
    assert "more" not in draw(warnings[:100], {})
    drawing = draw([*errors, *errors, *warnings], {})
    assert drawing.endswith("\n\n... and 80 more errors and 120 more warnings")


@pytest.mark.nightly
def test_after_too_many_syntax_errors_the_rest_is_not_read() -> None:
    found = _found(_suite("assert !\n" * (MOST_SYNTAX_ERRORS + 5)), seconds=20)
    assert len(found) == MOST_SYNTAX_ERRORS + 1
    assert found[-1].message.endswith("the rest of the file was not read")


@pytest.mark.nightly
def test_name_suggestions_are_bounded() -> None:
    constants = "\n".join(f"const A{i} = B{i}" for i in range(1500))
    assert len(_found(f'suite "S" {{\n{constants}\n}}')) == 1500


def test_many_rules_for_many_assertions() -> None:
    asserts = "\n".join(
        f'@required assert num_rows() > {i} name "a{i}" tags [t]' for i in range(500)
    )
    rules = "\n".join('disable tag "t"' for _ in range(500))
    profile = f'profile "P" {{ from 2024-01-01 to 2024-01-02\n{rules}\n}}'
    found = _found(_suite(asserts, profile))
    assert found[10].message == "this rule disables 490 more required assertions"


def test_constants_that_build_on_each_other_are_computed_once() -> None:
    doubled = "\n".join(f"const A{i + 1} = A{i} * A{i}" for i in range(2000))
    found = _found(f'suite "S" {{\nconst A0 = 1.0\n{doubled}\n}}\n')
    assert [item.code for item in found] == ["W012", "W004"]


# One absurd statement

ABSURD = {
    "brackets": f"assert {'(' * 50_000}1{')' * 50_000} > 0",
    "unclosed brackets": f"assert {'(' * 50_000}",
    "lists": f"assert duplicate_count({'[' * 50_000}",
    "minus signs": f"assert {'-' * 50_000}1 > 0",
    "sums": f"assert num_rows(){' + 1' * 50_000} > 0",
    "keywords as names": f"assert a{' + assert + check + profile' * 20_000} > 0",
    "negations": f"assert each row: {'not ' * 50_000}a > 0",
    "braces": "{" * 50_000,
    "closing braces": "}" * 50_000,
    "groups of a pattern": f'assert each row: a matches "{"(" * 50_000}{")" * 50_000}"',
    "digits": f"assert num_rows() > {'9' * 50_000}",
    "a name": f"assert {'a' * 2_000_000}() > 0",
    "a text": f'assert maximum(a) > "{"a" * 2_000_000}" tolerance 1',
    "windows": f"assert {'mean(' * 20}num_rows(){', n 3000)' * 20} > 0",
    "changes": f"assert {'day_over_day(' * 60}num_rows(){')' * 60} > 0",
    "blanks": f"assert {' ' * 2_000_000} >> 0",
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurdly_large_input_is_an_error_at_once_and_the_rest_is_checked(name: str) -> None:
    found = _found(_suite(f"{ABSURD[name]}\nassert avg(a) > 0"), seconds=2)
    errors = [item for item in found if (item.code or "").startswith("E")]
    assert 0 < len(errors) <= 3
    if "braces" not in name:
        assert "unknown metric 'avg'" in [item.message for item in errors]


# Bombs


def _chain(leaf: str, link: str, argument: str) -> str:
    """40 macros, each of which uses the one before as `link` says."""
    macros = [f"macro m0(x) {{ {leaf} }}"]
    macros += [f"macro m{i}(x) {{ {link.replace('next', f'm{i - 1}')} }}" for i in range(1, 41)]
    return _suite(f"use m40({argument})", "\n".join(macros))


def _loops(body: str) -> str:
    loops = f"for a in xs {{ for b in xs {{ for c in xs {{ {body} }} }} }}"
    return _suite(f"use m({', '.join('x' * 200)})", f"macro m(xs...) {{ {loops} }}")


BOMBS = {
    "assertions": _chain("assert num_rows() > {x}", "use next({x}) use next({x})", "1"),
    "uses without assertions": _chain("", "use next({x}) use next({x})", "1"),
    "texts": _chain('assert num_rows() > 0 name "{x}"', 'use next("{x}{x}")', '"ab"'),
    "expressions": _chain("assert {x} > 0", "use next({x} + {x})", "num_rows()"),
    "loops": _loops('assert null_count({a}) > 0 name "{a}{b}{c}"'),
    "loops without assertions": _loops(""),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", BOMBS)
def test_an_expansion_that_explodes_is_one_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MOST_WORDS", 50_000)
    (found,) = _found(BOMBS[name], seconds=2)
    assert found.code == "E206"


@pytest.mark.more
def test_duplicate_names_from_macros_are_numbered_quickly() -> None:
    macro = 'macro m(x) { assert num_rows() > {x} name "n" }'
    assert len(_found(_suite("use m(1)\n" * 2000, macro))) == 1999


def test_a_chain_of_imports_ends() -> None:
    def read(importer: str, path: str) -> SourceFile:
        return SourceFile(path, f'import "{int(path) + 1}"\nexport const A{path} = 1\n')

    text = 'import "1"\n' + _suite('assert num_rows() > 0 name "n"')
    (found,) = check_source(SourceFile("suite.dql", text), read).errors
    assert found.message == "cannot import more than 200 files"


def test_a_library_that_is_imported_thousands_of_times_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "library.dql").write_text("export const A = 1\n" + "#" * 2_000_000)
    main = tmp_path / "main.dql"
    imports = 'import "library.dql"\n' * 2000
    source = SourceFile("main.dql", imports + _suite('assert num_rows() > A name "n"'))
    started = time.process_time()
    assert not check_source(source, FileReader("main.dql", main, tmp_path)).errors
    assert time.process_time() - started < 4


# Whole files


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("a" * 7_000_000, 6),
        ('"' * 1_000_000, 3),
        ("{" * 1_000_000, 3),
        ("x" * LARGEST_FILE + "x", 1),
        ("suite " * 1_000_000, 3),
        ("@\n" * 2_000_000, 3),
        ("# x\n" * 1_900_000, 3),
        (" \n" * 3_900_000, 3),
    ],
    ids=["a word", "quotes", "braces", "too large", "keywords", "signs", "comments", "blanks"],
)
def test_megabytes_are_one_error_at_once(text: str, seconds: float) -> None:
    assert len(_found(text, seconds)) == 1


@pytest.mark.nightly
def test_a_file_of_too_many_words_is_refused() -> None:
    (found,) = _found(_suite(f"assert in_set(a, [{'1,' * MOST_WORDS}1])"), seconds=60)
    assert found.message == "this file has more than 1,000,000 words"


ENCODINGS = [
    ("größe".encode("windows-1252"), 2, 10, "Windows-1252"),
    ("größe".encode("utf-16"), 1, 1, "UTF-16"),
    ("größe".encode("utf-32"), 1, 1, "UTF-32"),
]


@pytest.mark.parametrize(("name", "line", "column", "encoding"), ENCODINGS)
def test_another_encoding_is_recognised_and_its_first_character_located(
    tmp_path: Path, name: bytes, line: int, column: int, encoding: str
) -> None:
    path = tmp_path / "suite.dql"
    path.write_bytes(b'# ok\nsuite "' + name if encoding == "Windows-1252" else name)
    found = read_source(path, "suite.dql")
    assert isinstance(found, Unreadable)
    assert (found.diagnostic.span.line, found.diagnostic.span.column) == (line, column)
    assert found.diagnostic.help is not None
    assert encoding in found.diagnostic.help
    assert "größe" in draw([found.diagnostic], {"suite.dql": found.text})


def test_reading_stops_at_the_size_limit_of_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    with path.open("wb") as file:
        file.truncate(100_000_000_000)  # a hole: it takes no room on the disk
    started = time.process_time()
    found = read_source(path, "suite.dql")
    assert isinstance(found, Unreadable)
    assert found.diagnostic.code == "E018"
    assert time.process_time() - started < 1


@pytest.mark.parametrize("name", ["folder", "missing", "nul\0", "x" * 5000])
def test_an_unreadable_path_has_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    found = read_source(tmp_path / name, "suite.dql")
    assert isinstance(found, Unreadable)
    assert found.is_missing == (name == "missing")
    assert found.reason


@pytest.mark.nightly
def test_absurd_input_is_checked_within_half_a_gigabyte() -> None:
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (500_000_000, 500_000_000))\n"
        "from tests.dql.test_dql_bounds import ABSURD, BOMBS, _found, _suite\n"
        "for text in (BOMBS['texts'], BOMBS['expressions'], *map(_suite, ABSURD.values())):\n"
        "    assert _found(text, seconds=60)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
