"""Parked requests leave exactly once: by growth, by deadline, by their peer's end, or at a stop."""

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import (
    DelayedFetch,
    DelayedOperation,
    DelayedOperationPurgatory,
    FetchPurgatory,
)
from kraft_wire.model import LeaderEpoch, Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import NumbersLog, id_of


def a_partition(number: int = 0) -> Partition:
    return Partition("t", id_of("t"), number, NumbersLog({}), LeaderEpoch(0))


class Runs:
    """A fetch that is satisfied once `enough` is set."""

    def __init__(self, connection_id: int, deadline_ms: int, *watched: Partition) -> None:
        self.calls: list[tuple[int, bool]] = []
        self.enough = False
        self.parked = DelayedFetch(ReplyTo(connection_id, 1), deadline_ms, self.run, list(watched))

    def run(self, now_ms: int, expired: bool) -> bool:
        self.calls.append((now_ms, expired))
        return self.enough or expired


def test_a_fetch_runs_again_when_a_partition_grows_and_stays_until_it_is_satisfied() -> None:
    partition, other = a_partition(0), a_partition(1)
    purgatory, fetch = FetchPurgatory(), Runs(1, 500, partition, other)
    purgatory.park(fetch.parked)
    purgatory.wake(partition)
    purgatory.wake(other)
    purgatory.run_woken(10)
    assert fetch.calls == [(10, False)]
    assert len(purgatory) == 1
    fetch.enough = True
    purgatory.wake(other)
    purgatory.run_woken(20)
    assert fetch.calls == [(10, False), (20, False)]
    assert len(purgatory) == 0
    assert not purgatory._readers, "nothing is kept of a fetch that was answered"
    purgatory.expire(1_000)
    assert len(fetch.calls) == 2


def test_a_fetch_is_answered_at_its_deadline() -> None:
    purgatory = FetchPurgatory()
    late, early = Runs(1, 500, a_partition()), Runs(2, 100, a_partition())
    purgatory.park(late.parked)
    purgatory.park(early.parked)
    assert purgatory.deadline_ms() == 100
    purgatory.expire(99)
    assert early.calls == []
    purgatory.expire(100)
    assert (early.calls, late.calls) == ([(100, True)], [])
    assert purgatory.deadline_ms() == 500


def test_a_closed_connection_is_forgotten_also_when_it_was_woken() -> None:
    partition = a_partition()
    purgatory, fetch = FetchPurgatory(), Runs(7, 500, partition)
    purgatory.park(fetch.parked)
    purgatory.wake(partition)
    purgatory.forget(7)
    purgatory.run_woken(10)
    purgatory.expire(500)
    assert fetch.calls == []
    assert purgatory.deadline_ms() is None


def test_a_fetch_that_left_is_not_run_although_its_connection_waits_again() -> None:
    """It was woken, then answered at its deadline, and the client has sent its next request."""
    partition = a_partition()
    purgatory = FetchPurgatory()
    former, present = Runs(7, 500, partition), Runs(7, 900, partition)
    purgatory.park(former.parked)
    purgatory.wake(partition)
    purgatory.expire(500)
    purgatory.park(present.parked)
    former.enough = True
    purgatory.run_woken(510)
    assert former.calls == [(500, True)]
    assert len(purgatory) == 1


def test_a_stop_answers_everybody() -> None:
    purgatory = FetchPurgatory()
    fetches = [Runs(number, 500, a_partition()) for number in range(3)]
    for fetch in fetches:
        purgatory.park(fetch.parked)
    purgatory.complete_all(42)
    assert [fetch.calls for fetch in fetches] == [[(42, True)]] * 3
    assert len(purgatory) == 0


def test_far_deadlines_of_answered_fetches_do_not_pile_up() -> None:
    partition = a_partition()
    purgatory = FetchPurgatory()
    for _ in range(10_000):
        fetch = Runs(1, 2**31, partition)
        fetch.enough = True
        purgatory.park(fetch.parked)
        purgatory.wake(partition)
        purgatory.run_woken(0)
    assert len(purgatory._deadlines) < 200


def test_a_follower_is_woken_by_growth_and_a_reader_by_what_is_committed() -> None:
    partition = a_partition()
    purgatory = FetchPurgatory()
    reader, follower = Runs(1, 500, partition), Runs(2, 500, partition)
    follower.parked.is_follower = True
    purgatory.park(reader.parked)
    purgatory.park(follower.parked)
    purgatory.wake_followers(partition)
    purgatory.run_woken(10)
    assert (reader.calls, follower.calls) == ([], [(10, False)])
    purgatory.wake_readers(partition)
    purgatory.run_woken(20)
    assert (reader.calls, follower.calls) == ([(20, False)], [(10, False)])
    purgatory.wake(partition)
    purgatory.run_woken(30)
    assert (len(reader.calls), len(follower.calls)) == (2, 2)
    purgatory.complete_all(40)
    assert not purgatory._readers
    assert not purgatory._followers


Errors = dict[TopicPartition, ErrorCode]


def waits_for(
    required: dict[TopicPartition, Offset], finished: list[Errors], connection_id: int = 1
) -> DelayedOperation:
    """An operation that waits for high watermarks, or for the disk's failure."""

    def outcome(partition: Partition, end_offset: Offset) -> ErrorCode | None:
        if partition.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE if partition.log.high_watermark >= end_offset else None

    return DelayedOperation(ReplyTo(connection_id, 1), 500, required, outcome, finished.append)


def test_an_operation_is_finished_when_its_last_partition_is() -> None:
    first, second = a_partition(0), a_partition(1)
    finished: list[Errors] = []
    purgatory = DelayedOperationPurgatory()
    required = {first.topic_partition: Offset(3), second.topic_partition: Offset(1)}
    purgatory.park(waits_for(required, finished))
    first.log.high_watermark = Offset(2)
    purgatory.check(first)
    second.log.high_watermark = Offset(1)
    purgatory.check(second)
    purgatory.check(second)
    assert finished == []
    first.log.high_watermark = Offset(3)
    purgatory.check(first)
    assert finished == [{}]
    assert len(purgatory) == 0
    purgatory.expire(500)
    assert finished == [{}]


def test_an_operation_names_the_partitions_that_failed_or_were_too_late() -> None:
    partitions = [a_partition(number) for number in range(4)]
    finished: list[Errors] = []
    purgatory = DelayedOperationPurgatory()
    purgatory.park(waits_for({each.topic_partition: Offset(3) for each in partitions}, finished))
    failed, gone, done, late = partitions
    failed.offline = True
    purgatory.check(failed)
    purgatory.fail(gone.topic_partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    done.log.high_watermark = Offset(4)
    purgatory.check(done)
    assert purgatory.deadline_ms() == 500
    purgatory.expire(499)
    assert finished == []
    purgatory.expire(500)
    assert finished == [
        {
            failed.topic_partition: ErrorCode.KAFKA_STORAGE_ERROR,
            gone.topic_partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            late.topic_partition: ErrorCode.REQUEST_TIMED_OUT,
        }
    ]
    assert purgatory.deadline_ms() is None


def test_operations_of_one_partition_end_each_at_its_own_offset() -> None:
    partition = a_partition()
    finished: list[list[Errors]] = [[], []]
    purgatory = DelayedOperationPurgatory()
    for connection_id, end_offset in enumerate((Offset(3), Offset(5))):
        required = {partition.topic_partition: end_offset}
        purgatory.park(waits_for(required, finished[connection_id], connection_id))
    partition.log.high_watermark = Offset(4)
    purgatory.check(partition)
    assert finished == [[{}], []]
    partition.log.high_watermark = Offset(5)
    purgatory.check(partition)
    assert finished == [[{}], [{}]]


def test_an_operation_that_ends_with_another_one_does_not_hold_up_the_rest() -> None:
    """An answer can close a connection that waits for the same partition."""
    partition = a_partition()
    finished: list[list[Errors]] = [[], [], []]
    purgatory = DelayedOperationPurgatory()
    for connection_id in range(3):
        required = {partition.topic_partition: Offset(3)}
        purgatory.park(waits_for(required, finished[connection_id], connection_id))
    first = purgatory._parked[0]

    def finish(errors: Errors) -> None:
        finished[0].append(errors)
        purgatory.forget(1)

    first.finish = finish
    partition.log.high_watermark = Offset(3)
    purgatory.check(partition)
    assert finished == [[{}], [], [{}]]
    assert len(purgatory) == 0


def test_an_operation_of_a_closed_connection_is_forgotten() -> None:
    partition = a_partition()
    finished: list[Errors] = []
    purgatory = DelayedOperationPurgatory()
    purgatory.park(waits_for({partition.topic_partition: Offset(3)}, finished, 4))
    purgatory.forget(4)
    partition.log.high_watermark = Offset(3)
    purgatory.check(partition)
    purgatory.expire(500)
    assert len(purgatory) == 0
    assert finished == []
