"""The directories that every change begins with: of a node that was stopped, or killed.

Topic `odd` has a partition for each change, all with the same records: segments of an idempotent
producer, of a committed and of an aborted transaction, records without a producer in a second
leader epoch, and an open transaction. `deleted` has a log start within a segment, and a group has
committed offsets. A segment ends where the times of records jump.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.odd_directories.looking import await_stable
from tests.apache.odd_directories.pair import OURS, ask, copied, node_over, serving
from tests.server.wire_client import WireClient
from tests.waiting import until

__all__ = [
    "DELETED",
    "GROUP",
    "OTHERS",
    "TOPIC",
    "Made",
    "batch",
    "begin",
    "end",
    "make",
    "open_id",
    "produce",
]

TOPIC, DELETED, GROUP = "odd", "deleted", "group"
_HOUR_MS = 3_600_000
_SEGMENT_MS = 1_000_000
OTHERS = 4
"""Partitions of the other topics."""
_BEGIN_S = 15.0


class Made(NamedTuple):
    """What a comparison must know of the directories."""

    stopped: Path
    killed: Path
    partitions: int
    idempotent_id: int
    base_ms: int
    """The time of the first record."""


def make(folder: Path, partitions: int, make: str = OURS) -> Made:
    """Let a make write; return the folders of a stopped and of a killed node."""
    base_ms = int(time.time() * 1000) - 10 * _HOUR_MS
    node = node_over(make, folder / "made")
    node.format()
    with serving(node) as client:
        _create(client, partitions)
        idempotent_id = _write_first(client, partitions, base_ms)
    with serving(node) as client:
        _write_second(client, partitions)
    stopped = copied(folder / "made", folder / "stopped")
    node.start()
    try:
        with WireClient(node.bootstrap) as client:
            _write_third(client, partitions)
    finally:
        node.kill()
    killed = copied(folder / "made", folder / "killed")
    return Made(stopped, killed, partitions, idempotent_id, base_ms)


def _create(client: WireClient, partitions: int) -> None:
    rolling = {"segment.ms": str(_SEGMENT_MS), "index.interval.bytes": "150"}
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in rolling.items()],
        )
        for name, count in ((TOPIC, partitions), (DELETED, OTHERS))
    ]
    answer = ask(client, CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert not any(each.error_code for each in answer.topics), answer


def batch(*values: bytes, at_ms: int, key: bytes | None = None, **more: int) -> bytes:
    """A batch with a record for each value."""
    return bytes(build_batch([Record(key, value, timestamp=at_ms) for value in values], **more))


def open_id(number: int) -> str:
    """Return the transactional id that leaves a transaction open in a partition."""
    return f"open-{number}"


def begin(client: WireClient, transactional_id: str) -> dict[str, int] | None:
    """Take a producer id and an epoch for a transactional id; None if that is not possible."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=12 * _HOUR_MS
    )
    deadline = time.monotonic() + _BEGIN_S
    while time.monotonic() < deadline:
        _find_coordinator(client, transactional_id, 1)
        answer = ask(client, request, 4)
        if not answer.error_code:
            return {
                "producer_id": answer.producer_id,
                "producer_epoch": answer.producer_epoch,
                "base_sequence": 0,
            }
        time.sleep(0.01)
    return None


def _find_coordinator(client: WireClient, key: str, key_type: int) -> None:
    """Have the topic of the coordinators created, if it does not exist."""
    ask(client, FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)


def end(
    client: WireClient, transactional_id: str, producer: dict[str, int], *, commit: bool
) -> int:
    """Commit or abort a transaction; return the error."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer["producer_id"],
        producer_epoch=producer["producer_epoch"],
        committed=commit,
    )
    return int(ask(client, request, 5).error_code)


def produce(
    client: WireClient, topic: str, batches: dict[int, bytes], transactional_id: str | None = None
) -> dict[int, int]:
    """Append a batch to each partition; return the errors."""
    data = [PartitionProduceData(index=n, records=records) for n, records in batches.items()]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    (answer,) = ask(client, request, 12).responses
    return {each.index: each.error_code for each in answer.partition_responses}


def _append(client: WireClient, topic: str, partitions: int, data: bytes) -> None:
    """Append the same batch to all partitions."""
    left = dict.fromkeys(range(partitions), data)

    def all_done() -> bool:
        for partition, error in produce(client, topic, left).items():
            if error == 0:
                del left[partition]
        return not left

    until(all_done, lambda: left.keys())


def _write_first(client: WireClient, partitions: int, base_ms: int) -> int:
    """Write in the first leader epoch; return the idempotent producer's id."""
    producer_id = _producer_id(client)
    for number in range(4):
        more = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 2 * number}
        at_ms = base_ms + number * 1000
        values = (b"first %d" % number, b"second %d" % number)
        _append(client, TOPIC, partitions, batch(*values, at_ms=at_ms, **more))
        _append(client, DELETED, OTHERS, batch(*values, at_ms=at_ms))
    for name, commit in (("committed", True), ("aborted", False)):
        _transaction(client, name, partitions, base_ms + 2 * _HOUR_MS, commit=commit)
    _append(client, DELETED, OTHERS, batch(b"later", at_ms=base_ms + 2 * _HOUR_MS))
    _delete_records(client)
    _commit(client)
    return producer_id


def _write_second(client: WireClient, partitions: int) -> None:
    """Write in the second leader epoch, and leave a transaction open in each partition."""
    for number in range(3):
        at_ms = int(time.time() * 1000)
        _append(client, TOPIC, partitions, batch(b"plain %d" % number, at_ms=at_ms))
    for number in range(partitions):
        name = open_id(number)
        more = begin(client, name)
        assert more is not None, number
        data = batch(b"open", at_ms=int(time.time() * 1000), is_transactional=True, **more)
        errors = produce(client, TOPIC, {number: data}, name)
        assert not errors[number], errors


def _write_third(client: WireClient, partitions: int) -> None:
    """Write what no flush and no checkpoint has covered when the node is killed."""
    for number in range(3):
        at_ms = int(time.time() * 1000)
        _append(client, TOPIC, partitions, batch(b"last %d" % number, at_ms=at_ms))


def _transaction(
    client: WireClient, name: str, partitions: int, at_ms: int, *, commit: bool
) -> None:
    """Write a transaction to all partitions, and end it."""
    producer = begin(client, name)
    assert producer is not None, name
    data = batch(name.encode(), at_ms=at_ms, is_transactional=True, **producer)
    errors = produce(client, TOPIC, dict.fromkeys(range(partitions), data), name)
    assert not any(errors.values()), errors
    assert end(client, name, producer, commit=commit) == 0, name
    await_stable(client, TOPIC, range(partitions))


def _producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answers: list[int] = []

    def has_id() -> bool:
        answer = ask(client, request, 4)
        answers.append(answer.producer_id)
        return not answer.error_code

    until(has_id)
    return answers[-1]


def _delete_records(client: WireClient) -> None:
    partitions = [DeleteRecordsPartition(partition_index=n, offset=3) for n in range(OTHERS)]
    topic = DeleteRecordsTopic(name=DELETED, partitions=partitions)
    answer = ask(client, DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
    assert not any(each.error_code for each in answer.topics[0].partitions), answer


def _commit(client: WireClient) -> None:
    places = [
        OffsetCommitRequestPartition(partition_index=n, committed_offset=n + 1)
        for n in range(OTHERS)
    ]
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=places)
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])

    def is_committed() -> bool:
        _find_coordinator(client, GROUP, 0)
        answer = ask(client, request, 8)
        return not any(each.error_code for each in answer.topics[0].partitions)

    until(is_committed)
