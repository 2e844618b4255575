"""Share sessions of a member of a share group (KIP-932): one with each leader of its partitions.

Here are the requests of a session and what their answers mean; which records a member accepts,
releases or rejects decides `share_members`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kraft_wire.broker.share_fetch.share_partitions import share_partitions_of
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.model import FileSlice, Uuid
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.share_place import SharePlace
from kraft_wire.sim.clients.share_requests import (
    Acknowledged,
    Batch,
    acknowledge_request,
    acknowledged_by_partition,
    fetch_request,
    records_of,
)
from kraft_wire.sim.judge.share_history import Delivery, ShareHistory
from kraft_wire.wire.generated import share_fetch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeResponse
from kraft_wire.wire.generated.share_fetch import ShareFetchResponse
from kraft_wire.wire.message import Message

__all__ = ["ACCEPT", "REJECT", "RELEASE", "ShareSession", "ShareSessions"]

ACCEPT, RELEASE, REJECT = 1, 2, 3


@dataclass(slots=True)
class ShareSession:
    """The member's session with one broker."""

    epoch: int = 0
    partitions: list[tuple[Uuid, int]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    """Acquired, and neither acknowledged nor left alone."""


class ShareSessions(SharePlace):
    """A member that fetches records and acknowledges them as it is told."""

    def __init__(
        self, context: ClientContext, shares: ShareHistory, number: int, topic: str, group: str
    ) -> None:
        super().__init__(context, number, topic, group)
        self.shares = shares
        self._sessions: dict[int, ShareSession] = {}

    def lose_connections(self) -> None:
        """Close every connection, as a client that dies: its sessions end, its records are free."""
        self.context.history.counts["share connections lost"] += 1
        self.shares.gave_up(self.number)
        self._sessions = {}
        for link in self._links.values():
            link.hang_up()

    def _acknowledge(
        self, node_id: int, session: ShareSession, acknowledged: list[Acknowledged]
    ) -> None:
        request = acknowledge_request(self.group, self.member_id, session.epoch, acknowledged)

        def answered(response: Message | None) -> None:
            if not isinstance(response, ShareAcknowledgeResponse) or response.error_code:
                self._session_is_over(node_id, session)
                return
            session.epoch += 1
            for topic in response.responses:
                for each in topic.partitions:
                    self._written(
                        acknowledged, (topic.topic_id, each.partition_index), each.error_code
                    )
            self.later(self.think_us)

        self.ask(node_id, request, answered)

    def _fetch(
        self,
        node_id: int,
        session: ShareSession,
        here: list[tuple[Uuid, int]],
        acknowledged: list[Acknowledged],
    ) -> None:
        """Fetch; the request names what is new in the session, and what it acknowledges."""
        by_partition = acknowledged_by_partition(acknowledged)
        new = [at for at in here if at not in session.partitions]
        session.partitions += new
        request = fetch_request(self.group, self.member_id, session.epoch, new, by_partition)
        asked = (self.stage.now_us, self.stage.machines[node_id].now_ms)
        led = {at: self._led(node_id, at) for at in session.partitions}

        def fetched(response: Message | None) -> None:
            if not isinstance(response, ShareFetchResponse) or response.error_code:
                for at in session.partitions:
                    self.shares.lost[at] += 1
                self._session_is_over(node_id, session)
                return
            session.epoch += 1
            is_wrong = False
            for topic in response.responses:
                for data in topic.partitions:
                    at = (topic.topic_id, data.partition_index)
                    if at in by_partition:
                        self._written(acknowledged, at, data.acknowledge_error_code)
                    is_wrong |= data.error_code != 0
                    lock_ms = response.acquisition_lock_timeout_ms
                    self._take(node_id, session, at, data, (*asked, lock_ms), led[at])
            if is_wrong:
                self._session_is_over(node_id, session)
            else:
                self.later(self.think_us)

        self.ask(node_id, request, fetched)

    def _led(self, node_id: int, at: tuple[Uuid, int]) -> tuple[int, object]:
        """Return the leader epoch of a broker that leads a partition, and its state of it.

        -1 for any other broker; None while it has not read the state.
        """
        truth = self.context.truth.partitions[at]
        node = self.stage.machines[node_id].node
        if node is None or not self.context.judge.leads(node_id, truth):
            return -1, None
        key = SharePartitionKey(self.group, *at)
        return truth.leader_epoch, share_partitions_of(node.broker).get(key)

    def _take(
        self,
        node_id: int,
        session: ShareSession,
        at: tuple[Uuid, int],
        data: share_fetch.PartitionData,
        asked: tuple[int, int, int],
        led: tuple[int, object],
    ) -> None:
        """Take the acquired records of a partition.

        `asked`: the time of the request, the same by the leader's clock, and the time of a lock;
        `led`: the leader epoch and its state then.
        """
        asked_us, asked_ms, lock_ms = asked
        epoch, life = led
        if data.error_code:
            self.context.history.counts[f"share fetch {ErrorCode(data.error_code).name}"] += 1
        if not data.acquired_records:
            return
        truth = self.context.truth.partitions[at]
        epoch_now, life_now = self._led(node_id, at)
        if epoch < 0 or epoch != epoch_now:
            self.shares.lost[at] += 1  # a replaced leader gives what others have done
            return
        assert not isinstance(data.records, FileSlice), "an answer that was sent is bytes"
        history = self.context.history
        first = data.acquired_records[0].first_offset
        history.read(node_id, truth, first, data.records or b"", epoch)
        if life is None or life is not life_now:
            life = object()  # it may have been read between, with the locks forgotten
        connection = self._links[node_id].connection
        now_us = self.stage.now_us
        delivery = Delivery(
            node_id, life, self.number, asked_us, asked_ms, now_us, lock_ms, connection
        )
        for each in data.acquired_records:
            history.counts["share batches acquired"] += 1
            history.counts["share batches acquired again"] += each.delivery_count > 1
            places = (each.first_offset, each.last_offset)
            self.shares.delivered(delivery, truth, *places, each.delivery_count)
            session.batches.append((*at, *places, each.delivery_count))

    def _written(self, acknowledged: list[Acknowledged], at: tuple[Uuid, int], code: int) -> None:
        """An answer tells what became of the acknowledgements of a partition."""
        error = ErrorCode(code)
        self.context.history.counts[f"share acknowledge {error.name}"] += 1
        if error is not ErrorCode.NONE:
            return
        for batch, kind in acknowledged:
            if batch[:2] != at:
                continue
            for key in records_of(batch):
                if kind == RELEASE:
                    self.shares.released(key, batch[4])
                else:
                    self.shares.finished(key)

    def _session_is_over(self, node_id: int, session: ShareSession) -> None:
        """A request failed or had no answer: begin again, on a new connection."""
        self.context.history.counts["share session over"] += 1
        session.epoch, session.batches = 0, []
        self._sessions.pop(node_id, None)
        self._links[node_id].hang_up()
        self.shares.gave_up(self.number, node_id)
        self.again()
