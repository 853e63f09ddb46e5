"""Plain values as readable YAML."""

from __future__ import annotations

from typing import Any

import yaml

from dqx_airflow.exact import WrittenFloat


def yaml_text(plain: Any) -> str:
    """Keys in their order, multi-line strings as blocks, lists below their key."""
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def filled(plain: dict[str, Any]) -> dict[str, Any]:
    """The keys that have a value: no null, no empty string, list or mapping."""
    return {key: value for key, value in plain.items() if value not in (None, "", [], {})}


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _number(dumper: yaml.SafeDumper, number: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_float(float(number))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(WrittenFloat, _number)
