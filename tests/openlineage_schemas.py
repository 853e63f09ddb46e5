"""Validates events against the published OpenLineage schemas, without a network."""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from referencing import Registry
from referencing.jsonschema import DRAFT202012

_SCHEMAS = Path(__file__).with_name("lineage") / "openlineage"
_BASES = {
    "run": "RunFacet",
    "job": "JobFacet",
    "dataset": "DatasetFacet",
    "inputs": "InputDatasetFacet",
    "outputs": "OutputDatasetFacet",
}
# Declared as a facet of an input, but read by consumers (and emitted by several producers) from
# the facets of any dataset as well.
_PLACED_ELSEWHERE = {("dataQualityAssertions", "dataset")}
_ENDS = {"COMPLETE", "FAIL", "ABORT"}
_FORMATS = FormatChecker(formats=[])


@_FORMATS.checks("date-time", raises=ValueError)
def _is_datetime(value: object) -> bool:
    with_zone = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
    if re.fullmatch(with_zone, str(value)) is None:
        return False
    datetime.fromisoformat(re.sub(r"\.\d+", "", str(value).upper()).replace("Z", "+00:00"))
    return True


@_FORMATS.checks("uuid", raises=ValueError)
def _is_uuid(value: object) -> bool:
    return str(uuid.UUID(str(value))) == str(value).lower()


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    parts = urlsplit(str(value))
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", str(value))


def _of_major_version(url: str) -> str:
    """The client quotes another minor version of a facet than the files here."""
    return re.sub(r"/(\d+)-\d+-\d+/", r"/\1/", url)


class _Schemas:
    """The schema files by their addresses, and the facets that they declare."""

    def __init__(self) -> None:
        documents = [json.loads(path.read_text("utf-8")) for path in _SCHEMAS.rglob("*.json")]
        self._files = {_of_major_version(one["$id"]): one["$id"] for one in documents}
        self._registry: Registry[Any] = Registry().with_resources(
            (one["$id"], DRAFT202012.create_resource(one)) for one in documents
        )
        self.facets: dict[str, dict[str, str | None]] = defaultdict(dict)
        for one in documents:
            if not one["$id"].endswith("/OpenLineage.json"):
                self._declare(one)

    def _declare(self, document: dict[str, Any]) -> None:
        """A facet has a key, a place in its file, and the kind of facet that it extends."""
        for key, target in document.get("properties", {}).items():
            for one in [target, *target.get("anyOf", []), *target.get("oneOf", [])]:
                if (place := one.get("$ref", "")).startswith("#/$defs/"):
                    parts = document["$defs"][place.rpartition("/")[2]].get("allOf", [])
                    extended = [part["$ref"] for part in parts if "$ref" in part]
                    bases = [ref.rpartition("/")[2] for ref in extended if "/OpenLineage" in ref]
                    self.facets[key][document["$id"] + place] = next(iter(bases), None)

    def local(self, url: str) -> str | None:
        """The schema that is here for an address."""
        file, _, place = url.partition("#")
        found = self._files.get(_of_major_version(file))
        return found and f"{found}#{place}"

    def errors(self, schema: str, value: Any, path: str) -> Iterator[str]:
        checks = Draft202012Validator(
            {"$ref": schema}, registry=self._registry, format_checker=_FORMATS
        )
        for error in checks.iter_errors(value):
            leaf = best_match([error]) or error
            yield f"{path}{leaf.json_path[1:]}: {leaf.message}"

    def objections_to_facet(self, path: str, holder: str, key: str, facet: Any) -> Iterator[str]:
        if not isinstance(facet, dict) or not isinstance(facet.get("_schemaURL"), str):
            return  # that is an error of the event
        url, declared = facet["_schemaURL"], self.facets.get(key, {})
        if facet.get("_deleted") is True:
            return
        if (schema := self.local(url)) is None:
            yield f"{path}: no local schema for {url}"
        elif "/OpenLineage.json#" in schema:
            # BaseFacet or RunFacet and so on: legal for a custom facet, says nothing more.
            if declared:
                yield f"{path}: '{key}' is a standard facet, but points at the base schema {url}"
        elif schema not in declared:
            yield f"{path}: {url} declares no facet called '{key}'"
        else:
            if declared[schema] not in (None, _BASES[holder]) and (
                (key, holder) not in _PLACED_ELSEWHERE
            ):
                yield f"{path}: a {declared[schema]} inside {holder} facets"
            yield from self.errors(schema, facet, path)


_schemas = cache(_Schemas)


def _facets(event: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Path, kind of holder, key and value of each facet; those inside the parent facet are last."""
    for kind in ("run", "job", "dataset"):
        yield from _facets_of(kind, kind, event.get(kind))
    for side, special in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for number, dataset in enumerate(event.get(side) or ()):
            yield from _facets_of(f"{side}[{number}]", "dataset", dataset)
            yield from _facets_of(f"{side}[{number}]", side, dataset, special)
    parent = event.get("run", {}).get("facets", {}).get("parent", {})
    for path, above in (("parent", parent), ("parent.root", parent.get("root", {}))):
        for kind in ("run", "job"):
            yield from _facets_of(f"{path}.{kind}", kind, above.get(kind))


def _facets_of(
    path: str, kind: str, holder: dict[str, Any] | None, name: str = "facets"
) -> Iterator[tuple[str, str, str, Any]]:
    for key, value in ((holder or {}).get(name) or {}).items():
        yield f"{path}.{name}.{key}", kind, key, value


def _objections(event: dict[str, Any]) -> list[str]:
    """The first kind of errors: what is in an invalid object cannot be judged."""
    schema = _schemas().local(str(event.get("schemaURL")))
    if schema is None or not schema.endswith("Event"):
        return [f"schemaURL: no schema of an event: {event.get('schemaURL')}"]
    found = [*_schemas().errors(schema, event, "")]
    for facet in _facets(event) if not found else ():
        if found := [*_schemas().objections_to_facet(*facet)]:
            break
    return found


def _objections_to_order(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A run starts, and then ends once, as the same job."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if "run" in event:
            runs[event["run"]["runId"]].append(event)
    for run, steps in runs.items():
        # An event of the type OTHER may come at any time.
        types = [str(step.get("eventType")) for step in steps if step.get("eventType") != "OTHER"]
        ends = [type_ for type_ in types if type_ in _ENDS]
        if types[:1] != ["START"] or len(ends) != 1 or types[-1] not in _ENDS:
            yield f"run {run}: the events are {', '.join(types)}"
        if len({(step["job"]["namespace"], step["job"]["name"]) for step in steps}) > 1:
            yield f"run {run}: events name several jobs"


def problems(events: Sequence[RunEvent | dict[str, Any]], *, lifecycle: bool = True) -> list[str]:
    """All that is wrong with events, their order included."""
    plain = []
    for event in events:
        text = json.dumps(event) if isinstance(event, dict) else Serde.to_json(event)
        plain.append(json.loads(text, parse_constant=_no_json))
    found = [
        f"event {number}: {objection}"
        for number, event in enumerate(plain)
        for objection in _objections(event)
    ]
    return found if found or not lifecycle else [*_objections_to_order(plain)]


def _no_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
