"""Writes the reports of all stubs of `spark-submit`, in processes that need not import anything.

To import what writes a report takes ten times as long as to write it. So one process does it, and
has a child for each report; the child gets the variables and the output of the stub that asks.

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
    import signal

    import spark_submit_stub  # noqa: F401 (for the children)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while server in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    server.close()
                    _answer(connection)


def _answer(connection: socket.socket) -> None:
    """In a process of its own, which ends here."""
    import traceback

    from spark_submit_stub import main

    code = 70
    try:
        _, (out, err), _, _ = socket.recv_fds(connection, 1, 2)
        os.dup2(out, 1)
        os.dup2(err, 2)
        with connection.makefile("rb") as file:
            words, variables = json.loads(file.read())
        os.environ.clear()
        os.environ.update(variables)
        main(words[0], words[1:])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
