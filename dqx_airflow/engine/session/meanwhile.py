"""Work for this process while it waits for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module


def import_meanwhile(*modules: str) -> None:
    """Imports modules on another thread; later imports find them, or wait."""

    def import_them() -> None:
        for module in modules:
            import_module(module)

    do_meanwhile(import_them)


def do_meanwhile(work: Callable[[], object]) -> None:
    """Runs an optional preparation on another thread, to save time later."""

    def do() -> None:
        with suppress(Exception):  # the code that needs it raises the same error
            work()

    threading.Thread(target=do, name="dqx meanwhile", daemon=True).start()
