"""The number of ways that a backtracking matcher may try on a string of `n` characters: the power
of `n`.

Uses the positions of an expression (Glushkov's automaton) and the number of paths between them. If
two different paths lead from a position back to itself over one string, each iteration doubles the
work: exponential. If one position can be left for a later one at any point of a string that both
repeat, there is a path for each such point: one power of `n` for each (Weber and Seidl, "On the
degree of ambiguity of finite automata", 1991).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.syntax import (
    Anything,
    Characters,
    Choice,
    Concatenation,
    End,
    ExplodingError,
    Group,
    Node,
    One,
    Repeat,
    Start,
    ZeroWidth,
)

_COPIES = 10
"""Repetitions up to this count are unrolled; longer ones count as unbounded."""
_MOST_POSITIONS = 3_000
_MOST_TURNS = 90
"""The maximum number of positions in one loop; more cannot be analysed in reasonable time."""
_FORKS, _MOST_WAYS = 12, 100_000
_STEPS = 60

_EXPLODES = "some strings would take exponential time: there are many ways to split them among the "
_HINT = (
    "do not let a repetition begin with what may follow it: "
    "^[a-z]+(,[a-z]+)*$ instead of ^([a-z]+,?)+$"
)
_TOO_LARGE = ExplodingError(
    "the pattern is too large to bound its run time", "use several assertions, or `in [...]`"
)


@dataclass(slots=True)
class _Part:
    """The contribution of a node: its first and last positions, with the number of paths to each.

    `empty` is the number of ways to match nothing, `is_free` is set if one of them has no further
    condition; `free_ends` are the positions after which that is so.
    """

    first: dict[int, int]
    last: dict[int, int]
    empty: int
    is_free: bool
    free_ends: frozenset[int]


_NOTHING = _Part({}, {}, 1, is_free=True, free_ends=frozenset())


@dataclass(slots=True)
class _Automaton:
    sets: list[Characters] = field(default_factory=list)
    follow: list[dict[int, int]] = field(default_factory=list)
    inner: int = 1
    """The power of lookarounds and atomic groups by themselves."""

    def part(self, node: Node, room: int) -> _Part:
        match node:
            case One(characters=characters):
                return self._position(characters)
            case End():
                return self._position(chars.END)
            case Anything(length=int(length)):
                return self.part(Concatenation((One(chars.EVERYTHING),) * length), room)
            case Anything():
                position = self._position(chars.EVERYTHING)
                self._join(position.last, position.first)
                empty = 1 if node.is_reference else 0
                return _Part(
                    position.first,
                    position.last,
                    empty,
                    is_free=False,
                    free_ends=position.free_ends,
                )
            case ZeroWidth() | Start():
                return _Part({}, {}, 1, is_free=False, free_ends=frozenset())
            case Group(body=body, kind="plain"):
                return self.part(body, room)
            case Group(body=body, kind="atomic"):
                return self._taken_for_good(body, is_repeated=False)
            case Group(body=body):
                self.inner = max(self.inner, power(body, is_anchored=True))
                return _Part({}, {}, 1, is_free=False, free_ends=frozenset())
            case Choice(branches=branches):
                parts = [self.part(branch, room) for branch in branches]
                return _Part(
                    _sum(part.first for part in parts),
                    _sum(part.last for part in parts),
                    min(2, sum(part.empty for part in parts)),
                    is_free=any(part.is_free for part in parts),
                    free_ends=frozenset().union(*(part.free_ends for part in parts)),
                )
            case Concatenation(items=items):
                return reduce(self._then, (self.part(item, room) for item in items), _NOTHING)
            case Repeat(body=body, low=low, high=high, mode=mode):
                if mode == "possessive" and not isinstance(body, One) and high != 1:
                    part = self._taken_for_good(body, is_repeated=True)
                    return self._optional(part) if low == 0 else part
                return self._repeated(body, low, high, room)

    def _position(self, characters: Characters) -> _Part:
        if len(self.sets) >= _MOST_POSITIONS:
            raise _TOO_LARGE
        at = len(self.sets)
        self.sets.append(characters)
        self.follow.append({})
        return _Part({at: 1}, {at: 1}, 0, is_free=False, free_ends=frozenset({at}))

    def _join(self, ends: dict[int, int], starts: dict[int, int]) -> None:
        for end, ways in ends.items():
            after = self.follow[end]
            for start, more in starts.items():
                after[start] = min(2, after.get(start, 0) + ways * more)

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._join(left.last, right.first)
        return _Part(
            _sum([left.first, _times(right.first, left.empty)]),
            _sum([right.last, _times(left.last, right.empty)]),
            min(2, left.empty * right.empty),
            is_free=left.is_free and right.is_free,
            free_ends=right.free_ends | (left.free_ends if right.is_free else frozenset()),
        )

    def _repeated(self, body: Node, low: int, high: int | None, room: int) -> _Part:
        if high == 0:
            return _NOTHING
        if high is not None and high <= room:
            inside = room // high
            parts = [self.part(body, inside) for _ in range(high)]
            whole = _NOTHING
            for number, part in reversed(list(enumerate(parts))):
                whole = self._then(part, whole)
                if number >= low:
                    whole = self._optional(whole)
            return whole
        part = self.part(body, 1)
        if part.empty and low > _COPIES // 2:
            raise ExplodingError(
                f"{_EXPLODES}iterations of a repetition that may be empty",
                "let each iteration match at least one character",
            )
        self._join(part.last, part.first)
        # An iteration that matches nothing is the last one: one more way to end.
        part = replace(part, last=_times(part.last, 1 + part.empty))
        return self._optional(part) if low == 0 else part

    def _optional(self, part: _Part) -> _Part:
        return _Part(
            part.first, part.last, min(2, part.empty + 1), is_free=True, free_ends=part.free_ends
        )

    def _taken_for_good(self, body: Node, *, is_repeated: bool) -> _Part:
        """A part that never backtracks, so that there is one path: its characters, in any order."""
        self.inner = max(self.inner, power(body, is_anchored=True))
        inside = _Automaton()
        part = inside.part(body, _COPIES)
        self.inner = max(self.inner, inside.inner)
        if not inside.sets:
            return part
        position = self._position(reduce(or_, inside.sets))
        if is_repeated or len(inside.sets) > 1:
            self._join(position.last, position.first)
        free = position.free_ends if part.free_ends else frozenset()
        return _Part(position.first, position.last, min(1, part.empty), part.is_free, free)


def power(node: Node, *, is_anchored: bool) -> int:
    """The power of the length that a search for `node` may take: 1 if it is linear.

    :param is_anchored: it is tried at one position only; otherwise everywhere.
    :raises PatternError: the time may be exponential, or cannot be determined.
    """
    automaton = _Automaton()
    if not is_anchored and not starts_anchored(node):
        before = automaton.part(Repeat(One(chars.EVERYTHING), 0, None, "lazy", 0), _COPIES)
        part = automaton._then(before, automaton.part(node, _COPIES))
    else:
        part = automaton.part(node, _COPIES)
    graph = _Graph(automaton, part)
    turns = graph.turns()
    for together in turns:
        graph.refuse_doubling(together)
    graph.refuse_many_ways(part)
    return graph.degree(turns) + automaton.inner


def starts_anchored(node: Node) -> bool:
    """True if it can only match at the start of a string."""
    match node:
        case Start():
            return True
        case Concatenation(items=items):
            first = next((item for item in items if not _looks_around(item)), None)
            return first is not None and starts_anchored(first)
        case Choice(branches=branches):
            return all(map(starts_anchored, branches))
        case Group(body=body, kind="plain" | "atomic"):
            return starts_anchored(body)
        case Repeat(body=body, low=low):
            return low > 0 and starts_anchored(body)
        case _:
            return False


def _looks_around(node: Node) -> bool:
    """True for a part that takes no character, whatever it looks at."""
    return isinstance(node, ZeroWidth) or (
        isinstance(node, Group) and node.kind in ("ahead", "behind")
    )


class _Graph:
    """The paths between positions, without those that follow when everything is decided."""

    def __init__(self, automaton: _Automaton, whole: _Part) -> None:
        self.sets = automaton.sets
        self.after = automaton.follow
        for at in self._decided(whole.free_ends):
            self.after[at] = {}
        self.overlaps: dict[tuple[int, int], bool] = {}

    def _decided(self, free_ends: Collection[int]) -> set[int]:
        """Positions after which everything that may follow matches, too."""
        decided = set(free_ends)
        while True:
            lost = {at for at in decided if any(next_ not in decided for next_ in self.after[at])}
            if not lost:
                return decided
            decided -= lost

    def _overlap(self, a: int, b: int) -> bool:
        if a == b:
            return True
        key = (a, b) if a < b else (b, a)
        if key not in self.overlaps:
            self.overlaps[key] = bool(self.sets[a] & self.sets[b])
        return self.overlaps[key]

    def turns(self) -> list[frozenset[int]]:
        """Groups of positions in a loop; earlier groups lead to later ones."""
        every = range(len(self.sets))
        components = _components(every, lambda at: self.after[at])
        return [
            component
            for component in components
            if len(component) > 1 or next(iter(component)) in self.after[next(iter(component))]
        ]

    def refuse_doubling(self, together: frozenset[int]) -> None:
        """:raises PatternError: a position is reached again in two ways over one string."""
        inside = {at: [to for to in self.after[at] if to in together] for at in together}
        if any(self.after[at][to] > 1 for at in together for to in inside[at]):
            raise ExplodingError(f"{_EXPLODES}iterations of a nested repetition", _HINT)
        if all(
            not self._overlap(a, b)
            for starts in inside.values()
            for number, a in enumerate(starts)
            for b in starts[:number]
        ):
            return
        if len(together) > _MOST_TURNS:
            raise _TOO_LARGE
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        new = [(at, at) for at in together]
        while new:
            pair = new.pop()
            if pair in pairs:
                continue
            a, b = pair
            pairs[pair] = [(c, d) for c in inside[a] for d in inside[b] if self._overlap(c, d)]
            new += pairs[pair]
        for component in _components(pairs, pairs.__getitem__):
            if any(a == b for a, b in component) and any(a != b for a, b in component):
                raise ExplodingError(
                    f"{_EXPLODES}iterations of a repetition whose alternatives or parts overlap",
                    _HINT,
                )

    def degree(self, turns: list[frozenset[int]]) -> int:
        """How often a string can be split at any point between consecutive repetitions."""
        best = [0] * len(turns)
        for later, target in enumerate(turns):
            for earlier in range(later):
                if best[earlier] + 1 > best[later] and self._is_split(turns[earlier], target):
                    best[later] = best[earlier] + 1
        return max(best, default=0)

    def _is_split(self, earlier: frozenset[int], later: frozenset[int]) -> bool:
        """True if both may repeat a string that also leads from one to the other."""
        shared = self._union(earlier) & self._union(later)
        while shared:
            usable = {at for at in range(len(self.sets)) if self.sets[at] & shared}
            ways = {at: [to for to in self.after[at] if to in usable] for at in usable}
            froms = _turning(earlier & usable, ways)
            tos = _turning(later & usable, ways)
            if not froms or not tos or not _reaches(froms, tos, ways):
                return False
            narrowed = shared & self._union(froms) & self._union(tos)
            if narrowed == shared:
                return True
            shared = narrowed
        return False

    def _union(self, positions: Iterable[int]) -> Characters:
        return reduce(or_, (self.sets[at] for at in positions), chars.NO_CHARACTERS)

    def refuse_many_ways(self, whole: _Part) -> None:
        """:raises PatternError: many optional parts follow each other: `a?a?a?...`."""
        forks = [
            at
            for at, after in enumerate(self.after)
            if any(ways > 1 for ways in after.values())
            or any(self._overlap(a, b) for a in after for b in after if a < b)
        ]
        if len(forks) < _FORKS:
            return
        ways = {at: float(count) for at, count in whole.first.items()}
        for _ in range(_STEPS):
            best: dict[int, float] = {}
            for tried in list(ways)[:_STEPS]:
                longer: dict[int, float] = {}
                for at, count in ways.items():
                    if not self._overlap(at, tried):
                        continue
                    for to, more in self.after[at].items():
                        longer[to] = longer.get(to, 0) + count * more
                if sum(longer.values()) > sum(best.values()):
                    best = longer
            ways = best
            turning = sum(1 for at in ways if at in self.after[at])
            if sum(ways.values()) > _MOST_WAYS * (1 + turning) ** 2:
                raise ExplodingError(f"{_EXPLODES}many optional parts", _HINT)
            if not ways:
                return


def _turning(positions: Collection[int], ways: dict[int, list[int]]) -> set[int]:
    """The positions from which a path through only these positions leads back."""
    inside = {at: [to for to in ways[at] if to in positions] for at in positions}
    return {
        at
        for component in _components(inside, inside.__getitem__)
        for at in component
        if len(component) > 1 or at in inside[at]
    }


def _reaches(froms: Collection[int], tos: Collection[int], ways: dict[int, list[int]]) -> bool:
    seen, new = set(froms), list(froms)
    while new:
        for to in ways[new.pop()]:
            if to in tos:
                return True
            if to not in seen:
                seen.add(to)
                new.append(to)
    return False


def _components(nodes: Iterable, after) -> Iterator[frozenset]:  # type: ignore[no-untyped-def,type-arg]
    """Strongly connected components, earlier before later ones (Tarjan, without recursion)."""
    order: dict = {}  # type: ignore[type-arg]
    low: dict = {}  # type: ignore[type-arg]
    stack: list = []  # type: ignore[type-arg]
    on_stack: set = set()  # type: ignore[type-arg]
    components: list[frozenset] = []  # type: ignore[type-arg]
    for root in nodes:
        if root in order:
            continue
        work = [(root, iter(after(root)))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in order:
                    order[to] = low[to] = len(order)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(after(to))))
                    break
                if to in on_stack:
                    low[node] = min(low[node], order[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(frozenset(component))
    return iter(reversed(components))


def _sum(counts: Iterable[dict[int, int]]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for count in counts:
        for at, ways in count.items():
            sums[at] = min(2, sums.get(at, 0) + ways)
    return sums


def _times(counts: dict[int, int], ways: int) -> dict[int, int]:
    return {at: min(2, count * ways) for at, count in counts.items()} if ways else {}
