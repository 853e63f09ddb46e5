"""Quick fixes: replacing a word by the suggested one."""

from __future__ import annotations

import re

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.editor.positions import Lines
from dqx_airflow.editor.rename import Edit

_PROPOSAL = re.compile(r"did you mean ['`](?P<word>[^'`]+)['`]\?")
_WORD = re.compile(r'[\w.]+\Z|"[^"]*"\Z')


def proposed(diagnostic: Diagnostic, lines: Lines) -> Edit | None:
    """The edit that a diagnostic suggests for its own position; None if there is none."""
    proposal = _PROPOSAL.search(f"{diagnostic.label}\n{diagnostic.help or ''}")
    start, end = lines.stretch(diagnostic.span)
    guilty = lines.text[start:end]
    if proposal is None or not _WORD.match(guilty):
        return None
    word = proposal["word"]
    return Edit(diagnostic.span, f'"{word}"' if guilty.startswith('"') else word)
