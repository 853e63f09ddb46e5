#!/usr/bin/env python3
"""Offline validator for OpenLineage events.

Reads events as JSON Lines (also accepts one JSON document or one JSON array)
and checks, without network access:

* the event envelope against OpenLineage.json (RunEvent, JobEvent, DatasetEvent);
* every facet against the schema its ``_schemaURL`` names, looked up by ``$id``
  among the files next to this script (plus any given with ``--extra``);
* that a facet key is the one its schema declares (``dataQualityMetrics`` and
  not ``dataQuality``), and that the facet sits in a container of its kind.

With ``--lifecycle`` it also checks the order of events inside each run.

Exit status: 0 all events valid, 1 at least one error, 2 unusable input.

Requires: jsonschema >= 4.18, referencing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

HERE = Path(__file__).resolve().parent
SPEC_HOST = "https://openlineage.io/spec/"
# .../spec/2-0-2/OpenLineage.json or .../spec/facets/1-1-0/SqlJobFacet.json, with the
# version as a SchemaVer triple (model-revision-addition).
VERSIONED = re.compile(r"^(?P<head>.+/)(?P<version>\d+-\d+-\d+)/(?P<file>[^/#]+\.json)$")
TERMINAL = {"COMPLETE", "FAIL", "ABORT"}
CONTAINER_BASE = {
    "run": "RunFacet",
    "job": "JobFacet",
    "dataset": "DatasetFacet",
    "input": "InputDatasetFacet",
    "output": "OutputDatasetFacet",
}
# Declared as an input dataset facet, but read by consumers (and emitted by several
# producers) from the plain dataset facets as well.
PLACEMENT_EXCEPTIONS = {("dataQualityAssertions", "dataset")}

FORMATS = FormatChecker(formats=[])


@FORMATS.checks("date-time")
def _is_datetime(value: object) -> bool:
    if not isinstance(value, str):
        return True
    if not re.match(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", value):
        return False
    try:
        datetime.fromisoformat(re.sub(r"\.\d+", "", value.upper()).replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


@FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


@FORMATS.checks("uri")
def _is_uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) and bool(parts.netloc or parts.path) and not re.search(r"\s", value)


@dataclass(frozen=True)
class FacetDef:
    """One facet property declared by a schema file."""

    key: str
    pointer: str  # "<$id>#/$defs/X"
    base: str | None  # RunFacet, JobFacet, ...


@dataclass
class Report:
    events: int = 0
    facets: int = 0
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    drift: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class Spec:
    """The local schema files, indexed by ``$id``, by file name and by facet key."""

    def __init__(self, directories: list[Path]) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        self.by_file: dict[tuple[str, str], str] = {}
        self.by_key: dict[str, list[FacetDef]] = {}
        for directory in directories:
            for path in sorted(directory.rglob("*.json")):
                if "examples" in path.relative_to(directory).parts:
                    continue
                self._add(path)
        self.registry: Registry = Registry().with_resources(
            (uri, Resource.from_contents(doc, default_specification=DRAFT202012))
            for uri, doc in self.by_id.items()
        )
        self.core = next((u for u in self.by_id if u.endswith("/OpenLineage.json")), None)
        if self.core is None:
            raise SystemExit("no OpenLineage.json among the schema files")

    def _add(self, path: Path) -> None:
        doc = json.loads(path.read_text(encoding="utf-8"))
        uri = doc.get("$id") if isinstance(doc, dict) else None
        if not uri:
            return
        if uri in self.by_id and self.by_id[uri] != doc:
            raise SystemExit(f"two different schema files declare $id {uri}")
        self.by_id[uri] = doc
        match = VERSIONED.match(uri)
        if match:
            self.by_file[(match["head"], match["file"])] = uri
        if uri.endswith("/OpenLineage.json"):
            return
        for key, target in doc.get("properties", {}).items():
            refs = (
                [target] if "$ref" in target else target.get("anyOf", []) + target.get("oneOf", [])
            )
            for ref in refs:
                pointer = ref.get("$ref", "")
                if pointer.startswith("#/$defs/"):
                    name = pointer.rsplit("/", 1)[1]
                    base = self._base_of(doc, name)
                    self.by_key.setdefault(key, []).append(FacetDef(key, uri + pointer, base))

    @staticmethod
    def _base_of(doc: dict[str, Any], name: str) -> str | None:
        for part in doc.get("$defs", {}).get(name, {}).get("allOf", []):
            ref = part.get("$ref", "")
            if "/OpenLineage.json#/$defs/" in ref:
                return str(ref.rsplit("/", 1)[1])
        return None

    def locate(self, url: str) -> tuple[str | None, str, str]:
        """Map a ``_schemaURL`` to (local $id or None, fragment, state).

        State is "exact", "drift" (same file, other version) or "unknown".
        """
        base, _, fragment = url.partition("#")
        if base in self.by_id:
            return base, fragment, "exact"
        match = VERSIONED.match(base)
        if match:
            near = self.by_file.get((match["head"], match["file"]))
            if near:
                return near, fragment, "drift"
        return None, fragment, "unknown"

    def validator(self, pointer: str) -> Draft202012Validator:
        return Draft202012Validator(
            {"$ref": pointer}, registry=self.registry, format_checker=FORMATS
        )

    def has_pointer(self, uri: str, fragment: str) -> bool:
        try:
            self.registry.resolver().lookup(f"{uri}#{fragment}")
        except Unresolvable:
            return False
        return True


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Unfold anyOf/oneOf wrappers down to the errors a person can act on."""
    if not error.context:
        yield error
        return
    branches = {e.schema_path[0] for e in error.context if e.schema_path}
    if len(branches) == 1:
        for sub in error.context:
            yield from leaves(sub)
        return
    best = best_match(error.context)
    yield from leaves(best) if best is not None and best.context else iter([best or error])


def show(path: Any) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else str(part))
    return out


def clip(text: str, limit: int = 220) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def kind_of(event: dict[str, Any]) -> str | None:
    fragment = str(event.get("schemaURL", "")).rpartition("#/")[2].rpartition("/")[2]
    if fragment in {"RunEvent", "JobEvent", "DatasetEvent"}:
        return fragment
    if "run" in event:
        return "RunEvent"
    if "dataset" in event:
        return "DatasetEvent"
    if "job" in event:
        return "JobEvent"
    return None


def facet_sites(event: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Yield (path, container kind, facet key, facet value) for the whole event."""

    def each(
        path: str, kind: str, holder: Any, name: str = "facets"
    ) -> Iterator[tuple[str, str, str, Any]]:
        if not isinstance(holder, dict):
            return
        facets = holder.get(name)
        if isinstance(facets, dict):
            for key, value in facets.items():
                yield f"{path}.{name}.{key}", kind, key, value

    yield from each("run", "run", event.get("run"))
    yield from each("job", "job", event.get("job"))
    yield from each("dataset", "dataset", event.get("dataset"))
    for side, special in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        datasets = event.get(side)
        for i, dataset in enumerate(datasets if isinstance(datasets, list) else []):
            yield from each(f"{side}[{i}]", "dataset", dataset)
            yield from each(f"{side}[{i}]", side[:-1], dataset, special)
    # facets forwarded inside the parent facet
    holder: Any = event
    for step, label in (
        ("run", ""),
        ("facets", ""),
        ("parent", "run.facets.parent"),
        ("root", "run.facets.parent.root"),
    ):
        holder = holder.get(step)
        if not isinstance(holder, dict):
            return
        for kind in ("run", "job") if label else ():
            yield from each(f"{label}.{kind}", kind, holder.get(kind))


class Checker:
    def __init__(self, spec: Spec, strict: bool) -> None:
        self.spec = spec
        self.strict = strict
        self.report = Report()
        self.said: set[str] = set()
        self.runs: dict[str, list[tuple[str, str, str]]] = {}

    def error(self, where: str, path: str, message: str) -> None:
        self._add(self.report.errors, where, path, message)

    def warn(self, where: str, path: str, message: str) -> None:
        self._add(self.report.errors if self.strict else self.report.warnings, where, path, message)

    def _add(self, target: list[str], where: str, path: str, message: str) -> None:
        line = f"{where}: {path + ': ' if path else ''}{clip(message)}"
        if line not in self.said:  # the envelope and the facet's own schema repeat each other
            self.said.add(line)
            target.append(line)

    def event(self, where: str, event: Any) -> None:
        self.report.events += 1
        if not isinstance(event, dict):
            self.error(where, "", "an event must be a JSON object")
            return
        kind = kind_of(event)
        if kind is None:
            self.error(where, "", "neither run, job nor dataset present: not an OpenLineage event")
            return
        uri, _, state = self.spec.locate(str(event.get("schemaURL", "")))
        if event.get("schemaURL") and state == "unknown":
            self.warn(where, "schemaURL", f"not the OpenLineage spec: {event['schemaURL']}")
        elif state == "drift" and uri is not None:
            self.note_drift(where, "schemaURL", str(event["schemaURL"]), uri)
        for wrapped in self.spec.validator(f"{self.spec.core}#/$defs/{kind}").iter_errors(event):
            for leaf in leaves(wrapped):
                self.error(f"{where} {kind}", show(leaf.absolute_path), leaf.message)
        for path, container, key, value in facet_sites(event):
            self.facet(f"{where} {kind}", path, container, key, value)
        if (
            kind == "RunEvent"
            and isinstance(event.get("run"), dict)
            and isinstance(event.get("job"), dict)
        ):
            job = f"{event['job'].get('namespace')}/{event['job'].get('name')}"
            run_id = str(event["run"].get("runId"))
            self.runs.setdefault(run_id, []).append((where, str(event.get("eventType")), job))

    def note_drift(self, where: str, path: str, url: str, local: str) -> None:
        wanted, have = VERSIONED.match(url.partition("#")[0]), VERSIONED.match(local)
        if wanted and have:
            self.report.drift[(wanted["file"], wanted["version"], have["version"])] += 1
            if wanted["version"].split("-")[0] != have["version"].split("-")[0]:
                self.warn(where, path, f"{url} is another major version than the local {local}")

    def facet(self, where: str, path: str, container: str, key: str, value: Any) -> None:
        self.report.facets += 1
        if not isinstance(value, dict) or not isinstance(value.get("_schemaURL"), str):
            return  # the envelope check already complains
        if value.get("_deleted") is True:
            return
        url = value["_schemaURL"]
        uri, fragment, state = self.spec.locate(url)
        declared = self.spec.by_key.get(key, [])
        if uri is None:
            if declared:
                wanted = " or ".join(sorted({d.pointer for d in declared}))
                self.error(
                    where,
                    path,
                    f"'{key}' is a standard facet key; _schemaURL should be {wanted}, not {url}",
                )
                return
            self.report.unknown[(key, url)] += 1
            if self.strict:
                self.error(where, path, f"no local schema for {url}")
            elif "_" not in key:
                self.warn(where, path, "custom facet key without a '<producer>_' prefix")
            return
        if state == "drift":
            self.note_drift(where, path, url, uri)
        if uri == self.spec.core:
            # BaseFacet or RunFacet and so on: legal for a custom facet, says nothing more.
            if declared:
                self.error(
                    where,
                    path,
                    f"'{key}' is a standard facet key but points at the base schema {url}",
                )
                return
            self.report.unknown[(key, url)] += 1
            return
        if not fragment:
            named = [d for d in declared if d.pointer.startswith(uri + "#")]
            if not named:
                self.error(where, path, f"{url} declares no facet called '{key}'")
                return
            fragment = next(
                (d for d in named if d.base == CONTAINER_BASE[container]), named[0]
            ).pointer.partition("#")[2]
        elif not self.spec.has_pointer(uri, fragment):
            alt = fragment.replace("/definitions/", "/$defs/")
            if not self.spec.has_pointer(uri, alt):
                self.error(where, path, f"_schemaURL points nowhere: no {fragment} in {uri}")
                return
            fragment = alt
        pointer = f"{uri}#{fragment}"
        match = [d for d in declared if d.pointer == pointer]
        if not match:
            keys = sorted(
                k for k, defs in self.spec.by_key.items() if any(d.pointer == pointer for d in defs)
            )
            hint = (
                f"the key for that schema is {' or '.join(map(repr, keys))}"
                if keys
                else "that is not a facet"
            )
            self.error(where, path, f"key '{key}' does not fit {url}: {hint}")
        elif (
            match[0].base not in (None, CONTAINER_BASE[container])
            and (key, container) not in PLACEMENT_EXCEPTIONS
        ):
            self.warn(where, path, f"a {match[0].base} inside {container} facets")
        try:
            for wrapped in self.spec.validator(pointer).iter_errors(value):
                for leaf in leaves(wrapped):
                    tail = show(leaf.absolute_path)
                    self.error(
                        where, f"{path}{'.' if tail and tail[0] != '[' else ''}{tail}", leaf.message
                    )
        except Unresolvable as exc:
            self.error(
                where, path, f"schema {pointer} refers to {exc.ref}, which is not available locally"
            )

    def lifecycle(self) -> None:
        for run_id, steps in self.runs.items():
            where = steps[0][0]
            types = [t for _, t, _ in steps]
            ends = [i for i, t in enumerate(types) if t in TERMINAL]
            first = next((t for t in types if t != "OTHER"), "OTHER")  # OTHER may precede START
            if "START" not in types:
                self.error(where, f"run {run_id}", f"no START event (saw {', '.join(types)})")
            elif first != "START":
                self.error(where, f"run {run_id}", f"{first} comes before START")
            if len(ends) != 1:
                self.error(
                    where, f"run {run_id}", f"{len(ends)} terminal events, expected exactly one"
                )
            elif any(t != "OTHER" for t in types[ends[0] + 1 :]):
                self.error(where, f"run {run_id}", f"{types[ends[0] + 1]} after {types[ends[0]]}")
            jobs = sorted({j for _, _, j in steps})
            if len(jobs) > 1:
                self.error(where, f"run {run_id}", f"events name several jobs: {', '.join(jobs)}")


def loads(text: str) -> Any:
    """json.loads without Python's NaN/Infinity extension and without duplicate keys."""

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            twice = next(key for key, n in Counter(key for key, _ in items).items() if n > 1)
            raise ValueError(f"duplicate key {twice!r}")
        return out

    return json.loads(text, parse_constant=constant, object_pairs_hook=pairs)


def read_events(text: str, name: str) -> Iterator[tuple[str, Any]]:
    try:
        whole = loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, list):
        for i, event in enumerate(whole):
            yield f"{name}[{i}]", event
        return
    if isinstance(whole, dict):
        yield (f"{name}:1" if len(text.splitlines()) == 1 else name), whole
        return
    if whole is None and text.split("\n", 1)[0].strip() in {
        "{",
        "[",
    }:  # one broken multi-line document
        try:
            loads(text)
        except ValueError as exc:
            yield name, exc
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield f"{name}:{number}", loads(line)
            except ValueError as exc:
                yield f"{name}:{number}", exc


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Validate OpenLineage events offline.")
    parser.add_argument("files", nargs="+", help="JSONL (or JSON) files; '-' reads standard input")
    parser.add_argument(
        "--extra", action="append", default=[], type=Path, help="directory with more facet schemas"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="warnings and facets without a local schema are errors",
    )
    parser.add_argument(
        "--lifecycle", action="store_true", help="check START/terminal order per run"
    )
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    args = parser.parse_args(argv)

    missing = [str(d) for d in args.extra if not d.is_dir()]
    if missing:
        print(f"not a directory: {', '.join(missing)}", file=sys.stderr)
        return 2
    checker = Checker(Spec([HERE, *args.extra]), args.strict)
    for name in args.files:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            print(f"cannot read {name}: {exc}", file=sys.stderr)
            return 2
        before = checker.report.events
        for where, event in read_events(text, "stdin" if name == "-" else Path(name).name):
            if isinstance(event, ValueError):
                checker.report.events += 1
                checker.error(where, "", f"not JSON: {event}")
            else:
                checker.event(where, event)
        if checker.report.events == before:
            print(f"no events in {name}", file=sys.stderr)
            return 2
    if args.lifecycle:
        checker.lifecycle()

    report = checker.report
    for line in report.errors:
        print(f"ERROR   {line}")
    if not args.quiet:
        for line in report.warnings:
            print(f"WARNING {line}")
        for (key, url), count in sorted(report.unknown.items()):
            print(f"UNKNOWN facet '{key}' x{count}: only the base fields were checked ({url})")
        for (file, wanted, have), count in sorted(report.drift.items()):
            print(f"DRIFT   {file} {wanted} x{count}: checked against local {have}")
        print(
            f"{report.events} events, {report.facets} facets, {len(report.errors)} errors, "
            f"{len(report.warnings)} warnings, {sum(report.unknown.values())} unknown facets"
        )
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
