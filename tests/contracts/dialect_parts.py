"""Contracts of three dialects in Markdown cases, whole or in parts.

```yaml odcs in=property    a property of the object `orders`
```yaml odcs in=object      keys of the object `orders`, which has some properties
```yaml odcs in=service     service levels of the objects `orders` and `lines`
```yaml fabric in=column    a column of the table
```yaml fabric in=contract  keys of a contract with some columns
```yaml product in=field    a field of the product
```yaml product in=top      keys beside the fields of the product
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.values import SourceFile
from tests.contracts.contract_text import show_rules
from tests.markdown_cases import Block, Case, cases

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"

_ODCS = """\
apiVersion: {version}
kind: DataContract
id: orders
version: 1.0.0
status: active
"""
_OBJECT = """\
schema:
  - id: orders_tbl
    name: orders
    physicalName: orders_v1
    properties:
      - {id: order_id, name: order_id, physicalName: id, logicalType: string}
      - {name: amount, logicalType: number}
      - {name: ordered_at, logicalType: timestamp}
"""
_LINES = """\
  - name: lines
    properties:
      - {name: packed_at, logicalType: timestamp}
"""
_FABRIC = """\
contract:
  id: bronze.telemetry
  version: 1.0.0
"""
_PRODUCT = """\
contract: {name: Customers, version: 1.0.0}
"""
_FIELDS = """\
schema:
  fields:
    - {name: customer_id, type: string, business_key: true, pattern: "CUS[0-9]+"}
    - {name: changed_at, type: timestamp}
"""


def whole(block: Block) -> str:
    """The contract that a part stands in; a block without `in` is one itself."""
    odcs = _ODCS.format(version=block.option("version", "v3.1.0"))
    columns = "schema: {columns: [{name: event_ts, type: timestamp}, {name: bet, type: double}]}\n"
    match block.option("in"):
        case "property":
            return (
                f"{odcs}schema:\n  - name: orders\n    properties:\n{indent(block.text, ' ' * 6)}"
            )
        case "object":
            return odcs + _OBJECT + indent(block.text, " " * 4)
        case "service":
            return f"{odcs}{_OBJECT}{_LINES}slaProperties:\n{indent(block.text, '  ')}"
        case "column":
            return f"{_FABRIC}  schema:\n    columns:\n{indent(block.text, ' ' * 6)}"
        case "contract":
            return _FABRIC + indent(columns + block.text, "  ")
        case "field":
            return f"{_PRODUCT}schema:\n  fields:\n{indent(block.text, ' ' * 4)}"
        case "top":
            return _PRODUCT + _FIELDS + block.text
    return block.text


def read_text(text: str) -> ReadContract:
    return read_contract(SourceFile("contract.yaml", text))


def show_part(block: Block) -> str:
    """The rules that a part makes, what of it is unsupported, and what is wrong with it.

    That columns of the frame exist and have their type is left out.
    """
    read = read_text(whole(block))
    lines = show_rules(read).splitlines()
    is_frame = block.option("in") in ("object", "service", "contract", "top")
    shown = [line for line in lines if not (is_frame and _is_of_the_frame(line))]
    if read.contract is not None:
        fields = {
            f"{model.name}.{item.path}": item
            for model in read.contract.models
            for item in model.walk()
        }
        types = {f"{name}.type": item.type for name, item in fields.items()}
        shown = [_with_type(line, types) for line in shown]
        if masked := [name for name, item in fields.items() if item.is_sensitive]:
            shown.append(f"masked: {', '.join(masked)}")
    return "\n".join(shown) or "nothing to check"


def contracts_of(dialect: str) -> dict[str, str]:
    """All contracts of the examples and the cases of a dialect, by name."""
    found = {
        path.name: path.read_text("utf-8") for path in sorted(EXAMPLES.glob(f"{dialect}/*.yaml"))
    }
    return found | {str(case): whole(case.block("yaml")) for case in part_cases(dialect)}


def part_cases(dialect: str) -> list[Case]:
    return list(cases(HERE / "cases" / f"{dialect}_parts.md"))


def _with_type(line: str, types: dict[str, str | None]) -> str:
    name = line.partition(": ")[0]
    return line.replace("OfType()", f"OfType() {types[name]}") if name in types else line


def _is_of_the_frame(line: str) -> bool:
    names = (".exists", ".type", "business_key", "only_columns", "customer_id.required")
    return line.partition(":")[0].endswith(names) and "  <- " in line
