"""Binds blocks of DataLex to the contracts that they implement: checks the columns of their queries
against the manifest, and determines the impact of a new manifest (seed 000).

Only a certified block can have errors. For a draft they are warnings, so that no one is blocked,
but they are always reported.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dqx_airflow.contracts.dialects.datalex import ContractPort, Manifest, ManifestContract
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, Related, did_you_mean
from dqx_airflow.dql.syntax.datalex_blocks import Block, read_blocks
from dqx_airflow.values import SourceFile, Span

if TYPE_CHECKING:
    from sqlglot import Expr


CERTIFIED = "certified"
STATUSES = ("draft", "review", CERTIFIED, "deprecated")

_REFERENCE = re.compile(
    r"([a-zA-Z][a-zA-Z0-9_]*\.[A-Z][A-Za-z0-9]*\.[a-z][a-z0-9_]*)(?:@([1-9][0-9]*))?\Z"
)
_FORM = "write domain.Entity.contract_name@1"


def check_block(block: Block, manifest: Manifest | None) -> tuple[Diagnostic, ...]:
    """The diagnostics of a block and its contract; none for a block without a contract.

    :param manifest: None if no manifest was found.
    """
    diagnostics = [*_status(block)]
    is_certified = block.text("status") == CERTIFIED
    if "datalex_contract" in block.settings:
        named = _bound(block, manifest)
        diagnostics += (item if is_certified else replace(item, is_mild=True) for item in named)
    return tuple(diagnostics)


def reference_of(block: Block) -> tuple[str, int | None] | None:
    """The id and the pinned version of the contract of a block, if they are valid."""
    written = block.text("datalex_contract")
    return parsed_reference(written) if written is not None else None


def parsed_reference(written: str) -> tuple[str, int | None] | None:
    """The id and the pinned version of a reference such as `commerce.Customer.active@1`."""
    match = _REFERENCE.match(written)
    return (match[1], int(match[2]) if match[2] else None) if match else None


def promise_of(block: Block, manifest: Manifest) -> ManifestContract | None:
    """The contract of a block: the pinned version, or else the newest; None if it is missing."""
    reference = reference_of(block)
    if reference is None:
        return None
    contract_id, pin = reference
    versions = manifest.versions_of(contract_id)
    return next((one for one in versions if pin is None or one.version == pin), None)


def _status(block: Block) -> Iterator[Diagnostic]:
    status = block.settings.get("status")
    if status is None or status.value in STATUSES:
        return
    hint = did_you_mean(str(status.value), STATUSES)
    yield mistake("block_status", status.span, status=status.value, hint=hint)


def _bound(block: Block, manifest: Manifest | None) -> Iterator[Diagnostic]:
    """The violations of its contract by a block, as if it were certified."""
    place = block.span_of("datalex_contract")
    written = block.text("datalex_contract")
    reference = reference_of(block)
    if reference is None:
        value = block.settings["datalex_contract"].value
        is_word = value is None or isinstance(value, bool)
        shown = str(value).lower() if is_word else str(value)
        shown = written or ("[...]" if isinstance(value, tuple) else shown)
        hint = _nearest_id(shown, manifest) or _FORM
        yield mistake("block_contract", place, written=shown, hint=hint)
        return
    contract_id, pin = reference
    if manifest is None:
        yield mistake("no_manifest_found", place, id=contract_id)
        return
    if manifest.errors:
        first = manifest.errors[0]
        related = Related(first.span, first.message)
        yield mistake("broken_manifest", place, related, id=contract_id)
        return
    versions = manifest.versions_of(contract_id)
    if not versions:
        ids = sorted({promise.id for promise in manifest.promises})
        parts = {"id": contract_id, "manifest": manifest.source.name}
        yield mistake("unknown_promise", place, hint=did_you_mean(contract_id, ids), **parts)
        return
    promise, newest = promise_of(block, manifest), versions[0]
    named = {"id": contract_id, "newest": newest.version}
    if promise is None:
        existing = ", ".join(str(version.version) for version in versions)
        related = Related(newest.span, f"its versions: {existing}")
        yield mistake("unknown_pin", place, related, pin=pin, **named)
        return
    if pin is None:
        yield mistake("no_pin_in_2" if manifest.needs_pins else "no_pin", place, **named)
    yield from _outputs(block, promise, manifest)


def _nearest_id(written: str, manifest: Manifest | None) -> str | None:
    """The id in the manifest that differs only in case, with an existing version if one is
    written."""
    if manifest is None:
        return None
    contract_id, _, pin = written.partition("@")
    for promise in manifest.promises:
        if promise.id.lower() == contract_id.lower() and promise.id != contract_id:
            versions = [str(version.version) for version in manifest.versions_of(promise.id)]
            version_or_latest = pin if pin in versions else versions[0]
            return f"did you mean '{promise.id}{f'@{version_or_latest}' if pin else ''}'?"
    return None


def _outputs(block: Block, promise: ManifestContract, manifest: Manifest) -> Iterator[Diagnostic]:
    """Reports outputs of the contract that are not columns of the query."""
    wanted = [output.name for output in promise.outputs]
    query = block.text("query")
    place = block.span_of("query")
    if query is None:
        if wanted:
            yield mistake("no_query", place, wanted=", ".join(wanted))
        return
    outputs = outputs_of(query, manifest.dialect, manifest.tables)
    if outputs.problem is not None:
        yield mistake("no_single_query", place, problem=outputs.problem)
        return
    for output in promise.outputs:
        if not outputs.has(output.name):
            yield _missing(output.name, outputs, promise, place)
    if outputs.unknown is None:
        declared = {item.name.lower() for item in (*promise.outputs, *promise.inputs)}
        extra = [name for name in outputs.names if name and name.lower() not in declared]
        if extra and wanted:
            yield mistake("extra_columns", place, extra=", ".join(extra))


def _missing(name: str, outputs: Outputs, promise: ManifestContract, place: Span) -> Diagnostic:
    declared = next(output for output in promise.outputs if output.name == name)
    related = Related(declared.span, "promised here")
    if outputs.unknown is not None:
        return mistake("unproven_output", place, related, name=name, unknown=outputs.unknown)
    hint = did_you_mean(name, [column for column in outputs.names if column is not None])
    return mistake("missing_output", place, related, name=name, id=promise.id, hint=hint)


_Ports: TypeAlias = Mapping[str, ContractPort]
Tables: TypeAlias = Mapping[str, "tuple[str, ...]"]
"""Known columns of tables, by the name of the table in lower case."""

_QUERY_REFERENCE = re.compile(r"\{\{\s*(?:ref|source)\s*\(\s*(?P<arguments>[^)]*)\)\s*\}\}")
_SAYS_NOTHING = re.compile(r"\{#.*?#\}|\{\{\s*config\s*\([^{}]*\)\s*\}\}", re.DOTALL)
_VALUE = re.compile(r"\{\{[^{}]*\}\}|\$\{[^{}]*\}")
_TEMPLATE = "template__"
"""The placeholder for a template with unknown text: a value, or any number of columns."""
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Outputs:
    """The names of the columns of a query in order, `None` for those without a name.

    `unknown` is the reason why there may be further columns, for example a star; None if there are
    none. `problem` is the reason why the text is not a query.
    """

    names: tuple[str | None, ...] = ()
    unknown: str | None = None
    problem: str | None = None

    def has(self, name: str) -> bool:
        """True if a column has the name, which is case-insensitive in SQL."""
        return any(item is not None and item.lower() == name.lower() for item in self.names)


def outputs_of(query: str, dialect: str | None = None, tables: Tables | None = None) -> Outputs:
    """The columns that a query returns.

    :param dialect: the SQL dialect, by its name in DataLex and sqlglot.
    :param tables: known columns of tables, for stars.
    """
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    if "{%" in query:
        return Outputs(unknown="a template generates the query, so its columns are unknown")
    text = _QUERY_REFERENCE.sub(_referred, _SAYS_NOTHING.sub(" ", query))
    text = _VALUE.sub(_TEMPLATE, text)
    known = dialect if dialect in sqlglot.Dialect.classes else None
    try:
        statements = [item for item in sqlglot.parse(text, dialect=known) if item is not None]
    except SqlglotError as error:
        first = str(error).splitlines()[0].split(" for <class")[0]
        return Outputs(problem=f"invalid SQL: {first}")
    except RecursionError:
        return Outputs(problem="the query is nested too deeply")
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return Outputs(problem="the query is not a single SELECT")
    try:
        return _QueryScope(tables or {}).outputs(statements[0])
    except RecursionError:
        return Outputs(unknown="the query is nested too deeply")


def _referred(match: re.Match[str]) -> str:
    """`{{ ref('orders') }}` is the table orders."""
    named = re.findall(r"['\"]([^'\"]+)['\"]", match["arguments"])
    return ".".join(f'"{name}"' for name in named) or "unknown_table"


@dataclass(frozen=True, slots=True)
class _QueryScope:
    """The scope of a query: the known columns of tables, and the queries defined around it."""

    tables: Tables
    defined: dict[str, Outputs] = field(default_factory=dict)
    depth: int = 0

    def outputs(self, query: Expr) -> Outputs:
        if self.depth > _DEEPEST:
            return Outputs(unknown="the query is nested too deeply")
        within = _QueryScope(self.tables, dict(self.defined), self.depth + 1)
        if isinstance(query, exp.Subquery | exp.Paren):
            return _renamed(within.outputs(query.this), query)
        for cte in query.args["with_"].expressions if query.args.get("with_") else ():
            name = cte.alias.lower()
            if query.args["with_"].args.get("recursive"):
                # It may refer to itself: the first part of the union defines the columns.
                within.defined.setdefault(name, Outputs(unknown=f"{name} is recursive"))
            within.defined[name] = _renamed(within.outputs(cte.this), cte)
        if isinstance(query, exp.SetOperation):
            # The first part defines the names.
            left = within.outputs(query.left)
            if not query.args.get("by_name"):
                return left
            right = within.outputs(query.right)
            extra = tuple(name for name in right.names if name is None or not left.has(name))
            return Outputs((*left.names, *extra), left.unknown or right.unknown)
        if isinstance(query, exp.Select):
            return within.of_select(query)
        return Outputs(unknown=f"the columns of {query.key.upper()} are unknown")

    def of_select(self, select: exp.Select) -> Outputs:
        names: list[str | None] = []
        unknown = None
        # The sources in the FROM and the joins, by alias.
        from_, joins = select.args.get("from_"), select.args.get("joins") or ()
        items = [*([from_.this] if from_ is not None else []), *(join.this for join in joins)]
        items += select.args.get("laterals") or ()
        sources = {item.alias_or_name.lower(): self.of_source(item) for item in items}
        for item in select.expressions:
            star = item if isinstance(item, exp.Star) else None
            of_table = None
            if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                star, of_table = item.this, item.table.lower()
            if star is None:
                if _TEMPLATE in item.output_name:
                    unknown = unknown or "a template generates columns or their names"
                elif isinstance(item, exp.Aliases):
                    names += [alias.name for alias in item.aliases]
                else:
                    names.append(item.output_name or None)
                continue
            if of_table is not None and of_table not in sources:
                unknown = unknown or f"{of_table}.* does not refer to a table of the query"
                continue
            parts = [sources[of_table]] if of_table is not None else list(sources.values())
            if not parts:
                unknown = unknown or "a star without a table"
            for part in parts:
                names += _through_star(part, star)
                unknown = unknown or part.unknown
        if select.args.get("pivots"):
            unknown = unknown or "a pivot makes columns of values"
        return Outputs(tuple(names), unknown)

    def of_source(self, item: Expr) -> Outputs:
        if item.args.get("pivots"):
            return Outputs(unknown="a pivot makes columns of values")
        if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
            return _renamed(self.outputs(item.this), item)
        if isinstance(item, exp.Subquery):
            return self.outputs(item)
        if isinstance(item, exp.Values):
            columns = item.args["alias"].columns if item.args.get("alias") else ()
            if columns:
                return Outputs(tuple(column.name for column in columns))
            return Outputs(unknown="VALUES without names for its columns")
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return Outputs(unknown=f"the columns of {item.sql()} are unknown")
        written = ".".join(part.name for part in item.parts).lower()
        if not item.db and written in self.defined:
            return _renamed(self.defined[written], item)
        shown = "a template" if _TEMPLATE in written else written
        # It has these, and may have others that are unknown.
        known = self.tables.get(written) or self.tables.get(item.name.lower()) or ()
        return _renamed(Outputs(known, f"the columns of {shown} are unknown"), item)


def _through_star(source: Outputs, star: exp.Star) -> list[str | None]:
    """The columns of a source through `*`, `* EXCLUDE (a)`, `* RENAME (a AS b)`."""
    left_out = {item.name.lower() for item in star.args.get("except_") or ()}
    renamed = {item.this.name.lower(): item.alias for item in star.args.get("rename") or ()}
    return [
        renamed.get(name.lower(), name) if name is not None else None
        for name in source.names
        if name is None or name.lower() not in left_out
    ]


def _renamed(outputs: Outputs, item: Expr) -> Outputs:
    """The columns with the names of an alias: `AS t(a, b)`."""
    alias = item.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    if not columns:
        return outputs
    rest = outputs.names[len(columns) :]
    unknown = outputs.unknown if len(outputs.names) < len(columns) else None
    return replace(outputs, names=(*columns, *rest), unknown=unknown or outputs.unknown)


# Files of blocks ---------------------------------------------------------------------------------

MANIFEST_NAME = "datalex-manifest.json"
"""The file name of a manifest, if none is given."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A certified block and its contract, `commerce.Customer.active@1`; `problem` is set if the
    block violates the contract."""

    block: str
    contract: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class CheckedBlocks:
    """The blocks of a file, and their diagnostics."""

    blocks: tuple[Block, ...]
    diagnostics: tuple[Diagnostic, ...]
    bindings: tuple[Binding, ...] = ()

    @property
    def is_bound(self) -> bool:
        """True if a certified block has a contract: an invalid manifest is then an error."""
        return any(
            block.text("status") == CERTIFIED and "datalex_contract" in block.settings
            for block in self.blocks
        )


def check_blocks(source: SourceFile, manifest: Manifest | None) -> CheckedBlocks:
    """Reads a block file and checks each block, in the order of the file."""
    file = read_blocks(source)
    diagnostics = [*file.diagnostics]
    bindings = []
    for block in file.blocks:
        of_block = check_block(block, manifest)
        diagnostics += of_block
        contract = block.text("datalex_contract")
        if block.text("status") == CERTIFIED and contract is not None:
            promise = promise_of(block, manifest) if manifest is not None else None
            bound_to = f"{promise.id}@{promise.version}" if promise is not None else contract
            problems = [item.message for item in of_block if item.level is Level.ERROR]
            bindings.append(Binding(block.name, bound_to, "; ".join(problems) or None))
    diagnostics.sort(key=lambda item: (item.span.line, item.span.column))
    return CheckedBlocks(file.blocks, tuple(diagnostics), tuple(bindings))


def manifest_findings(
    manifest: Manifest, checked: Sequence[CheckedBlocks]
) -> tuple[Diagnostic, ...]:
    """The diagnostics of a manifest: only warnings, unless a certified block relies on it."""
    if any(item.is_bound for item in checked):
        return manifest.diagnostics
    return tuple(replace(diagnostic, is_mild=True) for diagnostic in manifest.diagnostics)


def find_manifest(folder: Path) -> Path | None:
    """The manifest nearest to a folder: in it, in its `target`, or in a parent folder."""
    for place in (folder, *folder.parents):
        for candidate in (place / MANIFEST_NAME, place / "target" / MANIFEST_NAME):
            if candidate.is_file():
                return candidate
    return None


# Another manifest --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Impact:
    """A block whose contract changed. `reasons` are the reasons why it breaks; without any,
    `advice` describes the changes. Only an `is_certified` block is broken: others are drafts.

    `contract` is the id with the version that the block relied on: `commerce.Customer.active@1`.
    """

    block: str
    contract: str
    reasons: tuple[str, ...]
    advice: str | None
    span: Span = field(compare=False)
    is_certified: bool = True

    @property
    def is_breaking(self) -> bool:
        return bool(self.reasons) and self.is_certified


def impact(old: Manifest, new: Manifest, blocks: Iterable[Block]) -> tuple[Impact, ...]:
    """The blocks affected by the new manifest, in order.

    A pinned block is affected only by its version, a block without a pin by the newest version.
    """
    return tuple(effect for block in blocks if (effect := _impact_on(block, old, new)) is not None)


def _impact_on(block: Block, old: Manifest, new: Manifest) -> Impact | None:
    reference = reference_of(block)
    before = promise_of(block, old)
    if reference is None or before is None:
        return None  # `dql check` reports what is wrong with the block alone
    contract_id, pin = reference
    name, span = f"{before.id}@{before.version}", block.span_of("datalex_contract")
    is_certified = block.text("status") == CERTIFIED
    after = promise_of(block, new)
    versions = new.versions_of(contract_id)
    if after is None:
        available = ", ".join(str(version.version) for version in versions)
        reason = (
            f"version {before.version} no longer exists; available: {available}"
            if available
            else "it no longer exists"
        )
        return Impact(block.name, name, (reason,), None, span, is_certified)
    reasons = tuple(breaking_changes(before, after))
    if reasons and after.version == before.version:
        reasons = (*reasons, "and its version is unchanged")
    advice = None
    if pin is not None and versions[0].version > after.version:
        advice = f"version {versions[0].version} is available"
    if not reasons and advice is None:
        return None
    return Impact(block.name, name, reasons, advice, span, is_certified)


def breaking_changes(old: ManifestContract, new: ManifestContract) -> Iterator[str]:
    """Breaking changes of a signature: something is removed or changed, or more is required."""
    sides = {"output": (old.outputs, new.outputs), "input": (old.inputs, new.inputs)}
    named = {
        side: [{port.name: port for port in ports} for ports in both]
        for side, both in sides.items()
    }
    for side, (before, after) in named.items():
        yield from _changes(side, before, after)
    # A block must provide every output, so a new one is missing.
    for side, more in (("output", ", and the block must return it"), ("input", "")):
        for added in sorted(named[side][1].keys() - named[side][0].keys()):
            yield f"the {side} '{added}' is new{more}"


def _changes(side: str, old: _Ports, new: _Ports) -> Iterator[str]:
    for name, before in old.items():
        after = new.get(name)
        if after is None:
            yield f"the {side} '{name}' no longer exists"
        elif after.type != before.type:
            yield f"the {side} '{name}' changed from {before.type} to {after.type}"
        elif added := [one for one in after.constraints if one not in before.constraints]:
            yield f"the {side} '{name}' must now be {', '.join(added)}"
