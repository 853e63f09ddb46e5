"""Measures the days that the store lacks: all of them in one scan of each dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

from dqx_airflow.errors import RequestError, SourceError, SparkError

if TYPE_CHECKING:
    from dqx_airflow.cli.run.spark import Spark
    from dqx_airflow.plan.model import Plan
    from dqx_airflow.tuning.past_days import PastDay
    from dqx_airflow.values import GateRequest


def filled(
    suite: Path,
    known: Sequence[PastDay],
    first: date,
    last: date,
    datasets: list[str] | None,
    connection: str | None,
    config: Path | None,
) -> tuple[PastDay, ...]:
    """The known days, and the days between them as measured now.

    References and SQL over several datasets are not measured, since they depend on the state of
    other datasets on that day. Nothing is stored.

    :param known: days of one instance, if the gate is mapped.
    :raises SourceError: the suite does not fit its datasets.
    :raises RequestError: the days are those of several instances of a mapped gate.
    :raises DqxError: they cannot be read.
    """
    instances = sorted({day.map_index for day in known}) or [-1]
    if len(instances) > 1:
        listed = ", ".join(map(str, instances))
        raise RequestError(
            f"--fill reads one dataset of each name, but the gate has several instances: {listed}",
            "add --map-index NUMBER, and the dataset of that instance",
        )
    measured_dates = {day.date for day in known if day.measured.values}
    count = (last - first).days + 1
    missing = [on for n in range(count) if (on := first + timedelta(days=n)) not in measured_dates]
    if not missing:
        return tuple(known)
    request, plans, spark = _opened(suite, missing, datasets, connection, config)
    from dqx_airflow.plan.measured import Measurements, measurements_of
    from dqx_airflow.tuning.past_days import PastDay

    try:
        measured_days = spark.measure(request.datasets, list(map(_of_one_dataset, plans)))
    finally:
        spark.close()
    labels = {day.date: day.labels for day in known}
    made = []
    for plan, measured_day in zip(plans, measured_days, strict=True):
        parts = (measurements_of(planned, plan, measured_day) for planned in plan.assertions)
        measured = reduce(or_, parts, Measurements())
        # The caller gives the location of the data: its name may differ from that in the gate.
        measured = replace(measured, reads={})
        own_labels = labels.get(plan.date, {})
        made.append(PastDay(plan.date, measured, labels=own_labels, map_index=instances[0]))
    kept = [day for day in known if day.date in measured_dates]
    return tuple(sorted([*kept, *made], key=lambda day: day.date))


def _opened(
    suite: Path,
    missing: Sequence[date],
    datasets: list[str] | None,
    connection: str | None,
    config: Path | None,
) -> tuple[GateRequest, list[Plan], Spark]:
    """The datasets of the suite, its plan for each of the days, and the measuring function."""
    from dqx_airflow.cli.run.call import Options
    from dqx_airflow.cli.run.request_builder import read_call
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.imports import inlined
    from dqx_airflow.plan.resolve import resolve

    options = Options((suite,), connection, datasets=tuple(datasets or ()), config=config)
    call = read_call(options, date.today())
    if call.has_errors:
        raise SourceError(draw(call.diagnostics, call.sources), diagnostics=call.diagnostics)
    (request,) = call.requests
    checked = check_source(request.suite, inlined(request.imports))
    plans = [
        resolve(
            checked.valid_suite,
            request.suite,
            request.datasets,
            on,
            allow_empty=True,
            ansi=request.ansi,
        )
        for on in missing
    ]
    try:
        from dqx_airflow.cli.run.spark import Spark
    except ModuleNotFoundError as error:
        raise SparkError(
            f"package {error.name} is not installed", "pip install 'dqx-airflow[spark]'"
        ) from error
    session = {**request.session_settings, **call.settings.session}
    return request, plans, Spark(call.settings.connection, session)


def _of_one_dataset(plan: Plan) -> Plan:
    """The plan without the requests about other datasets."""
    from dqx_airflow.metrics.metric import Scan
    from dqx_airflow.plan.predicates import lookups_of

    several = (Scan.QUERY, Scan.MATCH)
    requests = tuple(
        request
        for request in plan.requests
        if request.definition.scan not in several and not lookups_of(request)
    )
    return replace(plan, requests=requests, lookups=())
