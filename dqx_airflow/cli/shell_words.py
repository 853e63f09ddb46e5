"""The word that a shell completes: which part of it the shell replaces, and how a value is written
there.

bash splits a line at `:` and `=`, too, and replaces only what follows the last of them. The other
shells replace the whole word, even `--only=` at its beginning.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

_BREAKS = re.compile("[:=]+")
_OPTION = re.compile("--[^=]*=")
_SPECIAL = re.compile(r"[^\w@%+=:,./{}^~-]")
"""The characters that bash would not take as a part of a word."""
_ACTIVE = re.compile(r"""[`$\\"'!\x00-\x1f\x7f]""")
"""The characters with which a word, when it is completed, could run a command: zsh evaluates the
answer, and bash inserts it as it is after an opening quote."""


_END_OF_SCRIPT = "    return 0\n"
_NO_SPACE = """\
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && type compopt &>/dev/null; then
        compopt -o nospace
    fi
"""


@contextmanager
def names_kept_open() -> Iterator[None]:
    """Changes the script for bash that is printed or installed within the block: bash writes no
    space after a name that ends with `=`, which a location or a value follows: `orders=`. bash 3
    cannot."""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        sys.stdout.write(_with_open_names(printed.getvalue()))
        installed = Path.home() / ".bash_completions" / "dql.sh"
        if installed.is_file():
            installed.write_text(_with_open_names(installed.read_text()))


def _with_open_names(script: str) -> str:
    is_bash = _END_OF_SCRIPT in script and _NO_SPACE not in script
    return script.replace(_END_OF_SCRIPT, _NO_SPACE + _END_OF_SCRIPT) if is_bash else script


def is_offered(value: str) -> bool:
    """Whether a value is safe in each shell. Names come from files and tables of others."""
    return _ACTIVE.search(value) is None


@dataclass(frozen=True, slots=True)
class ShellWord:
    """The word at the cursor, as it is typed.

    :param option: the option before its value, if both are one word: `--only=`.
    :param kept: the beginning of the word that the shell keeps.
    :param is_escaped: the shell inserts a value as it is, without escaping it.
    """

    option: str = ""
    kept: str = ""
    is_escaped: bool = False

    def completed(self, value: str) -> str:
        """Returns the text that the shell puts in the place of the part that it replaces."""
        written = _SPECIAL.sub(lambda found: f"\\{found[0]}", value) if self.is_escaped else value
        return f"{self.option}{written}".removeprefix(self.kept)


def shell_word(variables: MutableMapping[str, str], shell: str) -> ShellWord:
    """Returns the word at the cursor. The words of bash are joined again in its variables."""
    if shell != "bash":
        typed = variables.get("_TYPER_COMPLETE_ARGS", "").split(" ")[-1]
        return ShellWord(_option_of(typed))
    given = variables["COMP_WORDS"]
    pieces = given.split("\n" if "\n" in given else " ")
    words, kept = _joined(pieces, int(variables["COMP_CWORD"]))
    variables["COMP_WORDS"] = "\n".join(words)
    variables["COMP_CWORD"] = str(len(words) - 1)
    value = words[-1].removeprefix(_option_of(words[-1]))
    return ShellWord(_option_of(words[-1]), kept, is_escaped=value[:1] not in ("'", '"'))


def _option_of(word: str) -> str:
    found = _OPTION.match(word)
    return found[0] if found else ""


def _joined(pieces: list[str], current: int) -> tuple[list[str], str]:
    """The words up to the current one, and the beginning of that which bash keeps."""
    words: list[str] = []
    kept = ""
    is_open = False
    for piece in [*pieces, ""][: current + 1]:
        is_break = _BREAKS.fullmatch(piece) is not None
        if piece and words and (is_break or is_open):
            kept = words[-1] + (piece if is_break else "")
            words[-1] += piece
        else:
            kept = ""
            words.append(piece)
        is_open = is_break
    return words, kept
