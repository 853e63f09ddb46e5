"""The HTML page of a contract is complete, escaped, and works under its strict policy."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from dqx_airflow.contracts.export import FORMATS
from dqx_airflow.contracts.model import Treatment
from tests.contracts.dialect_parts import EXAMPLES, read_text

EXAMPLE_PATHS = sorted(EXAMPLES.glob("*/*.yaml"))
HOSTILE = """\
contract:
  id: "<script>alert(1)</script>"
  version: 1.0.0
  description: "</p><img src=x onerror=alert(1)> & \\x07 ]]>"
  owner: {team: '"><svg onload=alert(1)>'}
  consumers: [{team: "<b>team</b>", use_case: "javascript:alert(1)"}]
  schema:
    columns:
      - {name: "<i>x</i>", type: string, regex: "<[^>]*>", semantic: "a < b & c > d"}
"""
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The tags of a page, its attributes, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(text: str) -> str:
    contract = read_text(text).contract
    assert contract is not None
    return FORMATS["html"].write(contract).text


@pytest.mark.few(9, apart=True)
@pytest.mark.parametrize("path", EXAMPLE_PATHS, ids=lambda path: path.stem)
def test_a_page_is_sound_and_has_no_scripts(path: object) -> None:
    page = Page(page_of(path.read_text("utf-8")))  # type: ignore[attr-defined]
    assert not {"script", "link", "img", "iframe", "form", "a"} & set(page.tags)
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}


def test_the_policy_admits_the_style_and_nothing_else() -> None:
    text = page_of(HOSTILE)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'content="{policy}"' in text


def test_values_of_a_contract_are_escaped() -> None:
    text = page_of(HOSTILE)
    page = Page(text)
    assert not {"script", "img", "svg", "b", "i"} & set(page.tags)
    words = " ".join(page.words)
    for value in ("<script>alert(1)</script>", "<b>team</b>", "a < b & c > d", "<[^>]*>"):
        assert value in words
    assert "\x07" not in text


def test_a_page_shows_fields_rules_owner_and_consumers() -> None:
    text = (EXAMPLES / "fabric" / "slot_telemetry.yaml").read_text("utf-8")
    words = " ".join(Page(page_of(text)).words)
    for expected in (
        *("bronze.slot_telemetry", "2.3.0", "data-engineering-casino", "decimal(18,2)"),
        *("Unique slot machine identifier", "matches ^M[0-9]{4}$", "hashed_pii", "USD"),
        *("Service levels", "slot_telemetry.event_ts.freshness", "Not checked"),
        *("bi-reporting", "Daily slot performance dashboard", "quarterly_max", "30 days"),
    ):
        assert expected in words, expected


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (
            "dataContractSpecification: 1.2.1\nid: a\ninfo: {title: A, version: 1.0.0}\n"
            "terms: {usage: Reports, limitations: No names, billing: 5 EUR, noticePeriod: P3M,"
            " policies: [{description: Privacy, url: 'https://example.com/p'}]}\n"
            "models: {m: {fields: {n: {type: int}}}}\n",
            ("Reports", "No names", "5 EUR", "P3M", "Privacy", "https://example.com/p"),
        ),
        (
            "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: active\n"
            "price: {priceAmount: 9.95, priceCurrency: EUR, priceUnit: megabyte}\n"
            "support: [{channel: '#shop', url: 'https://example.com/s'}]\n"
            "schema: [{name: m, properties: [{name: n, logicalType: date}]}]\n",
            ("9.95", "EUR", "megabyte", "#shop", "https://example.com/s"),
        ),
        (
            (EXAMPLES / "product" / "customer_master.yaml").read_text("utf-8"),
            ("marketing_campaigns", "third_party_sale", "7_years", "gold", "90"),
        ),
    ],
    ids=("dcs", "odcs", "product"),
)
def test_the_terms_of_use_are_on_the_page(text: str, terms: tuple[str, ...]) -> None:
    assert {*terms} <= {*Page(page_of(text)).words}


def test_every_clause_is_on_the_page() -> None:
    contract = read_text((EXAMPLES / "odcs" / "orders_3_1.yaml").read_text("utf-8")).contract
    assert contract is not None
    words = set(Page(FORMATS["html"].write(contract).text).words)
    paths = {note.clause.path for note in contract.notes}
    assert paths <= words
    assert Treatment.UNSUPPORTED in {note.treatment for note in contract.notes}
