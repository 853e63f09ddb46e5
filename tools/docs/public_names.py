"""The end of the page on Python: the public names, which mkdocstrings draws from the docstrings."""

from __future__ import annotations

from importlib import import_module

_OPENING = """\
## Public names

The public names with their docstrings, as the site shows them: in this file they are the names
behind `:::`. [Upgrading](upgrading.md#what-you-can-rely-on) says how long a deprecated one
works."""

_MODULES = {
    "dqx_airflow.operators": "Operators and notifications. They run in a worker of Airflow.",
    "dqx_airflow.dql": "Suites as objects, and what may be tuned in them.",
    "dqx_airflow.api": "Gates, contracts and suites from Python and in tests, without Airflow.",
}


def public_names() -> str:
    """The section: each name below the first public module that has it, in that module's order."""
    sections, seen = [_OPENING], set[str]()
    for module, doc in _MODULES.items():
        names = [name for name in import_module(module).__all__ if name not in seen]
        seen.update(names)
        entries = "\n".join(f"::: {_home(module, name)}.{name}" for name in names)
        sections.append(f"### {module}\n\n{doc}\n\n{entries}")
    return "\n\n".join(sections) + "\n"


def _home(module: str, name: str) -> str:
    """The module that defines the name."""
    return str(getattr(import_module(module), name).__module__)
