"""Parts of a data contract, completed to a whole one: the content of blocks in Markdown cases.

```yaml in=fields        fields of the model `orders`
```yaml in=model         keys of the model `orders`, which has some fields
```yaml in=levels        service levels of the models `orders` and `lines`
```yaml in=top           keys of the contract
```yaml in=soda          a check of Soda about the model, or, with `field=amount`, about a field
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.values import SourceFile
from tests.contracts.contract_text import show_rules
from tests.markdown_cases import Block, Case, cases

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples" / "dcs"
CASES = HERE / "cases"

_TOP = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
"""
_FIELDS = f"""{_TOP}\
models:
  orders:
    fields:
"""
_MODEL = f"""{_FIELDS}\
      amount:
        type: int
      status:
        type: string
      paid_at:
        type: timestamp
"""
_LEVELS = f"""{_TOP}\
models:
  orders:
    fields: {{ordered_at: {{type: timestamp}}, loaded_at: {{type: timestamp}}}}
  lines:
    fields: {{packed_at: {{type: timestamp}}}}
servicelevels:
"""
_CHECK = """\
- type: custom
  engine: {engine}
  specification:
"""


def whole(block: Block) -> str:
    """The contract that a part stands in; a block without `in` is one itself."""
    text = block.text
    match block.option("in"):
        case "fields":
            return _FIELDS + indent(text, " " * 6)
        case "model":
            return _MODEL + indent(text, " " * 4)
        case "levels":
            return _LEVELS + indent(text, " " * 2)
        case "top":
            return _TOP + text
        case "soda" | "great-expectations" as engine:
            rule = _CHECK.format(engine=engine) + indent(text, " " * 4)
            if column := block.option("field"):
                field = f"      {column}:\n"
                quality = f"        quality:\n{indent(rule, ' ' * 8)}"
                return _MODEL.replace(field, field + quality)
            return f"{_MODEL}    quality:\n{indent(rule, ' ' * 4)}"
    return text


def contracts_of(dialect: str) -> dict[str, str]:
    """All contracts of the examples and the cases, by name."""
    found = {path.name: path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))}
    of_checks = cases(CASES / "soda.md", CASES / "great_expectations.md")
    return found | {
        str(case): whole(case.block("yaml")) for case in (*part_cases(dialect), *of_checks)
    }


def part_cases(dialect: str) -> list[Case]:
    names = ("fields", "quality", "older_quality", "service_levels")
    return list(cases(*(CASES / f"{dialect}_{name}.md" for name in names)))


def read_text(text: str) -> ReadContract:
    return read_contract(SourceFile("orders.yaml", text), FolderReader(EXAMPLES))


def show_part(block: Block) -> str:
    """The rules that a part makes, what of it is unsupported, and what is wrong with it."""
    lines = show_rules(read_text(whole(block))).splitlines()
    has_own_fields = block.option("in") in ("fields", "top")
    shown = "\n".join(line for line in lines if has_own_fields or not _is_of_the_frame(line))
    return shown or "nothing to check"


def show_check(block: Block) -> str:
    """The demands of a check of another tool, or why it makes none."""
    shown = show_part(block)
    if shown.startswith("unsupported"):
        return shown.splitlines()[0].partition(": ")[2]
    return "\n".join(line.partition("  <- ")[0] for line in shown.splitlines())


def _is_of_the_frame(line: str) -> bool:
    return line.partition(":")[0].endswith((".exists", ".type")) and "  <- " in line
