"""Decides which calls Spark SQL in suites may contain, from Spark's own tokens: functions,
patterns, sizes of values.

The built-in functions of Spark are reviewed one by one. This is an allowlist. A test compares it
with the running Spark (`SHOW SYSTEM FUNCTIONS`), so a function of a new version is rejected until
it is reviewed and entered in `spark_functions.txt`. `python
tests/engine/functions_of_spark.py` prints what is missing, by version.

Functions are allowed if they depend on their arguments only, or on the clock or chance. They are
rejected if they read files, call an address or code, or reveal the session.

Checks that must not be bypassed read the tokens that Spark's lexer sees, however another parser
reads the text. Anything that Spark might split in another way (nested comments, characters outside
of SQL) is rejected. A name before a parenthesis is a call, a keyword, or the name of a table with
its columns. A name that is not certainly a keyword or a table counts as a call, and is rejected
unless the function is allowed.

Spark gets regular expressions as they are written, so none of them may need rewriting. An
expression must be a literal: the contents of a column could take unlimited time. One that is
bounded only for strings of limited length needs a test of that length before it: `length(x) <= 700
AND x RLIKE '...'`.

`repeat('x', 2000000000)` ends the JVM of a gate, for any amount of data. So the number must be a
small literal; and such functions must not be nested, since their sizes would multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like, ended
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values.files import table_rows

_REFUSED = "refused: "
_SECTIONS = {
    title: names.split()
    for title, names in re.findall(
        r"^(\S.*):\n((?: .*\n)+)",
        files(__package__).joinpath("spark_functions.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
_KEYWORDS, _HINTS = frozenset(_SECTIONS.pop("keywords")), frozenset(_SECTIONS.pop("hints"))
_BARE = frozenset({"current_user", "session_user"})
"""Functions that can be called without parentheses, and are hardly ever the name of a column."""

_REASONS = {
    name: title.removeprefix(_REFUSED)
    for title, names in _SECTIONS.items()
    for name in names
    if title.startswith(_REFUSED)
}
_KNOWN = frozenset(chain.from_iterable(_SECTIONS.values())) - _REASONS.keys()

_LONGEST = 60

REVIEWED = frozenset({*_KNOWN, *_REASONS})
"""All functions in `spark_functions.txt`."""


def objection_to_call(name: str) -> str | None:
    """The reason why SQL of a suite may not call a function; None if it may.

    >>> objection_to_call("xpath_int")
    'xpath_int() may open files and URLs named in its XML'
    """
    if name in _KNOWN:
        return None
    if name in _REASONS:
        return f"{name}() {_REASONS[name]}"
    near = get_close_matches(name[:_LONGEST], sorted(_KNOWN), n=1, cutoff=0.8)
    meant = f": did you mean {near[0]}()?" if near else ""
    return f"{name}() is not one of Spark's functions that SQL in a suite may call{meant}"


def objection_to_word(name: str) -> str | None:
    """The reason why SQL of a suite may not contain a word that Spark treats as a call; None if it
    may."""
    return objection_to_call(name) if name in _BARE else None


Kind: TypeAlias = Literal["word", "quoted", "string", "sign"]
_NAMES = frozenset({"word", "quoted"})

_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ | --(?:\\\n|[^\r\n])* | /\*(?!\+)(?:(?!/\*|\*/).)*\*/ )
    | (?P<word> \w+ )
    | (?P<string> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<sign> /\*\+ | (?!/\*)(?: \*/ | \|\| | :: | -> | [!\#%-&(-/:-@\[\]^{-~]) )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class UnreadableError(ValueError):
    """A text is not Spark SQL, or is ambiguous; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of SQL: `text` as written; a string may have the prefix `r`."""

    kind: Kind
    text: str

    @property
    def name(self) -> str:
        """The identifier in lower case, without its quotes."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.strip('"').lower()

    @property
    def value(self) -> str:
        """The characters of a string literal, with its escapes resolved as by Spark."""
        if self.text[0] in "rR":
            return self.text[2:-1]
        quote = self.text[0]
        inside = self.text[1:-1].replace(quote * 2, quote)
        return _ESCAPE.sub(_unescaped, inside)


def spark_tokens(text: str) -> list[Token]:
    """The tokens of a text, without spaces and comments.

    >>> [token.text for token in spark_tokens("max(x) -- highest")]
    ['max', '(', 'x', ')']

    :raises UnreadableError: Spark might read it in another way.
    """
    if "${" in text:
        raise UnreadableError("Spark may replace ${...} by settings or the environment")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableError(_unread(text, position))
        kind = match.lastgroup
        piece = match[0]
        is_raw = tokens and tokens[-1].text in ("r", "R") and text[position - 1] in "rR"
        if kind == "string" and is_raw:
            if piece[-2] == "\\" or piece[0] in piece[1:-1]:
                raise UnreadableError("a raw string that contains a quotation mark")
            tokens[-1] = Token("string", tokens[-1].text + piece)
        elif kind in ("word", "quoted", "string", "sign"):
            tokens.append(Token(kind, piece))  # type: ignore[arg-type]
        position = match.end()
    return tokens


def _unread(text: str, position: int) -> str:
    character = text[position]
    if text.startswith("/*", position):
        return "an unclosed or nested comment"
    if character in "'\"`":
        return f"an unclosed quotation mark {character}"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return f"the character {shown} outside quotes"


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, plain = match.groups()
    if octal:
        return chr(int(octal, 8))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code < 0x110000 else ""
    # Spark keeps the backslash of these two: they are escapes of LIKE.
    return "\\" + plain if plain in "%_" else _CONTROLS.get(plain, plain)


def _positions(heading: str) -> dict[str, tuple[int, ...]]:
    """The positions of some arguments of functions, from a table of `spark_functions.txt`."""
    rows = table_rows(__package__, "spark_functions.txt", heading)
    return {
        name: tuple(map(int, positions.split()))
        for names, positions in rows
        for name in names.split()
    }


_OPERATORS = {"rlike": False, "regexp": False, "like": True, "ilike": True}
"""By name, whether the pattern is one of LIKE. They may be called as functions, too."""
_FUNCTIONS = _positions("patterns")
"""The positions of regular expressions among the arguments of functions."""
_GO_ON = frozenset({"||", "+", "-", "*", "/", "%", ".", "[", "::", "&", "^", "|"})


@dataclass(frozen=True, slots=True)
class _Use:
    """A pattern: its tokens, and the tokens of the value that it is matched with, if known."""

    pattern: Sequence[Token]
    before: Sequence[Token]
    is_like: bool


def objection_to_patterns(tokens: Sequence[Token]) -> str | None:
    """The reason why the patterns in a text are not allowed; None if they are."""
    for at in range(len(tokens)):
        for use in _uses(tokens, at):
            objection = _objection_to_pattern(use)
            if objection is not None:
                return objection
    return None


def _uses(tokens: Sequence[Token], at: int) -> Iterator[_Use]:
    """The regular expressions that the function or operator at a position matches."""
    token = tokens[at]
    if token.kind == "sign":
        return
    is_called = at + 1 < len(tokens) and tokens[at + 1].text == "("
    name = token.name
    if is_called and (name in _FUNCTIONS or name in _OPERATORS):
        arguments = list(arguments_of(tokens, at + 1))
        if name in _FUNCTIONS:
            for number in _FUNCTIONS[name]:
                if number < len(arguments):
                    yield _Use(arguments[number], (), is_like=False)
            return
        yield _Use(arguments[min(1, len(arguments) - 1)], tokens[:at], is_like=_OPERATORS[name])
        return
    if name not in _OPERATORS or token.kind != "word":
        return
    rest = tokens[at + 1 :]
    if rest and rest[0].kind == "word" and rest[0].name in ("any", "some", "all"):
        for argument in arguments_of(tokens, at + 2):
            yield _Use(argument, (), is_like=_OPERATORS[name])
        return
    end = 1
    while end < len(rest) and (rest[end].kind == "string" or rest[end].text in _GO_ON):
        end += 1
    if end < len(rest) and rest[end].text.lower() == "collate":
        end += 1
    yield _Use(rest[:end], tokens[:at], is_like=_OPERATORS[name])


def arguments_of(tokens: Sequence[Token], opening: int) -> Iterator[Sequence[Token]]:
    """The tokens of each argument of a call, whose parenthesis is at `opening`."""
    depth = 0
    start = opening + 1
    for at in range(opening, len(tokens)):
        text = tokens[at].text
        depth += (text in "([") - (text in ")]") if tokens[at].kind == "sign" else 0
        if depth == 0 or (depth == 1 and text == "," and tokens[at].kind == "sign"):
            yield tokens[start:at]
            start = at + 1
        if depth == 0:
            return


def _objection_to_pattern(use: _Use) -> str | None:
    if len(use.pattern) != 1 or use.pattern[0].kind != "string":
        return "a pattern in SQL must be a literal, because its run time must be bounded"
    pattern = use.pattern[0].value
    if pattern in _formats():
        return None
    try:
        longest = bounded_like(pattern) if use.is_like else bounded(
            pattern, is_as_written=True
        ).longest  # fmt: skip
    except PatternError as error:
        return f"the pattern {use.pattern[0].text}: {error.problem}"
    if longest is None or _is_guarded(use.before, longest):
        return None
    return (
        f"the pattern {use.pattern[0].text} only handles strings of up to {longest:,} characters: "
        f"use `matches`, or write length(x) <= {longest} AND x RLIKE ..."
    )


@cache
def _formats() -> frozenset[str]:
    """The expressions of the formats in DQL, which reject long strings first, as contracts do."""
    written = {whole(entry.pattern) for entry in TEXT_FORMATS.values()}
    return frozenset({*written, *map(ended, written)})


def _is_guarded(before: Sequence[Token], longest: int) -> bool:
    """True for `length(x) <= 700 AND x`, also with a NOT."""
    texts = [token.text.lower() for token in before]
    for size in range(1, len(texts) // 2):
        operand = texts[-size:]
        rest = texts[:-size]
        if operand[:1] == ["not"]:
            continue
        if rest[-1:] == ["not"]:
            rest = rest[:-1]
        if rest[-4:-2] == ["<", "="] and rest[-1] == "and" and rest[-2].isdigit():
            guard = ["length", "(", *operand, ")"]
            if rest[:-4][-len(guard) :] == guard and int(rest[-2]) <= longest:
                return True
    return False


MOST_VALUES = 10_000
"""The maximum number of characters or items that such a function may build."""

_SIZED = {name: size for name, (size,) in _positions("sizes").items()}
"""Functions, with the argument that is the size of their result."""
_FINEST = {"approx_count_distinct": (1, 0.001), "count_min_sketch": (1, 0.00001)}
"""Sketches, with the argument for their accuracy, and its minimum."""
_UNITS = "hour day week month quarter year"
_STEPS = frozenset(_UNITS.split()) | {f"{unit}s" for unit in _UNITS.split()}
_FOLDS, _FORMATS = frozenset({"aggregate", "reduce"}), frozenset({"format_string", "printf"})
_SCALARS = """
    bigint boolean byte date decimal double float int integer long short smallint timestamp tinyint
"""


def objection_to_sizes(tokens: Sequence[Token]) -> str | None:
    """The reason why values that a text builds may be too large; None if they cannot be."""
    for at, token in enumerate(tokens[:-1]):
        if token.kind == "sign" or tokens[at + 1].text != "(":
            continue
        objection = _objection_to_size(token.name, list(arguments_of(tokens, at + 1)))
        if objection is not None:
            return objection
    return None


def _objection_to_size(name: str, arguments: Sequence[Sequence[Token]]) -> str | None:
    """The reason why the result of a call may not fit in memory; None if it does."""
    if name in _BUILDERS:
        return _objection_to_builder(name, arguments)
    if name in _FINEST:
        at, least = _FINEST[name]
        share = _number(arguments, at) if at < len(arguments) else 1
        if share is None or share < least:
            return f"the accuracy of {name}() must be a number from {least:g}"
    if name in _FOLDS and len(arguments) > 1 and not _is_scalar(arguments[1]):
        return (
            f"{name}() must begin with a number, a date or a boolean: "
            "a string or an array could double with each item"
        )
    if name in _FORMATS and not _is_short_format(arguments):
        return f"the format of {name}() must be one literal, with widths up to {MOST_VALUES:,}"
    return None


def _objection_to_builder(name: str, arguments: Sequence[Sequence[Token]]) -> str | None:
    """The reason why a call may build too large a string or array; None if it does not."""
    if name == "sequence":
        if not _is_short_sequence(arguments):
            return (
                f"sequence() needs numbers that are at most {MOST_VALUES:,} apart, or dates with a "
                "step such as INTERVAL 1 DAY, to fit in memory"
            )
    else:
        size = _number(arguments, _SIZED[name])
        if size is None or size > MOST_VALUES:
            return f"the size of {name}() must be a number up to {MOST_VALUES:,}, to fit in memory"
    for part in arguments:
        for token, following in pairwise(part):
            if following.text == "(" and token.name in _BUILDERS:
                return f"{token.name}() within {name}(): the sizes would multiply"
    return None


_BUILDERS = frozenset({*_SIZED, "sequence"})


def _number(arguments: Sequence[Sequence[Token]], at: int) -> float | None:
    """The number of an argument; None if it is anything else."""
    if at >= len(arguments):
        return None
    text = "".join(token.text for token in arguments[at])
    try:
        return float(text) if text.lstrip("+-").replace(".", "", 1).isdecimal() else None
    except ValueError:
        return None


def _is_short_sequence(arguments: Sequence[Sequence[Token]]) -> bool:
    """True for a sequence with few items for any data."""
    first, last = _number(arguments, 0), _number(arguments, 1)
    if first is not None and last is not None:
        step = _number(arguments, 2) if len(arguments) > 2 else 1
        return bool(step) and abs((last - first) / (step or 1)) < MOST_VALUES
    words = [token.text.lower() for token in arguments[2]] if len(arguments) > 2 else []
    return len(words) == 3 and words[0] == "interval" and words[2] in _STEPS


def _is_scalar(tokens: Sequence[Token]) -> bool:
    words = [token.text.lower() for token in tokens]
    if _number([tokens], 0) is not None or words in (["true"], ["false"]):
        return True
    if words[0][:1].isdigit():  # 0L, 0.0D, 1e3, 0BD
        return all(word == "." or word[:1].isdigit() for word in words)
    if words[:2] in (["cast", "("], ["try_cast", "("]) and words[-1] == ")" and "as" in words:
        kind = words[len(words) - words[::-1].index("as")]
        return kind in _SCALARS.split()
    return words[:1] in (["date"], ["timestamp"], ["-"], ["+"]) and len(words) <= 4


def _is_short_format(arguments: Sequence[Sequence[Token]]) -> bool:
    if not arguments or len(arguments[0]) != 1 or arguments[0][0].kind != "string":
        return False
    digits = "".join(c if c.isdigit() else " " for c in arguments[0][0].value).split()
    return all(len(number) < 6 and int(number) <= MOST_VALUES for number in digits)


def objection_to_calls(text: str) -> str | None:
    """The reason why SQL may not run because of its calls; None if it may.

    >>> objection_to_calls("max(xpath_int(document, 'a'))")
    'xpath_int() may open files and URLs named in its XML'
    """
    try:
        tokens = spark_tokens(text)
    except UnreadableError as error:
        return f"invalid Spark SQL: {error}"
    in_hint = False
    for at, token in enumerate(tokens):
        if token.text in ("/*+", "*/"):
            in_hint = token.text == "/*+"
        objection = _objection(tokens, at, in_hint=in_hint)
        if objection is not None:
            return objection
    return objection_to_patterns(tokens) or objection_to_sizes(tokens)


def _objection(tokens: Sequence[Token], at: int, *, in_hint: bool) -> str | None:
    token = tokens[at]
    if token.kind == "sign":
        return None
    before = tokens[at - 1].text.lower() if at else ""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if before == "using" and token.kind == "string":
        return "scripts with USING are not allowed"
    if before == "(" and _is_table_query(tokens[at : at + 3]):
        return f"TABLE {tokens[at + 1].text} is not allowed: write it with SELECT"
    if token.name == "select" and [one.text for one in tokens[max(at - 2, 0) : at]] == _PIPE:
        return _objection_to_clauses(tokens, at)
    if token.text.lower() == "table" and following is not None and following.text == "(":
        return "TABLE (...) is not allowed: write it with SELECT"
    if following is None or following.text != "(":
        return None if before == "." or token.kind != "word" else objection_to_word(token.name)
    if before == ".":
        return f"the function {token.name}() of a catalog is not allowed"
    if in_hint and token.name in _HINTS:
        return None
    if token.kind == "word" and token.name in _KEYWORDS:
        return None
    is_table = before in ("as", "with", ")", "recursive") or (
        before == "," and _is_defined(tokens, at + 1)
    )
    return None if is_table else objection_to_call(token.name)


_AFTER_COLUMN = frozenset(
    {"and", "as", "between", "collate", "div", "in", "is", "not", "or", *_OPERATORS}
)
"""The words that may follow a column in an expression."""


_PIPE = ["|", ">"]
_CLAUSES = {
    "union": "write |> UNION (SELECT ...)",
    "except": "write |> EXCEPT (SELECT ...)",
    "minus": "write |> MINUS (SELECT ...)",
    "intersect": "write |> INTERSECT (SELECT ...)",
    "order": "write |> ORDER BY",
    "limit": "write |> LIMIT",
    "window": "write the window after OVER",
    **dict.fromkeys(("sort", "cluster", "distribute", "offset"), "write the query without pipes"),
}
"""The words that begin a clause after the columns of `|> SELECT`, and what to type instead."""

_QUERIES = frozenset({"select", "from", "table", "values", "with", "("})
"""How a query begins."""


def _objection_to_clauses(tokens: Sequence[Token], at: int) -> str | None:
    """The reason why the SELECT of a pipe has no clauses after its columns: another parser drops
    them, and with EXCEPT the tables that it reads."""
    depth = 0
    for place in range(at, len(tokens)):
        text = tokens[place].text
        depth += (text == "(") - (text == ")")
        following = tokens[place + 1 : place + 3]
        if depth < 0 or (depth == 0 and [text, *(one.text for one in following[:1])] == _PIPE):
            return None
        if depth == 0 and _begins_clause(tokens[place], following):
            instead = _CLAUSES[text.lower()]
            return f"{text.upper()} is not allowed in |> SELECT: {instead}"
    return None


def _begins_clause(token: Token, following: Sequence[Token]) -> bool:
    """True for a clause; not for a column with its name, `* EXCEPT (a)`, or `window(...)`."""
    if token.kind != "word" or token.name not in _CLAUSES or not following:
        return False
    if following[0].text != "(":
        return following[0].kind != "sign" and following[0].name not in _AFTER_COLUMN
    if token.name == "except":
        return following[-1].name in _QUERIES
    return token.name != "window"


def _is_table_query(tokens: Sequence[Token]) -> bool:
    """True for `TABLE orders`: behind a parenthesis a query to Spark, and to another parser a
    column with an alias. `table IS NULL` is about a column with this name."""
    if len(tokens) < 2 or tokens[0].text.lower() != "table" or tokens[1].kind not in _NAMES:
        return False
    goes_on = len(tokens) > 2 and tokens[2].text != ")"
    return not (goes_on and tokens[1].text.lower() in _AFTER_COLUMN)


def _is_defined(tokens: Sequence[Token], opening: int) -> bool:
    """True for `(a, b) AS (`, which begins a query in WITH after its name."""
    for at in range(opening + 1, len(tokens)):
        if tokens[at].text == ")":
            after = [token.text.lower() for token in tokens[at + 1 : at + 3]]
            return after == ["as", "("]
        if tokens[at].kind == "sign" and tokens[at].text != ",":
            return False
    return False
