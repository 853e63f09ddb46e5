"""All pages: the modules that serve them, and the menu."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page, served by the route `/{address}` of a module of this package.

    `label` is its link in the menu of all pages. A page about one thing, such as a gate, has none:
    other pages link to it. `is_counted` is set if the menu has a number beside the link.
    """

    address: str
    module: str
    label: str = ""
    is_counted: bool = False

    @property
    def template(self) -> str:
        """The template of a page of the menu."""
        return f"{self.address}.html"


PAGES = (
    SitePage("board", "board_page", "Gates", is_counted=True),
    SitePage("slices", "slices_page", "Open dates", is_counted=True),
    SitePage("alerts", "alerts_page", "Alerts", is_counted=True),
    SitePage("datasets", "datasets_page", "Datasets"),
    SitePage("contracts", "contracts_page", "Contracts"),
    SitePage("coverage", "coverage_page", "Coverage"),
    SitePage("review", "review_page", "Review"),
    SitePage("gate", "gate_page"),
    SitePage("runs", "runs_page"),
    SitePage("incident", "incident_page"),
    SitePage("dataset", "dataset_page"),
    SitePage("contract", "contract_page"),
)
"""The pages; the pages of the menu come first, in its order."""

MENU = tuple(page for page in PAGES if page.label)

SECTIONS = {
    "gate.html": "board",
    "no_report.html": "board",
    "mapped.html": "board",
    "runs.html": "board",
    "incident.html": "slices",
    "dataset.html": "datasets",
    "contract.html": "contracts",
}
"""The address of the page in the menu to which a page about one thing belongs, by its template."""

MODULES = tuple(dict.fromkeys(page.module for page in PAGES))
"""The modules with the routes of pages, each once."""
