"""The rows that a promotion replaces in its target, as Spark SQL, and their replacement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.engine.outputs.promoted_slices import Slice
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import DqxError
from dqx_airflow.metrics.sql import quote_literal, quote_name

_NO_VALUES = ("struct", "array", "map", "binary", "variant")
_WITH_STATISTICS = ("string", "tinyint", "smallint", "int", "bigint", "date")


@dataclass
class RefusedPromotionError(DqxError):
    """The target rejects the rows, and would reject them again."""


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The rows of a date, of a slice, of both, or all of a dataset and of its target."""

    spark: SparkSession
    dataset: OpenDataset
    slice: Slice

    @property
    def on(self) -> date | None:
        """The date that is replaced; None if the dataset has no dates."""
        return self.slice.on

    def frame(self) -> DataFrame:
        """The rows that go to the target.

        A row whose date cannot be read is validated with every date, and replaced with none: it
        stays behind, and the numbers of rows then differ.
        """
        frame = rows_of(self.dataset, self.on or date.min)
        return frame if self.of_date is None else frame.where(self.of_date)

    @property
    def of_date(self) -> str | None:
        """The rows of the date, as Spark SQL; None if the dataset has no dates."""
        if self.dataset.dates is None or self.on is None:
            return None
        return self.dataset.dates.filter({self.on})

    @property
    def of_slice(self) -> str | None:
        """The rows with the values of the slice, as Spark SQL; None if it has none."""
        parts = [
            f"{quote_name(name)} <=> CAST({quote_literal(text)} AS "
            f"{self.dataset.struct[name].dataType.simpleString()})"
            for name, text in self.slice.values
        ]
        return " AND ".join(parts) or None

    @property
    def condition(self) -> str | None:
        """The rows replaced in the target, as Spark SQL; None if it is everything."""
        parts = [f"({part})" for part in (self.of_date, self.of_slice) if part is not None]
        return " AND ".join(parts) or None

    @property
    def values(self) -> dict[str, Any]:
        """The values of the slice, in the types of their columns."""
        return {name: self.value_of(name, text) for name, text in self.slice.values}

    @property
    def date_column(self) -> str:
        """The column with the date of a row."""
        assert self.dataset.dates is not None
        return self.dataset.dates.name

    @property
    def date_value(self) -> date | str | int:
        """The date as a value of that column."""
        assert self.dataset.dates is not None
        assert self.on is not None
        return self.dataset.dates.value(self.on)

    def value_of(self, name: str, text: str) -> Any:
        """A string as a value of a column; None if it is not one."""
        kind = self.dataset.struct[name].dataType.simpleString()
        query = f"SELECT try_cast({quote_literal(text)} AS {kind})"
        return self.spark.sql(query).collect()[0][0]

    def check_values(self) -> None:
        """Rejects a slice by a missing column, or by a value of another type."""
        for name, text in self.slice.values:
            if name not in self.dataset.struct.names:
                advice = did_you_mean(name, self.dataset.struct.names)
                raise RefusedPromotionError(
                    f"promote_slice has the column '{name}', which is not in the dataset",
                    advice or f"available: {', '.join(self.dataset.struct.names)}",
                )
            kind = self.dataset.struct[name].dataType.simpleString()
            if kind.startswith(_NO_VALUES) or self.value_of(name, text) is None:
                raise RefusedPromotionError(
                    f"promote_slice: {text!r} is not a value of '{name}' ({kind})"
                )

    def has_statistics(self, name: str) -> bool:
        """Whether the log keeps the extremes of a column."""
        return self.dataset.struct[name].dataType.simpleString() in _WITH_STATISTICS
