"""Formats named like standards hold their lists and check digits: those of `pycountry` and
`python-stdnum`, which take no part in a gate."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dqx_airflow.dql import nodes
from dqx_airflow.metrics import text_formats
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql
from dqx_airflow.values import Span
from tests.markdown_cases import REWRITE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pycountry = pytest.importorskip("pycountry")
stdnum = pytest.importorskip("stdnum")

from stdnum import ean, iban, isin, lei, luhn  # noqa: E402
from stdnum.iso7064 import mod_97_10  # noqa: E402

DIGITS, LETTERS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def test_the_lists_of_codes_are_those_of_the_packages() -> None:
    ibans = re.findall(
        '^([A-Z]{2}) .*bban="([^"]+)"', files(stdnum).joinpath("iban.dat").read_text(), re.M
    )
    languages = (getattr(language, "alpha_2", None) for language in pycountry.languages)
    lists: dict[str, Any] = {
        "source": f"pycountry {version('pycountry')}, python-stdnum {version('python-stdnum')}",
        "country": sorted(country.alpha_2 for country in pycountry.countries),
        "country_alpha3": sorted(country.alpha_3 for country in pycountry.countries),
        "country_numeric": sorted(country.numeric for country in pycountry.countries),
        "currency": sorted(currency.alpha_3 for currency in pycountry.currencies),
        "language": sorted(filter(None, languages)),
        "isin": sorted(isin._country_codes),
        "iban": dict(sorted(ibans)),
    }
    file = Path(text_formats.__file__).with_name("standard_codes.json")
    if REWRITE:
        rows = (f'"{name}": {json.dumps(codes)}' for name, codes in lists.items())
        file.write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")
    assert json.loads(file.read_text(encoding="utf-8")) == lists


# What is like a code, and whether it is one


def _text(rng: random.Random, characters: str, *lengths: int) -> str:
    return "".join(rng.choices(characters, k=rng.choice(lengths)))


def _like_an_iban(rng: random.Random) -> str:
    country = rng.choice([*text_formats.CODES["iban"], "US", "ZZ"])
    structure = text_formats.CODES["iban"].get(country, "12!n")
    classes = {"n": DIGITS, "a": LETTERS, "c": DIGITS + LETTERS}
    account = "".join(
        _text(rng, classes[kind], int(count))
        for count, kind in re.findall("([0-9]+)!([nac])", structure)
    )
    account += rng.choice(["", "", "", "0"])
    digits = mod_97_10.calc_check_digits(f"{account}{country}")
    other = f"{(int(digits) + 97) % 100:02}"  # the same remainder for 00, 01 and 99
    return f"{country}{rng.choice([digits, digits, other, _text(rng, DIGITS, 2)])}{account}"


def _is_iban(text: str) -> bool:
    return iban.is_valid(text, check_country=False) and "02" <= text[2:4] <= "98"


def _like_an_lei(rng: random.Random) -> str:
    body = _text(rng, DIGITS + LETTERS, 18, 18, 17)
    digits = mod_97_10.calc_check_digits(body)
    other = f"{(int(digits) + 97) % 100:02}"
    return body + rng.choice([digits, digits, other, _text(rng, DIGITS, 2)])


def _is_lei(text: str) -> bool:
    return lei.is_valid(text) and len(text) == 20 and "02" <= text[-2:] <= "98"


def _like_an_isin(rng: random.Random) -> str:
    country = rng.choice([*text_formats.CODES["isin"], "ZZ", "XX"])
    return country + _text(rng, rng.choice([DIGITS, DIGITS + LETTERS]), 9) + _text(rng, DIGITS, 1)


def _written(is_valid: Callable[[str], bool]) -> Callable[[str], bool]:
    """The validators ignore case, spaces and separators, which a gate does not."""
    return lambda text: bool(re.fullmatch("[0-9A-Z]+", text)) and is_valid(text)


def _of_list(
    codes: list[str], characters: str
) -> tuple[Callable[[random.Random], str], Callable[[str], bool]]:
    return (
        lambda rng: rng.choice(codes)[:-1] + _text(rng, characters, 1),
        frozenset(codes).__contains__,
    )


STANDARDS: dict[str, tuple[Callable[[random.Random], str], Callable[[str], bool]]] = {
    "iban": (_like_an_iban, _written(_is_iban)),
    "lei": (_like_an_lei, _written(_is_lei)),
    "isin": (_like_an_isin, _written(isin.is_valid)),
    "gtin": (lambda rng: _text(rng, DIGITS, *range(6, 16)), _written(ean.is_valid)),
    "credit_card": (
        lambda rng: _text(rng, DIGITS, *range(10, 22)),
        _written(lambda text: luhn.is_valid(text) and 12 <= len(text) <= 19 and text[0] != "0"),
    ),
    "country": _of_list([country.alpha_2 for country in pycountry.countries], LETTERS),
    "country_alpha3": _of_list([country.alpha_3 for country in pycountry.countries], LETTERS),
    "country_numeric": _of_list([country.numeric for country in pycountry.countries], DIGITS),
    "currency": _of_list([currency.alpha_3 for currency in pycountry.currencies], LETTERS),
    "language": _of_list(
        [language.alpha_2 for language in pycountry.languages if hasattr(language, "alpha_2")],
        LETTERS.lower(),
    ),
}
SPOILED: tuple[Callable[[str], str], ...] = (
    *(str.lower, str.upper, " {}".format, "{} ".format, "{}\n".format, "{}A".format),
    *(lambda text: text[:-1], lambda text: f"{text[:2]} {text[2:]}", lambda text: f"{text}{text}"),
    lambda text: text.translate(str.maketrans(DIGITS, "٠١٢٣٤٥٦٧٨٩")),
)


def _truths(name: str, rng: random.Random, count: int) -> dict[str, bool]:
    """Strings like codes, spoiled ones too, and whether each is a code."""
    make, is_valid = STANDARDS[name]
    samples = [make(rng) for _ in range(count)]
    valid = list(filter(is_valid, samples))
    assert len(valid) > count // 50
    spoiled = [spoil(text) for text in valid[:20] for spoil in SPOILED]
    return {text: is_valid(text) for text in (*samples, *spoiled)}


@pytest.mark.parametrize("name", STANDARDS)
def test_a_format_holds_the_codes_of_its_standard(name: str) -> None:
    form = TEXT_FORMATS[name]
    for text, truth in _truths(name, random.Random(name), 1000).items():
        is_match = re.search(whole(form.pattern), text) is not None
        digits = form.check_digits
        assert (is_match and (digits is None or digits.holds(text))) is truth, (name, text)
        shape = TEXT_FORMATS.get(f"{name}_format")
        assert not truth or shape is None or re.fullmatch(shape.pattern, text), (name, text)


def _differing(spark: SparkSession, seed: int, count: int) -> list[Any]:
    rng, nowhere = random.Random(seed), Span("", 1, 1, 1, 1)
    rows = [
        (name, text, truth)
        for name in STANDARDS
        for text, truth in _truths(name, rng, count).items()
    ]
    frame = spark.createDataFrame(rows, "name string, text string, truth boolean")
    tests = "".join(
        f" WHEN '{name}' THEN "
        + predicate_sql(
            nodes.HasFormat(
                nodes.Name("text", span=nowhere), nodes.Name(name, span=nowhere), span=nowhere
            )
        )
        for name in STANDARDS
    )
    return frame.where(f"NOT truth <=> CASE name{tests} END").limit(9).collect()


@pytest.mark.spark
def test_spark_agrees_about_the_codes_of_standards(spark: SparkSession) -> None:
    assert not _differing(spark, 0, 100)


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_agrees_about_new_codes_of_standards(spark: SparkSession) -> None:
    seed = random.SystemRandom().randrange(10**9)
    assert not _differing(spark, seed, 3000), f"seed {seed}"
