"""The order of demands by the data that they allow."""

from __future__ import annotations

from enum import Enum
from functools import reduce
from typing import Any


class Order(str, Enum):
    """What a new demand allows, compared with the old one. `OTHER`: neither allows everything that
    both do."""

    SAME = "same"
    LOOSER = "looser"
    TIGHTER = "tighter"
    OTHER = "other"

    __str__ = str.__str__  # prints as its value, on every Python


def rising(old: Any, new: Any) -> Order:
    """The order of two values of which the larger one demands more."""
    if old == new:
        return Order.SAME
    return Order.TIGHTER if new > old else Order.LOOSER


def falling(old: Any, new: Any) -> Order:
    """The order of two values of which the smaller one demands more."""
    return rising(new, old)


def admitting(old: frozenset[Any], new: frozenset[Any]) -> Order:
    """The order of two sets of allowed values."""
    if old == new:
        return Order.SAME
    if old < new:
        return Order.LOOSER
    return Order.TIGHTER if new < old else Order.OTHER


def all_of(*orders: Order) -> Order:
    """The order of demands that apply together."""
    return reduce(_together, orders, Order.SAME)


def _together(first: Order, second: Order) -> Order:
    if first is second or second is Order.SAME:
        return first
    return second if first is Order.SAME else Order.OTHER
