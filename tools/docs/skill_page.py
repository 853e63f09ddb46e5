"""The pages for agents: a skill for writing rules, and `llms.txt`, the list of the pages.

Both are made from the entries of the metrics, the pages of the codes and the pages of the docs, so
that they are true for this version.
"""

from __future__ import annotations

import re
from pathlib import Path

import dqx_airflow
from dqx_airflow.diagnostics.diagnostic import codes, reason, title
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS

DOCS = Path(dqx_airflow.__file__).parent / "docs"

_OPENING = """\
---
name: dql
description: Write, mend and run data quality rules in DQL (.dql suites of dqx-airflow). Use it \
when a task names a suite, a gate, a blocked date, or rules about a table.
---

# Rules about data in DQL

A suite states what good data looks like. A gate checks it between two tasks of a pipeline, and
blocks what comes after if it does not hold.

## How to work

1. Look at the table before you write: `dql suggest --dataset orders=PATH?date_column=COLUMN` drafts
   a suite from the past days.
2. Write one assertion for one thing that can go wrong, with a `name` and a `severity`: P0 and P1
   block.
3. Run `dql check SUITE` after every change. It reports all errors at once, with the line and
   what to write instead. Do what it says, and repeat until it reports no errors. `dql explain E101`
   has the rule behind a code, with a wrong and a right example.
4. Run it: `dql run SUITE --dataset orders=PATH` on a date, `dql tune backtest SUITE` on stored
   days. An assertion that fails on good days is a false alarm to come: mend its limit before the
   merge.
5. Change limits of a suite that runs by a proposal (`dql tune propose --queue`, or the tool
   `propose`). Someone decides, in `dql tune review`. Never weaken a rule so that a bad date
   passes.

A limit that the past sets: `assert num_rows() within usual(num_rows())`, or one side of it,
`assert null_count(email) <= highest_usual(null_count(email))`. A row has no `today` to compare a
date with: compare it with the date column of the row, or assert `freshness(column) < 2 days` or
`data_lag(column) < 1 day`.

`dql mcp` offers the same as tools: `check`, `explain`, `sample_run`, `backtest`, `mutate`,
`why_blocked`, `propose`."""


def skill_page() -> str:
    """The skill, in the form of Agent Skills: front matter and Markdown."""
    language = _page("language")
    example = re.search(r"```dql\n.*?```", _page("write-rules"), re.S)
    assert example is not None
    metrics = (f"- `{METRICS[name].signature}`: {_first(METRICS[name].doc)}" for name in CALLABLE)
    functions = (f"- `{name}(...)`: {_first(entry.doc)}" for name, entry in ROW_FUNCTIONS.items())
    lines = (f"- {code}, {title(code)}: {_first(reason(code))}" for code in codes())
    sections = (
        _OPENING,
        f"## A suite\n\n{example[0]}",
        f"## The language at a glance\n\n{_unlinked(_glance(language))}",
        "\n".join(["## Metrics\n", *metrics]),
        "\n".join(["## Functions of a row\n", *functions]),
        "\n".join(["## Errors and warnings\n", *lines]),
    )
    return "\n\n".join(sections) + "\n"


def llms_text() -> str:
    """The pages of the docs, each with its title and first sentence: see llmstxt.org."""
    lines = [
        "# dqx-airflow",
        "",
        "> Airflow gates that stop bad data between two tasks of a pipeline. Rules are suites in",
        "> the language DQL, or data contracts. The pages are Markdown files beside this one.",
        "",
        "## Docs",
        "",
        "- [How to write rules](skill/SKILL.md): The language, its metrics and errors, for agents.",
        *(_entry(name) for name in _pages_of_the_nav()),
        "",
        "## More",
        "",
        *(_entry(name) for name in _others()),
    ]
    return "\n".join(lines) + "\n"


def _pages_of_the_nav() -> list[str]:
    """The pages in the order of the site, without its first one, which this list replaces."""
    config = (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"^ +- ([\w/.-]+)\.md$", config.split("\nnav:\n")[1], re.M)
    return [page for page in pages if page != "index"]


def _others() -> list[str]:
    """The pages that are not in the nav. `codes.md` lists those of the codes."""
    names = (path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md"))
    listed = {*_pages_of_the_nav(), "skill/SKILL", "codes/index"}
    return sorted(name for name in names if name not in listed and not name.startswith("codes/"))


def _entry(name: str) -> str:
    title, _, rest = _page(name).removeprefix("# ").partition("\n")
    paragraphs = (" ".join(part.split()) for part in rest.split("\n\n"))
    text = next((part for part in paragraphs if re.match(r"(?!```)[\w`*\[]", part)), "the words")
    return f"- [{title}]({name}.md): {_first(_unlinked(text))}"


def _page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def _glance(language: str) -> str:
    return language.partition("\n## At a glance\n")[2].partition("\n## ")[0].strip()


def _first(text: str) -> str:
    """The first sentence."""
    return f"{text.partition('. ')[0].removesuffix('.').removesuffix(':')}."


def _unlinked(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
