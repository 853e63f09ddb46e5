"""Real shells complete the values of `dql`: bash, and zsh where it is installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dqx_airflow.cli.shell_words import ShellWord, is_offered, shell_word
from tests.processes import output_of

SUITE = """\
suite "Orders" {
    check "Keys" on orders {
        assert num_rows() >= 1 name "orders:rows"
        assert num_rows() <= 200 name "rush:at noon"
        assert num_rows() <= 300 name "plain"
    }
}
"""
BIN = str(Path(sys.executable).parent)
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "source <(dql --show-completion bash); echo ready$((1))",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; dql --show-completion zsh > here.zsh; "
        "source here.zsh; echo ready$((1))",
    ),
}
MOST_SECONDS = 120


@pytest.mark.more
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("--only orders:r", "--only orders:rows "),
        ("--only=orders:r", "--only=orders:rows "),
        ("--only rush:", "--only rush:at\\ noon "),
        ("--only=pl", "--only=plain "),
        ("--only pl", "--only plain "),
    ],
)
def test_a_shell_completes_a_name(shell: str, typed: str, shown: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "orders.dql").write_text(SUITE)
    with shell_of(shell, tmp_path) as terminal:
        os.write(terminal, f"dql run orders.dql {typed}\t".encode())
        shown_until(terminal, f"dql run orders.dql {shown}")


@contextmanager
def shell_of(shell: str, folder: Path) -> Iterator[int]:
    """A terminal with a shell that completes `dql`, in a folder."""
    call, prepare = SHELLS[shell]
    with_dql = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    plain = {
        "TERM": "dumb",
        "INPUTRC": os.devnull,
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(call[0], call, {**os.environ, **with_dql, **plain})
    try:
        os.write(terminal, f"{prepare}\r".encode())
        shown_until(terminal, "ready1")
        yield terminal
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


def shown_until(terminal: int, wanted: str) -> None:
    """Reads what a shell shows until it contains a text."""
    shown = ""
    end = time.monotonic() + MOST_SECONDS
    while wanted not in shown:
        is_there, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert is_there, f"{wanted!r} is not in {shown!r}"
        shown += os.read(terminal, 65536).decode(errors="replace")


@pytest.mark.more
def test_bash_writes_no_space_after_the_name_of_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "orders.dql").write_text(SUITE)
    (tmp_path / "dqx.toml").write_text('[datasets.orders]\npath = "lake/orders"\n')
    with shell_of("bash", tmp_path) as terminal:
        os.write(terminal, b"dql run orders.dql --dataset ord\tlake/ord")
        shown_until(terminal, "dql run orders.dql --dataset orders=lake/ord")


def test_the_installed_script_is_the_one_that_is_printed(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}"}
    install = "dql --install-completion >&2"
    call = ["bash", "-c", f"{install}; {install}; dql --show-completion"]
    printed = output_of(call, cwd=tmp_path, env=environment)
    installed = (tmp_path / ".bash_completions" / "dql.sh").read_text()
    assert installed.strip() == printed.strip()
    assert installed.count("compopt -o nospace") == 1


@pytest.mark.parametrize(
    ("pieces", "words", "word"),
    [
        (["dql", ""], ["dql", ""], ShellWord(is_escaped=True)),
        (["dql", "a", "b"], ["dql", "a", "b"], ShellWord(is_escaped=True)),
        (
            ["dql", "--only", "k", ":", "r"],
            ["dql", "--only", "k:r"],
            ShellWord(kept="k:", is_escaped=True),
        ),
        (
            ["dql", "--only", "k", "::"],
            ["dql", "--only", "k::"],
            ShellWord(kept="k::", is_escaped=True),
        ),
        (
            ["dql", "--only", "=", "k", ":", "r"],
            ["dql", "--only=k:r"],
            ShellWord("--only=", "--only=k:", is_escaped=True),
        ),
        (["dql", "--set", "L", "=", ""], ["dql", "--set", "L=", ""], ShellWord(is_escaped=True)),
        (["dql", "--only", '"k'], ["dql", "--only", '"k'], ShellWord()),
    ],
)
def test_the_words_of_bash_are_joined(pieces: list[str], words: list[str], word: ShellWord) -> None:
    variables = {"COMP_WORDS": "\n".join(pieces), "COMP_CWORD": str(len(pieces) - 1)}
    assert shell_word(variables, "bash") == word
    assert variables == {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}


@pytest.mark.parametrize(
    "value", ["a$(id)", r"a\$(id)", "a`id`", "a';id;'", 'a"b', "a!b", "a\nid", "a\x1b[A"]
)
def test_a_value_with_which_a_shell_could_run_something_is_not_offered(value: str) -> None:
    assert not is_offered(value)


def test_plain_values_are_offered() -> None:
    plain = ["orders:rows", "rush:at noon", "a=b", "größe", "a;b", "x (y) & z"]
    assert [value for value in plain if not is_offered(value)] == []


def test_a_value_is_escaped_where_the_shell_does_not() -> None:
    assert ShellWord(is_escaped=True).completed("a b$c") == r"a\ b\$c"
    assert ShellWord().completed("a b$c") == "a b$c"
    assert ShellWord("--only=", "--only=k:").completed("k:r") == "r"
