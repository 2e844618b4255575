"""Members of a share group (KIP-932): they fetch records, and accept, release or reject them.

A member keeps its place with heartbeats, and acknowledges with the next fetch or alone, the records
of a batch together or in parts. It leaves some records alone until their locks end, and sometimes
loses its connection or leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Final

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.share_requests import Acknowledged, Batch, records_of
from kraft_wire.sim.clients.share_sessions import (
    ACCEPT,
    REJECT,
    RELEASE,
    ShareSession,
    ShareSessions,
)
from kraft_wire.sim.judge.share_history import ShareHistory
from kraft_wire.sim.scheduler import stream

__all__ = ["SHARE_GROUP", "ShareMember"]

SHARE_GROUP: Final = "s"
_TYPES: Final = (*(ACCEPT,) * 6, *(RELEASE,) * 3, REJECT)
_FORGETS_SHARE: Final = 0.1
_PARTS_SHARE: Final = 0.4
_LOSES_SHARE: Final = 0.03
_LEAVES_SHARE: Final = 0.02
_WAITS_US: Final = 100_000
_RESTS_US: Final = 50_000
_LOOKS_EVERY: Final = 4
"""Requests after which a member asks for the leader of a partition that had none."""


class ShareMember(ShareSessions):
    """One member of the group `SHARE_GROUP` on one topic."""

    def __init__(
        self,
        context: ClientContext,
        shares: ShareHistory,
        number: int,
        topic: str,
        may_begin: Callable[[], bool],
    ) -> None:
        super().__init__(context, shares, number, topic, SHARE_GROUP)
        self.is_resting = False
        """Whether it accepts everything and stays."""
        self._may_begin = may_begin
        self._parting = stream(self.stage.seed, "parts", number)
        self._turn = 0
        self.think_us = 8_000
        self.timeout_us = 1_000_000

    def rest(self) -> None:
        """Accept everything from here on, and stay."""
        self.is_resting = True
        self.think_us = _RESTS_US

    def step(self) -> None:
        """Every third request is a heartbeat."""
        if self.is_done:
            return
        self._turn += 1
        if not self._may_begin():
            self.later(_WAITS_US)
        elif self.coordinator is None:
            self.find_coordinator()
        elif self.epoch == 0 or self._turn % 3 == 0:
            self.heartbeat(self.epoch)
        elif self.is_resting:
            self._fetch_or_acknowledge()
        elif (draw := self.random.random()) < _LEAVES_SHARE:
            self.heartbeat(-1)
        elif draw < _LEAVES_SHARE + _LOSES_SHARE:
            self.lose_connections()
            self.later(self.think_us)
        else:
            self._fetch_or_acknowledge()

    # -- records ---------------------------------------------------------------------------------

    def _fetch_or_acknowledge(self) -> None:
        """Ask the next leader of a partition that it has."""
        led = [(self.leaders[n][0], at) for at in self.owned if (n := at[1]) in self.leaders]
        looks = len(led) < len(self.owned) and self._turn % _LOOKS_EVERY == 0
        if not led or looks or self.owned[0][0] != self.topic_id:
            self.again()
            return
        node_id = self.random.choice(sorted({node_id for node_id, _ in led}))
        session = self._sessions.setdefault(node_id, ShareSession())
        if session.epoch == 0:
            session.partitions = []
        acknowledged = self._decided(session) if session.epoch else []
        if acknowledged and self.random.random() < 0.5:
            self._acknowledge(node_id, session, acknowledged)
        else:
            here = [at for each, at in led if each == node_id]
            self._fetch(node_id, session, here, acknowledged)

    def _decided(self, session: ShareSession) -> list[Acknowledged]:
        """Return the records to acknowledge, with how; the others are left alone."""
        batches, session.batches = session.batches, []
        found = []
        for batch in chain.from_iterable(map(self._parts, batches)):
            kind = ACCEPT if self.is_resting else self.random.choice(_TYPES)
            if self.is_resting or self.random.random() >= _FORGETS_SHARE:
                found.append((batch, kind))
                self.shares.acknowledges(self.number, records_of(batch))
        return found

    def _parts(self, batch: Batch) -> list[Batch]:
        """Return a batch as it is acknowledged: sometimes in two parts, each in its own way."""
        topic_id, number, first, last, count = batch
        if first == last or self._parting.random() >= _PARTS_SHARE:
            return [batch]
        middle = self._parting.randrange(first, last)
        return [
            (topic_id, number, first, middle, count),
            (topic_id, number, middle + 1, last, count),
        ]
