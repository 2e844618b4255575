"""What a leader looks at again although no log has grown: with time, brokers and settings."""

from collections.abc import Sequence
from typing import Any

import pytest

from kraft_wire.broker.handlers import produce
from kraft_wire.broker.producing.verification import Verifications
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import StorageError
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.delete_records import DeleteRecordsPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.replication.leading import (
    LAG_MAX_MS,
    PRODUCE_VERSION,
    TOPIC,
    Leading,
    Waiting,
    batch,
)
from tests.broker.small_broker import broker_image, partition_image

TWO = partition_image(0, replicas=(1, 2))


def waiting_for_a_joiner() -> tuple[Leading, Waiting]:
    """A record that the ISR, 1 and 2, has, and that waits for 3: about to join, and silent now."""
    leading = Leading(partition_image(0, replicas=(1, 2, 3), isr=(1, 2)))
    leading.produce(acks=1)
    leading.fetch(1)
    leading.fetch(0, replica=3)
    leading.produce(acks=1)
    leading.fetch(2)
    leading.fetch(1, replica=3)  # what there was at its last fetch; less than is committed
    assert leading.asked == []
    waiting = retried(leading)
    leading.fetch(3)
    assert (leading.high_watermark, waiting.is_parked) == (2, True)
    return leading, waiting


def retried(leading: Leading) -> Waiting:
    """One record of an idempotent producer, again and again."""
    return leading.produce(producer_id=7, producer_epoch=0, base_sequence=0, timeout_ms=1 << 30)


def test_what_waits_for_a_joiner_is_committed_when_that_is_fenced() -> None:
    leading, waiting = waiting_for_a_joiner()
    leading.brokers[3] = broker_image(3, fenced=True)
    leading.publish()
    assert (leading.high_watermark, waiting.produced.error_code) == (3, E.NONE)


def test_what_waits_for_a_joiner_is_committed_when_that_is_silent_for_too_long() -> None:
    leading, waiting = waiting_for_a_joiner()
    for _ in range(3):
        leading.pass_time(LAG_MAX_MS // 2)
        leading.fetch(3)
    assert (leading.high_watermark, waiting.produced.error_code) == (3, E.NONE)
    assert leading.asked == []


def test_a_retry_commits_what_the_first_copy_waits_for_as_an_append_would() -> None:
    leading, waiting = waiting_for_a_joiner()
    leading.now_ms += LAG_MAX_MS + 1
    assert retried(leading).produced.base_offset == 2
    assert (leading.high_watermark, waiting.produced.error_code) == (3, E.NONE)


def test_what_waits_for_a_larger_isr_is_committed_when_a_smaller_one_is_enough() -> None:
    small = partition_image(0, replicas=(1, 2), isr=(1,))
    leading = Leading(small, config={"min.insync.replicas": "2"})
    leading.produce(acks=1)
    assert leading.high_watermark == 0
    leading.config["min.insync.replicas"] = "1"
    leading.publish()
    assert leading.high_watermark == 1


@pytest.mark.parametrize("lag_max_ms", [0, 1])
def test_the_shortest_lag_leaves_time_between_two_looks(lag_max_ms: int) -> None:
    leading = Leading(TWO)
    leading.broker.settings = BrokerSettings(replica_lag_time_max_ms=lag_max_ms)
    leading.pass_time(LAG_MAX_MS)
    assert leading.broker.deadline_ms() == leading.now_ms + 1


def deleting(*replicas: int) -> tuple[Leading, Waiting]:
    """A DeleteRecords that waits for follower 2 alone."""
    leading = Leading(partition_image(0, replicas=replicas))
    leading.produce(3, acks=1)
    for replica in replicas[1:]:
        leading.fetch(3, replica=replica)
    waiting = leading.delete_records(2)
    for replica in replicas[2:]:
        leading.fetch(3, replica=replica, log_start_offset=2)
    assert waiting.is_parked
    return leading, waiting


def test_a_deletion_waits_no_more_for_a_broker_that_is_fenced() -> None:
    """KIP-107: the low watermark is that of the replicas that are alive."""
    leading, waiting = deleting(1, 2)
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    assert (waiting.deleted.error_code, waiting.deleted.low_watermark) == (E.NONE, 2)


@pytest.mark.parametrize("left", [(1,), (1, 3)])
def test_a_deletion_waits_no_more_for_a_replica_that_is_taken_away(left: tuple[int, ...]) -> None:
    leading, waiting = deleting(1, 2, 3)
    leading.change(replicas=left, isr=left)
    assert (waiting.deleted.error_code, waiting.deleted.low_watermark) == (E.NONE, 2)


def test_partitions_are_looked_at_again_behind_one_that_is_offline() -> None:
    leading = Leading(TWO, partition_image(1, replicas=(1, 2)))
    leading.produce(3, number=1, acks=1)
    leading.fetch(3, number=1)
    waiting = leading.delete_all([DeleteRecordsPartition(partition_index=1, offset=2)])
    leading.partition(0).offline = True
    assert waiting.is_parked
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    assert (waiting.deleted.error_code, waiting.deleted.low_watermark) == (E.NONE, 2)


def test_a_partition_that_is_gone_is_not_flushed() -> None:
    """Its directory has another name by then, and a failed flush takes the disk out of use."""
    leading = Leading(TWO, config={"flush.messages": "1"})
    leading.produce()
    assert list(leading.broker.replicas.unflushed) == [(TOPIC, 0)]
    leading.partitions.clear()
    leading.publish()
    assert not leading.broker.replicas.unflushed


def test_a_deletion_waits_no_more_for_a_disk_that_has_failed() -> None:
    leading, waiting = deleting(1, 2)
    partition = leading.partition()
    leading.logs.failed_with = [partition.topic_partition]
    partition.failed(StorageError("append", "/t-0", "the disk is gone"))
    assert waiting.deleted.error_code == E.KAFKA_STORAGE_ERROR


def test_an_append_that_takes_the_disk_away_is_told_of_the_partitions_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leading = Leading(TWO, partition_image(1, replicas=(1, 2)))
    lost = [leading.partition(number).topic_partition for number in (0, 1)]
    leading.logs.failed_with = lost
    whole = Log.append

    def append(log: Log, data: Any, batches: Sequence[RecordBatch], *times: int) -> None:
        if log.topic_partition == lost[1]:
            raise StorageError("append", "/t-1", "the disk is gone")
        whole(log, data, batches, *times)

    monkeypatch.setattr(Log, "append", append)
    asked = [PartitionProduceData(index=each, records=memoryview(batch())) for each in (0, 1)]
    topics = [TopicProduceData(name=TOPIC, partition_data=asked)]
    request = ProduceRequest(acks=-1, timeout_ms=1_500, topic_data=topics)
    context = leading.context(PRODUCE_VERSION)
    answer = Waiting(leading, context, produce.handle(leading.broker, context, request)).answer
    assert isinstance(answer, ProduceResponse), answer
    first, second = answer.responses[0].partition_responses
    assert (first.error_code, first.base_offset) == (E.KAFKA_STORAGE_ERROR, 0)
    assert (second.error_code, second.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)


def test_transactions_are_verified_anew_under_another_leader_epoch_alone() -> None:
    """Another leader may have appended since, with a marker that this one has not verified."""
    leading = Leading(TWO)
    known = leading.partition().verifications = Verifications()
    leading.change(isr=(1,))
    assert leading.partition().verifications is known
    leading.change(leader_epoch=1)
    assert leading.partition().verifications is None
