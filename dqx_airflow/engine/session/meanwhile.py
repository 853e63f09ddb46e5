"""Work for this process while it waits for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module


def import_meanwhile(*modules: str) -> None:
    """Imports modules on another thread; whoever imports them then finds them, or waits."""

    def import_them() -> None:
        for module in modules:
            import_module(module)

    do_meanwhile(import_them)


def do_meanwhile(work: Callable[[], object]) -> None:
    """Does something on another thread that is only there to be quicker afterwards."""

    def do() -> None:
        with suppress(Exception):  # whoever needs it then meets it
            work()

    threading.Thread(target=do, name="dqx meanwhile", daemon=True).start()
