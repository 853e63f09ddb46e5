"""Endpoints that misbehave as servers do on their worst days, on real sockets."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache

Behaviour = Callable[[socket.socket, threading.Event], None]
"""Treats a connection, until the event is set."""

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def _read_request(connection: socket.socket) -> bytes:
    """The whole request: its head and its body."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += _received(connection)
    head, _, body = found.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(it[15:]) for it in lines if it.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += _received(connection)
    return head


def _received(connection: socket.socket) -> bytes:
    """The next bytes. A client that has hung up has none, and would be asked for ever.

    :raises ConnectionError: the client has hung up.
    """
    found = connection.recv(65536)
    if not found:
        raise ConnectionError("the client has hung up")
    return found


def _drip(connection: socket.socket, text: bytes, over: threading.Event) -> None:
    for byte in text:
        if over.wait(0.05):
            return
        connection.sendall(bytes([byte]))


def hangs_on_accept(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def reads_and_hangs(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    over.wait()


def drips_its_head(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    _drip(connection, _HEAD + b"X-Pad: " + b"x" * 2000, over)


def has_endless_headers(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(_HEAD)
    while not over.is_set():
        connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")


def drips_its_body(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(_HEAD + b"Content-Length: 2000\r\n\r\n")
    _drip(connection, b"x" * 2000, over)


def has_an_endless_body(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(_HEAD + b"\r\n")
    while not over.is_set():
        connection.sendall(b"x" * 65536)


def sends_a_bomb(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    length = f"Content-Length: {len(bomb())}\r\nContent-Encoding: gzip\r\n\r\n".encode()
    connection.sendall(_HEAD + length + bomb())


@cache
def bomb() -> bytes:
    """A little gzip that becomes 100 MB."""
    return gzip.compress(bytes(100_000_000))


def is_unavailable_for_long(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n")


def fails_with_an_endless_body(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(b"HTTP/1.1 500 Oops\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"x" * 65536)


def redirects_in_a_loop(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(b"HTTP/1.1 307 Go\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")


def redirects_to_a_page(connection: socket.socket, over: threading.Event) -> None:
    """Redirects a POST to a login page: the GET that follows returns 200, and the event is
    lost."""
    if _read_request(connection).startswith(b"POST"):
        connection.sendall(b"HTTP/1.1 302 Go\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")
    else:
        connection.sendall(_HEAD + b"Content-Length: 0\r\n\r\n")


def talks_garbage(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    connection.sendall(b"\x00\xff garbage\r\n\r\n")


def resets(connection: socket.socket, over: threading.Event) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def answers_slowly(connection: socket.socket, over: threading.Event) -> None:
    _read_request(connection)
    over.wait(0.1)
    connection.sendall(_HEAD + b"Content-Length: 0\r\n\r\n")


KINDS: Mapping[str, Behaviour] = {
    kind.__name__.replace("_", " "): kind
    for kind in (
        hangs_on_accept,
        reads_and_hangs,
        drips_its_head,
        has_endless_headers,
        drips_its_body,
        has_an_endless_body,
        sends_a_bomb,
        is_unavailable_for_long,
        fails_with_an_endless_body,
        redirects_in_a_loop,
        redirects_to_a_page,
        talks_garbage,
        resets,
        answers_slowly,
    )
}
ACCEPTS = {"drips its body", "has an endless body", "sends a bomb", "answers slowly"}
"""The kinds that say by their status that they have taken the event."""


@contextmanager
def endpoint(behave: Behaviour) -> Iterator[int]:
    """The port of an endpoint that calls `behave` with every connection."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError, IndexError):
            behave(connection, over)

    def accept() -> None:
        with suppress(OSError):
            while not over.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        over.set()
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def full_backlog() -> Iterator[int]:
    """The port of a listener that never accepts, and whose queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            waiting.append(client)
        time.sleep(0.05)
        yield port
        for client in waiting:
            client.close()
