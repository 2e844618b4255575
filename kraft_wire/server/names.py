"""Resolves the names of peers outside the loop: a slow name server does not block it.

A few unanswered names would occupy the loop's own threads for many seconds: no peer could be
reached, and the process would wait for them. Here each name has at most one thread, which ends with
the process.
"""

import asyncio
import socket
from contextlib import suppress
from threading import Thread

__all__ = ["Names"]


class Names:
    """The names that are being resolved for one loop."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def addresses(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
        """Return the addresses of a host, as text; empty for an unknown one."""
        if literal := _resolved(host, port, socket.AI_NUMERICHOST):
            return literal
        if (host, port) not in self._asked:
            self._asked[host, port] = loop.create_future()
            Thread(target=self._resolve, args=(loop, host, port), daemon=True).start()
        return await asyncio.shield(self._asked[host, port])

    def _resolve(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> None:
        found = _resolved(host, port)
        with suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(lambda: self._asked.pop((host, port)).set_result(found))


def _resolved(host: str, port: int, flags: int = 0) -> list[str]:
    with suppress(OSError, ValueError, OverflowError):  # a peer may name what is no address
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        return [str(address[0]) for *_, address in found]
    return []
