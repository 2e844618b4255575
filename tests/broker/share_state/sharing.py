"""A whole node that coordinates share partitions, driven by encoded requests of brokers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kraft_wire.broker.coordination.log import Appended, BrokerCoordinatorLog
from kraft_wire.broker.share_persister import DeliveryStateBatch, SharePartitionKey
from kraft_wire.broker.share_state.coordinator_keys import coordinator_key
from kraft_wire.broker.share_state.records import read_record
from kraft_wire.broker.share_state.state_table import Change
from kraft_wire.model import FileSlice, Offset, Uuid
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from kraft_wire.wire.generated.delete_share_group_state import DeleteShareGroupStateRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.initialize_share_group_state import InitializeShareGroupStateRequest
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateRequest
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
)
from kraft_wire.wire.generated.write_share_group_state import WriteShareGroupStateRequest
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.groups.node_door import NodeDoor

STATE_TOPIC: Final = "__share_group_state"
TOPIC: Final = "t"
FLUSHED: Final = {"log.flush.interval.messages": "1"}
"""Settings with which records are committed once they are on the disk."""
NOWHERE: Final = Uuid(b"no such topic id")
GROUP: Final = "g"

Batch = tuple[int, int, int, int]
"""First and last offset, delivery state, delivery count."""


class ShareCalls(ABC):
    """Requests to a share coordinator about one topic, wherever it is."""

    topic_id: Uuid

    @abstractmethod
    def send(self, request: Any, version: int) -> Any:
        """Return the reply to a request, with its `response`."""

    def key(self, partition: int = 0, group: str = GROUP) -> SharePartitionKey:
        return SharePartitionKey(group, self.topic_id, partition)

    def find(self, key: str, version: int = 6) -> Any:
        """Ask for the coordinator of a share partition."""
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        return self.send(request, version).response.coordinators[0]

    def initialize(
        self, partition: int = 0, *, epoch: int = 1, start: int = -1, topic_id: Uuid | None = None
    ) -> Any:
        module = initialize_share_group_state
        part = module.PartitionData(partition=partition, state_epoch=epoch, start_offset=start)
        topic = module.InitializeStateData(topic_id=topic_id or self.topic_id, partitions=[part])
        return self._only(InitializeShareGroupStateRequest(group_id=GROUP, topics=[topic]), 0)

    def write(
        self,
        partition: int = 0,
        *batches: Batch,
        epoch: int = -1,
        leader: int = -1,
        start: int = -1,
        complete: int = 0,
        version: int = 1,
        topic_id: Uuid | None = None,
    ) -> Any:
        request = self.write_request(
            partition,
            *batches,
            epoch=epoch,
            leader=leader,
            start=start,
            complete=complete,
            topic_id=topic_id,
        )
        return self._only(request, version)

    def write_request(
        self,
        partition: int,
        *batches: Batch,
        epoch: int = -1,
        leader: int = -1,
        start: int = -1,
        complete: int = 0,
        topic_id: Uuid | None = None,
    ) -> WriteShareGroupStateRequest:
        module = write_share_group_state
        part = module.PartitionData(
            partition=partition,
            state_epoch=epoch,
            leader_epoch=leader,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[
                module.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )
        topic = module.WriteStateData(topic_id=topic_id or self.topic_id, partitions=[part])
        return WriteShareGroupStateRequest(group_id=GROUP, topics=[topic])

    def read(self, partition: int = 0, *, leader: int = -1, topic_id: Uuid | None = None) -> Any:
        module = read_share_group_state
        part = module.PartitionData(partition=partition, leader_epoch=leader)
        topic = module.ReadStateData(topic_id=topic_id or self.topic_id, partitions=[part])
        return self._only(ReadShareGroupStateRequest(group_id=GROUP, topics=[topic]), 0)

    def summary(self, partition: int = 0, *, version: int = 1, topic_id: Uuid | None = None) -> Any:
        module = read_share_group_state_summary
        part = module.PartitionData(partition=partition, leader_epoch=-1)
        topic = module.ReadStateSummaryData(topic_id=topic_id or self.topic_id, partitions=[part])
        request = ReadShareGroupStateSummaryRequest(group_id=GROUP, topics=[topic])
        return self._only(request, version)

    def delete(self, partition: int = 0, *, topic_id: Uuid | None = None) -> Any:
        module = delete_share_group_state
        part = module.PartitionData(partition=partition)
        topic = module.DeleteStateData(topic_id=topic_id or self.topic_id, partitions=[part])
        return self._only(DeleteShareGroupStateRequest(group_id=GROUP, topics=[topic]), 0)

    def _only(self, request: Any, version: int) -> Any:
        """Send a request about one share partition; return its result, None while it waits."""
        response = self.send(request, version).response
        if response is None:
            return None
        (topic,) = response.results
        (result,) = topic.partitions
        return result


class Sharing(NodeDoor, ShareCalls):
    """One node with a topic of three partitions, whose share coordinator is loaded."""

    def __init__(
        self,
        fs: SimFileSystem | None = None,
        now_ms: int = 1_000,
        *,
        is_in_use: bool = True,
        **more: str,
    ) -> None:
        """Without `is_in_use` nobody has looked for the share coordinator yet."""
        self.store = fs or SimFileSystem()
        more = {"share.coordinator.state.topic.num.partitions": "2"} | more
        super().__init__(self.store, now_ms, **more)
        if self.node.broker.image.topic(TOPIC) is None:
            self.prepare(TOPIC, 3)
        for _ in range(3 if is_in_use else 0):
            self.find(f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAA:0")
            self.settle()

    @property
    def topic_id(self) -> Uuid:  # type: ignore[override]  # of the node at that time
        topic = self.node.broker.image.topic(TOPIC)
        assert topic is not None
        return topic.topic_id

    def batches(self) -> Iterator[RecordBatch]:
        """Every batch of the state topic."""
        for (topic, _), partition in sorted(self.node.broker.partitions.items()):
            start, end = partition.log_start_offset, partition.log_end_offset
            if topic != STATE_TOPIC or start == end:
                continue
            read = partition.read(start, 1 << 24, upper_bound=end, min_one_batch=True).records
            yield from parse_batches(read.read() if isinstance(read, FileSlice) else read)

    def changes(self, partition: int = 0) -> list[Change]:
        """What the records of a share partition say, in order."""
        found = []
        for batch in self.batches():
            for record in batch.records():
                assert record.key is not None
                read = read_record(record.key, record.value)
                assert not isinstance(read, str), read
                if read[0] == self.key(partition):
                    found.append(read[1])
        return found

    def forget_topic(self) -> None:
        """Let the coordinator find the topic gone before it is told to drop the states."""
        shards = self.node.broker.share_states.coordinator.runtime.shards()
        assert isinstance(shards, list), shards
        for shard in shards:
            shard.env = replace(shard.env, has_partition=lambda key: False)

    def state_partition(self, partition: int = 0) -> Any:
        """The partition of the state topic that has a share partition's records."""
        coordinator = self.node.broker.share_states.coordinator
        number = coordinator.partition_of(coordinator_key(self.key(partition)))
        return self.node.broker.partitions[STATE_TOPIC, number]

    def restarted(self, **more: str) -> Sharing:
        """The node again, over what its disk has."""
        self.stop()
        return Sharing(self.store, now_ms=self.now_ms, **more)


@contextmanager
def unreadable_state() -> Iterator[None]:
    """Let no coordinator read its log, so that it stays loading."""
    with patch.object(BrokerCoordinatorLog, "read", lambda *_: None):
        yield


@contextmanager
def refused_appends(error: ErrorCode) -> Iterator[None]:
    """Let the state topic take no records."""
    with patch.object(BrokerCoordinatorLog, "append_for_later", lambda *_: Appended(error)):
        yield


def stored(batches: Sequence[Any]) -> list[Batch]:
    """The state batches of a response."""
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]


def batch(first: int, last: int, state: int, count: int) -> DeliveryStateBatch:
    """A batch as coordinator and persister have it."""
    return DeliveryStateBatch(Offset(first), Offset(last), state, count)
