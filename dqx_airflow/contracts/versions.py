"""Versions of contracts, the bumps between them, and the bumps that changes require.

Versions follow the rules of semver. Before 1.0.0 a breaking change may come with the second number,
and any other change with the third, as in semver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from functools import total_ordering

_VERSION = re.compile(
    r"(?P<prefix>v?)(?P<numbers>\d{1,9}(\.\d{1,9}){0,2})(-(?P<before>[0-9A-Za-z.-]+))?(\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)


class Bump(IntEnum):
    """The size of the step from one version to another, made or required."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A comparable version. `digits` are the written numbers: one for `v2`.

    `before` is the suffix of a pre-release after the hyphen: `rc.1`. `prefix` is the letter in
    front.
    """

    numbers: tuple[int, int, int]
    digits: int = field(default=3, compare=False)
    before: tuple[str, ...] = ()
    prefix: str = field(default="", compare=False)

    @property
    def major(self) -> int:
        return self.numbers[0]

    @property
    def is_release(self) -> bool:
        return not self.before

    def __lt__(self, other: Version) -> bool:
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[object, ...]:
        parts = tuple(
            (0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.before
        )
        return (self.numbers, self.is_release, parts)


def version_of(text: str | None) -> Version | None:
    """The version in a text; None without a text, and for an invalid version."""
    match = _VERSION.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    numbers = [int(part) for part in match["numbers"].split(".")]
    major, minor, patch = [*numbers, 0, 0][:3]
    before = tuple((match["before"] or "").split(".")) if match["before"] else ()
    return Version((major, minor, patch), len(numbers), before, match["prefix"])


def bump_between(old: Version, new: Version) -> Bump:
    """The bump from one version to another; none if the new version is equal or lower."""
    if new <= old:
        return Bump.NONE
    for number, bump in enumerate((Bump.MAJOR, Bump.MINOR, Bump.PATCH)):
        if new.numbers[number] != old.numbers[number]:
            return bump
    # From `2.0.0-rc.1` to `2.0.0`: the promises of a release candidate may change until the
    # release.
    _, minor, patch = new.numbers
    return Bump.PATCH if patch else Bump.MINOR if minor else Bump.MAJOR


def is_enough(old: Version, new: Version, due: Bump) -> bool:
    """True if the bump between two versions is as large as changes require.

    For a version with one number, compatible changes need no bump: any version that is not lower is
    enough. With two numbers, patches need none.
    """
    if new < old:
        return False
    declared = bump_between(old, new)
    if old.major == new.major == 0 and new.digits > 1:
        due = Bump(max(due - 1, min(due, Bump.PATCH)))
    bump = {1: Bump.MAJOR, 2: Bump.MINOR}.get(min(old.digits, new.digits), Bump.PATCH)
    return declared >= due or due < bump


def next_version(old: Version, due: Bump) -> str:
    """The lowest sufficient version, with as many numbers as the old one."""
    major, minor, patch = old.numbers
    if old.digits == 1:
        return f"{old.prefix}{major + 1}"
    if major == 0:
        due = Bump(max(due - 1, min(due, Bump.PATCH)))
    match due:
        case Bump.MAJOR:
            numbers = (major + 1, 0, 0)
        case Bump.MINOR:
            numbers = (major, minor + 1, 0)
        case _:
            numbers = (major, minor, patch + 1) if old.digits == 3 else (major, minor + 1, 0)
    return old.prefix + ".".join(str(number) for number in numbers[: old.digits])
