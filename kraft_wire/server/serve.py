"""Runs one node as a process: sockets, signals, ready file, and the order of start and stop.

Sockets are bound first, because a taken port is the commonest mistake and nothing has been touched
by then; they listen last, because the backlog would take clients before requests are answered. The
first SIGTERM or SIGINT stops gracefully, the second at once.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from kraft_wire.model import FsyncFailed, StorageError
from kraft_wire.node.config import Listener, NodeConfig
from kraft_wire.node.event_log import EventLog, Line
from kraft_wire.node.node import Node
from kraft_wire.node.opening import StartError
from kraft_wire.server.clock import now_ms, wall_ms
from kraft_wire.server.descriptors import connections_max
from kraft_wire.server.host import Host
from kraft_wire.storage.files import OsFileSystem

__all__ = ["SystemChance", "serve"]

_BACKLOG = 511
_ACCEPTS_PER_WAKE_UP = 64
_ACCEPT_PAUSE_SECONDS = 0.1
_STOP_GRACE_SECONDS = 5.0
_STOP_STEP_SECONDS = 0.01
_STOPPED_AT_ONCE = 130
_BROKEN = 70
"""Exit code after a failed flush or a broken invariant: the data was left as it is."""


class SystemChance:
    """The operating system's randomness, as a node takes it: the one place that asks for it."""

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:  # half of all draws fit, at the least
            drawn = int.from_bytes(os.urandom(size), "big") >> (8 * size - bits)  # noqa: TID251  # the port itself
            if drawn < bound:
                return drawn


def serve(
    config: NodeConfig,
    *,
    cluster_id: str | None,
    ready: Callable[[Node, NodeConfig], None],
) -> None:
    """Serve until a signal; `ready` is called once requests are answered.

    Errors: StartError for what the user can mend; nothing is left behind then.
    """
    if not __debug__:
        raise StartError("asserts are off (-O or PYTHONOPTIMIZE): the server relies on them")
    sockets = _bind(config.listeners)
    try:
        ports = {listener.name: sock.getsockname()[1] for listener, sock in sockets}
        config = config.with_ports(ports)
        loop = _new_loop()
        log = EventLog(_write_line)
        for key in config.unknown_keys:
            log.event("unknown_config_key", key=key, action="ignored")
        try:
            node = Node(
                config,
                OsFileSystem(),
                SystemChance(),
                now_ms=now_ms(),
                wall_ms=wall_ms(),
                cluster_id=cluster_id,
                report=log.event,
            )
        except StorageError as error:
            raise StartError(f"the data cannot be opened: {error}") from error
        _Process(config, node, loop, log, sockets).run(ready)
    finally:
        for _, sock in sockets:
            sock.close()


class _Process:
    """A started node with its sockets."""

    def __init__(
        self,
        config: NodeConfig,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        log: EventLog,
        sockets: list[tuple[Listener, socket.socket]],
    ) -> None:
        self._config = config
        self._node = node
        self._loop = loop
        self._log = log
        self._sockets = sockets
        self._signals = 0
        allowed = connections_max(config.limits.connections_max)
        limits = replace(config.limits, connections_max=allowed)
        self._host = Host(node, limits, loop, log, self._break)

    def run(self, ready: Callable[[Node, NodeConfig], None]) -> None:
        """Listen, say so, serve, stop."""
        loop = self._loop
        loop.set_exception_handler(self._broken_invariant)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        for listener, sock in self._sockets:
            sock.listen(_BACKLOG)
            loop.add_reader(sock.fileno(), self._accept, listener, sock)
        self._host.settle_all()
        if self._config.metrics_port is not None:
            self._serve_metrics(self._config.metrics_port)
        # What is alive now stays so, and requests make few cycles: collect seldom, and only those.
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        ready(self._node, self._config)
        try:
            loop.run_forever()
        finally:
            loop.close()

    def _serve_metrics(self, port: int) -> None:
        from kraft_wire.server.metrics import serve_metrics

        address = self._config.listeners[0].host
        try:
            server = self._loop.run_until_complete(serve_metrics(self._host, address, port))
        except OSError as error:
            raise StartError(f"cannot serve metrics on {address}:{port}: {error}") from error
        bound = server.sockets[0].getsockname()[1]
        self._log.event("metrics", address=f"http://{address}:{bound}/metrics")

    def _accept(self, listener: Listener, sock: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_WAKE_UP):
            try:
                accepted, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                # Out of descriptors: the connection stays in the backlog until one is free.
                self._log.event("accept_failed", listener=listener.name, reason=error.strerror)
                self._loop.remove_reader(sock.fileno())
                self._loop.call_later(_ACCEPT_PAUSE_SECONDS, self._accept_again, listener, sock)
                return
            self._host.accepted(accepted, (address[0], address[1]), listener.name)

    def _accept_again(self, listener: Listener, sock: socket.socket) -> None:
        if not self._host.is_stopping:
            self._loop.add_reader(sock.fileno(), self._accept, listener, sock)

    # -- stopping --------------------------------------------------------------------------------

    def _signalled(self, number: int) -> None:
        self._signals += 1
        if self._signals > 1:
            self._log.event("stopped_at_once", signal=signal.Signals(number).name)
            os._exit(_STOPPED_AT_ONCE)
        self._log.event("stopping", signal=signal.Signals(number).name)
        self._host.is_stopping = True
        for _, sock in self._sockets:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._node.begin_stop(now_ms())
        self._host.settle_all()
        self._drain_connections(self._loop.time() + _STOP_GRACE_SECONDS)

    def _drain_connections(self, until: float) -> None:
        """Close connections as their answers are written; after the grace period, all of them."""
        if self._host.close_idle() and self._loop.time() < until:
            self._loop.call_later(_STOP_STEP_SECONDS, self._drain_connections, until)
            return
        for connection in list(self._host.connections.values()):
            self._host.lost(connection)
        self._host.stop()
        self._node.stop()
        self._log.event("stopped", clean=True)
        self._loop.stop()

    def _broken_invariant(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, object]
    ) -> None:
        """Stop the process: what a failed assert says about the state is unknown."""
        error = context.get("exception")
        if isinstance(error, FsyncFailed | StorageError):
            self._break(str(error))
        if isinstance(error, BaseException):
            import traceback

            traceback.print_exception(error)
        self._break(str(context.get("message", "unknown")))

    def _break(self, reason: str) -> None:
        self._log.event("stopped", clean=False, reason=Line(reason))
        os._exit(_BROKEN)


def _bind(listeners: tuple[Listener, ...]) -> list[tuple[Listener, socket.socket]]:
    """Bind every listener; StartError for a port in use or an address that is not ours."""
    bound: list[tuple[Listener, socket.socket]] = []
    for listener in listeners:
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        try:
            sock.bind((listener.host, listener.port))
        except OSError as error:
            sock.close()
            for _, other in bound:
                other.close()
            raise StartError(
                f"cannot listen on {listener.name}://{listener.host}:{listener.port}: "
                f"{error.strerror or error}"
            ) from error
        bound.append((listener, sock))
    return bound


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _write_line(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads the log any more: serving goes on
        sys.stderr.write(line)
        sys.stderr.flush()
