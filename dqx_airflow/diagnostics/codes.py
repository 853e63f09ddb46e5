"""The table of diagnostic codes: one row for each. Codes are stable; a retired one is not used
again. The page of a code shows the purpose of its rule, with a wrong and a right example."""

from __future__ import annotations

from importlib.resources import files

CODES: dict[str, str] = {
    # Syntax and names
    "E001": "unknown metric",
    "E002": "duplicate assertion name",
    "E003": "unknown constant",
    "E004": "bad severity",
    "E007": "syntax error",
    "E008": "file without a suite",
    "E009": "unknown dataset",
    "E010": "unreadable file",
    "E011": "duplicate constant",
    "E012": "unknown annotation",
    "E013": "modifier given twice",
    "E014": "nested too deeply",
    "E015": "several suites",
    "E016": "empty name",
    "E017": "duplicate dataset",
    "E018": "file too large",
    # Types and units
    "E101": "wrong arguments",
    "E102": "column where a metric belongs",
    "E103": "tolerance without == or !=",
    "E104": "impossible condition",
    "E105": "tunable out of bounds",
    "E106": "not a predicate over rows",
    "E107": "not a number",
    "E108": "assertion without a condition",
    "E109": "share or factor out of range",
    "E110": "bad regular expression",
    "E111": "lag on a dataset without dates",
    "E112": "units do not match",
    "E113": "unknown format",
    "E114": "unknown type",
    "E115": "SQL that is not a single read-only expression",
    "E120": "unbounded regular expression",
    "E121": "filter that has no effect",
    "E130": "datasets that cannot be compared",
    # Groups
    "E140": "no value for each group",
    "E141": "bad groups",
    # Macros and imports
    "E005": "circular import",
    "E006": "import not found",
    "E201": "unknown macro",
    "E202": "wrong number of macro arguments",
    "E203": "recursive macro",
    "E204": "macro used before its definition",
    "E205": "unknown macro parameter",
    "E206": "macro expansion too large",
    "E207": "import of a suite",
    "E208": "name not exported",
    "E209": "duplicate parameter",
    "E210": "duplicate macro",
    # Profiles and dates
    "E301": "bad date expression",
    "E302": "profile without valid dates",
    "E303": "unknown profile type",
    "E304": "rule mutes a required assertion",
    "E305": "rule scales a share",
    # Contracts
    "E401": "invalid YAML",
    "E402": "duplicate key",
    "E403": "unknown contract dialect",
    "E404": "unknown dialect version",
    "E405": "contract does not match its schema",
    "E406": "unresolved $ref",
    "E407": "circular $ref",
    "E408": "$ref outside the folder",
    "E409": "contract too large",
    "E410": "bad duration",
    "E411": "incomplete acceptance",
    "E420": "unresolved reference",
    "E421": "example violates its contract",
    "E422": "unknown value of a closed set",
    "E423": "contradictory bounds",
    "E424": "broken pattern in a contract",
    "E425": "query without a threshold",
    "E426": "invalid address",
    "E427": "contradictory lifecycle",
    "E428": "unknown constraint in a contract",
    "E429": "unknown variable in a contract",
    # DataLex
    "E501": "invalid manifest",
    "E502": "contract not in the manifest",
    "E503": "malformed contract id",
    "E504": "version not in the manifest",
    "E505": "contract without a pin",
    "E506": "missing promised column",
    "E507": "columns that cannot be proven",
    "E508": "malformed block",
    "E509": "no manifest found",
    # Tuning
    "E601": "value outside the bounds of a tunable",
    "E602": "required assertion weakened",
    "E603": "change not allowed for an algorithm",
    "E604": "change that is out of date",
    # Warnings
    "W001": "assertion has no name",
    "W002": "rule matches nothing",
    "W004": "unused constant",
    "W005": "unused macro",
    "W006": "duplicate name from a macro",
    "W007": "unused import",
    "W008": "assertion can never fail",
    "W009": "assertion without a metric",
    "W010": "downgrade that raises the severity",
    "W011": "first row without an order",
    "W012": "nothing is checked",
    "W014": "profile disables everything",
    "W015": "name hides an imported one",
    "W020": "clause not checked",
    "W021": "unknown key in a contract",
    "W022": "acceptance of no clause",
    "W023": "variable in a contract without variables",
    "W030": "field without a description",
    "W031": "contract without an owner",
    "W032": "contract without a version",
    "W033": "model without a key",
    "W034": "contract with a schema only",
    "W035": "unmarked personal data",
    "W036": "contract without fields",
    "W037": "partition is not a column",
    "W038": "name breaks the naming convention",
    "W039": "incomplete contract",
    "W040": "block without a pinned version",
    "W041": "column not in the contract",
    "W042": "DataLex without a manifest",
    "W043": "unknown block status",
    "W050": "damaged line in a history",
    "W051": "past days turn with a change",
    "W060": "missing groups are not seen",
}


def page(code: str) -> str:
    """The page of a code of the table, in Markdown."""
    assert code in CODES
    home = files("dqx_airflow") / "docs" / "codes"
    return (home / f"{code}.md").read_text(encoding="utf-8")


def reason(code: str) -> str:
    """The opening of the page, on one line: the purpose of the rule."""
    opening = page(code).split("\n## ", 1)[0]
    _, text = opening.split("\n", 1)
    return " ".join(text.split())
