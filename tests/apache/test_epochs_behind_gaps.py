"""A compacted log whose epoch lost its first batches is copied, from Apache's leader and from ours.

The judge is the leader's `leader-epoch-checkpoint`. Our follower has its epochs. Apache's takes
an epoch to begin at the first batch that is left (docs/DEVIATIONS.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apache.test_following_apache import APACHE, OURS, QUICK, SECONDS_MAX, TwoBrokers
from tests.server.wire_client import WireClient
from tests.waiting import until

pytestmark = pytest.mark.java

SEGMENT_MS = 1_000
CONFIGS = {
    "cleanup_policy": "compact",
    "segment_ms": str(SEGMENT_MS),
    "min_cleanable_dirty_ratio": "0.0",
    "file_delete_delay_ms": "0",
}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[TwoBrokers]:
    with TwoBrokers(tmp_path, {**QUICK, "log.cleaner.backoff.ms": "100"}).running() as both:
        yield both


def begin_another_epoch(brokers: TwoBrokers, leader: int) -> None:
    """Restart the only replica: it is elected again."""
    before = brokers.partitions("c")[0].leader_epoch
    if leader == APACHE:
        brokers.apache.kill()
        brokers.await_partitions("c", lambda each: each.leader_id < 0)
        brokers.apache.start()
    else:
        brokers.quorum.kill(OURS)
        brokers.quorum.start(OURS)
    brokers.await_partitions(
        "c", lambda each: each.leader_id == leader and each.leader_epoch > before
    )


def add_replica(brokers: TwoBrokers, leader: int, follower: int) -> None:
    wanted = ReassignablePartition(partition_index=0, replicas=[leader, follower])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="c", partitions=[wanted])], timeout_ms=10_000
    )
    with WireClient(brokers.quorum.client(OURS)) as client:
        answer = client.call(request, 0, AlterPartitionReassignmentsResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE, answer
    brokers.await_isr("c", leader, {leader, follower})


def put(brokers: TwoBrokers, *keys: str) -> None:
    """One batch for each key, each acknowledged."""
    producer = brokers.producer()
    for key in keys:
        producer.produce("c", b"value", key.encode(), partition=0)
        assert producer.flush(SECONDS_MAX) == 0


def epochs(brokers: TwoBrokers, broker: int) -> list[str]:
    """The lines of a checkpoint: epoch and start offset."""
    root = brokers.apache.data if broker == APACHE else brokers.quorum.directory / "node-1"
    return (root / "c-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]


@pytest.mark.parametrize("leader", [APACHE, OURS])
def test_an_epoch_begins_where_the_leader_began_it(brokers: TwoBrokers, leader: int) -> None:
    follower = OURS if leader == APACHE else APACHE
    brokers.create("c", [leader], **CONFIGS)
    brokers.await_isr("c", leader, {leader})
    put(brokers, "a", "b")
    begin_another_epoch(brokers, leader)
    put(brokers, "c", "c", "c")
    epoch = brokers.partitions("c")[0].leader_epoch
    assert epochs(brokers, leader)[-1] == f"{epoch} 2"
    time.sleep(1.5 * SEGMENT_MS / 1_000)
    put(brokers, "d")  # rolls the segment, which may be compacted then
    at = 0 if leader == APACHE else 1
    whole = len(brokers.logs("c")[at])
    until(lambda: len(brokers.logs("c")[at]) < whole)
    add_replica(brokers, leader, follower)
    brokers.await_same_logs("c")
    assert epochs(brokers, leader)[-1] == f"{epoch} 2"
    wanted = epochs(brokers, leader) if follower == OURS else ["0 0", f"{epoch} 4"]
    assert epochs(brokers, follower) == wanted
