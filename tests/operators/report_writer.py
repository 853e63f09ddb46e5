"""Writes the reports of all `spark-submit` stubs, so that they need no imports.

To import what writes a report, and to write the first one, takes 15 times as long as to write
another one. So one process writes them all, one after the other, each with the variables and the
output of the stub that asks.

Started as `report_writer.py ADDRESS` by the tests, and ends with them; called as
`report_writer.py ADDRESS ACTION ARGUMENT...` by the shell script of `gate_stubs.py`.
"""

import json
import os
import socket
import sys

# Nothing else is imported here: the stub starts without the packages of the environment.


def ask(address: str, words: list[str]) -> int:
    """Has a report written; the exit code of its writer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"!"], [1, 2])
        connection.sendall(json.dumps([words, dict(os.environ)]).encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(1)
    return answer[0] if answer else 70


def serve(address: str) -> None:
    """Answers until its input ends, as it does with the tests."""
    import select

    from tests.operators import spark_submit_stub  # noqa: F401 (before the first report is asked for)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while server in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                _answer(connection)


def _answer(connection: socket.socket) -> None:
    import traceback
    from contextlib import redirect_stderr, redirect_stdout

    from tests.operators.spark_submit_stub import main

    _, (out, err), _, _ = socket.recv_fds(connection, 1, 2)
    with os.fdopen(out, "w") as output, os.fdopen(err, "w") as errors:
        with connection.makefile("rb") as file:
            words, variables = json.loads(file.read())
        _set_variables(variables)
        code = 70
        try:
            with redirect_stdout(output), redirect_stderr(errors):
                main(words[0], words[1:])
            code = 0
        except Exception:
            traceback.print_exc(file=errors)
    connection.sendall(bytes([code]))


def _set_variables(wanted: dict[str, str]) -> None:
    """Leaves alone what is as it should be: threads of the store may read it meanwhile."""
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
