"""Members of consumer groups (KIP-848) and share consumers for `benchmarks.groups`: raw requests.

A member sends a heartbeat when it is told to, gives up and takes partitions as the answer says, and
says so in its next one. Requests of many members are in flight at once, over a few connections.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from kraft_wire.client import BrokerConnection
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["Group", "ShareConsumer", "ask", "connections", "settle", "share_rate"]

R = TypeVar("R", bound=Message)

CONNECTIONS: Final = 16
IN_FLIGHT: Final = 4
"""Of each connection."""
SETTLE_SECONDS_MAX: Final = 120.0
REBALANCE_MS: Final = 60_000
ACCEPT: Final = 1
FETCH_BYTES: Final = 1 << 20
RECORDS_MAX: Final = 500
WAIT_MS: Final = 200


@contextmanager
def connections(bootstrap: str, count: int = CONNECTIONS) -> Iterator[list[BrokerConnection]]:
    """Open connections to one broker, and close them."""
    opened = [BrokerConnection(bootstrap) for _ in range(count)]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def ask(
    opened: Sequence[BrokerConnection], requests: Iterable[Message], response: type[R]
) -> Iterator[R]:
    """Send requests over connections in turn, a few at once; return the answers in their order."""
    left = iter(requests)
    while chunk := list(islice(left, len(opened) * IN_FLIGHT)):
        for number, request in enumerate(chunk):
            opened[number % len(opened)].post(request)
        for number in range(len(chunk)):
            yield opened[number % len(opened)].answer(response)


@dataclass
class Member:
    """A member of a consumer group."""

    member_id: str
    epoch: int = 0
    owned: list[TopicPartitions] = field(default_factory=list)
    has_news: bool = True
    """Whether the coordinator does not know yet what the member owns."""

    @property
    def partitions(self) -> int:
        """How many it owns."""
        return sum(len(each.partitions) for each in self.owned)


class Group:
    """A consumer group of one topic."""

    def __init__(self, name: str, topic: str, partitions: int, members: int) -> None:
        self.name = name
        self._topic = topic
        self._partitions = partitions
        self._serial = 0
        self.members: list[Member] = []
        for _ in range(members):
            self.join()

    def join(self) -> None:
        """Add a member, which joins with its next heartbeat."""
        self._serial += 1
        self.members.append(Member(f"{self.name}-{self._serial}"))

    def leave(self) -> ConsumerGroupHeartbeatRequest:
        """Drop the oldest member, and return the request by which it leaves."""
        member = self.members.pop(0)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.name, member_id=member.member_id, member_epoch=-1
        )

    @property
    def is_settled(self) -> bool:
        """Whether the members have all partitions, in one epoch, and the coordinator knows it."""
        return (
            len({each.epoch for each in self.members}) == 1
            and not any(each.has_news for each in self.members)
            and sum(each.partitions for each in self.members) == self._partitions
        )

    def beats(self) -> list[ConsumerGroupHeartbeatRequest]:
        """Return a heartbeat of each member."""
        return [self._beat(each) for each in self.members]

    def take(self, member: Member, answer: ConsumerGroupHeartbeatResponse) -> None:
        """Take over what the coordinator answered to a member."""
        assert answer.error_code == 0, answer
        member.epoch, member.has_news = answer.member_epoch, False
        if answer.assignment is not None:
            member.owned = list(answer.assignment.topic_partitions)
            member.has_news = True

    def _beat(self, member: Member) -> ConsumerGroupHeartbeatRequest:
        is_new = member.epoch == 0
        return ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.member_id,
            member_epoch=member.epoch,
            rebalance_timeout_ms=REBALANCE_MS if is_new else -1,
            subscribed_topic_names=[self._topic] if is_new else None,
            topic_partitions=[] if is_new else member.owned if member.has_news else None,
        )


def settle(opened: Sequence[BrokerConnection], groups: Sequence[Group]) -> int:
    """Send heartbeats until all groups are settled; return how many."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    count = 0
    while open_groups := [each for each in groups if not each.is_settled]:
        assert time.monotonic() < deadline, [each.name for each in open_groups]
        members = [(group, member) for group in open_groups for member in group.members]
        requests = [request for group in open_groups for request in group.beats()]
        answers = ask(opened, requests, ConsumerGroupHeartbeatResponse)
        for (group, member), answer in zip(members, answers, strict=True):
            group.take(member, answer)
        count += len(requests)
    return count


class ShareConsumer:
    """A member of a share group with a session, which accepts with each fetch what came before."""

    def __init__(self, node: BrokerConnection, group: str, member_id: str, topic: str) -> None:
        self._node = node
        self._group = group
        self._member_id = member_id
        self._topic = topic
        self._session_epoch = 0
        self._acquired: list[PartitionData] = []

    def join(self) -> tuple[Uuid, list[int]] | None:
        """Join, or send a heartbeat; return the assigned partitions once there are some."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=0,
            subscribed_topic_names=[self._topic],
        )
        answer = self._node.send(request, ShareGroupHeartbeatResponse)
        assert answer.error_code == 0, answer
        found = answer.assignment.topic_partitions if answer.assignment is not None else []
        return (found[0].topic_id, list(found[0].partitions)) if found else None

    def post(self, topic_id: Uuid, partitions: Sequence[int]) -> None:
        """Send a fetch of all partitions with the acknowledgements."""
        acquired = {each.partition_index: each.acquired_records for each in self._acquired}
        self._node.post(
            ShareFetchRequest(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=self._session_epoch,
                max_wait_ms=WAIT_MS,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                max_records=RECORDS_MAX,
                batch_size=RECORDS_MAX,
                topics=[
                    FetchTopic(
                        topic_id=topic_id,
                        partitions=[
                            FetchPartition(
                                partition_index=number,
                                acknowledgement_batches=[
                                    AcknowledgementBatch(
                                        first_offset=each.first_offset,
                                        last_offset=each.last_offset,
                                        acknowledge_types=[ACCEPT],
                                    )
                                    for each in acquired.get(number, ())
                                ],
                            )
                            for number in partitions
                        ],
                    )
                ],
            )
        )
        self._session_epoch += 1

    def take(self) -> int:
        """Receive the answer; return how many records were accepted with the request."""
        answer = self._node.answer(ShareFetchResponse)
        assert answer.error_code == 0, answer
        accepted = sum(
            one.last_offset - one.first_offset + 1
            for each in self._acquired
            for one in each.acquired_records
        )
        self._acquired = [part for topic in answer.responses for part in topic.partitions]
        wrong = [each for each in self._acquired if each.error_code or each.acknowledge_error_code]
        assert not wrong, wrong
        return accepted


def share_rate(
    consumers: Sequence[ShareConsumer], topic: tuple[Uuid, list[int]], records: int, seconds: float
) -> float:
    """Return the records per second that share consumers fetch and accept, or until all are."""
    accepted, begun = 0, time.perf_counter()
    while accepted < records and time.perf_counter() - begun < seconds:
        for each in consumers:
            each.post(*topic)
        accepted += sum(each.take() for each in consumers)
    return accepted / (time.perf_counter() - begun)
