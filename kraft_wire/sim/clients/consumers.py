"""Consumers: they read every partition of a topic from the leaders, in fetch sessions (KIP-227).

A session's requests list only the changes since the last one; an error of the session or a lost
answer restarts it. Positions only grow, unless an unclean election has lost records. While a
partition has no leader the client requests the metadata repeatedly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import judge_fetched
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.session_watch import judge_session
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kraft_wire.wire.message import Message

__all__ = ["Consumer"]

_WAIT_MS: Final = 200
_BYTES_MAX: Final = (200, 1_000, 100_000)
_EPOCH_MAX: Final = (1 << 31) - 1


@dataclass(slots=True)
class _Session:
    """One consumer's session with one broker."""

    session_id: int = 0
    epoch: int = 0
    session_partitions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Partition -> position and leader epoch, as last sent to the broker."""


class Consumer(BrokerClient):
    """Reads until it is stopped."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic)
        self.positions: dict[PartitionTruth, int] = {}
        self._read_in: dict[PartitionTruth, int] = {}
        """The leader epoch in which a position was reached."""
        self.isolation_level = 0
        self._sessions: dict[int, _Session] = {}
        self._last_node = -1
        self._max_bytes = self.random.choice(_BYTES_MAX)

    @property
    def has_read_all(self) -> bool:
        """Whether it is at the end of each partition of the topic."""
        of_topic = self.context.truth.of_topic(self.topic)
        return all(self.positions.get(each, 0) >= each.end for each in of_topic)

    def catch_up(self) -> None:
        """Read as much as possible at a time from here on: the end is awaited."""
        self._max_bytes = _BYTES_MAX[-1]

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        nodes = sorted({node_id for node_id, _ in self.leaders.values()})
        later = [node_id for node_id in nodes if node_id > self._last_node]
        node_id = self._last_node = (later or nodes)[0]
        session = self._sessions.setdefault(node_id, _Session())
        request = self._request(node_id, session)
        session_partitions = session.session_partitions

        def fetched(response: Message | None) -> None:
            self._fetched(node_id, session, session_partitions, response)

        self.ask(node_id, request, fetched)

    def learnt(self) -> None:
        for session in self._sessions.values():
            _start_over(session)  # the topic may be another one
        self.step()

    def _truth(self, number: int) -> PartitionTruth:
        assert self.topic_id is not None, self.topic
        return self.context.truth.partitions[self.topic_id, number]

    def _request(self, node_id: int, session: _Session) -> FetchRequest:
        """List the partitions that are new in the session, and those to drop."""
        assert self.topic_id is not None, self.topic
        wanted = {
            number: (self.positions.get(self._truth(number), 0), epoch)
            for number, (leader, epoch) in self.leaders.items()
            if leader == node_id
        }
        news = {
            n: place for n, place in wanted.items() if session.session_partitions.get(n) != place
        }
        gone = [number for number in session.session_partitions if number not in wanted]
        session.session_partitions = wanted
        partitions = [
            FetchPartition(
                partition=number,
                current_leader_epoch=epoch,
                fetch_offset=position,
                partition_max_bytes=self._max_bytes,
            )
            for number, (position, epoch) in news.items()
        ]
        forgotten = [ForgottenTopic(topic_id=self.topic_id, partitions=gone)] if gone else []
        topics = [FetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else []
        return FetchRequest(
            isolation_level=self.isolation_level,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=10 * self._max_bytes,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )

    def _fetched(
        self,
        node_id: int,
        session: _Session,
        session_partitions: dict[int, tuple[int, int]],
        response: Message | None,
    ) -> None:
        """Take an answer; `session_partitions`: positions and leader epochs as they were asked
        for.
        """
        if not isinstance(response, FetchResponse) or response.error_code:
            _start_over(session)
            name = "no answer" if response is None else "session over"
            self.context.history.counts[f"fetch {name}"] += 1
            self.again()
            return
        if session.epoch == 0 or session.session_id != response.session_id:
            session.session_id = response.session_id
            session.epoch = 0 if response.session_id == 0 else 1
        else:
            session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        if session.session_id == 0:
            session.session_partitions = {}
        self._judge_session(node_id, session)
        is_wrong = self.lacks_leaders
        for topic in response.responses:
            for data in topic.partitions:
                if not self._take(node_id, data, session_partitions[data.partition_index][1]):
                    session.session_partitions.pop(data.partition_index, None)
                    is_wrong = True
        if is_wrong:
            self.again()
        else:
            self.later(self.think_us)

    def _judge_session(self, node_id: int, session: _Session) -> None:
        keys = [(self.topic_id, number) for number in session.session_partitions]
        judge_session(self.stage.machines[node_id], session.session_id, session.epoch, keys)

    def _take(self, node_id: int, data: PartitionData, epoch: int) -> bool:
        """Take one partition's answer; false if the leaders must be refreshed.

        `epoch`: the leader epoch of the request.
        """
        truth = self._truth(data.partition_index)
        position = self.positions.get(truth, 0)
        history = self.context.history
        match data.error_code:
            case ErrorCode.NONE:
                judge_fetched(node_id, data, truth)
                records = data.records
                assert not isinstance(records, FileSlice), "an answer that was sent is bytes"
                if records:
                    self.positions[truth] = history.read(node_id, truth, position, records, epoch)
                    self._read_in[truth] = epoch
                return True
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                if self.context.judge.leads(node_id, truth):
                    read_in = self._read_in.get(truth, epoch)
                    history.out_of_range(node_id, truth, position, read_in)
                    self.positions[truth] = 0
            case error:
                history.counts[f"fetch {ErrorCode(error).name}"] += 1
        return False


def _start_over(session: _Session) -> None:
    """Ask for a new session with everything in it, in place of the old one."""
    session.epoch, session.session_partitions = 0, {}
