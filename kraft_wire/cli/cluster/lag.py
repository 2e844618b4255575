"""How far replicas outside the ISR are behind their leaders, in offsets.

Both are asked where their log ends by ListOffsets of the debugging replica id, which a follower
answers too. Only unfenced brokers are queried, and only if some replica is not in sync.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["offsets_behind"]

_DEBUGGING_REPLICA_ID: Final = -2
_LATEST: Final = -1

Ends: TypeAlias = dict[TopicPartition, int]


class _Late(NamedTuple):
    """A replica that is not in the ISR."""

    partition: TopicPartition
    leader: int
    replica: int


def offsets_behind(
    metadata: MetadataResponse, addresses: Mapping[int, str], answer_s: float
) -> dict[int, int]:
    """Return how many offsets the late replicas of a broker lack; one that is unknown lacks 0."""
    late = list(_late(metadata, addresses))
    wanted: dict[int, set[TopicPartition]] = {}
    for each in late:
        for node_id in (each.leader, each.replica):
            wanted.setdefault(node_id, set()).add(each.partition)
    ends = {
        node_id: _log_ends(addresses[node_id], sorted(partitions), answer_s)
        for node_id, partitions in wanted.items()
    }
    behind: dict[int, int] = {}
    for each in late:
        own = ends[each.replica].get(each.partition)
        leaders = ends[each.leader].get(each.partition)
        lacks = 0 if own is None or leaders is None else max(leaders - own, 0)
        behind[each.replica] = behind.get(each.replica, 0) + lacks
    return behind


def _late(metadata: MetadataResponse, addresses: Mapping[int, str]) -> Iterator[_Late]:
    alive = {each.node_id for each in metadata.brokers} & addresses.keys()
    for topic in metadata.topics:
        for each in topic.partitions:
            if each.leader_id not in alive:
                continue
            for replica in each.replica_nodes:
                if replica in alive and replica not in each.isr_nodes:
                    key = TopicPartition(topic.name or "", each.partition_index)
                    yield _Late(key, each.leader_id, replica)


def _log_ends(address: str, partitions: list[TopicPartition], answer_s: float) -> Ends:
    """Return where logs end at a broker; nothing if it does not report it."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in partitions:
        asked = ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
        topics.setdefault(topic, []).append(asked)
    request = ListOffsetsRequest(
        replica_id=_DEBUGGING_REPLICA_ID,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    try:
        with BrokerConnection(address, timeout_s=answer_s) as connection:
            answer = connection.send(request, ListOffsetsResponse)
    except (BrokerConnectionError, UnencodableMessage):
        return {}
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code
    }
