"""`dql lsp` as an editor runs it: a process, with the protocol on its standard input and output."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dqx_airflow.editor.server import PAUSE_S
from tests.editor.lsp_client import Editor
from tests.processes import ended

LIBRARY = """export const MAX_NULL = 5%

export macro null_rate(column, most) {
    assert null_count({column}) / num_rows() < {most}
        name "{column} null rate"
}
"""
SUITE = """import "common/nulls.dql" as nulls

suite "🦆 Orders" {
    check "Nulls 🦆" on orders { use nulls.null_rate(email, nulls.MAX_NULL) }

    check "Prices" on orders {
        assert avg(price)>0
            name "orders.prices.average"
    }
}
"""
TOML = '[datasets.orders]\ncolumns = ["email", "price"]\n'


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "nulls.dql").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "dqx.toml").write_text(TOML, encoding="utf-8")
    started = Editor(tmp_path)
    yield started
    started.process.kill()
    started.process.communicate()


def place(text: str, word: str, inside: int = 1) -> tuple[int, int]:
    """The position of a word in UTF-16 units, as editors count."""
    before = text[: text.index(word) + inside]
    line = before.rsplit("\n", 1)[-1]
    return before.count("\n"), len(line.encode("utf-16-le")) // 2


@pytest.mark.slow
def test_a_session_from_the_first_mistake_to_the_end(editor: Editor) -> None:
    editor.open("orders.dql", SUITE)
    (mistake,) = editor.findings("orders.dql")
    assert mistake["code"] == "E001"
    assert mistake["severity"] == 1
    assert mistake["message"] == "unknown metric 'avg'\ndid you mean 'average'?"
    assert mistake["range"]["start"] == {"line": 6, "character": 15}
    assert mistake["range"]["end"] == {"line": 6, "character": 18}

    (fix,) = editor.ask(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": editor.uri("orders.dql")},
            "range": mistake["range"],
            "context": {"diagnostics": [mistake]},
        },
    )
    ((edit,),) = fix["edit"]["changes"].values()
    assert edit == {"range": mistake["range"], "newText": "average"}

    mended = SUITE.replace("avg", "average")
    editor.change("orders.dql", mended, version=2)
    assert editor.findings("orders.dql") == []

    hovered = editor.ask_at("orders.dql", "hover", place(mended, "null_rate(email"))
    assert 'name "email null rate"' in hovered["contents"]["value"]
    line, character = place(mended, "null_rate(email", inside=0)
    assert hovered["range"]["start"] == {"line": line, "character": character}

    definition = editor.ask_at("orders.dql", "definition", place(mended, "MAX_NULL"))
    assert [item["uri"] for item in definition] == [editor.uri("common/nulls.dql")]
    assert definition[0]["range"]["start"] == {"line": 0, "character": 13}

    offered = editor.ask_at("orders.dql", "completion", place(mended, "price)", inside=2))
    assert [item["label"] for item in offered["items"]] == ["price", "email"]

    context = {"includeDeclaration": True}
    used = editor.ask_at("orders.dql", "references", place(mended, "MAX_NULL"), context=context)
    assert {item["uri"] for item in used} == {
        editor.uri("orders.dql"),
        editor.uri("common/nulls.dql"),
    }
    signed = editor.ask_at("orders.dql", "signatureHelp", place(mended, "nulls.MAX_NULL"))
    assert signed["signatures"][0]["label"] == "nulls.null_rate(column, most)"
    assert signed["activeParameter"] == 1

    prepared = editor.ask_at("orders.dql", "prepareRename", place(mended, "MAX_NULL"))
    assert prepared["placeholder"] == "MAX_NULL"
    renamed = editor.ask_at("orders.dql", "rename", place(mended, "MAX_NULL"), newName="MOST")
    assert {uri: len(edits) for uri, edits in renamed["changes"].items()} == {
        editor.uri("orders.dql"): 1,
        editor.uri("common/nulls.dql"): 1,
    }

    symbols = editor.ask(
        "textDocument/documentSymbol", {"textDocument": {"uri": editor.uri("orders.dql")}}
    )
    assert [item["name"] for item in symbols[0]["children"]] == ["Nulls 🦆", "Prices"]

    options = {"tabSize": 4, "insertSpaces": True}
    document = {"uri": editor.uri("orders.dql")}
    (formatted,) = editor.ask(
        "textDocument/formatting", {"textDocument": document, "options": options}
    )
    assert "assert average(price) > 0\n" in formatted["newText"]

    assert editor.leave() == 0
    assert editor.process.stderr is not None
    assert editor.process.stderr.read() == b""


def large(first: str) -> str:
    """A suite whose check takes long enough for other requests, with a claim at its top."""
    claims = "".join(
        f'        assert null_count(column_{number}) < {number} name "n{number}"\n'
        for number in range(2, 2500)
    )
    head = f'        assert {first} name "first"\n'
    return f'suite "Large" {{\n    check "C" on orders {{\n{head}{claims}    }}\n}}\n'


@pytest.mark.slow
def test_requests_are_answered_while_a_large_file_is_checked(editor: Editor) -> None:
    text = large("null_count(email) < 1")
    editor.open("large.dql", text)
    before = editor.ask_at("large.dql", "hover", place(text, "null_count(column_2000"))
    assert "null_count" in before["contents"]["value"]
    assert [*editor.published("large.dql")] == [], "answered before the file was checked"
    assert editor.findings("large.dql") == []

    # A line more: what is below it moves.
    typed = large('null_count(email) < 1 name "a"\n        assert null_cont(price) < 1')
    editor.change("large.dql", typed, version=2)
    time.sleep(3 * PAUSE_S)  # the check has begun
    hovered = editor.ask_at("large.dql", "hover", place(typed, "null_count(column_2000"))
    assert hovered["contents"] == before["contents"]
    assert hovered["range"]["start"]["line"] == before["range"]["start"]["line"] + 1
    offered = editor.ask_at("large.dql", "completion", place(typed, "null_cont", inside=6))
    assert "null_count" in [item["label"] for item in offered["items"]]
    signed = editor.ask_at("large.dql", "signatureHelp", place(typed, "price) < 1"))
    assert signed is None or signed["signatures"]
    assert [*editor.published("large.dql")] == [], "answered while the file was checked"
    (mistake,) = editor.findings("large.dql")
    assert mistake["code"] == "E001"


@pytest.mark.slow
def test_what_is_found_in_an_older_text_is_never_shown(editor: Editor) -> None:
    editor.open("large.dql", large("null_count(email) < 1"))
    assert editor.findings("large.dql") == []
    mistakes = [large(f"null_cont{number}(email) < 1") for number in range(3)]
    for version, text in enumerate(mistakes, 2):
        editor.change("large.dql", text, version)
        time.sleep(3 * PAUSE_S)  # the check of each has begun
    found = editor.published_next("large.dql")
    assert found["version"] == 4
    assert [one["message"].splitlines()[0] for one in found["diagnostics"]] == [
        "unknown metric 'null_cont2'"
    ]
    assert [*editor.published("large.dql")] == []
    # The place of a definition is that in the newest text, though it is not checked yet.
    moved = "\n\n" + large("null_count(email) < LIMIT").replace("{", "{\nconst LIMIT = 3\n", 1)
    editor.change("large.dql", moved, 5)
    (definition,) = editor.ask_at("large.dql", "definition", place(moved, "LIMIT name"))
    assert definition["range"]["start"] == {"line": 3, "character": 6}
    assert [*editor.published("large.dql")] == []


@pytest.mark.slow
def test_importing_files_see_the_unsaved_text_of_an_import(editor: Editor) -> None:
    editor.open("orders.dql", SUITE.replace("avg", "average"))
    assert editor.findings("orders.dql") == []
    assert editor.findings("common/nulls.dql") == []

    editor.open("common/nulls.dql", LIBRARY.replace("null_count", "nullcount"))
    (mistake,) = editor.findings("common/nulls.dql")
    assert mistake["code"] == "E001"
    (related,) = mistake["relatedInformation"]
    assert related["location"]["uri"] == editor.uri("orders.dql")
    assert related["message"] == "used here"

    editor.change("common/nulls.dql", LIBRARY.replace("MAX_NULL", "MOST_NULL"), version=2)
    assert editor.findings("common/nulls.dql") == []
    assert [item["code"] for item in _last(editor, "orders.dql")] == ["E003"]

    editor.close("common/nulls.dql")
    assert _last(editor, "orders.dql") == []


def _last(editor: Editor, name: str) -> list[dict[str, object]]:
    """What is published for a file in the end: an answered question comes after it."""
    found = editor.findings(name)
    editor.ask_at(name, "hover", (0, 0))
    while any(
        message["params"]["uri"] == editor.uri(name)
        for message in editor.unread
        if "params" in message
    ):
        found = editor.findings(name)
    return found


@pytest.mark.slow
def test_an_impossible_rename_is_refused_with_a_reason(editor: Editor) -> None:
    text = SUITE.replace("avg", "average")
    editor.open("orders.dql", text)
    refused = editor.ask_at("orders.dql", "prepareRename", place(text, "price)"))
    assert refused["message"] == "'price' cannot be renamed: columns are defined by the data"


@pytest.mark.slow
def test_a_broken_file_is_not_formatted(editor: Editor) -> None:
    editor.open("orders.dql", "suite {")
    document = {"uri": editor.uri("orders.dql")}
    options = {"tabSize": 4, "insertSpaces": True}
    assert (
        editor.ask("textDocument/formatting", {"textDocument": document, "options": options})
        is None
    )


@pytest.mark.slow
def test_an_unsaved_file_is_checked(editor: Editor) -> None:
    editor.open("untitled:Untitled-1", 'import "a.dql"\n' + SUITE.split("\n", 1)[1])
    codes = [item["code"] for item in editor.findings("untitled:Untitled-1")]
    assert codes[0] == "E006"
    assert "E001" in codes


@pytest.mark.slow
def test_unreadable_datasets_are_reported_once(editor: Editor) -> None:
    (editor.folder / "dqx.toml").write_text('[datasets.orders]\npath = "nowhere"\n')
    text = SUITE.replace("avg", "average")
    editor.open("orders.dql", text)
    for _ in range(2):
        editor.ask_at("orders.dql", "completion", place(text, "price)", inside=2))
    problem = editor.notification("window/showMessage")["message"]
    assert "the columns of dataset 'orders' cannot be read" in problem
    assert not [
        message for message in editor.unread if message.get("method") == "window/showMessage"
    ]


@pytest.mark.slow
def test_positions_use_the_encoding_of_the_editor(tmp_path: Path) -> None:
    editor = Editor(tmp_path, general={"positionEncodings": ["utf-8"]})
    assert editor.offered["positionEncoding"] == "utf-8"
    editor.open("a.dql", 'suite "🦆" { check "C" on t { assert avg(x) > 0 name "n" } }')
    (mistake,) = editor.findings("a.dql")
    assert mistake["range"]["start"]["character"] == len(
        'suite "🦆" { check "C" on t { assert '.encode()
    )
    assert editor.leave() == 0


@pytest.mark.slow
def test_files_changed_on_disk_are_checked_again(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    library = tmp_path / "common" / "nulls.dql"
    library.write_text(LIBRARY, encoding="utf-8")
    editor = Editor(tmp_path, workspace={"didChangeWatchedFiles": {"dynamicRegistration": True}})
    (registered,) = editor.notification("client/registerCapability")["registrations"]
    watched = [item["globPattern"] for item in registered["registerOptions"]["watchers"]]
    assert watched == ["**/*.dql", "**/dqx.toml"]

    editor.open("orders.dql", SUITE.replace("avg", "average"))
    assert editor.findings("orders.dql") == []
    library.write_text("export const OTHER = 1\n", encoding="utf-8")
    change = {"uri": editor.uri("common/nulls.dql"), "type": 2}
    editor.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
    assert {item["code"] for item in editor.findings("orders.dql")} == {"E201"}
    assert editor.leave() == 0


@pytest.mark.slow
def test_calls_are_completed_with_their_brackets_where_the_editor_can(tmp_path: Path) -> None:
    snippets = {"completion": {"completionItem": {"snippetSupport": True}}}
    editor = Editor(tmp_path, textDocument=snippets)
    text = 'suite "S" { check "C" on t { assert aver'
    editor.open("a.dql", text)
    items = editor.ask_at("a.dql", "completion", (0, len(text)))["items"]
    (average,) = (item for item in items if item["label"] == "average")
    assert average["textEdit"]["newText"] == "average($0)"
    assert average["insertTextFormat"] == 2
    start, end = average["textEdit"]["range"].values()
    assert (start["character"], end["character"]) == (len(text) - 4, len(text))
    assert editor.leave() == 0


@pytest.mark.more
def test_without_pygls_the_install_command_is_printed(tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls" / "__init__.py").write_text("raise ModuleNotFoundError(name='pygls')")
    run = [sys.executable, "-c", "from dqx_airflow.cli.main import app; app(['lsp'])"]
    done = ended(run, env={"PYTHONPATH": str(tmp_path)}, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr == (
        "error: the language server needs pygls, which is not installed\n"
        "  help: pip install 'dqx-airflow[lsp]'\n"
    )
