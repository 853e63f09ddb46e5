"""Checks that every tool here can express, as plain data: the sweeps consist of them.

Imports nothing but pyspark: it also runs in the environments of the other tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import wraps
from typing import Any

from workload import of_days


class Kind(Enum):
    """The condition of a check on its columns.

    Tools treat nulls differently: for cuallee and PyDeequ a null is outside of every range, for
    cuallee a key with a null is a duplicate. So only columns for null checks have nulls.
    """

    COMPLETE = "no null"
    BETWEEN = "every value within least and most"
    LEAST = "no value below least"
    MOST = "no value above most"
    UNIQUE = "the combination of the columns occurs once"


@dataclass(frozen=True)
class SimpleCheck:
    """One check of one column, or of several for UNIQUE."""

    name: str
    kind: Kind
    columns: tuple[str, ...]
    least: int | None = None
    most: int | None = None

    @property
    def column(self) -> str:
        return self.columns[0]

    def said_in(self, words: Mapping[Kind, str]) -> str:
        """The check in another language, from templates by kind.

        >>> check = SimpleCheck("a", Kind.LEAST, ("c",), least=3)
        >>> check.said_in({Kind.LEAST: "min({column}) >= {least}"})
        'min(c) >= 3'
        """
        return words[self.kind].format(
            column=self.column, columns=", ".join(self.columns), least=self.least, most=self.most
        )


Verdicts = dict[str, bool]


def day_by_day(
    verify: Callable[[Any, Any, Sequence[SimpleCheck]], Verdicts],
) -> Callable[[Any, str, Sequence[date], Sequence[SimpleCheck]], Verdicts]:
    """Wraps a tool that judges one frame: judges each day of a table, one after the other.

    A check passes if it passes on every day. A table without dates is judged as a whole.
    """

    @wraps(verify)
    def verify_days(
        spark: Any, table: str, dates: Sequence[date], checks: Sequence[SimpleCheck]
    ) -> Verdicts:
        whole = spark.read.parquet(table)
        frames = [of_days(whole, [day]) for day in dates] or [whole]
        found = [verify(spark, frame, checks) for frame in frames]
        told_each_day = set.intersection(*map(set, found))
        return {name: all(verdicts[name] for verdicts in found) for name in told_each_day}

    return verify_days
