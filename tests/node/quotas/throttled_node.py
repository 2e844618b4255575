"""A whole node with quotas on a simulated disk and clock, and requests of chosen sizes."""

from __future__ import annotations

from typing import Any

from kraft_wire.node.outputs import Peer
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import NodeDoor

ADMINISTRATOR, PRODUCER, CONSUMER = 1, 2, 3
"""Connections."""
TOPIC = "t"
PRODUCE, FETCH = 9, 12


class ThrottledDoor(NodeDoor):
    """One node with a topic of one partition."""

    def __init__(self, **overrides: str) -> None:
        super().__init__(SimFileSystem(), **overrides)
        self.create_topic(TOPIC)

    def set_quota(
        self, key: str, value: float | None, *, user: str | None = "", client: str | None = None
    ) -> None:
        """Set or remove a quota; a user of "" is none, and no client id names the default one."""
        entity = [EntityData(entity_type="user", entity_name=user)] if user != "" else []
        if client != "":
            entity.append(EntityData(entity_type="client-id", entity_name=client))
        op = OpData(key=key, value=value or 0.0, remove=value is None)
        request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])])
        answer = self.send(request, 1, client_id="admin").response
        assert answer.entries[0].error_code == 0, answer

    def produce(
        self, value_bytes: int, *, acks: int = 1, connection: int = PRODUCER
    ) -> tuple[Any, int]:
        """Produce one record; return the answer, and the size of the request."""
        record = Record(None, b"v" * value_bytes, timestamp=WALL_MS)
        records = bytes(build_batch([record]))
        data = TopicProduceData(
            name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)]
        )
        request = ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[data])
        answer = self.send(request, PRODUCE, connection=connection).response
        return answer, frame_size(request, PRODUCE)

    def fetch(
        self, offset: int = 0, *, replica_id: int = -1, connection: int = CONSUMER, **fields: Any
    ) -> Any:
        """Fetch from the topic without a session; return the answer, None while it waits."""
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=fields.get("max_bytes", 1 << 20)
        )
        request = FetchRequest(
            replica_id=replica_id,
            max_wait_ms=fields.pop("max_wait_ms", 0),
            min_bytes=fields.pop("min_bytes", 1),
            session_epoch=fields.pop("session_epoch", -1),
            topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
            **fields,
        )
        return self.send(request, FETCH, connection=connection).response

    def spend(self, connection: int, seconds: float) -> None:
        """Let the newest request of a connection have taken time of the node's thread."""
        charge = self.peer(connection).charge
        assert charge is not None, "no quotas are set"
        charge.spend(seconds, self.now_ms)

    def peer(self, connection: int) -> Peer:
        """Return the node's view of a connection."""
        return self._peers[connection]


def frame_size(request: Message, version: int) -> int:
    """Return the size of a request of the door, without its length."""
    header = RequestHeader(request.API_KEY, version, 7, "client")
    return len(encode_request_header(header)) + len(request.encode(version))
