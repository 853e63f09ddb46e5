"""The diagnostic value, the pages of its codes, and the words of messages: the nearest names,
lists with a limit.

It depends on nothing but `values`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache
from importlib.resources import files
from itertools import islice

from dqx_airflow.values import Span


class Level(str, Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Related:
    """A second relevant position, such as the first definition of a repeated name."""

    span: Span
    label: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a source.

    `label` is next to the carets, `notes` are pairs such as ("expected", "== 0") below the excerpt,
    `help` says what to type instead. `code` is None for run-time findings, of which `is_mild` marks
    warnings, and `rule` names the assertion.
    """

    message: str
    span: Span
    code: str | None = None
    label: str = ""
    related: tuple[Related, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    help: str | None = None
    is_mild: bool = False
    rule: str | None = None

    @property
    def level(self) -> Level:
        is_warning = self.is_mild or (self.code or "E").startswith("W")
        return Level.WARNING if is_warning else Level.ERROR


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that are errors, in order."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.level is Level.ERROR)


# Codes are stable; a retired one is not used again. Each has a page: its title, the purpose of its
# rule, and a wrong and a right example.
_PAGES = files("dqx_airflow") / "docs" / "codes"


@cache
def codes() -> tuple[str, ...]:
    """All codes in order. Archives of `dql package` do not contain the pages, so that no import may
    read them."""
    return tuple(sorted(file.name.removesuffix(".md") for file in _PAGES.iterdir()))


def page(code: str) -> str:
    """The page of a code, in Markdown."""
    return (_PAGES / f"{code}.md").read_text(encoding="utf-8")


def title(code: str) -> str:
    """The title of a code, in a few words: the heading of its page."""
    return page(code).partition("\n")[0].removeprefix(f"# {code}: ")


def reason(code: str) -> str:
    """The purpose of the rule behind a code: the first paragraph of its page, on one line."""
    opening = page(code).split("\n## ", 1)[0]
    _, text = opening.split("\n", 1)
    return " ".join(text.split())


_SHOWN = 12
_COMPARED = 600
"""The maximum number of names compared: thousands of errors and names would take seconds."""
_LENGTHS_OF_SLIPS = (3, 6)
"""The minimum lengths of a word with one edit, and with two, to count as a typo."""
_LONGEST = 200
"""A longer word is never a typo."""


def define_constant(name: str) -> str:
    """The hint for a constant that does not exist and resembles no other."""
    return f"define it: const {name} = 100"


def did_you_mean(word: str, known: Collection[str]) -> str | None:
    """`did you mean 'x'?`, or else the list of known names; None if there are none."""
    names = [name for name in dict.fromkeys(islice(known, _COMPARED)) if name]
    near = nearest(word, names)
    if near:
        return f"did you mean '{near}'?"
    if not names:
        return None
    more = len(names) - _SHOWN + max(0, len(known) - _COMPARED)
    rest = f" and {more} more" if more > 0 else ""
    return f"available: {', '.join(names[:_SHOWN])}{rest}"


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known name of which `word` is most likely a typo or an abbreviation."""
    if len(word) > _LONGEST:
        return None
    names = list(islice(known, _COMPARED))
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    if not near and len(word) > 1:
        # `avg` is not a typo of `average`, but its letters occur there in this order.
        near = [name for name in names if _abbreviates(word, name)]
    return near[0] if near else None


def _abbreviates(word: str, name: str) -> bool:
    letters = iter(name)
    return word[:1] == name[:1] and all(letter in letters for letter in word)


def slip_of(word: str, known: Collection[str]) -> str | None:
    """The known word of which `word` is a typo: other case or separators, or one or two edits.

    Stricter than `nearest`, which also accepts abbreviations: up to 2 letters allow no edit, up to
    5 letters one, longer words two.
    """
    near = slips_of(word, known)
    return near[0] if near else None


def slips_of(word: str, known: Collection[str]) -> list[str]:
    """The known words of which `word` may be a typo, as for `slip_of`: the nearest first."""
    folded = folded_word(word)
    forms = {folded_word(name): name for name in reversed(list(known))}
    if folded in forms:
        return [forms[folded]]
    most = sum(len(folded) >= length for length in _LENGTHS_OF_SLIPS)
    distances = {name: edits(folded, form, most) for form, name in forms.items()}
    near = [name for name, distance in distances.items() if distance <= most]
    return sorted(near, key=distances.__getitem__)


def folded_word(word: str) -> str:
    """A word in its canonical form: `minLength`, `min_length` and `min-length` are the same."""
    return "".join(letter for letter in word.lower() if letter.isalnum() or letter == "$")


def edits(word: str, other: str, most: int) -> int:
    """The number of letters that are omitted, added, replaced or swapped with their neighbor
    between two words; `most + 1` if there are more.

    Damerau, F. J. (1964): A technique for computer detection and correction of spelling errors;
    here in the restricted form, which edits no letter twice.
    """
    if abs(len(word) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        before, above, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return min(row[-1], most + 1)


MOST_LISTED = 10


def listed(items: Sequence[str], between: str = ", ", most: int = MOST_LISTED) -> str:
    """The items with a separator between them: `a, b, c`, or `a, b, c and 90 more`."""
    more = len(items) - most
    return between.join(items[:most]) + (f" and {more} more" if more > 0 else "")
