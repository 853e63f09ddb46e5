"""The dialect of the Open Data Contract Standard, 3.0 to 3.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dqx_airflow.contracts.demands import Refers
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.odcs.custom_properties import custom_properties, read_consumers
from dqx_airflow.contracts.dialects.odcs.elements import (
    Element,
    OdcsReading,
    elements_of,
    physical_name,
)
from dqx_airflow.contracts.dialects.odcs.odcs_quality import read_rules
from dqx_airflow.contracts.dialects.odcs.odcs_servers import FILES, SPARK, read_servers
from dqx_airflow.contracts.dialects.odcs.properties import is_column, mark_computed, read_property
from dqx_airflow.contracts.dialects.odcs.service_levels import kind_of, read_service, stated_date
from dqx_airflow.contracts.dialects.primary_key import KeyMark, key_rules, primary_key
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, RuleOfModel, with_unique_names
from dqx_airflow.contracts.document import NOTHING, Mapping
from dqx_airflow.contracts.formats_in_files import TEXT_FORMATS
from dqx_airflow.contracts.model import (
    Contract,
    Dialect,
    Field,
    IncidentResponse,
    Lifecycle,
    Model,
    Rule,
    column_path,
    day_of,
)
from dqx_airflow.errors import NoCounterpartError

_NO_KEY = "states no key without `primaryKey: true`: add it, or remove the position"
_STATUSES = ("proposed", "draft", "active", "deprecated", "retired")


def _read(reading: OdcsReading) -> Contract:
    root = reading.root
    reading.remarks(root, "ODCS: document")
    if not root.items("schema"):
        reading.documented_keys(root, "schema", reason="does not name an object")
    for key in ("authoritativeDefinitions", "support"):
        for item in reading.mappings(root, key):
            reading.check_address(item, "url", "uri")
    servers = tuple(read_servers(reading))
    if servers:  # of several, the first one counts
        reading.sql_dialect = servers[0].sql_dialect
        reading.is_spark = servers[0].type in (*FILES, *SPARK)
        reading.is_text = any(server.file_format in TEXT_FORMATS for server in servers)
    reading.elements = elements_of(reading)
    levels = tuple(read_service(reading))
    description = reading.mapping(root, "description")
    purpose = (description.text(key) for key in ("purpose", "usage", "limitations"))
    owner, contacts = _team(reading)
    return Contract(
        dialect=Dialect.ODCS,
        dialect_version=reading.version or None,
        id=root.text("id") or "",
        version=root.text("version"),
        span=root.span_of("id"),
        name=root.text("name"),
        description="\n".join(filter(None, purpose)) or root.text("description"),
        owner=owner,
        contacts=contacts,
        domain=root.text("domain"),
        models=tuple(_models(reading, levels)),
        servers=servers,
        consumers=tuple(read_consumers(reading)),
        lifecycle=_lifecycle(reading),
        tags=reading.texts(root, "tags"),
        incident=_incident(reading),
        document=root,
    )


def _team(reading: ClauseReader) -> tuple[str | None, tuple[str, ...]]:
    """The owner and the names of the members: from the list of 3.0, or the mapping of 3.1."""
    team = reading.mapping(reading.root, "team")
    holder, key = (team, "members") if team is not NOTHING else (reading.root, "team")
    names = {}
    for member in reading.mappings(holder, key):
        username = member.text("username")
        if username is not None and member.text("dateOut") is None:
            names[username] = (member.text("role") or "").lower()
    owners = (name for name, role in names.items() if "owner" in role)
    return team.text("name") or next(owners, None), tuple(names)


_SCOPES = {"issues": 0, "interactive": 1}
_TIMES = {"timetodetect": "detect", "timetonotify": "notify", "timetorepair": "repair"}


def _incident(reading: OdcsReading) -> IncidentResponse:
    """The support channel for issues, or else for talks, or else the first channel; and the times
    in which the producer promises to act."""
    channels = [item for item in reading.mappings(reading.root, "support") if item.text("channel")]
    channels.sort(key=lambda item: _SCOPES.get(item.text("scope") or "", len(_SCOPES)))
    named = (item.text(key) for item in channels[:1] for key in ("channel", "url"))
    times = (
        f"{verb} within {level.text('value')} {level.text('unit') or ''}".strip()
        for level in reading.mappings(reading.root, "slaProperties")
        if (verb := _TIMES.get(kind_of(level))) and level.text("value")
    )
    channel = ", ".join(dict.fromkeys(filter(None, named)))
    return IncidentResponse(channel=channel or None, response=", ".join(times) or None)


def _lifecycle(reading: OdcsReading) -> Lifecycle:
    """The status of the document, its dates in service levels, and its custom properties."""
    levels = {kind_of(level): level for level in reading.mappings(reading.root, "slaProperties")}
    custom = dict(custom_properties(reading))
    start = levels.get("generalavailability", NOTHING)
    deprecation = custom.get("deprecationDate", NOTHING)
    return Lifecycle(
        status=reading.status(reading.root, "status", _STATUSES, is_open=True),
        written_status=reading.root.text("status"),
        effective_date=stated_date(reading, start, "effective date"),
        deprecation_date=reading.lifecycle_date(deprecation, "value", "deprecation", ends=True),
        sunset_date=_earliest_end(reading),
        successor=custom.get("successor", NOTHING).text("value"),
        notice_days=reading.notice_days(custom.get("deprecationNoticeDays", NOTHING), "value"),
        breaking_notice_days=custom.get("breakingChangeNoticeDays", NOTHING).whole_number("value"),
        dual_write_days=custom.get("dualWriteDays", NOTHING).whole_number("value"),
        cadence=custom.get("breakingChangeCadence", NOTHING).text("value"),
    )


def _earliest_end(reading: OdcsReading) -> str | None:
    """The earliest date among the ends of life in the service levels, or else the first text there;
    None without one."""
    ends = [
        reading.lifecycle_date(level, "value", "sunset", ends=True)
        for level in reading.mappings(reading.root, "slaProperties")
        if kind_of(level) == "endoflife"
    ]
    dates = [end for end in ends if end is not None and day_of(end) is not None]
    return min(dates, default=next(filter(None, ends), None))


# Objects -----------------------------------------------------------------------------------------


def _models(reading: OdcsReading, levels: tuple[RuleOfModel, ...]) -> Iterator[Model]:
    for node in reading.mappings(reading.root, "schema"):
        with reading.of_model(node.text("name") or ""):
            model = _model(reading, node, levels)
        yield model


def _model(reading: OdcsReading, node: Mapping, levels: tuple[RuleOfModel, ...]) -> Model:
    name = node.text("name") or ""
    reading.remarks(node, "ODCS: object")
    properties = tuple(reading.mappings(node, "properties"))
    columns = [column for column in properties if is_column(column)]
    for other in properties:
        if other not in columns:
            mark_computed(reading, other)
    marks: list[KeyMark] = []
    for column in columns:
        marks += _key_marks(reading, column, column_path(physical_name(column)))
    key = primary_key(reading, marks)
    reading.key = frozenset(mark.path for mark in key)
    fields = tuple(read_property(reading, column) for column in columns)
    paths = tuple(item.path for item in fields)
    placed: list[PlacedRule] = [(path, rule) for model, path, rule in levels if model == name]
    placed += read_rules(reading, node, columns=paths)
    rules = (rule for path, rule in placed if path is None)
    of_model = (*key_rules(reading, key, fields), *_relationships(reading, node), *rules)
    return Model(
        name=name,
        span=node.span_of("name"),
        fields=tuple(_with_rules(item, placed) for item in fields),
        rules=with_unique_names(of_model),
        description=node.text("description"),
        title=node.text("businessName"),
        location=node.text("physicalName"),
        partition_by=_partitions(columns),
        tags=reading.texts(node, "tags"),
        id=node.text("id"),
    )


def _with_rules(item: Field, placed: Iterable[PlacedRule]) -> Field:
    """The field and its nested fields, with the rules about them."""
    rules = with_unique_names((*item.rules, *(rule for path, rule in placed if path == item.path)))
    fields = tuple(_with_rules(inner, placed) for inner in item.fields)
    return replace(item, rules=rules, fields=fields)


def _position(column: Mapping, key: str) -> float:
    """The position of a column in a key; columns without one come last, in document order."""
    position = column.number(key)
    return float("inf") if position is None or position < 0 else position


def _key_marks(
    reading: OdcsReading, node: Mapping, path: str, parent: str = "", *, is_repeated: bool = False
) -> Iterator[KeyMark]:
    """The property, if it is marked as a part of the primary key, and the properties below it."""
    position = node.number("primaryKeyPosition")
    if node.truth("primaryKey"):
        nodes = (node.get("primaryKey"), node.get("primaryKeyPosition"))
        stated = tuple(item for item in nodes if item is not None)
        is_placed = position is not None and position >= 0
        place = position if is_placed else None
        yield KeyMark(path, parent, stated, place, is_repeated=is_repeated)
    elif node.truth("primaryKey") is None and position is not None and position > 0:
        reading.unsupported(node.get("primaryKeyPosition"), _NO_KEY)
    else:
        reason = "not part of the primary key"
        reading.documented_keys(node, "primaryKey", "primaryKeyPosition", reason=reason)
    for inner in reading.mappings(node, "properties"):
        step = column_path(physical_name(inner))
        yield from _key_marks(reading, inner, f"{path}.{step}", path, is_repeated=is_repeated)
    entries = reading.mapping(node, "map")
    parts = [reading.mapping(node, "items")]
    parts += (reading.mapping(entries, key) for key in ("key", "value"))
    for part in parts:
        if part is not NOTHING:
            yield from _key_marks(reading, part, f"{path}[]", path, is_repeated=True)


def _partitions(columns: list[Mapping]) -> tuple[str, ...]:
    partitioned = [column for column in columns if column.truth("partitioned")]
    partitioned.sort(key=lambda column: _position(column, "partitionKeyPosition"))
    return tuple(physical_name(column) for column in partitioned)


def _relationships(reading: OdcsReading, node: Mapping) -> Iterator[Rule]:
    """The references that an object declares with both of their ends, which may be several
    columns."""
    for relation in reading.mappings(node, "relationships"):
        reading.remarks(relation, "ODCS: relationship")
        try:
            own_ends, other_ends = (
                list(map(reading.elements.referred, relation.texts(key))) for key in ("from", "to")
            )
            _check_ends(node.text("name") or "", own_ends, other_ends)
        except NoCounterpartError as error:
            for key in ("from", "to"):
                reading.unsupported(relation.get(key), str(error))
            continue
        demand = Refers(
            tuple(end.path for end in own_ends),
            other_ends[0].model,
            tuple(end.path for end in other_ends),
        )
        yield reading.rule("references", demand, relation.get("to"), relation.get("from"))


def _check_ends(model: str, own_ends: list[Element], other_ends: list[Element]) -> None:
    """Checks that the two ends of a relationship form a reference of the model.

    :raises NoCounterpartError: they do not."""
    reason = None
    if len(own_ends) != len(other_ends) or not own_ends:
        numbers = f"{len(own_ends)} in `from` and {len(other_ends)} in `to`"
        reason = f"it has {numbers}: list the same number in both"
    elif {end.model for end in own_ends} != {model}:
        reason = f"its `from` is not in {model}: move the relationship to the object that has it"
    elif len({end.model for end in other_ends}) > 1:
        reason = "its `to` is in several objects: write one relationship for each"
    if reason is not None:
        raise NoCounterpartError(reason)


READER = DialectReader(
    Dialect.ODCS,
    _read,
    reading=OdcsReading,
    sign="`apiVersion: v3.2.0` and `kind: DataContract`",
    version_key="apiVersion",
    versions=("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.2.0"),
    is_open=True,
    change_kinds=(
        (("dataGranularityDescription",), "grain_changed", ()),
        (("logicalTypeOptions", "timezone"), "zone_changed", ("false",)),
        (("logicalTypeOptions", "defaultTimezone"), "zone_changed", ("Etc/UTC", "UTC")),
    ),
)
