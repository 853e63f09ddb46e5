"""Expands the macros and the loops of a suite to plain assertions, each with the `use`s that led to
it.

Macros are scoped lexically: a constant in the body of a macro belongs to the macro's own file. The
size of the expansion is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias, TypeVar, cast

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.linking import Defined, Scope
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import parts_of, rebound, rewritten
from dqx_airflow.dql.watches import unstated
from dqx_airflow.values import Span

MOST_WORDS = 500_000
"""The maximum number of tokens that the macros of a suite expand to, uses and loops included."""

DEEPEST_USE = 50
"""The maximum nesting of macros."""

Bindings: TypeAlias = Mapping[str, "nodes.Expression | tuple[nodes.Expression, ...]"]

Node = TypeVar("Node")

_LETTERS_OF_A_WORD = 8

_HOLE = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)\}")


class _TooMuchError(Exception):
    """The limit of the expansion was reached, and reported."""


@dataclass(frozen=True, slots=True)
class _Around:
    """The context of an expanded node: the visible names, the arguments of parameters, the macros,
    and the uses that led there."""

    scope: Scope
    bindings: Bindings = field(default_factory=dict)
    macros: tuple[nodes.Macro, ...] = ()
    uses: tuple[Span, ...] = ()


@dataclass(slots=True)
class Expander:
    """Expands the suite of one file. `used` are the names of the macros and constants it meets."""

    scope: Scope
    report: Callable[[Diagnostic], None]
    used: set[str] = field(default_factory=set)
    _words: int = 0

    def check_macros(self) -> None:
        """Reports mistakes in the definitions of the file's macros."""
        for defined in self.scope.macros.values():
            if defined.home is self.scope:
                self._check_macro(defined.macro)

    def expand(self, suite: nodes.Suite) -> nodes.Suite:
        """The suite with only assertions in its checks, and with the constants that it imports."""
        checks = []
        try:
            for check in suite.checks:
                where = self._filled(check.where, _Around(self.scope))
                checks.append(replace(check, body=tuple(self._check(check)), where=where))
        except _TooMuchError:
            return replace(suite, checks=())
        others = {**self.scope.constants}
        for constant in suite.constants:
            others.pop(constant.name.text, None)
        return replace(
            suite,
            checks=tuple(checks),
            constants=(*others.values(), *suite.constants),
            macros=(),
            imports=(),
        )

    def _check(self, check: nodes.Check) -> list[nodes.CheckItem]:
        assertions: list[nodes.Assertion] = []
        for item in check.body:
            match item:
                case nodes.Use():
                    assertions += self._use(item, _Around(self.scope))
                case nodes.Watch():
                    assertions += unstated(check, item)
                case _:
                    assertions.append(self._filled(item, _Around(self.scope)))
        return [*self._with_own_names(assertions), *check.watches]

    def _with_own_names(self, assertions: list[nodes.Assertion]) -> Iterator[nodes.Assertion]:
        """The assertions, with a suffix for repeated names that macros have generated."""
        first: dict[str, nodes.Assertion] = {}
        numbers: dict[str, int] = {}
        for assertion in assertions:
            name = assertion.name
            if name is None or not assertion.uses or name.value not in first:
                if name is not None:
                    first.setdefault(name.value, assertion)
                yield assertion
                continue
            number = numbers.get(name.value, 2)
            while f"{name.value} {number}" in first:
                number += 1
            numbers[name.value] = number + 1
            unique = f"{name.value} {number}"
            earlier = first[name.value]
            place = earlier.uses[0] if earlier.uses else earlier.span
            self.report(
                Diagnostic(
                    f"this use creates a second assertion named '{name.value}'",
                    assertion.uses[0],
                    code="W006",
                    related=(Related(place, "first one"),),
                    help=f"it is renamed to '{unique}'; pass another argument for the name",
                )
            )
            yield replace(assertion, name=nodes.Text(unique, span=name.span))
            first[unique] = assertion

    # Uses

    def _use(self, use: nodes.Use, outer: _Around) -> list[nodes.Assertion]:
        around = replace(outer, uses=(*outer.uses, use.span))
        self._count(1, around.uses)
        defined = self._defined(use, around)
        if defined is None or not self._are_values(use, around.uses):
            return []
        macro = defined.macro
        bound = self._bound(use, macro, around)
        if bound is None:
            return []
        inside = _Around(defined.home, bound, (*around.macros, macro), around.uses)
        return self._body(macro.body, inside)

    def _defined(self, use: nodes.Use, around: _Around) -> Defined | None:
        scope = around.scope
        stack = around.macros
        chain = around.uses
        name = use.name.text
        defined = scope.macros.get(name)
        if defined is None:
            near = did_you_mean(name, scope.macros) or "define it: macro name(column) { ... }"
            self._error("E201", f"unknown macro '{name}'", use.name.span, near, chain)
            return None
        if scope is self.scope:
            self.used.add(name)
        macro = defined.macro
        if any(macro is outer for outer in stack):
            message = f"macro '{name}' uses itself"
            self._error("E203", message, use.name.span, "a macro cannot be recursive", chain)
            return None
        if len(stack) >= DEEPEST_USE:
            message = f"macros are nested more than {DEEPEST_USE} levels deep"
            self._error("E206", message, use.name.span, "reduce the nesting", chain)
            return None
        place = macro.span
        if place.file == use.span.file and (place.line, place.column) > (
            use.span.line,
            use.span.column,
        ):
            message = f"macro '{name}' is defined after its use"
            related = (Related(macro.name.span, "defined here"),)
            help_line = "move the macro before the use"
            self._error("E204", message, use.name.span, help_line, chain, related)
            return None
        return defined

    def _are_values(self, use: nodes.Use, chain: tuple[Span, ...]) -> bool:
        named = [argument for argument in use.arguments if isinstance(argument, nodes.Parameter)]
        for argument in named:
            message = "macro arguments are positional"
            help_line = "separate two arguments by a comma, or remove the name"
            self._error("E202", message, argument.span, help_line, chain)
        return not named

    def _bound(self, use: nodes.Use, macro: nodes.Macro, around: _Around) -> Bindings | None:
        arguments = tuple(self._filled(argument, around) for argument in use.arguments)
        names = [parameter.text for parameter in macro.parameters]
        fixed = names[:-1] if macro.is_variadic else names
        if len(arguments) < len(names) or (len(arguments) > len(names) and not macro.is_variadic):
            wanted = f"{len(names)} or more" if macro.is_variadic else str(len(names))
            plural = "argument" if wanted == "1" else "arguments"
            shown = ", ".join(names) + ("..." if macro.is_variadic else "")
            message = f"macro '{use.name.text}' takes {wanted} {plural}, not {len(arguments)}"
            related = (Related(macro.name.span, "defined here"),)
            help_line = f"write use {use.name.text}({shown})"
            self._error("E202", message, use.span, help_line, around.uses, related)
            return None
        bound = dict(zip(fixed, arguments, strict=False))
        return {**bound, names[-1]: arguments[len(fixed) :]} if macro.is_variadic else bound

    def _body(self, body: tuple[nodes.MacroItem, ...], around: _Around) -> list[nodes.Assertion]:
        assertions: list[nodes.Assertion] = []
        for item in body:
            match item:
                case nodes.Assertion():
                    filled = _with_words(self._filled(item, around), around.bindings)
                    assertions.append(replace(filled, uses=around.uses))
                case nodes.Use():
                    assertions += self._use(item, around)
                case nodes.Loop(variable=variable, over=over, body=inner):
                    for value in _values(around.bindings.get(over.text)):
                        self._count(1, around.uses)
                        looped = {**around.bindings, variable.text: value}
                        assertions += self._body(inner, replace(around, bindings=looped))
        return assertions

    # Filling in

    def _filled(self, node: Node, around: _Around) -> Node:
        """The node with arguments for placeholders, and constants of the macro's own file."""
        home = around.scope
        bindings = around.bindings
        chain = around.uses
        if not chain and not home.imports:
            return node  # outside of macros, only names of an import stand for something else

        def fill_hole(hole: re.Match[str]) -> str:
            text = _text_of(hole, bindings)
            self._count(len(text) // _LETTERS_OF_A_WORD, chain)
            return text

        def is_list(item: nodes.Expression) -> bool:
            bound = bindings.get(item.name) if isinstance(item, nodes.Placeholder) else None
            return isinstance(bound, tuple | nodes.Listing)

        def spread(items: tuple[nodes.Expression, ...]) -> Iterator[nodes.Expression]:
            """The items of a list; a parameter with a list as its value contributes its items."""
            for item in items:
                if isinstance(item, nodes.Placeholder) and is_list(item):
                    yield from _values(bindings[item.name])
                else:
                    yield rewritten(item, fill)

        def fill(part: Any) -> Any:
            match part:
                case nodes.Placeholder(name=name, span=span) if name in bindings:
                    value = bindings[name]
                    return nodes.Listing(value, span=span) if isinstance(value, tuple) else value
                case nodes.Listing(items=items, span=span) if any(map(is_list, items)):
                    return nodes.Listing(tuple(spread(items)), span=span)
                case nodes.Text(value=text, span=span) if "{" in text and chain:
                    return nodes.Text(_HOLE.sub(fill_hole, text), span=span)
                case nodes.Name(text=name) if home is not self.scope and name in home.constants:
                    return home.constants[name].value
                case nodes.Name(text=name) if "." in name and name in home.constants:
                    # `alias.NAME` is defined only in the file with the alias.
                    self.used.add(name)
                    return home.constants[name].value
            return None

        filled = cast(Node, rewritten(node, fill))
        if chain:
            filled = cast(Node, rebound(filled))
            # If an argument is used twice, it is visited twice although it is one node.
            remaining = MOST_WORDS - self._words
            self._count(sum(1 for _ in islice(parts_of(filled), remaining + 1)), chain)
        return filled

    def _count(self, words: int, chain: tuple[Span, ...]) -> None:
        self._words += words
        if self._words > MOST_WORDS:
            message = f"the macros of this suite expand to more than {MOST_WORDS:,} words"
            self._error("E206", message, chain[0], "use fewer macros", ())
            raise _TooMuchError

    # Definitions of macros

    def _check_macro(self, macro: nodes.Macro) -> None:
        parameters = [parameter.text for parameter in macro.parameters]
        variadic = {parameters[-1]} if macro.is_variadic else set()
        for number, parameter in enumerate(macro.parameters):
            if parameter.text in parameters[:number]:
                message = f"duplicate parameter '{parameter.text}'"
                self.report(Diagnostic(message, parameter.span, code="E209", help="rename one"))
        self._check_body(macro.body, parameters, variadic)

    def _check_body(
        self, body: tuple[nodes.MacroItem, ...], known: list[str], lists: set[str]
    ) -> None:
        for item in body:
            if isinstance(item, nodes.Loop):
                if item.over.text not in known:
                    self._unknown_parameter(item.over.text, item.over.span, known)
                elif item.over.text not in lists:
                    message = f"'{item.over.text}' is a single argument, but a loop needs a list"
                    help_line = f"make the parameter variadic: {item.over.text}..."
                    self.report(Diagnostic(message, item.over.span, code="E205", help=help_line))
                self._check_body(item.body, [*known, item.variable.text], lists)
                continue
            for part in parts_of(item):
                match part:
                    case nodes.Placeholder(name=name, span=span) if name not in known:
                        self._unknown_parameter(name, span, known)
                    case nodes.Call(name=nodes.Name(text=("sql" | "query") as name)):
                        self._no_interpolation(name, part)
            if isinstance(item, nodes.Assertion):
                for parameter, word in parameters_in(item):
                    if parameter not in known:
                        self._unknown_parameter(parameter, word.span, known)
            if isinstance(item, nodes.Assertion) and item.name is not None:
                for hole in _HOLE.finditer(item.name.value):
                    if hole[1] not in known:
                        self._unknown_parameter(hole[1], item.name.span, known)

    def _no_interpolation(self, name: str, call: nodes.Call) -> None:
        for argument in call.arguments:
            if isinstance(argument, nodes.Text) and _HOLE.search(argument.value):
                message = f"interpolation in {name}() is not allowed"
                help_line = "write the column itself, or use a metric such as sum({column})"
                self.report(Diagnostic(message, argument.span, code="E115", help=help_line))

    def _unknown_parameter(self, name: str, span: Span, known: list[str]) -> None:
        message = f"the macro has no parameter '{name}'"
        help_line = did_you_mean(name, known)
        self.report(Diagnostic(message, span, code="E205", help=help_line))

    def _error(
        self,
        code: str,
        message: str,
        span: Span,
        help_line: str,
        chain: tuple[Span, ...],
        related: tuple[Related, ...] = (),
    ) -> None:
        led = tuple(Related(use, "used here") for use in reversed(chain[:-1]))
        self.report(Diagnostic(message, span, code=code, related=related + led, help=help_line))


def _values(
    bound: nodes.Expression | tuple[nodes.Expression, ...] | None,
) -> tuple[nodes.Expression, ...]:
    match bound:
        case tuple():
            return bound
        case nodes.Listing(items=items):
            return items
        case _:
            return ()


def _text_of(hole: re.Match[str], bindings: Bindings) -> str:
    """The argument as part of a string; placeholders of other origin stay."""
    value = bindings.get(hole[1])
    match value:
        case None:
            return hole[0]
        case tuple():
            return ", ".join(map(show, value))
        case _:
            return _text_of_value(value)


def _text_of_value(value: nodes.Expression) -> str:
    match value:
        case nodes.Name(text=text) | nodes.Text(value=text):
            return text
        case _:
            return show(value)


def parameters_in(assertion: nodes.Assertion) -> Iterator[tuple[str, nodes.Name]]:
    """The parameters used as the severity and tags of an assertion."""
    for word in (assertion.severity, *assertion.tags):
        if word is not None and (hole := _HOLE.fullmatch(word.text)):
            yield hole[1], word


def _with_words(assertion: nodes.Assertion, bindings: Bindings) -> nodes.Assertion:
    """The assertion with arguments for the parameters in its severity and tags."""

    def words(word: nodes.Name) -> Iterator[nodes.Name]:
        hole = _HOLE.fullmatch(word.text)
        bound = bindings.get(hole[1]) if hole else None
        if bound is None:
            yield word
            return
        for value in _values(bound) if isinstance(bound, tuple | nodes.Listing) else (bound,):
            yield nodes.Name(_text_of_value(value), span=value.span)

    severity = assertion.severity
    filled_severity = None if severity is None else next(words(severity), severity)
    tags = tuple(word for tag in assertion.tags for word in words(tag))
    return replace(assertion, severity=filled_severity, tags=tags)


def placeholders_of(assertion: nodes.Assertion) -> Iterator[nodes.Placeholder]:
    """The placeholders without an argument."""
    yield from placeholders_in((assertion.claim, assertion.where, assertion.for_each))
    for name, word in parameters_in(assertion):
        yield nodes.Placeholder(name, span=word.span)


def placeholders_in(node: Any) -> Iterator[nodes.Placeholder]:
    """The placeholders in a part of a suite."""
    return (part for part in parts_of(node) if isinstance(part, nodes.Placeholder))
