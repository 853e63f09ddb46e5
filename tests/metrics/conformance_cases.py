"""The conformance cases, and two subsets: one covers the language, and one covers everything."""

from __future__ import annotations

import re
from pathlib import Path

import dqx_airflow
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.engine.proof.cases import ProofCase, proof_cases

CASES = list(proof_cases())
FOLDER = Path(dqx_airflow.__file__).parent / "engine" / "proof" / "cases"


def _touched(case: ProofCase) -> set[str]:
    """The calls, words and signs of its claims, its types, kinds of values, blocks and options."""
    fields = [field for table in case.tables()[0].values() for field in table.fields]
    claims = re.sub(r'"[^"]*"|`[^`]*`', "", " ".join(claim for claim, _ in case.lines))
    words = {*re.findall(r"[^\W\d]\w*\(?|[<>=!+*/%-]+", claims)} - {field.name for field in fields}
    types = {f"type {re.split(r'[(<]', field.type)[0]}" for field in fields}
    values = {f"value {re.split(r'[^a-z]', due)[0]}" for _, due in case.lines}
    blocks = {
        f"{block.kind} {option.partition('=')[0] if '=' in option else ''}"
        for block in case.blocks
        for option in ("", *block.options)
    }
    return words | types | values | blocks


_UNITS = {"days", "hours", "minutes", "seconds"}
"""Words of the language that the grammar takes for names."""


def _language() -> set[str]:
    """All that is touched but the words that are no keywords: names of data and of formats."""
    keywords = {terminal.pattern.value for terminal in grammar().terminals} | _UNITS
    touched = set().union(*map(_touched, CASES))
    return {one for one in touched if not one.isidentifier() or one in keywords}


def _covering(wanted: set[str] | None = None) -> list[ProofCase]:
    """Few cases that together touch all that is wanted, or all that is touched by any."""
    left = {case: _touched(case) for case in CASES}
    if wanted is not None:
        left = {case: touched & wanted for case, touched in left.items()}
    chosen = []
    while any(left.values()):
        chosen.append(richest := max(left, key=lambda case: len(left[case])))
        left = {case: touched - left[richest] for case, touched in left.items()}
    return sorted(chosen, key=CASES.index)


OF_THE_LANGUAGE = _covering(_language())
"""Those that Spark has in the default lane: with every call, keyword, type and kind of value."""

COVERING = _covering()
"""Those that Spark has in the second lane, over Connect; the nightly one has all."""

WITH_ERRORS = [case for case in CASES if "value error" in _touched(case)]
"""Those in which ANSI mode makes a difference: an overflow, a cast or a division is an error."""
