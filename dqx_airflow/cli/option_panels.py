"""The panels of options in the help of a command that has many: the same options are in the same
panel, in the same order, in every command.
"""

from __future__ import annotations

from typing import Any

MOST_WITHOUT_PANELS = 10
"""The number of options up to which a command has them in one panel, in an order of its own."""

PANELS: dict[str, tuple[str, ...]] = {
    "Data": (
        "--dataset",
        "--server",
        "--model",
        "--date",
        "--from",
        "--to",
        "--days",
        "--skip-date",
        "--gate",
        "--map-index",
        "--config",
    ),
    "Which assertions": ("--only", "--tag", "--exclude-tag", "--min-severity", "--dimension"),
    "When it fails": (
        "--fail-on",
        "--allow-empty",
        "--require-history",
        "--max-clock-skew-hours",
        "--expect-version",
        "--no-extra-columns",
        "--unsupported",
    ),
    "How it runs": (
        "--connection",
        "--engine",
        "--results-root",
        "--recompute",
        "--ansi",
        "--watch",
    ),
    "Decision": ("--reason", "--author", "--dry-run", "--yes"),
    "Output": ("--format", "--output", "--force", "--quiet", "--verbose"),
}
"""The options of each panel in the order of the help. What only one command has is above them."""

_PLACES = {
    flag: (panel, number) for panel, flags in PANELS.items() for number, flag in enumerate(flags)
}


def panelled(parameters: list[Any]) -> list[Any]:
    """The parameters of a command in the order of the help, each option with its panel; those of a
    command with few options unchanged."""
    options = [each for each in parameters if each.param_type_name == "option"]
    if len(options) <= MOST_WITHOUT_PANELS:
        return parameters
    arguments = [each for each in parameters if each.param_type_name != "option"]
    own = [option for option in options if _flag(option) not in _PLACES]
    shared = [option for option in options if _flag(option) in _PLACES]
    for option in shared:
        option.rich_help_panel = _PLACES[_flag(option)][0]
    titles = list(PANELS)
    shared.sort(key=lambda option: _place(option, titles))
    return [*arguments, *own, *shared]


def _place(option: Any, titles: list[str]) -> tuple[int, int]:
    panel, number = _PLACES[_flag(option)]
    return titles.index(panel), number


def _flag(option: Any) -> str:
    """The long name of an option."""
    return str(max(option.opts, key=len))
