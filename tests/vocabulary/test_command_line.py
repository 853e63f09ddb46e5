"""One word for one thing: every name that a user types is in command_line.md, with its type and
meaning.

A name that is missing there is a decision: look first whether another word already means the same
(`--format` is every form, `--output` every file, `--from`, `--to`, `--days` every period,
`--author` and `--reason` every decision), and only then add a row. A row of a name that is gone is
deleted.

A new kind of names is a heading with a table there, and a kind in `used` of command_line.py.
Arguments of operators and keys of JSON are in test_operators_and_json.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import dqx_airflow
from tests.vocabulary.command_line import used

_WORDS = Path(__file__).with_name("command_line.md")
_PACKAGE = Path(dqx_airflow.__file__).parent
_FIRST_CELL = re.compile(r"^\| `([^`]+)` \|", re.M)
_FIRST_CELLS = re.compile(r"^\| (`[^|]+) \|", re.M)
_ROW = re.compile(r"\| `([^`]+)` \| ([^|]*) \| ([^|]+) \|")


def known() -> dict[str, dict[str, tuple[str, str]]]:
    """The types and the meanings in command_line.md, by kind and name."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    kind = ""
    for line in _WORDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ")
            found[kind] = {}
        elif row := _ROW.fullmatch(line):
            assert row[1] not in found[kind], f"{row[1]} is in {kind} twice"
            found[kind][row[1]] = (row[2].strip(), row[3].strip())
    return found


def test_every_name_is_a_word_of_the_vocabulary() -> None:
    words = known()
    assert words.keys() == used().keys()
    for kind, names in used().items():
        unknown = sorted(names.keys() - words[kind].keys())
        assert unknown == [], (
            f"{kind}: is there no word for it yet? Then add a row to command_line.md"
        )
        gone = sorted(words[kind].keys() - names.keys())
        assert gone == [], f"{kind}: not in use, delete the row"


def test_a_name_has_the_type_of_the_vocabulary() -> None:
    words = known()
    for kind, names in used().items():
        for name, types in names.items():
            assert words[kind][name][0] == types, f"{kind}: {name}"


def test_the_page_of_the_configuration_has_every_key_variable_and_setting() -> None:
    page = (_PACKAGE / "docs" / "configuration.md").read_text(encoding="utf-8")
    _, of_airflow, variables, of_toml = page.split("\n## ")
    names = used()
    assert set(_FIRST_CELL.findall(of_toml)) == names["Keys of dqx.toml"].keys()
    listed = set(re.findall(r"`([A-Z_]+)`", "".join(_FIRST_CELLS.findall(variables))))
    assert names["Environment variables"].keys() - listed == set()
    sources = "".join(path.read_text("utf-8") for path in _PACKAGE.rglob("*.py"))
    settings = set(re.findall(r'conf\.get\("dqx", "(\w+)"', sources))
    assert set(_FIRST_CELL.findall(of_airflow)) == settings
    assert {f"`AIRFLOW__DQX__{name.upper()}`" for name in settings} <= set(of_airflow.split())


def test_a_word_has_a_meaning_of_its_own() -> None:
    for kind, rows in known().items():
        meanings: dict[str, str] = {}
        for name, (_, meaning) in rows.items():
            assert len(meaning) > 3, f"{kind}: {name}"
            twin = meanings.setdefault(meaning, name)
            assert twin == name or _is_short_or_negative(name, twin), f"{name} means {twin}"


def _is_short_or_negative(name: str, other: str) -> bool:
    """Whether one is the short or the negative form of the other."""
    return (
        len(name) == 2 or len(other) == 2 or name.startswith("--no-") or other.startswith("--no-")
    )
