"""Compares the rows of two tables in memory one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dqx_airflow.exact import Number
from dqx_airflow.metrics.comparison import comparable
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.plan.matching import ColumnPair, Differences, PairedColumns
from dqx_airflow.plan.number_comparison import is_within

_Row = tuple[Any, ...]
_Rows = list[tuple[_Row, _Row]]
"""The values of the keys, and those that are compared, of each row."""
_Test = Callable[[tuple[_Row, _Row], tuple[_Row, _Row]], bool]


def differences(
    columns: PairedColumns, tolerance: Number | None, lefts: _Rows, rights: _Rows
) -> Differences:
    """The differences between two tables: equal rows are paired first, then near ones, then those
    with the same key."""

    def have_same_key(left: tuple[_Row, _Row], right: tuple[_Row, _Row]) -> bool:
        return _all_same(columns.keys, left[0], right[0], None)

    def agree_within(margin: Number | None) -> _Test:
        return lambda left, right: (
            have_same_key(left, right) and _all_same(columns.compared, left[1], right[1], margin)
        )

    rows = len(lefts)
    for margin in (None, tolerance):
        lefts, rights = _without_pairs(lefts, rights, agree_within(margin))
    extra, missing = _without_pairs(lefts, rights, have_same_key)
    return Differences(len(missing), len(extra), len(lefts) - len(extra), rows)


def _without_pairs(lefts: _Rows, rights: _Rows, belong: _Test) -> tuple[_Rows, _Rows]:
    """The rest of both sides when each row has been paired with the first one that fits."""
    alone, rest = [], list(rights)
    for left in lefts:
        place = next((at for at, right in enumerate(rest) if belong(left, right)), None)
        if place is None:
            alone.append(left)
        else:
            del rest[place]
    return alone, rest


def _all_same(pairs: Sequence[ColumnPair], left: _Row, right: _Row, margin: Number | None) -> bool:
    return all(_is_same(*of_column, margin) for of_column in zip(pairs, left, right, strict=True))


def _is_same(pair: ColumnPair, left: Any, right: Any, margin: Number | None) -> bool:
    if left is None or right is None:
        return left is right
    left_key, right_key = comparable(left, pair.left.type, right, pair.right.type)
    if left_key == right_key or margin is None or not pair.is_number:
        return bool(left_key == right_key)
    a, b = plain(left), plain(right)
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return False
    return is_within(a, b, margin)
