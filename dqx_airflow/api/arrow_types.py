"""Arrow types as Spark reads them."""

from __future__ import annotations

from typing import Any


def spark_type(arrow: Any, *, has_zone: bool = False, of_nulls: str = "void") -> str:
    """The Spark type of an Arrow type.

    :param has_zone: a timestamp without a time zone here has one in Spark.
    :param of_nulls: the type of a column with only NULL.
    :raises ValueError: there is none.
    """
    from pyarrow import types as is_

    def inner(part: Any) -> str:
        return spark_type(part, has_zone=has_zone, of_nulls=of_nulls)

    if is_.is_dictionary(arrow):
        return inner(arrow.value_type)
    if is_.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if is_.is_timestamp(arrow):
        return "timestamp" if arrow.tz is not None or has_zone else "timestamp_ntz"
    if is_.is_struct(arrow):
        fields = (arrow.field(number) for number in range(arrow.num_fields))
        return f"struct<{','.join(f'{item.name}:{inner(item.type)}' for item in fields)}>"
    if is_.is_map(arrow):
        return f"map<{inner(arrow.key_type)},{inner(arrow.item_type)}>"
    if is_.is_list(arrow) or is_.is_large_list(arrow) or is_.is_fixed_size_list(arrow):
        return f"array<{inner(arrow.value_type)}>"
    for test, name in (
        (is_.is_boolean, "boolean"),
        (is_.is_int8, "tinyint"),
        (is_.is_int16, "smallint"),
        (is_.is_uint8, "smallint"),
        (is_.is_int32, "int"),
        (is_.is_uint16, "int"),
        (is_.is_int64, "bigint"),
        (is_.is_uint32, "bigint"),
        (is_.is_uint64, "decimal(20,0)"),
        (is_.is_float64, "double"),
        (is_.is_floating, "float"),
        (is_.is_date, "date"),
        (is_.is_null, of_nulls),
    ):
        if test(arrow):
            return name
    # Views have a test of their own in the newer versions of pyarrow alone.
    if is_.is_string(arrow) or is_.is_large_string(arrow) or str(arrow) == "string_view":
        return "string"
    is_bytes = is_.is_binary(arrow) or is_.is_large_binary(arrow)
    if is_bytes or is_.is_fixed_size_binary(arrow) or str(arrow) == "binary_view":
        return "binary"
    raise ValueError(f"Spark has no type for {arrow}")
