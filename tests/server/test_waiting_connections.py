"""A connection that must wait: its listener takes it over when its time has come and no sooner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.server.accepting import Acceptor


class Listening:
    """An acceptor whose socket has connections, and whose clock and quotas the test sets."""

    def __init__(self, *delays_ms: int, has_room: bool = True) -> None:
        self.now_ms, self.has_room = 1_000, has_room
        self.accepted: list[str] = []
        self.is_watched = False
        self.calls_in: list[float] = []
        self.lines: list[str] = []
        self._backlog = [f"client {number}" for number in range(len(delays_ms))]
        self._delays_ms = list(delays_ms)
        quotas = SimpleNamespace(
            delay_ms=lambda *_: self._delays_ms.pop(0), has_room=lambda _: self.has_room
        )
        host = SimpleNamespace(
            now_ms=lambda: self.now_ms,
            connection_quotas=quotas,
            accepted=lambda sock, *_: self.accepted.append(sock),
            log=SimpleNamespace(limited=self._log),
        )
        loop = SimpleNamespace(
            add_reader=lambda *_: self._watch(True),
            remove_reader=lambda _: self._watch(False),
            call_later=lambda seconds, _: self.calls_in.append(seconds),
        )
        sock = SimpleNamespace(accept=self._accept, fileno=lambda: 3, listen=lambda _: None)
        self.acceptor = Acceptor(cast(Any, host), cast(Any, loop), "CLIENTS", cast(Any, sock))
        self.acceptor.listen(8)

    def _watch(self, wanted: bool) -> None:
        self.is_watched = wanted

    def _log(self, *_: object, reason: str, **__: object) -> None:
        self.lines.append(reason)

    def _accept(self) -> tuple[str, tuple[str, int]]:
        if not self._backlog:
            raise BlockingIOError
        return self._backlog.pop(0), ("127.0.0.1", 50_000)

    def wake_up(self) -> None:
        assert self.is_watched, "the loop does not call a listener that waits"
        self.acceptor._accept()


@pytest.mark.parametrize(("resumed_ms", "accepted"), [(0, 0), (249, 0), (250, 1), (900, 1)])
def test_the_rate_holds_a_connection_for_its_whole_time(resumed_ms: int, accepted: int) -> None:
    """KIP-612. Room for others may become free meanwhile: that resumes nothing."""
    listening = Listening(0, 250, 0)
    listening.wake_up()
    assert (listening.accepted, listening.is_watched) == (["client 0"], False)
    assert (listening.calls_in, listening.lines) == ([0.25], ["max.connection.creation.rate"])
    listening.now_ms += resumed_ms
    listening.acceptor.resume()
    assert listening.accepted[1:] == ["client 1"] * accepted
    assert listening.is_watched is bool(accepted)


def test_a_full_listener_takes_over_when_there_is_room() -> None:
    listening = Listening(0, has_room=False)
    listening.wake_up()
    assert (listening.accepted, listening.lines) == ([], ["max.connections"])
    listening.acceptor.resume()
    assert listening.accepted == []
    listening.has_room = True
    listening.acceptor.resume()
    listening.acceptor.resume()
    assert (listening.accepted, listening.is_watched) == (["client 0"], True)
