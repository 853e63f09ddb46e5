"""Nodes as canonical DQL text: one spelling for one meaning."""

from __future__ import annotations

import re

from dqx_airflow.dql import nodes

_WORDS = """
    suite check assert on from to by in and or not is between profile type macro const use for
    import export as name severity tags tolerance scale disable downgrade
"""
RESERVED = frozenset(_WORDS.split())
"""Names that have to stand in backticks where a column or dataset is called so."""

_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)*\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_STRENGTH = {"or": 1, "and": 2, "not": 3, "test": 4, "+": 5, "-": 5, "*": 6, "/": 6, "unary": 7}
_ATOM = 8


def show(node: nodes.Expression) -> str:
    """An expression or predicate as text, with no more parentheses than it needs."""
    return _show(node)[0]


def show_name(name: str) -> str:
    """A name as it has to be written: in backticks where it would read as something else."""
    return name if _PLAIN.match(name) and name not in RESERVED else f"`{name}`"


def show_text(text: str) -> str:
    """A text in quotes. What the language does not know as an escape stays as it is."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def show_number(number: nodes.Number) -> str:
    """A number in the unit in which it was written."""
    match number.unit:
        case nodes.Unit.PERCENT:
            share = round(number.value * 100, 12)
            return f"{share:.0f}%" if share == int(share) else f"{share!r}%"
        case nodes.Unit.DURATION:
            for unit, seconds in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
                if number.value and number.value % seconds == 0:
                    return _counted(number.value // seconds, unit)
            return _counted(number.value, "second")
        case _:
            return _digits(number.value)


def show_condition(condition: nodes.Condition) -> str:
    """A condition as it stands behind a metric expression."""
    match condition:
        case nodes.Comparison(op=op, bound=bound):
            return f"{op} {show(bound)}"
        case nodes.Between(low=low, high=high):
            return f"between {show(low)} and {show(high)}"
        case nodes.Is(keyword=keyword):
            return f"is {keyword.value}"
        case nodes.InValues(choices=choices):
            return f"in {show(choices)}"


def show_claim(claim: nodes.Measure | nodes.Rows) -> str:
    """What an assertion claims, without its name and the rest."""
    match claim:
        case nodes.Rows(predicate=predicate, share=None):
            return f"each row: {show(predicate)}"
        case nodes.Rows(predicate=predicate, share=share):
            assert share is not None
            return f"{show_number(share)} of rows: {show(predicate)}"
        case nodes.Measure(expression=expression, condition=None):
            return show(expression)
        case nodes.Measure(expression=expression, condition=condition):
            assert condition is not None
            return f"{show(expression)} {show_condition(condition)}"


def _show(node: nodes.Expression) -> tuple[str, int]:
    """The text and how strongly it binds."""
    match node:
        case nodes.Name(text=name):
            return show_name(name), _ATOM
        case nodes.Text(value=text):
            return show_text(text), _ATOM
        case nodes.Number(value=value):
            return show_number(node), _STRENGTH["unary"] if value < 0 else _ATOM
        case nodes.Day(value=day):
            return day.isoformat(), _ATOM
        case nodes.Null():
            return "None", _ATOM
        case nodes.Placeholder(name=name):
            return f"{{{name}}}", _ATOM
        case nodes.Listing(items=items):
            return f"[{', '.join(map(show, items))}]", _ATOM
        case nodes.Call(name=name, arguments=arguments, parameters=parameters):
            parts = [show(argument) for argument in arguments]
            parts += [f"{item.name.text} {show(item.value)}" for item in parameters]
            return f"{name.text}({', '.join(parts)})", _ATOM
        case nodes.Negative(operand=operand):
            return f"-{_within(operand, 'unary')}", _STRENGTH["unary"]
        case nodes.Arithmetic(op=op, left=left, right=right):
            # `a - (b - c)` keeps its parentheses, `a - b - c` needs none.
            text = f"{_within(left, op)} {op} {_within(right, op, right=True)}"
            return text, _STRENGTH[op]
        case nodes.Junction(op=op, left=left, right=right):
            return f"{_within(left, op)} {op} {_within(right, op, right=True)}", _STRENGTH[op]
        case nodes.Not(operand=nodes.IsNull(operand=operand)):
            return f"{_within(operand, 'test', right=True)} is not null", _STRENGTH["test"]
        case nodes.Not(operand=nodes.Member(operand=operand, choices=choices)):
            text = f"{_within(operand, 'test', right=True)} not in {show(choices)}"
            return text, _STRENGTH["test"]
        case nodes.Not(operand=operand):
            return f"not {_within(operand, 'not')}", _STRENGTH["not"]
        case _:
            return _show_test(node), _STRENGTH["test"]


def _show_test(node: nodes.Expression) -> str:
    def operand_of(part: nodes.Expression) -> str:
        return _within(part, "test", right=True)

    match node:
        case nodes.Compare(op=op, left=left, right=right):
            return f"{operand_of(left)} {op} {operand_of(right)}"
        case nodes.Within(operand=operand, low=low, high=high):
            low_text, high_text = operand_of(low), operand_of(high)
            return f"{operand_of(operand)} between {low_text} and {high_text}"
        case nodes.Member(operand=operand, choices=choices):
            return f"{operand_of(operand)} in {show(choices)}"
        case nodes.Matches(operand=operand, pattern=pattern):
            return f"{operand_of(operand)} matches {show_text(pattern.value)}"
        case nodes.IsNull(operand=operand):
            return f"{operand_of(operand)} is null"
        case _:
            raise TypeError(f"no expression: {node!r}")


def _within(node: nodes.Expression, context: str, *, right: bool = False) -> str:
    """The text of a part, in parentheses where it binds less than its surroundings."""
    text, strength = _show(node)
    needed = _STRENGTH[context] + right
    return text if strength >= needed else f"({text})"


def _digits(value: int | float) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    return repr(value)


def _counted(value: int | float, unit: str) -> str:
    return f"{_digits(value)} {unit}{'' if value == 1 else 's'}"
