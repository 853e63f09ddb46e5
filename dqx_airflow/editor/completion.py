"""Completes at a position: names of the language, of the file, of its imports and datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from dqx_airflow.dql.annotations import ANNOTATED
from dqx_airflow.dql.callables import IN_DATES, IN_ROWS, MEASURES, CallableKind, Called
from dqx_airflow.dql.dates import MONTHS, WEEKDAYS
from dqx_airflow.dql.printer import show_constant, show_macro_head, show_name
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.editor import vocabulary
from dqx_airflow.editor.catalog import Catalog
from dqx_airflow.editor.occurrences import Occurrence, SymbolKind, occurrences
from dqx_airflow.editor.parsed_file import ParsedFile
from dqx_airflow.editor.vocabulary import CompletionContext, Slot
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import TYPE_NAMES, TYPE_WORDS
from dqx_airflow.values import Severity

_NAME = re.compile(r"[a-zA-Z_][\w.]*\Z")
_TAG = re.compile(r"[a-zA-Z_][\w-]*\Z")
_FROM = re.compile(r'[\w\s,]*\}\s*from\s*"([^"\n]*)"')
_HOLE = re.compile(r"\{(\w*)\Z")


class Sort(Enum):
    """The kind of an item, for the icon in the editor."""

    KEYWORD = "keyword"
    METRIC = "metric"
    FUNCTION = "function"
    CONSTANT = "constant"
    MACRO = "macro"
    PARAMETER = "parameter"
    COLUMN = "column"
    DATASET = "dataset"
    VALUE = "value"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A completion item. `detail` is a few words next to it, `doc` Markdown.

    `text` is inserted if it differs from the label; `is_call` if parentheses follow it.
    """

    label: str
    sort: Sort
    detail: str = ""
    doc: str = ""
    text: str = ""
    is_call: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """Items in the order of their relevance, for the range of the text that they replace."""

    start: int
    end: int
    items: tuple[Suggestion, ...]


def complete(
    reading: ParsedFile, offset: int, catalog: Catalog, paths: Iterable[str] = ()
) -> Completion:
    """The completions at an offset.

    :param paths: the files that may be imported.
    """
    text = reading.source.text
    quoted = vocabulary.quoted_around(text, offset)
    if quoted is not None and text[quoted[0]] != "`":
        return _complete_text(reading, quoted[0], offset, paths)
    start, end = quoted or (_start_of_word(reading, offset), offset)
    finder = _Finder(reading, catalog, _place_at(reading, start), start, end)
    suggestions: dict[str, Suggestion] = {}
    for item in (*finder.names(), *finder.keywords()):
        suggestions.setdefault(item.label, item)
    return Completion(start, end, _ordered(suggestions.values(), text[start:offset]))


def _ordered(items: Iterable[Suggestion], typed: str) -> tuple[Suggestion, ...]:
    """The items, first those that begin with the typed text: editors also show those that contain
    its letters elsewhere."""
    begun = typed.lower()
    return tuple(
        sorted(items, key=lambda item: not (item.text or item.label).lower().startswith(begun))
    )


def _place_at(reading: ParsedFile, offset: int) -> CompletionContext:
    near = reading.nearby(offset)
    return vocabulary.place_at(near.text, offset - near.shift)


def _start_of_word(reading: ParsedFile, offset: int) -> int:
    """The start of the word that ends at an offset. A tag may contain `-`, other names may not."""
    text = reading.source.text
    line = text.rfind("\n", 0, offset) + 1
    name, tag = (_start(pattern, text[line:offset]) + line for pattern in (_NAME, _TAG))
    is_tag = tag < name and _place_at(reading, tag).slot is Slot.TAG
    return tag if is_tag else name


def _start(pattern: re.Pattern[str], before: str) -> int:
    typed = pattern.search(before)
    return typed.start() if typed else len(before)


def _complete_text(
    reading: ParsedFile, start: int, offset: int, paths: Iterable[str]
) -> Completion:
    """The completions within a string that begins at `start`."""
    text = reading.source.text
    if text[start] == "#":
        return Completion(offset, offset, ())
    near = reading.nearby(start)
    place = vocabulary.place_in_text(near.text, start - near.shift)
    hole = _HOLE.search(text[start:offset])
    if hole and place.parameters:
        items = _plain(place.parameters, Sort.PARAMETER)
        return Completion(offset - len(hole[1]), offset, tuple(items))
    sort = Sort.FILE if place.slot is Slot.PATH else Sort.VALUE
    suggestions = _plain(_texts(reading, place, paths), sort)
    return Completion(
        start + 1, offset, _ordered(dict.fromkeys(suggestions), text[start + 1 : offset])
    )


def _texts(reading: ParsedFile, place: CompletionContext, paths: Iterable[str]) -> Iterator[str]:
    if place.slot is Slot.PATH:
        yield from paths
    for check in reading.expanded():
        names = [assertion.name.value for assertion in check.assertions if assertion.name]
        match place.slot:
            case Slot.CHECK_TEXT:
                yield check.name.value
            case Slot.TAG_TEXT:
                yield from (tag.text for item in check.assertions for tag in item.tags)
            case Slot.ASSERTION_TEXT:
                yield from names
            case Slot.CHECK_OF_ASSERTION_TEXT if place.assertion in names:
                yield check.name.value


class _Finder:
    """Finds the names that fit a position."""

    def __init__(
        self, reading: ParsedFile, catalog: Catalog, place: CompletionContext, start: int, end: int
    ) -> None:
        self.reading = reading
        self.catalog = catalog
        self.place = place
        self.rest = reading.source.text[end:]
        # A name that is just being typed does not exist yet.
        self.typed = reading.lines.span(start, end, reading.name)

    def keywords(self) -> Iterator[Suggestion]:
        if self.place.slot in _WITHOUT_KEYWORDS:
            return
        for word in self.place.words:
            doc = vocabulary.KEYWORDS.get(word.partition(" ")[0], "")
            yield Suggestion(word, Sort.KEYWORD, doc=doc)

    def names(self) -> Iterator[Suggestion]:
        for source in _SOURCES.get(self.place.slot, ()):
            yield from source(self)
        if self.place.call in MEASURES:
            for name in MEASURES[self.place.call].parameters:
                yield Suggestion(
                    name, Sort.PARAMETER, doc=vocabulary.PARAMETERS[name], text=f"{name} "
                )

    def items(self) -> Iterator[Suggestion]:
        """The word for an item of an array."""
        if self.place.has_item:
            yield Suggestion(ITEM, Sort.VALUE, "of the array")

    def annotations(self) -> Iterator[Suggestion]:
        """The annotations of the statement below."""
        allowed = ANNOTATED[self.place.annotated]
        return _values({name: vocabulary.ANNOTATIONS[name] for name in allowed})

    def annotation_arguments(self) -> Iterator[Suggestion]:
        """The arguments of the annotation around the position."""
        for name in ANNOTATED["assertion"].get(self.place.call, ()):
            yield Suggestion(name, Sort.PARAMETER, text=f"{name}=")

    def parts_of_dates(self) -> Iterator[Suggestion]:
        """The possible arguments of a date of a profile."""
        words = {"weekday": WEEKDAYS, "nth_weekday": (*MONTHS, *WEEKDAYS)}.get(self.place.call)
        if words is None:
            return iter([Suggestion("year", Sort.VALUE, "the year of the run")])
        return _plain(words)

    def constants(self) -> Iterator[Suggestion]:
        for name, constant in self.reading.scope.constants.items():
            yield Suggestion(name, Sort.CONSTANT, show_constant(constant))
        yield from self.holes()

    def holes(self) -> Iterator[Suggestion]:
        """The parameters of the macro, in braces."""
        for name in self.place.parameters:
            yield Suggestion(f"{{{name}}}", Sort.PARAMETER, "parameter of the macro")

    def macros(self) -> Iterator[Suggestion]:
        for name, defined in self.reading.scope.macros.items():
            yield Suggestion(name, Sort.MACRO, show_macro_head(defined.macro, name), is_call=True)

    def datasets(self) -> Iterator[Suggestion]:
        named = [item.text for item in self.named(SymbolKind.DATASET)]
        for name in dict.fromkeys((*self.place.datasets, *self.catalog.datasets, *named)):
            path = self.catalog.path(name) or ""
            yield Suggestion(name, Sort.DATASET, path, text=show_name(name))

    def columns(self) -> Iterator[Suggestion]:
        """The columns of the schema, and those that the file names for the same datasets."""
        for dataset in self.place.datasets:
            for column in self.catalog.columns(dataset):
                detail = f"{column.type} of {dataset}" if column.type else f"of {dataset}"
                yield Suggestion(column.name, Sort.COLUMN, detail, text=show_name(column.name))
        for item in self.named(SymbolKind.COLUMN):
            if set(item.datasets) & set(self.place.datasets):
                yield Suggestion(item.text, Sort.COLUMN, text=show_name(item.text))

    def named(self, kind: SymbolKind) -> Iterator[Occurrence]:
        """The names of a kind in the file, except for the one being typed."""
        for occurrence in occurrences(self.reading.parsed or self.reading):
            if occurrence.kind is kind and occurrence.span != self.typed:
                yield occurrence

    def exports(self) -> Iterator[Suggestion]:
        """The exports of the file after the names: `import { | } from "path"`."""
        path = _FROM.match(self.rest)
        library = self.reading.library(path[1]) if path else None
        if library is None:
            return
        for constant in library.constants:
            yield Suggestion(constant.name.text, Sort.CONSTANT, show_constant(constant))
        for macro in library.macros:
            yield Suggestion(macro.name.text, Sort.MACRO, show_macro_head(macro))


_COMPARED = [it for it in MEASURES.values() if it.group is not CallableKind.SHORTCUT]
"""Measures that need a condition; shortcuts are complete assertions."""

_Source: TypeAlias = Callable[[_Finder], Iterable[Suggestion]]

_SOURCES: Mapping[Slot, tuple[_Source, ...]] = {
    Slot.MEASURE: (lambda _: map(_call, _COMPARED), _Finder.constants),
    Slot.ASSERTED: (lambda _: map(_call, MEASURES.values()), _Finder.constants),
    Slot.ROW: (
        _Finder.items,
        _Finder.columns,
        lambda _: map(_call, IN_ROWS.values()),
        _Finder.constants,
    ),
    Slot.COLUMN: (_Finder.columns, _Finder.holes),
    Slot.MACRO_ARGUMENT: (_Finder.columns, _Finder.constants),
    Slot.CONSTANT: (_Finder.constants,),
    Slot.DATASET: (_Finder.datasets,),
    Slot.MACRO: (_Finder.macros,),
    Slot.PARAMETER: (lambda it: _plain(it.place.parameters, Sort.PARAMETER),),
    Slot.LIST_PARAMETER: (lambda it: _plain(it.place.lists, Sort.PARAMETER),),
    Slot.OTHER_VALUES: (lambda _: [_call(MEASURES["values"])],),
    Slot.ANNOTATION: (_Finder.annotations,),
    Slot.ANNOTATION_ARGUMENT: (_Finder.annotation_arguments,),
    Slot.SEVERITY: (lambda _: _plain(severity.value for severity in Severity),),
    Slot.TAG: (lambda it: _plain(tag.text for tag in it.named(SymbolKind.TAG)),),
    Slot.FORMAT: (lambda _: _values({item.name: item.doc for item in TEXT_FORMATS.values()}),),
    Slot.TYPE: (lambda _: _plain(TYPE_NAMES),),
    Slot.FITTING_TYPE: (lambda _: _plain((*TYPE_WORDS, *TYPE_NAMES)),),
    Slot.PROFILE_TYPE: (lambda _: _values(vocabulary.PROFILE_TYPES),),
    Slot.DATE: (lambda _: map(_call, IN_DATES.values()),),
    Slot.DATE_ARGUMENT: (_Finder.parts_of_dates,),
    Slot.EXPORT: (_Finder.exports,),
}
"""The sources of suggestions for each kind of position, in the order of display."""

_WITHOUT_KEYWORDS = frozenset(
    {Slot.COLUMN, Slot.DATASET, Slot.MACRO_ARGUMENT, Slot.DATE, Slot.DATE_ARGUMENT}
)


def _call(called: Called) -> Suggestion:
    sort = (
        Sort.METRIC
        if called.group in (CallableKind.METRIC, CallableKind.EXTENDED)
        else Sort.FUNCTION
    )
    return Suggestion(called.name, sort, called.signature, called.doc, is_call=True)


def _plain(names: Iterable[str], sort: Sort = Sort.VALUE) -> Iterator[Suggestion]:
    return (Suggestion(name, sort) for name in names)


def _values(table: dict[str, str]) -> Iterator[Suggestion]:
    return (Suggestion(name, Sort.VALUE, doc=doc) for name, doc in table.items())
