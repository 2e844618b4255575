"""Parked requests leave exactly once: by growth, by deadline, by their peer's end, or at a stop."""

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import (
    FetchPurgatory,
    ParkedFetch,
    ParkedProduce,
    ProducePurgatory,
)
from kraft_wire.model import LeaderEpoch, Offset, TopicPartition
from tests.broker.small_broker import NumbersLog, id_of


def a_partition(number: int = 0) -> Partition:
    return Partition("t", id_of("t"), number, NumbersLog({}), LeaderEpoch(0))


class Runs:
    """A fetch that is satisfied once `enough` is set."""

    def __init__(self, connection_id: int, deadline_ms: int, *watched: Partition) -> None:
        self.calls: list[tuple[int, bool]] = []
        self.enough = False
        self.parked = ParkedFetch(ReplyTo(connection_id, 1), deadline_ms, self.run, list(watched))

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
    assert partition.watchers == other.watchers == {}
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


def test_a_produce_is_finished_when_its_last_partition_is_safe() -> None:
    first, second = a_partition(0), a_partition(1)
    finished: list[dict[TopicPartition, Offset]] = []
    purgatory = ProducePurgatory()
    required = {first.topic_partition: Offset(3), second.topic_partition: Offset(1)}
    purgatory.park(ParkedProduce(ReplyTo(1, 1), 500, required, finished.append))
    first.log.high_watermark = Offset(2)
    purgatory.advanced([first])
    second.log.high_watermark = Offset(1)
    purgatory.advanced([second])
    assert finished == []
    first.log.high_watermark = Offset(3)
    purgatory.advanced([first])
    assert finished == [{}]
    assert len(purgatory) == 0


def test_a_produce_that_is_not_safe_in_time_names_what_is_missing() -> None:
    partition = a_partition()
    finished: list[dict[TopicPartition, Offset]] = []
    purgatory = ProducePurgatory()
    required = {partition.topic_partition: Offset(3)}
    purgatory.park(ParkedProduce(ReplyTo(1, 1), 500, required, finished.append))
    assert purgatory.deadline_ms() == 500
    purgatory.expire(499)
    assert finished == []
    purgatory.expire(500)
    assert finished == [{partition.topic_partition: Offset(3)}]
    assert purgatory.deadline_ms() is None


def test_a_produce_of_a_closed_connection_is_forgotten() -> None:
    partition = a_partition()
    purgatory = ProducePurgatory()
    required = {partition.topic_partition: Offset(3)}
    purgatory.park(ParkedProduce(ReplyTo(4, 1), 500, required, lambda unfinished: None))
    purgatory.forget(4)
    assert len(purgatory) == 0
