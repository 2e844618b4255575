"""Metadata logs of a node, written record by record for the tests of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import Uuid
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_record
from kraft_wire.wire.records.record import Record

NODES = [1, 2, 3]
BEGAN_MS = 1_700_000_000_000
SECOND_MS = 1000
"""From one batch to the next."""

ORDERS, GONE, NEVER, AGAIN = (Uuid(bytes([number] * 16)) for number in (1, 2, 3, 4))


def partition(topic_id: Uuid, number: int) -> PartitionRecord:
    """A new partition, led by node 1."""
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=NODES,
        isr=NODES,
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[Uuid(bytes([9] * 16))] * len(NODES),
    )


def change(topic_id: Uuid, number: int, **changed: object) -> PartitionChangeRecord:
    """A change of a partition."""
    return PartitionChangeRecord(partition_id=number, topic_id=topic_id, **changed)


def retention(topic: str) -> ConfigRecord:
    """A setting of a topic."""
    return ConfigRecord(resource_type=2, resource_name=topic, name="retention.ms", value="5")


def batches() -> list[list[Message]]:
    """Two leaders, an unclean one, transactions that ended both ways and one that did not."""
    return [
        [FeatureLevelRecord(name="metadata.version", feature_level=30)],
        [TopicRecord(name="orders", topic_id=ORDERS), *(partition(ORDERS, n) for n in range(4))],
        [retention("orders"), NoOpRecord()],
        [change(ORDERS, 3, isr=[2, 3], leader=2)],
        [BeginTransactionRecord(name="made"), TopicRecord(name="gone", topic_id=GONE)],
        [partition(GONE, 0), retention("gone"), change(ORDERS, 0, isr=[1, 3])],
        [EndTransactionRecord(), change(ORDERS, 1, isr=[1])],
        [BeginTransactionRecord(name="not made"), TopicRecord(name="never", topic_id=NEVER)],
        [change(ORDERS, 2, leader=3), AbortTransactionRecord(reason="why not")],
        [
            change(
                ORDERS,
                1,
                isr=[],
                leader=-1,
                eligible_leader_replicas=[1],
                last_known_elr=[2],
            )
        ],
        [ClearElrRecord(topic_name="")],
        [RemoveTopicRecord(topic_id=GONE), NoOpRecord()],
        [TopicRecord(name="gone", topic_id=AGAIN), partition(AGAIN, 0)],
        [change(ORDERS, 1, isr=[3], leader=3, leader_recovery_state=1)],
        [BeginTransactionRecord(name="open"), change(ORDERS, 0, leader=3)],
    ]


def quorum_level(kraft_version: int) -> list[Record]:
    """The control record of a kraft.version; a static quorum has none."""
    told = KRaftVersionRecord(kraft_version=kraft_version)
    kind = ControlRecordType.KRAFT_VERSION
    return [control_record(kind, told, BEGAN_MS)] if kraft_version else []


def encoded(message: Message) -> bytes:
    """A record's value in its newest version."""
    return encode_record(VersionedRecord(message, message.MAX_VERSION))


def write_metadata_log(
    node: Path,
    cluster_id: str,
    given: Sequence[Sequence[Message]],
    kraft_version: int = 0,
    *,
    began_ms: int = BEGAN_MS,
) -> int:
    """Write a node's directory with these batches behind a LeaderChange; returns the end offset."""
    directory = node / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    write_meta_properties(OsFileSystem(), str(node), MetaProperties(cluster_id, 1, None))
    told = control_record(
        ControlRecordType.LEADER_CHANGE, LeaderChangeMessage(version=0, leader_id=1), began_ms
    )
    head = [told, *quorum_level(kraft_version)]
    data = bytearray(build_batch(head, base_offset=0, partition_leader_epoch=1, is_control=True))
    offset = len(head)
    for at, batch in enumerate(given, 1):
        time = began_ms + at * SECOND_MS
        values = [Record(None, encoded(each), timestamp=time) for each in batch]
        data += build_batch(values, base_offset=offset, partition_leader_epoch=1)
        offset += len(batch)
    (directory / f"{0:020d}.log").write_bytes(data)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    return offset
