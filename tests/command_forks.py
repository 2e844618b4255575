"""`kraft-wire` as a process for each command line, but with one start of the interpreter for all.

A start and the imports cost several times what most verbs do then. So one process imports a verb
once, and each command line is a child that it forks: with its own standard streams, variables,
directory and exit, but with modules that are there already. What a start itself does is shown by
tests that start the program (`tests.cli.test_main` starts every verb).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO

from kraft_wire.cli.main import COMMANDS
from kraft_wire.cli.main import main as kraft_wire
from tests.process import KRAFT_WIRE

__all__ = ["run_forked"]

REQUEST_BYTES_MAX = 1 << 18
STDIN_BYTES_MAX = 1 << 16
"""What a pipe takes before anybody reads."""
READ_BYTES = 1 << 16
STREAMS = 3
STOP_SECONDS_MAX = 30

_lock = threading.Lock()
_forks: dict[int, Forks] = {}


def run_forked(
    arguments: Sequence[str], stdin: bytes = b"", timeout_s: float = 120
) -> subprocess.CompletedProcess[bytes]:
    """Run `kraft-wire` to its end in a forked child, or by itself while another thread has one."""
    command = [KRAFT_WIRE, *arguments]
    if len(stdin) <= STDIN_BYTES_MAX and _lock.acquire(blocking=False):
        try:
            return _own_forks().run(command, stdin, timeout_s)
        finally:
            _lock.release()
    return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)


def _own_forks() -> Forks:
    if os.getpid() not in _forks:
        _forks[os.getpid()] = forks = Forks()
        atexit.register(forks.close)
    return _forks[os.getpid()]


class Forks:
    """The process that forks a child for each command line, seen by a test."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.command_forks", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    def run(
        self, command: list[str], stdin: bytes, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command line to its end.

        Raises:
            TimeoutExpired: it did not end in time, and was killed.
        """
        deadline = time.monotonic() + timeout_s
        (their_in, given), (out, their_out), (error, their_error) = (
            os.pipe() for _ in range(STREAMS)
        )
        theirs = [their_in, their_out, their_error]
        request = json.dumps([command, dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(self._channel, [request], theirs)
        for each in theirs:
            os.close(each)
        pid = json.loads(self._channel.recv(READ_BYTES))
        with os.fdopen(given, "wb", 0) as pipe, suppress(BrokenPipeError):
            pipe.write(stdin)
        with os.fdopen(out, "rb", 0) as stdout, os.fdopen(error, "rb", 0) as stderr:
            texts = _read_all((stdout, stderr), deadline)
        if texts is None:
            os.kill(pid, signal.SIGKILL)
        code = json.loads(self._channel.recv(READ_BYTES))
        if texts is None:
            raise subprocess.TimeoutExpired(command, timeout_s)
        return subprocess.CompletedProcess(command, code, *texts)

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.wait(STOP_SECONDS_MAX)


def _read_all(pipes: Sequence[IO[bytes]], deadline: float) -> list[bytes] | None:
    """Return what comes from each pipe until all are closed; None where the time is up before."""
    read = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            if (left_s := deadline - time.monotonic()) <= 0:
                return None
            for key, _ in selector.select(left_s):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                read[key.fileobj] += data  # type: ignore[index]  # what was registered
    return [bytes(data) for data in read.values()]


def warm_up() -> None:
    """Run a verb once: typer imports most of what it needs only when it parses arguments."""
    sys.argv = [KRAFT_WIRE, "wire", "schema", "FetchRequest"]
    with suppress(SystemExit):
        kraft_wire()


def serve(channel: socket.socket) -> list[str] | None:
    """Fork a child for each request: its command line in the child, None where requests end."""
    while True:
        request, streams, _, _ = socket.recv_fds(channel, REQUEST_BYTES_MAX, STREAMS)
        if not request:
            return None
        command, variables, directory = json.loads(request)
        if len(command) > 1 and command[1] in COMMANDS:
            import_module(COMMANDS[command[1]][0])
            gc.freeze()
        pid = os.fork()
        if pid == 0:
            channel.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.environ.clear()
            os.environ.update(variables)
            os.chdir(directory)
            return command
        for stream in streams:
            os.close(stream)
        channel.send(json.dumps(pid).encode())
        _, status = os.waitpid(pid, 0)
        channel.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    requests = socket.socket(fileno=int(sys.argv[1]))
    warm_up()
    asked = serve(requests)
    if asked is not None:
        sys.argv = asked
        sys.exit(kraft_wire())
