"""What `dql check` prints is enough for a loop that ends with a correct suite.

The reader here knows nothing of the language: it applies the first suggestion that is printed, word
for word, and checks again. So an agent, or a person, that only does what the messages say comes to
an end, and the suite means what the draft meant.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile
from tests.markdown_cases import Case, cases

SUITE = """\
suite "Orders" {{
    const MIN_ROWS = 10
    check "C" on orders {{
        {}
        assert num_rows() > MIN_ROWS name "rows"
    }}
}}
"""
TASKS = list(cases(Path(__file__).parent / "agent_tasks.md"))
MOST_ROUNDS = 6

_PLACE = re.compile(r"^ *--> draft\.dql:(\d+):(\d+)$", re.M)
_CARETS = re.compile(r"^ *\| *(\^+)(.*)$", re.M)
_MEANT = re.compile(r"did you mean ['`](.+?)['`]\?")
_REMOVE = re.compile(r"help: remove it\b")
_WRITE = re.compile(r"help: write (?:[^`\n]*: )?`(.+?)`|help: write ([^`\n]+)$", re.M)


def corrected(text: str, printed: str) -> str:
    """The text after the first suggestion that the output makes."""
    place, carets = _PLACE.search(printed), _CARETS.search(printed)
    assert place is not None, printed
    assert carets is not None, printed
    lines = text.split("\n")
    line, start = lines[int(place[1]) - 1], int(place[2]) - 1
    end = start + len(carets[1])
    printed = printed.split("\n\n", maxsplit=1)[0]
    if meant := _MEANT.search(printed):
        line = line[:start] + meant[1] + line[end:]
    elif _REMOVE.search(printed):
        line = line[:start] + line[end:]
    elif wanted := _WRITE.search(printed):
        line = _written(line, start, end, wanted[1] or wanted[2])
    else:
        raise AssertionError(f"no suggestion:\n{printed}")
    lines[int(place[1]) - 1] = line
    return "\n".join(lines)


def _written(line: str, start: int, end: int, wanted: str) -> str:
    """The suggestion in place of the marked text, and of what it repeats around it: the rest of an
    operator, and the call that it is a form of."""
    while not re.match(r"[\w\s\"'()\[\]]", line[start]) and re.match(r"[<>&|!]", line[start - 1]):
        start -= 1
    while re.match(r"[<>&|]", line[start:end]) and re.match(r"[<>&|]", line[end]):
        end += 1
    for length in range(len(wanted), 0, -1):
        if line[:start].rstrip().endswith(wanted[:length]):
            start = len(line[:start].rstrip()) - length
            break
    for length in range(len(wanted), 0, -1):
        if line[end:].startswith(wanted[-length:]) and re.match(r"\W", wanted[-length:]):
            end += length
            break
    if re.match(r"\w+\(", wanted) and line[end : end + 1] == "(":  # the marked name of a call
        end = line.index(")", end) + 1
    return line[:start] + wanted + line[end:]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_a_draft_becomes_correct_by_doing_what_is_printed(task: Case) -> None:
    draft, end = (block.text.strip().replace("\n", "\n        ") for block in task.blocks)
    text = SUITE.format(draft)
    for _ in range(MOST_ROUNDS):
        checked = check_source(SourceFile("draft.dql", text))
        if not checked.errors:
            break
        text = corrected(text, draw(checked.errors, checked.sources))
    assert text == SUITE.format(end)
    assert not check_source(SourceFile("draft.dql", text)).diagnostics


def test_there_are_twenty_tasks_whose_drafts_are_wrong() -> None:
    assert len(TASKS) >= 20
    for task in TASKS:
        assert check_source(SourceFile("d.dql", SUITE.format(task.blocks[0].text))).errors
