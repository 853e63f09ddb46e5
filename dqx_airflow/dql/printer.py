"""Nodes as canonical DQL text: one spelling for each meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.values.exact import exact, exact_text, is_decimal, nearest_float


class Rung(IntEnum):
    """The precedence of an operator, which needs parentheses where a higher one is required."""

    OR = 0
    AND = 1
    NOT = 2
    TEST = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    ATOM = 7


RUNG_OF = {
    "or": Rung.OR,
    "and": Rung.AND,
    "not": Rung.NOT,
    "+": Rung.SUM,
    "-": Rung.SUM,
    "*": Rung.PRODUCT,
    "/": Rung.PRODUCT,
}
"""The precedence of the binary operators, and of `not`."""


_WORDS = """
    suite check assert on where from to by in and or not is between profile type macro const use for
    import export as name severity tags tolerance scale disable downgrade true false
    None matches like
"""
RESERVED = frozenset(_WORDS.split())
"""Names that need backticks as the name of a column or dataset."""

_PLAIN_BELOW = 1e15
"""The limit below which integers written with a decimal point are shown as `1.0`."""
_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)*\Z")
_PLAIN_TYPE = re.compile(r"[a-zA-Z_]\w*(\(\d+(,\d+)*\))?\Z", re.ASCII)
_NEGATED_WITHIN = (
    *(nodes.Within, nodes.Member, nodes.Matches, nodes.Like),
    *(nodes.HasFormat, nodes.IsNull, nodes.IsNan),
)
"""Tests whose negation is a word within them: `not in`, `is not null`."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def show(node: nodes.Expression) -> str:
    """An expression or predicate as text, with as few parentheses as possible."""
    return _show(node)[0]


def show_name(name: str) -> str:
    """A name as it must be written: in backticks if it would be read as something else."""
    if _PLAIN.match(name) and name not in RESERVED and name.lower() != "null":
        return name
    return "`" + name.replace("`", "``") + "`"


def show_text(text: str) -> str:
    """A string in quotes. Escapes that the language does not define stay as they are."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def show_number(number: nodes.Number) -> str:
    """A number in the unit in which it was written."""
    match number.unit:
        case nodes.Unit.PERCENT:
            return f"{_digits(exact(Fraction(number.value) * 100))}%"
        case nodes.Unit.DURATION:
            for unit, seconds in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
                if number.value and number.value % seconds == 0:
                    return _counted(number.value // seconds, unit)
            return _counted(number.value, "second")
        case _:
            return _digits(number.value)


def show_condition(condition: nodes.Condition) -> str:
    """A condition as written after a metric expression."""
    match condition:
        case nodes.Comparison(op=op, bound=bound):
            return f"{op} {show(bound)}"
        case nodes.Between() if usual := nodes.usual_of(condition):
            return f"within {show(usual)}"
        case nodes.Between(low=low, high=high):
            return f"between {show(low)} and {show(high)}"
        case nodes.NotBetween(low=low, high=high):
            return f"not between {show(low)} and {show(high)}"
        case nodes.Is(keyword=keyword):
            return f"is {keyword.value}"
        case nodes.InValues(choices=choices):
            return f"in {show(choices)}"
        case nodes.WithinStddev(count=count, days=days):
            span = f" of {_counted(days.value // 86400, 'day')}" if days else ""
            return f"within {show(count)} stddev{span}"
        case nodes.ByTime(time=clock, zone=zone):
            return f"by {clock.value}" + (f" {show(zone)}" if zone else "")
        case nodes.MatchesShares(shares=shares):
            listed = (f"{show(value)}: {show_number(share)}" for value, share in shares)
            return f"matches {{{', '.join(listed)}}}"


def show_claim(claim: nodes.Claim) -> str:
    """The claim of an assertion, without its name and modifiers."""
    match claim:
        case nodes.Rows(predicate=predicate, share=share):
            rows = "each row" if share is None else f"{show_number(share)} of rows"
            return f"{rows}: {show(predicate)}"
        case nodes.HasColumn(column=column, type=kind, is_exact=is_exact):
            if kind is None:
                return f"column {show(column)} exists"
            word = "type" if is_exact else "fits"
            # In quotes if it is more than a name and sizes.
            written = kind.value if _PLAIN_TYPE.match(kind.value) else show_text(kind.value)
            return f"column {show(column)} {word} {written}"
        case nodes.RowsMatch():
            return _show_rows_match(claim)
        case nodes.Composite(junctor=nodes.Junctor.IF, parts=(first, then)):
            return f"if {show_claim(first.claim)} then {show_claim(then.claim)}"
        case nodes.Composite(junctor=junctor, parts=parts):
            return f"{junctor.value} {{ {' '.join(map(_show_part, parts))} }}"
        case nodes.ColumnsMatch(dataset=dataset, reference=reference):
            return f"columns of {show(dataset)} match {show(reference)}"
        case nodes.Measure(expression=expression, condition=condition):
            limit = "" if condition is None else f" {show_condition(condition)}"
            return f"{show(expression)}{limit}"


def _show_part(part: nodes.Assertion) -> str:
    tolerance = f" tolerance {show_number(part.tolerance)}" if part.tolerance else ""
    groups = f" {show_for_each(part.for_each)}" if part.for_each is not None else ""
    return f"assert {show_claim(part.claim)}{tolerance}{show_where(part.where)}{groups}"


def _show_rows_match(claim: nodes.RowsMatch) -> str:
    keys = ", ".join(map(show, claim.keys.items))
    text = f"rows of {show(claim.dataset)} match {show(claim.reference)} on ({keys})"
    if claim.compared is not None or claim.compares_all:
        text += f" comparing {show(claim.compared) if claim.compared else 'all'}"
    if claim.tolerance is not None:
        text += f" tolerance {show_number(claim.tolerance)}"
    if claim.allowing is not None:
        text += f" allowing {show_number(claim.allowing)}"
    return text


def show_for_each(groups: nodes.ForEach) -> str:
    """The groups of an assertion, as written."""
    columns = show_columns(groups.columns)
    share = groups.share
    text = f"for {show_number(share)} of groups by {columns}" if share else f"for each {columns}"
    return text if groups.groups is None else f"{text} in {_show_groups(groups.groups)}"


def show_columns(columns: Sequence[nodes.Expression]) -> str:
    """The columns of groups as written: `country`, `(country, channel)`."""
    shown = ", ".join(map(show, columns))
    return f"({shown})" if len(columns) > 1 else shown


def _show_groups(groups: nodes.Expression, brackets: str = "[]") -> str:
    """The list of groups, in which a group of several columns is in parentheses."""
    match groups:
        case nodes.Listing(items=items):
            inner = ", ".join(_show_groups(item, "()") for item in items)
            return f"{brackets[0]}{inner}{brackets[1]}"
        case nodes.Null():
            return "null"
        case _:
            return show(groups)


def _show(node: nodes.Expression) -> tuple[str, int]:
    """The text and its precedence."""
    match node:
        case nodes.Name(text=name):
            return show_name(name), Rung.ATOM
        case nodes.Text(value=text):
            return show_text(text), Rung.ATOM
        case nodes.Number(value=value):
            return show_number(node), Rung.SIGN if value < 0 else Rung.ATOM
        case nodes.Day(value=day):
            return day.isoformat(), Rung.ATOM
        case nodes.Truth(value=value):
            return "true" if value else "false", Rung.ATOM
        case nodes.Null():
            return "None", Rung.ATOM
        case nodes.Placeholder(name=name):
            return f"{{{name}}}", Rung.ATOM
        case nodes.Listing(items=items):
            return f"[{', '.join(map(show, items))}]", Rung.ATOM
        case nodes.Call(name=name, arguments=arguments, parameters=parameters):
            named = (f"{item.name.text} {show(item.value)}" for item in parameters)
            return f"{name.text}({', '.join((*map(show, arguments), *named))})", Rung.ATOM
        case nodes.Quantified(name=name, array=array, predicate=predicate):
            return f"{name.text}({show(array)}, {show(predicate)})", Rung.ATOM
        case nodes.Item(path=path):
            return show_name(".".join((ITEM, *path))), Rung.ATOM
        case nodes.Negative(operand=operand):
            return f"-{_within(operand, Rung.SIGN)}", Rung.SIGN
        case nodes.Arithmetic(op=op) | nodes.Junction(op=op):
            # `a - (b - c)` keeps its parentheses, `a - b - c` needs none.
            rung = RUNG_OF[op]
            first, second = _within(node.left, rung), _within(node.right, rung, right=True)
            return f"{first} {op} {second}", rung
        case nodes.Not(operand=test) if isinstance(test, _NEGATED_WITHIN):
            return _show_test(test, "not "), Rung.TEST
        case nodes.Not(operand=operand):
            return f"not {_within(operand, Rung.NOT)}", Rung.NOT
        case _:
            return _show_test(node), Rung.TEST


def _show_test(node: nodes.Expression, negation: str = "") -> str:
    """A test of a row; `negation` is `not ` for `not between`, `is not email` and the like."""
    parts = nodes.operands_of(node)
    first, *others = (_within(part, Rung.TEST, right=True) for part in parts)
    match node:
        case nodes.Compare(op=op):
            return f"{first} {op} {others[0]}"
        case nodes.Within():
            return f"{first} {negation}between {others[0]} and {others[1]}"
        case nodes.Member(choices=choices):
            return f"{first} {negation}in {show(choices)}"
        case nodes.Matches(pattern=pattern):
            return f"{first} {negation}matches {show_text(pattern.value)}"
        case nodes.Like(pattern=pattern):
            return f"{first} {negation}like {show_text(pattern.value)}"
        case nodes.HasFormat(format=name):
            return f"{first} is {negation}{name.text}"
        case nodes.IsNull():
            return f"{first} is {negation}null"
        case _:
            return f"{first} is {negation}nan"


def _within(node: nodes.Expression, rung: Rung, *, right: bool = False) -> str:
    """The text of a part, in parentheses if it binds less strongly than its surroundings."""
    text, strength = _show(node)
    return text if strength >= rung + right else f"({text})"


def _digits(value: int | Fraction | float | Decimal) -> str:
    """A number as it may have been written; in its shortest form if a float is exact."""
    if isinstance(value, Decimal):  # an evaluated literal
        return f"{value:f}"
    if isinstance(value, Fraction):
        if abs(value) < _PLAIN_BELOW and value.denominator == 1:
            return f"{value.numerator}.0"
        near = nearest_float(value)
        is_enough = math.isfinite(near) and (Fraction(repr(near)) == value or not is_decimal(value))
        return repr(near) if is_enough else exact_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_BELOW:
        return f"{value:.1f}"
    return repr(value)


def _counted(value: int | Fraction | float, unit: str) -> str:
    return f"{_digits(value)} {unit}{'' if value == 1 else 's'}"


def show_suite(suite: nodes.Suite) -> str:
    """A suite as text: imports, constants, macros, checks and profiles in this order."""
    body = []
    if suite.imports:
        body.append([_show_import(statement) for statement in suite.imports])
    if suite.availability_threshold is not None:
        body.append([f"availability_threshold {show_number(suite.availability_threshold)}"])
    if suite.constants:
        named = ((constant.name.text, show_constant(constant)) for constant in suite.constants)
        body.append([f"const {name} = {value}" for name, value in named])
    body += [_block(f"macro {show_macro_head(macro)}", macro.body) for macro in suite.macros]
    body += [_show_check(check) for check in suite.checks]
    body += [_show_profile(profile) for profile in suite.profiles]
    inner = "\n\n".join("\n".join(_indented(lines)) for lines in body)
    above = "".join(f"{_show_annotation(annotation)}\n" for annotation in suite.annotations)
    return f"{above}suite {show_text(suite.name.value)} {{\n{inner}\n}}\n"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _show_import(statement: nodes.Import) -> str:
    path = show_text(statement.path.value)
    if statement.names:
        return f"import {{ {', '.join(name.text for name in statement.names)} }} from {path}"
    return f"import {path}" + (f" as {statement.alias.text}" if statement.alias else "")


def show_constant(constant: nodes.Constant) -> str:
    """The value of a constant, with its bounds: `5% tunable [0%, 20%]`."""
    value = show(constant.value)
    if constant.bounds is None:
        return value
    low, high = constant.bounds
    return f"{value} tunable [{show(low)}, {show(high)}]"


def show_macro_head(macro: nodes.Macro, name: str | None = None) -> str:
    """A macro without its body: `rates(columns...)`."""
    parameters = ", ".join(parameter.text for parameter in macro.parameters)
    dots = "..." if macro.is_variadic else ""
    return f"{name or macro.name.text}({parameters}{dots})"


def _show_check(check: nodes.Check) -> list[str]:
    datasets = ", ".join(show_name(name.text) for name in check.datasets)
    head = f"check {show_text(check.name.value)} on {datasets}{show_where(check.where)}"
    return _block(head, check.body)


def show_where(predicate: nodes.Expression | None) -> str:
    """` where status == "paid"`, as a suffix; empty if there is none."""
    return f" where {show(predicate)}" if predicate is not None else ""


def _block(head: str, body: tuple[nodes.MacroItem | nodes.Watch, ...]) -> list[str]:
    lines: list[str] = []
    for number, item in enumerate(body):
        if number and (isinstance(item, nodes.Assertion) or isinstance(body[number - 1], _WIDE)):
            lines.append("")
        match item:
            case nodes.Assertion():
                lines += show_assertion(item)
            case nodes.Use(name=name, arguments=arguments):
                lines.append(f"use {name.text}({', '.join(map(show, arguments))})")
            case nodes.Watch():
                lines.append(show_watch(item))
            case nodes.Loop(variable=variable, over=over, body=inner):
                lines += _block(f"for {variable.text} in {over.text}", inner)
    return [f"{head} {{", *_indented(lines), "}"]


_WIDE = (nodes.Assertion, nodes.Loop)


def show_watch(watch: nodes.Watch) -> str:
    words = ["watch", show_name(watch.dataset.text)]
    if watch.drift is not None:
        words.append(watch.drift)
    if watch.known is not None:
        words += [watch.known.name.text, show(watch.known.value)]
    return " ".join(words)


def show_assertion(assertion: nodes.Assertion) -> list[str]:
    lines = [_show_annotation(annotation) for annotation in assertion.annotations]
    lines.append(_show_part(assertion))
    if assertion.name is not None:
        lines.append(f"    name {show_text(assertion.name.value)}")
    if assertion.severity is not None:
        lines.append(f"    severity {assertion.severity.text}")
    if assertion.tags:
        lines.append(f"    tags [{', '.join(tag.text for tag in assertion.tags)}]")
    return lines


def _show_annotation(annotation: nodes.Annotation) -> str:
    settings = ", ".join(f"{name.text}={show(value)}" for name, value in annotation.arguments)
    return f"@{annotation.name.text}" + (f"({settings})" if settings else "")


def _show_profile(profile: nodes.Profile) -> list[str]:
    lines = [f"type {profile.type.text}"] if profile.type else []
    lines += [f"from {show(profile.start)}"] if profile.start else []
    lines += [f"to   {show(profile.end)}"] if profile.end else []
    rules = [_show_rule(rule) for rule in profile.rules]
    lines += ["", *rules] if rules and lines else rules
    above = map(_show_annotation, profile.annotations)
    return [*above, f"profile {show_text(profile.name.value)} {{", *_indented(lines), "}"]


def show_selector(selector: nodes.Selector) -> str:
    """The selector of a rule in a profile as text: `assertion "rows" in "Volume"`."""
    text = f"{selector.kind} {show_text(selector.name.value)}"
    return f"{text} in {show_text(selector.check.value)}" if selector.check else text


def _show_rule(rule: nodes.Rule) -> str:
    selected = show_selector(rule.selector)
    match rule:
        case nodes.Disable():
            return f"disable {selected}"
        case nodes.Scale(factor=factor):
            return f"scale {selected} by {_digits(factor)}x"
        case nodes.Downgrade(severity=severity):
            return f"downgrade {selected} to {severity.text}"
