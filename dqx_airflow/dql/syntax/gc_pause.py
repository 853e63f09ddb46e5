"""Suspends garbage collection while a tree grows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Suspends the search for cycles in the block: trees and diagnostics contain none.

    Traversing a large tree again and again while it grows, the collector would take as long as
    everything else: 20,000 assertions would cost forty times as much as 1,000.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
