"""Recognizes secrets by the name of a setting, or by the form of a value.

Standard library only: every package may use it. The words and the forms are in `secret_forms.txt`,
which is read when the first name or text is searched.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache
from importlib.resources import files
from itertools import pairwise

_PASSWORDS = (
    "password|passwd|passphrase|passcode|pwd|secret(?!ar)|credential|contrase[nñ]a|passwort"
)
_JOINED = re.compile(
    rf"{_PASSWORDS}|(?:api|access|account|auth|private|signing|encryption|master)key"
    r"|(?:access|auth|api|bearer|refresh|session|sas|id)token|connectionstring|signature|sasl",
    re.I,
)
"""Words of secrets, also within other words: `dbpassword`, `apikey`."""

_PAIR = re.compile(
    r"(?<![\w.-])(?P<quote>['\"]?)(?P<name>[\w.-]+)(?P=quote)\s*(?::=|=>|[:=])\s*"
    r"(?!(?i:Bearer|Basic|ApiKey|SSWS|GenieKey)\s)(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;&})\]'\"]+)"
)
_PASSWORD = re.compile(_PASSWORDS, re.I)
_ACCOUNT = re.compile(
    r"(?<![\w:/@.-])(?!(?:mailto|sip|sips|xmpp|acct|im|news):)"
    r"[\w.+-]+:(?!//)[^\s:/@'\"]+@(?!sha\d+:)(?=[\w-])|\bjdbc:oracle:\w+:[^\s/@]+/[^\s@]+@"
)
"""`user:password@host` without a scheme; Oracle's `user/password@`."""

_HEADER = re.compile(
    r"(?P<head>\b(?P<kind>Bearer|Basic|ApiKey|SSWS|GenieKey)\s+)(?P<value>[\w.~+/=-]{6,})", re.I
)
_KEY_OF_AWS = re.compile(r"(?<![\w+/=.:-])[A-Za-z0-9+/]{40}(?![\w+/=.-])")
_WORD_OR_NUMBER = re.compile(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d+)*")


def is_secret_setting(name: str) -> bool:
    """True if a setting or variable of this name holds a secret: `fs.s3a.secret.key`, `DB_PASS`.

    >>> is_secret_setting("fs.s3a.endpoint")
    False
    >>> is_secret_setting("PASS_RATE")
    False
    """
    words = _without_endings(_words_of(name))
    if not words:
        return False
    if _is_secret_address(words):
        return True
    is_count = words[-1] == "tokens" and len(words) > 1
    if words[-1] in _words("public last words") or is_count:
        return False
    return _has_secret_word(words) or _is_key(words) or ("sas" in words and "." in name)


def _is_secret_address(words: list[str]) -> bool:
    """True for the name of an address that has a signature, or that lets those who know it post;
    and for the header that authorizes."""
    joined = "".join(words)
    last = words[-1]
    if last in ("url", "uri") and ("presigned" in joined or "sas" in words):
        return True
    if last in ("header", "headers") and "auth" in words:
        return True
    return "webhook" in joined and last in ("url", "uri", "webhook", "address")


def _has_secret_word(words: list[str]) -> bool:
    """True for a name with a word, or words, for a password, a token or a connection string."""
    if words[-1] in _words("last words") or not _words("words").isdisjoint(words):
        return True
    if _JOINED.search("".join(words)):
        return True
    return (words[-1] == "str" and "conn" in words) or words[-2:] == ["connection", "string"]


def _is_key(words: list[str]) -> bool:
    """True for a name with a key whose word before it makes it secret: `access_key`."""
    return any(
        word in ("key", "keys") and before in _words("keys") for before, word in pairwise(words)
    )


def find_token(text: str) -> re.Match[str] | None:
    """The first match of a vendor's key or token in a text, see `secret_forms.txt`."""
    return tokens().search(text)


@cache
def tokens() -> re.Pattern[str]:
    """The expression that finds a key or a token of any vendor."""
    forms = [row.split(" | ", 1)[1].rpartition(" | ")[0] for row in _rows()["forms"]]
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(forms)})")


@cache
def _words(section: str) -> frozenset[str]:
    return frozenset(word for row in _rows()[section] for word in row.split())


@cache
def _rows() -> dict[str, list[str]]:
    """The rows of `secret_forms.txt` by section."""
    text = files(__package__).joinpath("secret_forms.txt").read_text(encoding="utf-8")
    rows: dict[str, list[str]] = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
            rows[section] = []
        elif not line.startswith("#"):
            rows[section].append(line)
    return rows


def has_secret_form(value: str) -> bool:
    """True for a value that is a key, a token, a header or an account, or that contains one.

    >>> has_secret_form("Bearer abc123def456")
    True
    >>> has_secret_form("token = 3")
    False
    >>> has_secret_form("2024-03-01T10:00:00Z")
    False
    """
    if find_token(value) is not None or _ACCOUNT.search(value) is not None:
        return True
    if any(_is_header(match) for match in _HEADER.finditer(value)):
        return True
    if any(_is_random(match[0]) for match in _KEY_OF_AWS.finditer(value)):
        return True
    return any(_is_secret_pair(match) for match in _PAIR.finditer(value))


def hide_values(text: str, hidden: str) -> str:
    """`text` with `hidden` for the values of settings that hold secrets, for headers, accounts and
    keys of AWS; tokens are found by `tokens`."""

    def setting(match: re.Match[str]) -> str:
        if not is_secret_setting(match["name"]):
            return match[0]
        return match[0][: match.start("value") - match.start()] + hidden

    def header(match: re.Match[str]) -> str:
        return match["head"] + hidden if _is_header(match) else match[0]

    def key(match: re.Match[str]) -> str:
        return hidden if _is_random(match[0]) else match[0]

    text = _HEADER.sub(header, _PAIR.sub(setting, text))
    return _ACCOUNT.sub(f"{hidden}@", _KEY_OF_AWS.sub(key, text))


def _words_of(name: str) -> list[str]:
    """The words of a name in any spelling, in lower case: `accessKeyId` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9ñÑ]+", " ", name)
    return spaced.lower().split()


def _without_endings(words: list[str]) -> list[str]:
    """The words without numbers and environments at the end: `PASS1`, `DB_PASS_PROD`."""
    kept = list(words)
    while len(kept) > 1 and (
        kept[-1].isdigit() or kept[-1] in _words("last words without meaning")
    ):
        kept.pop()
    if kept:
        kept[-1] = kept[-1].rstrip("0123456789") or kept[-1]
    return kept


def _is_secret_pair(match: re.Match[str]) -> bool:
    name = match["name"]
    if not is_secret_setting(name):
        return False
    value = match["value"].strip("'\"")
    if not value or value.lower() in ("null", "none", "true", "false"):
        return False
    # `token = 3` is a condition on a column of numbers; a password may be a number.
    is_spaced = match[0][len(match["quote"]) * 2 + len(name)] not in "=:"
    return _PASSWORD.search(name) is not None or len(value) >= 8 or not is_spaced


def _is_header(match: re.Match[str]) -> bool:
    word = match["value"]
    if match["kind"].lower() == "basic":
        try:
            return b":" in base64.b64decode(word + "=" * (-len(word) % 4), validate=True)
        except binascii.Error:
            return False
    if match["kind"].lower() != "bearer":  # `apikey column_1` are words
        return len(word) >= 16 and any(map(str.isdigit, word))
    # `bearer shares` are words.
    return len(word) >= 16 or not word.isalpha()


def _is_random(text: str) -> bool:
    """True for 40 characters that look like a secret key of AWS, not like a hash or a path."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, text)) for kind in kinds):
        return False
    return not all(_WORD_OR_NUMBER.fullmatch(part) for part in re.split(r"[/+]", text))
