"""The table of diagnostic codes: one row a code. Codes are stable; a retired one is not reused."""

from __future__ import annotations

CODES: dict[str, str] = {
    # Syntax and names
    "E001": "unknown metric",
    "E002": "duplicate assertion name",
    "E003": "unknown constant",
    "E004": "bad severity",
    "E007": "syntax error",
    "E008": "no suite in the file",
    "E009": "unknown dataset",
    "E010": "not a text file",
    "E011": "duplicate constant",
    "E012": "unknown annotation",
    "E013": "modifier given twice",
    "E014": "nested too deeply",
    "E015": "several suites",
    # Types and units
    "E101": "wrong arguments",
    "E102": "a column where a metric belongs",
    "E103": "tolerance without == or !=",
    "E104": "impossible condition",
    "E105": "tunable out of bounds",
    "E106": "not a predicate over rows",
    "E107": "not a number",
    "E108": "assertion without a condition",
    "E109": "share or factor out of range",
    "E110": "bad regular expression",
    "E111": "lag on a dataset without dates",
    # Macros and imports
    "E005": "circular import",
    "E006": "import not found",
    "E201": "unknown macro",
    "E202": "wrong number of macro arguments",
    "E203": "recursive macro",
    "E204": "macro used before its definition",
    "E205": "unknown macro parameter",
    "E206": "expansion too large",
    "E207": "import of a suite",
    "E208": "name that is not exported",
    "E209": "duplicate parameter",
    # Profiles and dates
    "E301": "bad date expression",
    "E302": "profile without dates",
    "E303": "unknown profile type",
    # Warnings
    "W001": "assertion has no name",
    "W002": "rule matches nothing",
    "W003": "rule disables a required assertion",
    "W004": "unused constant",
    "W005": "unused macro",
    "W006": "name made twice by a macro",
    "W007": "unused import",
}
