"""The type that a person meant by a name that no database has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache

from dqx_airflow.contracts.database_types import DIALECTS
from dqx_airflow.contracts.field_types import types_named
from dqx_airflow.diagnostics.diagnostic import slips_of
from dqx_airflow.metrics.types import TYPE_NAMES

_WORD = re.compile(r"[^\W\d]\w*")
_SIZES = re.compile(r"\s*\([^()]*\)\s*$")
_DOT = re.compile(r"(?<=\d)\.(?=\d)")
_SPACED = re.compile(r"[\w\s]+")
_OF_OTHERS = (
    *("varbit", "bitstring", "varint", "bignum", "timetz", "hllsketch", "hstore", "oid", "xid"),
    *("hierarchyid", "sql_variant", "sdo_geometry", "tsvector", "tsquery", "regclass", "guid"),
    *("fixed", "fixed32", "fixed64", "sfixed32", "sfixed64", "sint32", "sint64", "int96", "mixed"),
    *("dats", "tims", "unit", "lang", "clnt", "strg", "fltp", "dbclob", "graphic", "keyword"),
    "file",
)
"""Types of databases and file formats that Spark does not have, and that sqlglot does not know in
each of its versions."""
_OF_SEVERAL_WORDS = (
    *("timestamp with time zone", "timestamp without time zone", "timestamp with local time zone"),
    *("character varying", "national character varying", "double precision", "binary varying"),
)
"""Names that sqlglot reads word by word."""

_MOST_UNKNOWN = 20
"""With more unknown words, they are corrected all at once only: each text is read as a type."""


def meant_type(
    written: str, is_type: Callable[[str], bool], names: Collection[str] | None = None
) -> str | None:
    """The type of which a text is probably a typo: `varchar(20)` for `varchr(20)`; None if it
    resembles no type, or is one that Spark does not have.

    :param is_type: whether a text is a type where it stands.
    :param names: the names of types there; by default those of Spark and of all databases.
    """
    vocabulary = _vocabulary() if names is None else _words_of(names)
    return next(filter(is_type, _corrections(written, vocabulary)), None)


def hint_at_type(meant: str | None) -> str | None:
    """The hint that names a type; None without one."""
    return f"did you mean '{meant}'?" if meant is not None else None


def with_hint(reason: str, meant: str | None) -> str:
    """The reason why a type is not checked, with the type that was meant, if it is known."""
    return f"{reason}: {hint_at_type(meant)}" if meant is not None else reason


def _corrections(written: str, vocabulary: dict[str, str]) -> Iterator[str]:
    """The text with its sizes corrected, with one word, with all words, and with its spaces."""
    yield _DOT.sub(",", written)
    if written.count("(") > written.count(")"):
        yield written + ")"
    known = {*vocabulary, *_OF_OTHERS}
    unknown = [match for match in _WORD.finditer(written) if match[0].lower() not in known]
    slips = {word: slips_of(word, vocabulary) for word in {one[0].lower() for one in unknown}}
    nearest = {}
    for match in unknown:
        near = slips[match[0].lower()]
        if near:
            nearest[match[0]] = _in_case_of(match[0], near[0])
        for word in near if len(unknown) <= _MOST_UNKNOWN else ():
            corrected = _in_case_of(match[0], word)
            yield written[: match.start()] + corrected + written[match.end() :]
    if len(nearest) > 1:
        yield _WORD.sub(lambda match: nearest.get(match[0], match[0]), written)
    sizes = _SIZES.search(written)
    bare = written[: sizes.start()] if sizes is not None else written
    if bare.lower() in known or not _SPACED.fullmatch(bare):
        return
    for name in slips_of(bare, vocabulary.values()):
        corrected = _in_case_of(bare, name)
        yield corrected + (sizes[0] if sizes is not None else "")
        yield corrected


def _in_case_of(written: str, name: str) -> str:
    """A name in capital letters where the text has only these."""
    return name.upper() if written.isupper() else name


@cache
def _vocabulary() -> dict[str, str]:
    """The names of all types, by each of their words and by themselves."""
    listed = (types_named(column) for column in ("databases", "sqlglot", "written to GX"))
    in_one = (name.partition(" ")[2] for name in types_named("in one database"))
    spoken = (name for dialect in DIALECTS for name in _names_in_sql(dialect))
    listed_names = (name for names in listed for name in names)
    return _words_of([*TYPE_NAMES, *listed_names, *in_one, *spoken, *_OF_SEVERAL_WORDS])


def _words_of(names: Collection[str]) -> dict[str, str]:
    """The names by their words, and by themselves."""
    lower = [_SIZES.sub("", name.lower()) for name in names]
    words = {word: word for name in lower for word in _WORD.findall(name)}
    return words | {name: name for name in lower}


def _names_in_sql(dialect: str | None) -> list[str]:
    """The names of types in a dialect of sqlglot."""
    from sqlglot.dialects.dialect import Dialect

    spoken = Dialect.get_or_raise(dialect)
    types = spoken.parser_class.TYPE_TOKENS
    keywords = spoken.tokenizer_class.KEYWORDS.items()
    return [name for name, token in keywords if token in types]
