"""The locations to which a gate writes: results, quarantines and promotions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from dqx_airflow.datasets.locations import is_inside, overlap, two_slashes
from dqx_airflow.datasets.settings_check import CREDENTIALS_HINT
from dqx_airflow.errors import RequestError
from dqx_airflow.values import JDBC, DatasetRef, GateRequest
from dqx_airflow.values.redact import holds_credentials, redact_urls


def check_locations(request: GateRequest) -> None:
    """Rejects credentials in the locations to which a gate writes.

    :raises RequestError: there are some.
    """
    places = [("the results", request.results_root)]
    places += [(f"the quarantine of dataset '{name}'", path) for name, path in request.quarantine]
    places += [(f"the promotion of dataset '{name}'", path) for name, path in request.promote_to]
    for purpose, place in places:
        if holds_credentials(place):
            message = f"the location of {purpose} contains credentials: {redact_urls(place)}"
            raise RequestError(message, CREDENTIALS_HINT)
        if (meant := two_slashes(place)) is not None:
            raise RequestError(f"the location of {purpose} is {place}", f"write {meant}")


def check_quarantine(request: GateRequest) -> None:
    """Rejects a quarantine below the results, where unmasked rows must not be, in a dataset, or
    in the quarantine of another one, whose rows it would replace.

    :raises RequestError: the request has such a quarantine.
    """
    if not request.quarantine:
        return
    taken = {"the results": request.results_root}
    taken |= {f"dataset '{ref.name}'": ref.path for ref in request.datasets if ref.path}
    for name, path in request.quarantine:
        for owner, root in taken.items():
            if is_inside(path, root):
                raise RequestError(
                    f"the quarantine of dataset '{name}' is inside the location of {owner}: {path}",
                    "give it a separate path",
                )
        taken[f"the quarantine of dataset '{name}'"] = path


def check_promotion(request: GateRequest, dates: Collection[date] = ()) -> None:
    """Rejects a promotion of a dataset without versions, one into a location that is in use, and
    one of a dataset without dates for several dates.

    :raises RequestError: the request has such a promotion.
    """
    _require_target(request)
    refs = {ref.name: ref for ref in request.datasets}
    taken = {"the results": request.results_root}
    taken |= {
        f"dataset '{ref.name}'": ref.location for ref in request.datasets if _is_at_place(ref)
    }
    taken |= {f"the quarantine of dataset '{name}'": path for name, path in request.quarantine}
    for name, target in request.promote_to:
        _require_dates(refs[name], target, dates)
        if not _is_at_place(refs[name]):
            noun = "a query" if refs[name].query is not None else "a table of a database"
            message = f"dataset '{name}' is {noun} and cannot be promoted"
            raise RequestError(message, "promote a dataset at a path or a table of the catalog")
        for owner, place in taken.items():
            if overlap(place, target):
                message = f"dataset '{name}' would be promoted to the location of {owner}: {target}"
                raise RequestError(message, "give it a separate location")
        taken[f"the promotion of dataset '{name}'"] = target


def _require_target(request: GateRequest) -> None:
    """Rejects settings of promotions without the targets, or the quarantines, that they need.

    :raises RequestError: there is one.
    """
    if request.promote_slice and not request.promote_to:
        message = "promote_slice requires promote_to"
        raise RequestError(message, "set promote_to as well, or remove promote_slice")
    if request.promote_valid is None:
        return
    places = dict(request.quarantine)
    without = [name for name, _ in request.promote_to if name not in places]
    if without:
        lacking = f"quarantine for dataset '{without[0]}'"
    elif not request.promote_to:
        lacking = "promote_to"
    else:
        return
    raise RequestError(
        f"promote_valid requires promote_to and quarantine, and there is no {lacking}",
        f"set {lacking.split(maxsplit=1)[0]} as well, or remove promote_valid",
    )


def _require_dates(ref: DatasetRef, target: str, dates: Collection[date]) -> None:
    """Rejects several dates of a dataset without dates.

    :raises RequestError: each date would replace the same rows.
    """
    if len(set(dates)) > 1 and ref.date_column is None:
        raise RequestError(
            f"dataset '{ref.name}' has no date_column, so each date from {min(dates)} to "
            f"{max(dates)} would replace the same rows of {target}",
            "give it a date_column, or promote it in a gate of one date",
        )


def _is_at_place(ref: DatasetRef) -> bool:
    """True for a dataset at a path, or a table of the catalog."""
    return ref.query is None and ref.format != JDBC
