"""What a leader with followers commits, and whom it tells: KIP-497, KIP-841, KIP-966."""

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.replication.leading import LAG_MAX_MS, TOPIC, Leading
from tests.broker.small_broker import broker_image, partition_image

THREE = partition_image(0, replicas=(1, 2, 3))
TWO = partition_image(0, replicas=(1, 2))


def test_records_are_committed_when_the_slowest_member_of_the_isr_has_them() -> None:
    leading = Leading(THREE)
    leading.produce(3)
    waiting = leading.produce()
    leading.fetch(4, replica=2)
    assert (leading.high_watermark, waiting.is_parked) == (0, True)
    leading.fetch(3, replica=3)
    assert (leading.high_watermark, waiting.is_parked) == (3, True)
    leading.fetch(4, replica=3)
    assert leading.high_watermark == 4
    assert (waiting.produced.error_code, waiting.produced.base_offset) == (E.NONE, 3)


def test_acks_of_one_do_not_wait_for_followers() -> None:
    leading = Leading(TWO)
    assert leading.produce(acks=1).produced.error_code == E.NONE
    assert leading.high_watermark == 0


def test_a_follower_outside_the_isr_commits_nothing_and_delays_nothing() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2, 3), isr=(1, 2)))
    waiting = leading.produce(2)
    leading.fetch(2, replica=2)
    assert not waiting.is_parked
    assert leading.high_watermark == 2


def test_a_new_leader_commits_from_the_checkpoint_on_and_only_what_it_has_heard() -> None:
    leading = Leading(TWO, written={0: 5}, high_watermarks={0: 3})
    assert leading.high_watermark == 3
    leading.fetch(4)
    assert leading.high_watermark == 4
    leading.change(leader_epoch=1)
    waiting = leading.produce(2)
    assert (leading.high_watermark, waiting.is_parked) == (4, True)
    leading.fetch(2)
    assert leading.high_watermark == 4
    leading.fetch(7)
    assert leading.high_watermark == 7


def test_what_a_follower_said_under_an_earlier_epoch_commits_nothing() -> None:
    """It may have followed another leader since then, and cut its log."""
    leading = Leading(THREE)
    leading.produce()
    leading.produce(3)
    leading.fetch(4, replica=2)
    leading.change(leader_epoch=2)
    leading.fetch(4, replica=3)
    assert leading.high_watermark == 0
    leading.fetch(1, replica=2)
    assert leading.high_watermark == 1


def test_a_leader_that_is_the_only_replica_commits_all_that_is_there() -> None:
    leading = Leading(partition_image(0), written={0: 5}, high_watermarks={0: 3})
    assert leading.high_watermark == 5
    assert leading.partition().leadership is None


def test_the_isrs_only_member_commits_alone() -> None:
    alone = partition_image(0, replicas=(1, 2), isr=(1,))
    leading = Leading(alone, written={0: 5}, high_watermarks={0: 3})
    assert leading.high_watermark == 5
    assert not leading.produce(2).is_parked


def test_a_follower_about_to_join_is_waited_for_or_it_would_never_get_there() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2), isr=(1,)), written={0: 5})
    leading.controller.asked.clear()
    leading.fetch(5)
    leading.answer(E.INELIGIBLE_REPLICA)  # for now
    waiting = leading.produce()
    assert waiting.is_parked
    leading.fetch(6)
    assert not waiting.is_parked


def test_one_that_may_not_join_is_not_waited_for() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2), isr=(1,)), written={0: 5})
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    leading.fetch(5)
    assert leading.asked == []
    assert not leading.produce().is_parked


def test_below_min_insync_replicas_nothing_is_appended_with_acks_all_nor_committed() -> None:
    small = partition_image(0, replicas=(1, 2, 3), isr=(1,))
    leading = Leading(small, config={"min.insync.replicas": "2"})
    refused = leading.produce().produced
    assert (refused.error_code, refused.base_offset) == (E.NOT_ENOUGH_REPLICAS, -1)
    assert leading.produce(acks=1).produced.error_code == E.NONE
    assert leading.high_watermark == 0
    leading.change(isr=(1, 2))
    leading.fetch(1)
    assert leading.high_watermark == 1


def test_min_insync_replicas_asks_for_no_more_than_there_are() -> None:
    leading = Leading(TWO, config={"min.insync.replicas": "3"})
    waiting = leading.produce()
    leading.fetch(1)
    assert waiting.produced.error_code == E.NONE


def test_what_is_committed_by_too_few_is_told_so() -> None:
    """The ISR became too small after the append, and what was committed before stays."""
    leading = Leading(TWO, config={"min.insync.replicas": "2"})
    waiting = leading.produce()
    leading.partitions[0] = leading.partitions[0]._replace(isr=(1,), partition_epoch=1)
    partition = leading.partition()
    assert partition.leadership is not None
    partition.log.high_watermark = partition.log_end_offset
    leading.publish()
    assert waiting.produced.error_code == E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert waiting.produced.base_offset == 0


def test_a_producer_is_told_that_its_time_is_over_and_where_its_records_are() -> None:
    leading = Leading(TWO)
    leading.produce(acks=1)
    waiting = leading.produce(timeout_ms=1_500)
    leading.pass_time(1_499)
    assert waiting.is_parked
    leading.pass_time(1)
    assert (waiting.produced.error_code, waiting.produced.base_offset) == (E.REQUEST_TIMED_OUT, 1)


def test_a_producer_is_told_that_the_leader_is_another_one_now() -> None:
    leading = Leading(TWO)
    waiting = leading.produce()
    leading.change(leader=2, leader_epoch=1)
    assert waiting.produced.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert waiting.produced.current_leader is not None
    assert waiting.produced.current_leader.leader_id == 2
    assert leading.partition().leadership is None


def test_a_producer_is_told_that_the_topic_is_gone() -> None:
    leading = Leading(TWO)
    waiting = leading.produce()
    leading.partitions.clear()
    leading.publish()
    assert waiting.produced.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_retry_of_what_is_not_committed_waits_as_the_first_copy_did() -> None:
    leading = Leading(TWO)
    first, retry = (
        leading.produce(producer_id=7, producer_epoch=0, base_sequence=0) for _ in range(2)
    )
    assert leading.partition().log_end_offset == 1
    assert retry.is_parked
    leading.fetch(1)
    for each in (first, retry):
        assert (each.produced.error_code, each.produced.base_offset) == (E.NONE, 0)


def test_where_power_loss_must_cost_nothing_the_leader_counts_what_it_has_flushed() -> None:
    leading = Leading(TWO, config={"flush.messages": "1"})
    waiting, one = leading.produce(), leading.produce(acks=1)
    leading.fetch(2)
    assert (leading.high_watermark, waiting.is_parked, one.is_parked) == (0, True, True)
    leading.flush()
    assert leading.high_watermark == 2
    assert (waiting.produced.error_code, one.produced.error_code) == (E.NONE, E.NONE)


def test_what_waits_is_flushed_when_its_topic_begins_to_promise_that() -> None:
    """Else it would wait for the next append: until then nothing counts but what was flushed."""
    leading = Leading(TWO)
    waiting = leading.produce(2)
    leading.config["flush.messages"] = "1"
    leading.publish()
    leading.fetch(2)
    assert (leading.high_watermark, waiting.is_parked) == (0, True)
    leading.flush()
    assert (leading.high_watermark, waiting.produced.error_code) == (2, E.NONE)


def test_a_flush_without_the_follower_acknowledges_acks_of_one_alone() -> None:
    leading = Leading(TWO, config={"flush.messages": "1"})
    waiting, one = leading.produce(), leading.produce(acks=1)
    leading.flush()
    assert (leading.high_watermark, waiting.is_parked) == (0, True)
    assert one.produced.error_code == E.NONE


@pytest.mark.parametrize("has_follower", [False, True])
def test_a_flush_wakes_the_consumers_of_what_it_commits(has_follower: bool) -> None:
    """They wait for no time limit, nor for the next append."""
    alone = partition_image(0)
    leading = Leading(TWO if has_follower else alone, config={"flush.messages": "1"})
    consumer = leading.fetch(0, replica=-1, max_wait_ms=60_000)
    leading.produce()
    if has_follower:
        leading.fetch(1)
    assert consumer.is_parked
    leading.flush()
    assert (consumer.is_parked, leading.high_watermark) == (False, 1)
    assert consumer.fetched.high_watermark == 1


def test_a_replica_that_is_left_alone_commits_no_more_than_it_has_flushed() -> None:
    leading = Leading(TWO, config={"flush.messages": "1"})
    leading.produce(2)
    leading.flush()
    leading.fetch(2)
    waiting = leading.produce()
    leading.change(replicas=(1,), isr=(1,))
    assert (leading.high_watermark, waiting.is_parked) == (2, True)
    leading.flush()
    assert (leading.high_watermark, waiting.produced.error_code) == (3, E.NONE)


def test_a_flush_that_ends_after_the_leadership_commits_nothing() -> None:
    leading = Leading(TWO, config={"flush.messages": "1"})
    leading.produce()
    order = leading.flushing.begin(iter([1]))
    assert order is not None
    leading.change(leader=2, leader_epoch=1)
    assert order.run() is None
    leading.broker.replicas.flushed(leading.flushing.completed(1), leading.now_ms)
    assert leading.high_watermark == 0


@pytest.mark.parametrize("version", [11, 18])
def test_consumers_read_what_is_committed_and_followers_all(version: int) -> None:
    leading = Leading(TWO)
    leading.produce(2)
    consumer = leading.fetch(0, replica=-1, version=version, max_wait_ms=500)
    follower = leading.fetch(0, version=version)
    assert consumer.is_parked
    assert len(bytes(follower.fetched.records.read())) > 0  # type: ignore[union-attr]  # a slice
    assert follower.fetched.high_watermark == 0
    leading.fetch(2, version=version)
    assert consumer.fetched.high_watermark == 2
    assert consumer.fetched.records


def test_a_fetch_is_answered_with_the_high_watermark_from_before_it_counted() -> None:
    """As 4.3.1: the follower hears of what its own fetch committed in the next answer."""
    leading = Leading(TWO)
    leading.produce()
    assert leading.fetch(1).fetched.high_watermark == 0
    assert leading.fetch(1).fetched.high_watermark == 1


def test_a_waiting_follower_is_answered_by_growth_and_not_by_a_commit() -> None:
    leading = Leading(THREE)
    leading.produce(acks=1)
    second = leading.fetch(1, replica=2, max_wait_ms=500)
    leading.fetch(1, replica=3)
    assert leading.high_watermark == 1
    assert second.is_parked
    leading.produce(acks=1)
    assert second.fetched.records


def test_a_partition_gets_a_second_replica_and_loses_it_again() -> None:
    leading = Leading(partition_image(0), written={0: 3})
    assert not leading.produce().is_parked
    leading.change(replicas=(1, 2), adding_replicas=(2,))
    assert not leading.produce().is_parked
    leading.fetch(5)
    leading.answer()
    waiting = leading.produce()
    assert (waiting.is_parked, leading.high_watermark) == (True, 5)
    leading.change(replicas=(1,), isr=(1,), partition_epoch=5)
    assert (waiting.produced.error_code, leading.high_watermark) == (E.NONE, 6)
    assert leading.partition().leadership is None
    assert leading.fetch(6).fetched.error_code == E.UNKNOWN_LEADER_EPOCH


def test_a_replica_that_is_taken_away_is_waited_for_no_more() -> None:
    leading = Leading(THREE)
    waiting = leading.produce()
    leading.fetch(1, replica=2)
    assert waiting.is_parked
    leading.change(replicas=(1, 2), isr=(1, 2))
    assert waiting.produced.error_code == E.NONE
    assert leading.fetch(1, replica=3).fetched.error_code == E.UNKNOWN_LEADER_EPOCH


def test_a_leader_that_becomes_a_follower_and_leads_again_knows_nobody() -> None:
    leading = Leading(TWO)
    leading.produce(acks=1)
    leading.fetch(1)
    leading.change(leader=2, leader_epoch=1)
    assert leading.fetch(1).fetched.error_code == E.NOT_LEADER_OR_FOLLOWER
    leading.change(leader=1, leader_epoch=2)
    waiting = leading.produce()
    assert (waiting.is_parked, leading.high_watermark) == (True, 1)
    leading.fetch(2)
    assert not waiting.is_parked


def test_a_failed_disk_is_told_to_those_who_wait() -> None:
    leading = Leading(TWO)
    waiting = leading.produce()
    partition = leading.partition()
    leading.logs.failed_with = [partition.topic_partition]
    partition.failed(StorageError("append", "/t-0", "the disk is gone"))
    assert waiting.produced.error_code == E.KAFKA_STORAGE_ERROR
    assert leading.fetch(1).fetched.error_code == E.KAFKA_STORAGE_ERROR
    for _ in range(3):
        leading.pass_time(LAG_MAX_MS)
    assert leading.asked == []


def test_a_change_of_one_partition_does_not_touch_the_others_of_its_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each looked-at partition has its parked fetches read their whole sessions again."""
    leading = Leading(*(partition_image(number, replicas=(1, 2)) for number in range(3)))
    taken: list[TopicPartition] = []

    def lead(partition: Partition, *_: object) -> None:
        taken.append(partition.topic_partition)

    monkeypatch.setattr(leading.broker.replicas.leading, "lead", lead)
    leading.change(0, isr=(1,))
    assert taken == [TopicPartition(TOPIC, 0)]
    lost = leading.partition(1)
    leading.logs.failed_with = [lost.topic_partition]
    lost.failed(StorageError("read", "/logs/t-1", "gone"))
    assert lost.leadership is not None
    leading.change(2, isr=(1,))
    assert lost.leadership is None, "one that is lost is looked at"


@pytest.mark.parametrize(("offset", "committed"), [(2, 2), (3, 2), (4, 2), (5, 5), (6, 5), (7, 7)])
def test_a_follower_that_asks_from_inside_a_batch_does_not_have_it(
    offset: int, committed: int
) -> None:
    """`LogSegment.read` of 4.3.1 returns the batch's first offset, which `Partition` counts."""
    leading = Leading(partition_image(0, replicas=(1, 2)))
    for count in (2, 3, 2):
        leading.produce(count, acks=1)
    leading.fetch(offset)
    assert leading.high_watermark == committed
