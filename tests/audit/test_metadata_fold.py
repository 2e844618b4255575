"""The lenient fold of metadata records, kind by kind, and metadata transactions."""

from __future__ import annotations

import pytest

from kraft_wire.audit.metadata_facts import MetadataFacts, MetadataFold
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

ID, OTHER = Uuid(b"t" * 16), Uuid(b"o" * 16)
DISKS = [Uuid(bytes([number] * 16)) for number in (101, 102)]
TOPIC = TopicRecord(name="t", topic_id=ID)
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def folded(*records: Message) -> MetadataFacts:
    fold = MetadataFold()
    fold.take(
        encode_record(VersionedRecord(each, 2 if "Partition" in type(each).__name__ else 0))
        for each in records
    )
    return fold.finish()


def partition(number: int = 0, topic_id: Uuid = ID) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=[1, 2],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=DISKS,
    )


def change(number: int = 0, topic_id: Uuid = ID, **what: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=topic_id, **what)  # type: ignore[arg-type]  # fields of a test


def policy(
    value: str | None, resource: int = 2, name: str = "cleanup.policy", of: str = "t"
) -> ConfigRecord:
    return ConfigRecord(resource_type=resource, resource_name=of, name=name, value=value)


def test_partition_is_known_by_the_name_of_its_topic() -> None:
    facts = folded(TOPIC, partition(), partition(3), partition(topic_id=OTHER), NoOpRecord())
    assert facts.topic_ids == {"t": ID}
    assert list(facts.assignments) == [("t", 0), ("t", 3)]
    known = facts.of("t", 3, 7)
    assert (known.isr, known.leader, known.high_watermark, known.topic_id) == ({"1"}, "1", 7, ID)
    assert facts.assignments["t", 0].directories == DISKS
    gone, metadata = facts.of("u", 0, 7), facts.of("__cluster_metadata", 0, 8)
    assert (gone.isr, gone.leader, gone.high_watermark) == (frozenset(), None, 7)
    assert (metadata.isr, metadata.leader, metadata.high_watermark) == (frozenset(), None, 8)
    assert MetadataFacts().of("u", 0, 7).isr is None


@pytest.mark.parametrize(
    ("what", "replicas", "isr", "leader", "directories"),
    [
        ({}, [1, 2], [1], 1, DISKS),
        ({"isr": [2]}, [1, 2], [2], 1, DISKS),
        ({"replicas": [2, 3]}, [2, 3], [1], 1, DISKS),
        ({"leader": 2}, [1, 2], [1], 2, DISKS),
        ({"leader": -1}, [1, 2], [1], -1, DISKS),
        ({"directories": DISKS[::-1]}, [1, 2], [1], 1, DISKS[::-1]),
    ],
)
def test_change_replaces_what_it_names(
    what: dict[str, object],
    replicas: list[int],
    isr: list[int],
    leader: int,
    directories: list[Uuid],
) -> None:
    facts = folded(TOPIC, partition(), change(**what), change(9, leader=7), change(topic_id=OTHER))
    found = facts.assignments["t", 0]
    assert (found.replicas, found.isr, found.leader) == (replicas, isr, leader)
    assert found.directories == directories
    assert facts.of("t", 0, 1).leader == (None if leader < 0 else str(leader))


def test_topic_that_is_removed_is_forgotten_and_may_come_again() -> None:
    gone = folded(TOPIC, partition(), policy("compact"), RemoveTopicRecord(topic_id=ID))
    assert (gone.assignments, gone.topic_ids, gone.compacted) == ({}, {}, set())
    again = folded(
        TOPIC,
        partition(),
        RemoveTopicRecord(topic_id=ID),
        TopicRecord(name="t", topic_id=OTHER),
        partition(5, OTHER),
        RemoveTopicRecord(topic_id=Uuid(b"x" * 16)),
    )
    assert (again.topic_ids, list(again.assignments)) == ({"t": OTHER}, [("t", 5)])


@pytest.mark.parametrize(
    ("record", "topics", "is_everything"),
    [
        (policy("compact"), {"t"}, False),
        (policy("delete,compact"), {"t"}, False),
        (policy("delete, compact "), {"t"}, False),
        (policy("delete"), set(), False),
        (policy("compacted"), set(), False),
        (policy(None), set(), False),
        (policy("compact", name="log.cleanup.policy"), set(), False),
        (policy("compact", 4), set(), False),
        (policy("compact", 4, "log.cleanup.policy", "1"), set(), True),
        (policy("delete", 4, "log.cleanup.policy", ""), set(), False),
        (policy("compact", 16), set(), False),
    ],
)
def test_compacted_is_what_was_ever_told_to_be(
    record: ConfigRecord, topics: set[str], is_everything: bool
) -> None:
    facts = folded(record, policy("delete"), policy("delete", 4, "log.cleanup.policy", "1"))
    assert (facts.compacted, facts.all_compacted) == (topics, is_everything)
    assert facts.is_compacted("t") == (bool(topics) or is_everything)
    assert facts.is_compacted("u") == is_everything
    assert facts.is_compacted("__consumer_offsets")
    assert facts.is_compacted("__transaction_state")


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([BEGIN, TOPIC, END], ["t"]),
        ([BEGIN, TOPIC, ABORT], []),
        ([BEGIN, TOPIC], []),
        ([TOPIC, BEGIN, RemoveTopicRecord(topic_id=ID), ABORT], ["t"]),
        ([TOPIC, BEGIN, RemoveTopicRecord(topic_id=ID), END], []),
        ([END, TOPIC], ["t"]),
        ([BEGIN, TOPIC, BEGIN, END], []),
        ([BEGIN, END, TOPIC], ["t"]),
        ([BEGIN, TOPIC, ABORT, TOPIC], ["t"]),
    ],
)
def test_transaction_counts_when_it_ends(records: list[Message], names: list[str]) -> None:
    parts = [
        each
        for record in records
        for each in ((record, partition()) if record is TOPIC else (record,))
    ]
    assert list(folded(*parts).topic_ids) == names


ELR, LAST = "eligible_leader_replicas", "last_known_elr"


@pytest.mark.parametrize(
    ("what", "complete"),
    [
        ([change(isr=[2], **{ELR: [1]})], {"1", "2"}),
        ([change(isr=[], leader=-1, **{ELR: [2], LAST: [1]})], {"2"}),
        ([change(isr=[], leader=-1, **{ELR: [], LAST: [1]})], {"1"}),
        ([change(isr=[], **{ELR: [2], LAST: [1]}), change(**{ELR: []})], {"1"}),
        ([change(**{ELR: [2]}), ClearElrRecord(topic_name="t")], {"1"}),
        ([change(**{ELR: [2]}), ClearElrRecord(topic_name="")], {"1"}),
        ([change(**{ELR: [2]}), ClearElrRecord(topic_name="u")], {"1", "2"}),
    ],
)
def test_eligible_replicas_must_be_complete_and_the_last_leader_without_them(
    what: list[Message], complete: set[str]
) -> None:
    """KIP-966: an eligible replica has everything below the high watermark."""
    assert folded(TOPIC, partition(), *what).of("t", 0, 7).isr == complete
