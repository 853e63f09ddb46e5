"""The contracts that DAGs and jobs in Python name, with the versions that they pin.

A file is read as text: it is never imported, so it needs none of its packages.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dqx_airflow.contracts.uses.constants import Constants, name_of
from dqx_airflow.values import SourceFile, Span


@dataclass(frozen=True, slots=True)
class ContractCall:
    """A call of `function` that names a contract.

    `name` is the task's, if it has one. `contract` is the path, or the text, and None if it is
    unknown before run time. `pin` is None if the call names no version; one that is unknown before
    run time is given as written.
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
_FUNCTIONS = {
    "ContractGateOperator": _GATE,
    "contract_gate": _GATE,
    "assert_contract": _Signature("contract", "version", 1),
    "Contract.load": _LOAD,
}


def contract_calls(source: SourceFile, place: Path) -> tuple[ContractCall, ...] | str:
    """The calls in a file that name a contract, in order; or why it cannot be read.

    :param place: the path of the file, for `__file__`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
        reader = _CodeReader(source, tree, Constants.of(tree, place), _imported_as(tree))
        calls = list(reader.calls())
    except (SyntaxError, ValueError) as error:
        return f"invalid Python: {error}"
    except (RecursionError, MemoryError):
        return "it is nested too deep"
    return tuple(sorted(calls, key=lambda item: (item.span.line, item.span.column)))


@dataclass(frozen=True, slots=True)
class _CodeReader:
    """Reads the calls of a file. `names` are its imports from this package."""

    source: SourceFile
    tree: ast.Module
    constants: Constants
    names: Mapping[str, str]

    def calls(self) -> Iterator[ContractCall]:
        decorated = {
            id(decorator): node.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for decorator in node.decorator_list
        }
        loads = {id(load) for load in self._loads_of_asserts()}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call) or id(node) in loads:
                continue
            function = _function(node.func, self.names)
            if function in _FUNCTIONS:
                yield self._call(function, node, decorated.get(id(node)))

    def _loads_of_asserts(self) -> Iterator[ast.expr]:
        """The contracts that are loaded and then asserted: both calls are one use."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _function(node.func, self.names) == "assert_contract":
                contract = _argument(node, _FUNCTIONS["assert_contract"], self._keywords(node))
                if contract is not None:
                    yield self.constants.behind(contract)

    def _call(self, function: str, call: ast.Call, task: str | None) -> ContractCall:
        signature, keywords = _FUNCTIONS[function], self._keywords(call)
        argument, pin = _argument(call, signature, keywords), keywords.get(signature.pin)
        loaded = self.constants.behind(argument) if argument is not None else None
        if isinstance(loaded, ast.Call) and _function(loaded.func, self.names) == "Contract.load":
            inner = self._keywords(loaded)
            argument, pin = _argument(loaded, _LOAD, inner), pin or inner.get(_LOAD.pin)
        contract = self.constants.text(argument)
        is_template = contract is not None and "{{" in contract
        return ContractCall(
            function,
            self.constants.text(keywords.get("task_id")) or task,
            None if is_template else contract,
            self._pin(pin) if pin is not None else None,
            self._span(call),
        )

    def _keywords(self, call: ast.Call) -> dict[str, ast.expr]:
        """The arguments by name, including those from a mapping: `**SETTINGS`."""
        keywords: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = keyword.value
                continue
            match self.constants.behind(keyword.value):
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        if isinstance(key, ast.Constant):
                            keywords.setdefault(str(key.value), value)
                case ast.Call(func=ast.Name(id="dict"), keywords=inner):
                    for item in inner:
                        keywords.setdefault(item.arg or "", item.value)
        return keywords

    def _pin(self, node: ast.expr) -> str | None:
        match self.constants.behind(node):
            case ast.Constant(value=None | ""):
                return None
        return self.constants.text(node) or ast.unparse(node)

    def _span(self, call: ast.Call) -> Span:
        end_line = call.func.end_lineno or call.lineno
        end = (call.func.end_col_offset or call.col_offset) + 1
        return Span(self.source.name, call.lineno, call.col_offset + 1, end_line, end)


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


def _imported_as(tree: ast.Module) -> dict[str, str]:
    """The imports of a file from this package, by their local names."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dqx_airflow")
        for alias in node.names
    }


def _argument(
    call: ast.Call, signature: _Signature, keywords: dict[str, ast.expr]
) -> ast.expr | None:
    position = signature.position
    if position is not None and position < len(call.args):
        return call.args[position]
    return keywords.get(signature.contract)
