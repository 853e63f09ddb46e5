"""Valid values of reader options: for most others Spark fails late, or misreads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

Read = Callable[[str], bool]

_BOOLEANS = (
    "aggregate-push-down-enabled allowBackslashEscapingAnyCharacter allowComments "
    "allowNonNumericNumbers allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars "
    "allowUnquotedFieldNames columnPruning dropFieldIfAllNull "
    "enableDateTimeParsingFallback enableStableIdentifiersForUnionType enforceSchema escapeQuotes "
    "executor-cache-locality-enabled header ignoreExtension ignoreLeadingWhiteSpace "
    "ignoreNullFields ignoreTrailingWhiteSpace inferSchema inferTimestamp locality mergeSchema "
    "multiLine positionalFieldMatching preferDate prefersDecimal pretty primitivesAsString "
    "quoteAll recursiveFileLookup sortKeys useUnsafeRow vectorization-enabled "
    "writeNonAsciiCharacterAsCodePoint"
)
_WHOLE_NUMBERS = (
    "as-of-timestamp batch-size end-snapshot-id end-timestamp fetchsize file-open-cost "
    "inputBufferSize lookback maxCharsPerColumn maxColumns numPartitions queryTimeout "
    "recursiveFieldMaxDepth snapshot-id split-size start-snapshot-id start-timestamp"
)
_MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
_REBASE_MODES = ("EXCEPTION", "CORRECTED", "LEGACY")
_QUOTE_HANDLING = (
    *("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER"),
    *("SKIP_VALUE", "RAISE_ERROR"),
)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
_WHOLE = re.compile(r"-?\d+")
_SHARE = re.compile(r"0?\.\d+|1(\.0+)?")


def _one_of(words: tuple[str, ...]) -> tuple[Read, str]:
    return lambda value: value.upper() in words, f"write one of {', '.join(words)}"


def _at_most_one(value: str) -> bool:
    return len(value) <= 1 or value in ("\\0", "\\t", "\\\\", '\\"')


_KINDS: Mapping[str, tuple[Read, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            _BOOLEANS.lower().split(),
            (lambda value: value.lower() in ("true", "false"), "write true or false"),
        ),
        **dict.fromkeys(
            _WHOLE_NUMBERS.lower().split(),
            (lambda value: _WHOLE.fullmatch(value) is not None, "write a whole number"),
        ),
        **dict.fromkeys(
            ("quote", "escape", "comment", "chartoescapequoteescaping"),
            (_at_most_one, "write one character"),
        ),
        **dict.fromkeys(("sep", "delimiter", "encoding", "charset"), (bool, "write a value")),
        **dict.fromkeys(
            ("modifiedafter", "modifiedbefore"),
            (lambda value: _TIME.fullmatch(value) is not None, "write 2024-05-17T06:00:00"),
        ),
        **dict.fromkeys(("datetimerebasemode", "int96rebasemode"), _one_of(_REBASE_MODES)),
        "samplingratio": (
            lambda value: _SHARE.fullmatch(value) is not None,
            "write a number above 0, up to 1",
        ),
        "mode": _one_of(_MODES),
        "unescapedquotehandling": _one_of(_QUOTE_HANDLING),
    }
)


def hint_for(name: str, value: str) -> str | None:
    """The valid values for an option with an invalid one; None if its value is valid.

    :param name: of the option, in lower case.
    """
    is_sound, hint = _KINDS.get(name, (lambda value: True, ""))
    return None if is_sound(value) else hint
