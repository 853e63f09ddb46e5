"""The users of a contract, and the version that they use: listed consumers, gates, code, blocks.

Code is parsed, never imported, so its packages are not needed. A constant such as
`CONTRACT = Path(__file__).parent / "contracts" / "orders.yaml"` counts if the file binds it once;
values built at run time are unknown.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from dqx_airflow.contracts.datalex_binding import reference_of
from dqx_airflow.contracts.dialects.datalex import Manifest
from dqx_airflow.contracts.enforcement import lifecycle, pins
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import PublishedVersion, newest_of
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader, no_files
from dqx_airflow.dql.syntax.datalex_blocks import read_blocks
from dqx_airflow.dql.syntax.source_file import Unreadable, is_block_file, read_source
from dqx_airflow.values import SourceFile, Span

_DEEPEST = 50
_WRAPPING_CALLS = ("Path", "PurePath", "str", "fspath", "abspath", "realpath", "expanduser")
_WRAPPING_METHODS = ("resolve", "absolute", "as_posix", "expanduser")
_JOINING_CALLS = ("Path", "PurePath", "join")


def name_of(function: ast.expr) -> str:
    """The last part of the name of a called function: `join` for `os.path.join`."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _assignment(node: ast.AST) -> tuple[str, ast.expr] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name, value
    return None


def _names_bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name


@dataclass(frozen=True, slots=True)
class ContractCall:
    """A call of `function` with a contract.

    `name` is the name of the task, if it has one. `contract` is the path or the text of the
    contract, None if unknown before run time. `pin` is the pinned version, None without one; a
    version that is unknown before run time is given as written.
    """

    function: str
    name: str | None
    contract: str | None
    pin: str | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Signature:
    """The arguments of a function that name a contract and its version."""

    contract: str
    pin: str
    position: int | None = None


_GATE = _Signature("contract", "expect_version")
_LOAD = _Signature("path", "version", 0)
_ASSERT = _Signature("contract", "version", 1)
_FUNCTIONS = {
    "ContractGateOperator": _GATE,
    "contract_gate": _GATE,
    "assert_contract": _ASSERT,
    "Contract.load": _LOAD,
}


def contract_calls(source: SourceFile, place: Path) -> tuple[ContractCall, ...] | str:
    """The calls in a file with a contract, in order; or the reason why the file cannot be read.

    :param place: the path of the file, for `__file__`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
        calls = list(_CodeReader.of(source, tree, place).calls())
    except (SyntaxError, ValueError) as error:
        return f"invalid Python: {error}"
    except (RecursionError, MemoryError):
        return "it is nested too deep"
    return tuple(sorted(calls, key=lambda item: (item.span.line, item.span.column)))


@dataclass(frozen=True, slots=True)
class _CodeReader:
    """Reads the calls in a file. `bound` are the names that the file binds once, with their values,
    and `names` its imports from this package."""

    source: SourceFile
    place: Path
    nodes: Sequence[ast.AST]
    bound: Mapping[str, ast.expr]
    names: Mapping[str, str]

    @classmethod
    def of(cls, source: SourceFile, tree: ast.Module, place: Path) -> _CodeReader:
        """:param place: the file, for `__file__`."""
        nodes = list(ast.walk(tree))
        count = Counter(name for node in nodes for name in _names_bound(node))
        values = filter(None, map(_assignment, nodes))
        bound = {name: value for name, value in values if count[name] == 1}
        names = {
            alias.asname or alias.name: alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dqx_airflow")
            for alias in node.names
        }
        return cls(source, place, nodes, bound, names)

    def calls(self) -> Iterator[ContractCall]:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        tasks = {
            id(decorator): node.name
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for decorator in node.decorator_list
        }
        # A contract that is loaded and then asserted: both calls are one use.
        loads = {
            id(self.behind(contract))
            for call in calls
            if _function(call.func, self.names) == "assert_contract"
            and (contract := _argument(call, _ASSERT, self._keywords(call))) is not None
        }
        for call in calls:
            function = _function(call.func, self.names)
            if id(call) not in loads and function in _FUNCTIONS:
                yield self._call(function, call, tasks.get(id(call)))

    def _call(self, function: str, call: ast.Call, task: str | None) -> ContractCall:
        signature = _FUNCTIONS[function]
        keywords = self._keywords(call)
        argument = _argument(call, signature, keywords)
        pin = keywords.get(signature.pin)
        loaded = self.behind(argument) if argument is not None else None
        if isinstance(loaded, ast.Call) and _function(loaded.func, self.names) == "Contract.load":
            inner = self._keywords(loaded)
            argument = _argument(loaded, _LOAD, inner)
            pin = pin or inner.get(_LOAD.pin)
        contract = self.text(argument)
        return ContractCall(
            function,
            self.text(keywords.get("task_id")) or task,
            None if contract is not None and "{{" in contract else contract,
            self._pin(pin) if pin is not None else None,
            self._span(call),
        )

    def _keywords(self, call: ast.Call) -> dict[str, ast.expr]:
        """The arguments by name, including those from a mapping: `**SETTINGS`."""
        keywords = {one.arg: one.value for one in call.keywords if one.arg is not None}
        for mapping in [one.value for one in call.keywords if one.arg is None]:
            match self.behind(mapping):
                case ast.Dict(keys=keys, values=values):
                    pairs = zip(keys, values, strict=True)
                    given = {
                        str(key.value): one for key, one in pairs if isinstance(key, ast.Constant)
                    }
                    keywords = given | keywords
                case ast.Call(func=ast.Name(id="dict"), keywords=inner):
                    keywords = {item.arg or "": item.value for item in inner} | keywords
        return keywords

    def _pin(self, node: ast.expr) -> str | None:
        match self.behind(node):
            case ast.Constant(value=None | ""):
                return None
        return self.text(node) or ast.unparse(node)

    def _span(self, call: ast.Call) -> Span:
        end_line = call.func.end_lineno or call.lineno
        end = (call.func.end_col_offset or call.col_offset) + 1
        return Span(self.source.name, call.lineno, call.col_offset + 1, end_line, end)

    def behind(self, node: ast.expr) -> ast.expr:
        """The value of a name; any other expression unchanged."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self.bound:
                break
            node = self.bound[node.id]
        return node

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The string, number or path that an expression denotes; None if it is unknown."""
        if node is None or depth > _DEEPEST:
            return None
        match self.behind(node):
            case ast.Constant(value=str() | int() | float() as value) if not isinstance(
                value, bool
            ):
                return str(value)
            case ast.Name(id="__file__"):
                return str(self.place.absolute())
            case ast.JoinedStr(values=parts):
                return self._joined(parts, "", depth)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.text(inner, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], "", depth)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined([left, right], os.sep, depth)
            case ast.Attribute(value=inner, attr="parent"):
                return self._parent(inner, 0, depth)
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(up))
            ):
                return self._parent(inner, up, depth)
            case ast.Call() as call:
                return self._called(call, depth)
        return None

    def _called(self, call: ast.Call, depth: int) -> str | None:
        name = name_of(call.func)
        if isinstance(call.func, ast.Attribute) and not call.args and name in _WRAPPING_METHODS:
            return self.text(call.func.value, depth + 1)
        if isinstance(call.func, ast.Attribute) and name == "joinpath":
            return self._joined([call.func.value, *call.args], os.sep, depth)
        if name == "dirname" and len(call.args) == 1:
            return self._parent(call.args[0], 0, depth)
        if name in _WRAPPING_CALLS and len(call.args) == 1:
            return self.text(call.args[0], depth + 1)
        if name in _JOINING_CALLS and len(call.args) > 1:
            return self._joined(call.args, os.sep, depth)
        return None

    def _joined(self, parts: list[ast.expr], sign: str, depth: int) -> str | None:
        texts = [self.text(part, depth + 1) for part in parts]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return None
        return sign.join(known) if not sign else str(Path(*known))

    def _parent(self, node: ast.expr, up: int, depth: int) -> str | None:
        text = self.text(node, depth + 1)
        parents = Path(text).parents if text is not None else ()
        return str(parents[up]) if 0 <= up < len(parents) else None


def _function(function: ast.expr, names: Mapping[str, str]) -> str:
    """The public name of a called function: `ContractGateOperator`, `Contract.load`.

    `.partial` of an operator, and `.override` of a task, count as the call itself.
    """
    match function:
        case ast.Attribute(value=ast.Name(id=name), attr="load"):
            return f"{names.get(name)}.load"
        case ast.Attribute(value=inner, attr="load" | "partial" | "override" as method):
            inner_name = _function(inner, names)
            return f"{inner_name}.load" if method == "load" else inner_name
    name = name_of(function)
    return names.get(name, name) if isinstance(function, ast.Name) else name


def _argument(
    call: ast.Call, signature: _Signature, keywords: dict[str, ast.expr]
) -> ast.expr | None:
    position = signature.position
    if position is not None and position < len(call.args):
        return call.args[position]
    return keywords.get(signature.contract)


CODE_ENDINGS = (".py", ".dql")


def uses_in(files: Iterable[Path], contract_id: str) -> UsesInCode:
    """The uses of a contract in files, in order.

    The path of a contract is resolved as by a gate: relative to the file that contains it, then to
    the working directory.
    """
    found = UsesInCode(contract_id)
    for file in files:
        found.read(file)
    return found


@dataclass(slots=True)
class UsesInCode:
    """The uses of a contract, and what could not be analysed: a missing path, a file that is not
    Python."""

    contract_id: str
    uses: list[ConsumerUse] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    _contracts: dict[Path, Contract | None] = field(default_factory=dict)

    def read(self, file: Path) -> None:
        source = read_source(file, str(file))
        if isinstance(source, Unreadable):
            self.unknown.append(f"{file}: {source.reason}")
        elif file.suffix == ".dql":
            self.uses += _in_blocks(source, self.contract_id)
        else:
            self._read_python(source, file)

    def _read_python(self, source: SourceFile, file: Path) -> None:
        calls = contract_calls(source, file)
        if isinstance(calls, str):
            self.unknown.append(f"{file}: {calls}")
            return
        for call in calls:
            contract = self._contract(call, file)
            if isinstance(contract, str):
                self.unknown.append(f"{file}:{call.span.line}: {call.function}: {contract}")
            elif contract.id == self.contract_id:
                version = contract.version if call.pin is None else None
                name = call.name or file.stem
                self.uses.append(ConsumerUse(name, call.function, call.pin, version, call.span))

    def _contract(self, call: ContractCall, file: Path) -> Contract | str:
        """The contract in a call, or the reason why it is unknown."""
        if call.contract is None:
            return "its contract is not known before it runs"
        if "\n" in call.contract:
            source = SourceFile(file.name, call.contract)
            inlined = read_contract(source, no_files, variables=None).contract
            return inlined or "its source is not a contract"
        for place in (file.parent / call.contract, Path(call.contract)):
            if os.path.isfile(place):
                contract = self._contract_at(place)
                return contract or f"{call.contract} contains no contract"
        return f"there is no {call.contract}"

    def _contract_at(self, place: Path) -> Contract | None:
        if place not in self._contracts:
            source = read_source(place, place.name)
            self._contracts[place] = None
            if isinstance(source, SourceFile):
                result = read_contract(source, FolderReader(place.parent), variables=None)
                self._contracts[place] = result.contract
        return self._contracts[place]


def _in_blocks(source: SourceFile, contract_id: str) -> Iterator[ConsumerUse]:
    if not is_block_file(source.text):
        return
    for block in read_blocks(source).blocks:
        reference = reference_of(block)
        if reference is not None and reference[0] == contract_id:
            pin = str(reference[1]) if reference[1] is not None else None
            use = f"block, {block.text('status') or 'draft'}"
            yield ConsumerUse(block.name, use, pin, span=block.span_of("datalex_contract"))


def promise_reliances(
    manifest: Manifest, contract_id: str, uses: Iterable[ConsumerUse]
) -> tuple[Reliance, ...]:
    """The versions that uses of a contract rely on: the pinned version, or else the newest in the
    manifest."""
    versions = [str(promise.version) for promise in manifest.versions_of(contract_id)]
    reliances = []
    for use in uses:
        pin = use.pin or versions[0]
        concern = None if pin == versions[0] else f"version {versions[0]} is there"
        if pin not in versions:
            concern = f"{manifest.source.name} has no version {pin}"
        reliances.append(Reliance(use, pin if pin in versions else None, concern))
    return tuple(reliances)


@dataclass(frozen=True, slots=True)
class ConsumerUse:
    """A user of a contract: a listed team, a gate, a task, a job, a block.

    `pin` is the version written in the use. Without one, `version` is the version that is read or
    was enforced, if known. `span` is the position in code.
    """

    name: str
    how: str | None = None
    pin: str | None = None
    version: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reliance:
    """A use, and the version that it relies on; None if no published version fits.

    `concern` describes a problem with that version; None without one.
    """

    use: ConsumerUse
    version: str | None
    concern: str | None


def reliances(
    published: Sequence[PublishedVersion], on: date, uses: Iterable[ConsumerUse] = ()
) -> tuple[Reliance, ...]:
    """The versions that uses of a contract rely on: the pinned version, else the version that is
    read, else the newest version.

    Former consumers that are no longer listed are left out.

    :param uses: in addition to the consumers that the newest version lists.
    """
    if not published:
        return ()
    newest_first = sorted(published, key=lambda item: item.version)[::-1]
    listed = (
        ConsumerUse(consumer.team, consumer.use_case, consumer.pin)
        for consumer in newest_first[0].contract.consumers
    )
    return tuple(_reliance(use, newest_first, on) for use in (*listed, *uses))


def _reliance(use: ConsumerUse, newest_first: Sequence[PublishedVersion], on: date) -> Reliance:
    wanted = (use.pin or use.version or "").lstrip("@")
    if wanted and not pins.is_version(wanted):
        return Reliance(use, None, f"'{wanted}' has no known version before it runs")
    used = newest_of(newest_first, wanted or None)
    newest = newest_first[0]
    if used is None:
        return Reliance(use, None, f"no version {wanted} is published")
    state = lifecycle.lifecycle_status(used.contract, on)
    concern = state.message if state is not None else None
    if concern is None and used.version.major < newest.version.major:
        concern = f"version {newest.contract.version} is published"
    return Reliance(use, used.contract.version, concern)
