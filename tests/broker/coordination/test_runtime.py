"""The coordinator runtime over a topic that is not `__consumer_offsets`: counters with deadlines.

The broker, its partitions and their logs are the real ones; broker 2 is a follower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import BrokerCoordinatorLog, CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.runtime import CoordinatorRuntime
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.coordination.topic import CoordinatorTopic, key_partition
from kraft_wire.model import Uuid
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.memory_records import AnyBatch
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.replication.leading import TOPIC, Leading
from tests.broker.small_broker import image_of, partition_image, publish

COMMIT_TIMEOUT_MS = 700
CLEAN_UP_MS = 60_000
LIFE_MS = 10_000
COUNTER_BYTES = 100


class Expiry(NamedTuple):
    """A counter that nobody counts with is removed."""

    owner_id: str


class CounterShard:
    """Counters by name: a record has the name as its key and the count as its value."""

    def __init__(self, log: ShardLog, memory: MemoryUse) -> None:
        self.log = log
        self.memory = memory
        self.counts: dict[str, int] = {}
        self.answers: list[tuple[str, int | E]] = []
        self.waiting: list[str] = []
        self.timers = Timers[Expiry]()
        self.ignored: dict[str, int] = {}
        self.calls: list[str] = []

    def count(self, name: str, at: ClockReading) -> E:
        """Count one more; the answer is noted once the ISR has it."""
        if name not in self.counts and not self.memory.has_room_for(COUNTER_BYTES):
            return E.POLICY_VIOLATION
        count = self.counts.get(name, 0) + 1
        record = CoordinatorRecord(name.encode(), str(count).encode())
        appended = self.log.append_for_later([record], at)
        if appended.error is not E.NONE:
            return appended.error
        self.put(name, count)
        self.timers.schedule(Expiry(name), at.now_ms + LIFE_MS)
        assert appended.safe_at is not None, "broker 2 does not have it yet"
        self.waiting.append(name)

        def on_committed(error: E, then: ClockReading) -> None:
            if name in self.waiting:
                self.waiting.remove(name)
                self.answers.append((name, count if error is E.NONE else error))

        self.log.await_commit(appended.safe_at, at, on_committed)
        return E.NONE

    def put(self, name: str, count: int) -> None:
        if name not in self.counts:
            self.memory.add(COUNTER_BYTES)
        self.counts[name] = count

    def remove(self, name: str) -> None:
        if self.counts.pop(name, None) is not None:
            self.memory.add(-COUNTER_BYTES)

    # The runtime's calls.

    def replay(self, batch: AnyBatch) -> None:
        assert isinstance(batch, RecordBatch)
        for record in batch.records():
            assert record.key is not None
            name = bytes(record.key).decode()
            if record.value is None:
                self.remove(name)
            elif not bytes(record.value).isdigit():
                self.ignored["no number"] = self.ignored.get("no number", 0) + 1
            else:
                self.put(name, int(bytes(record.value)))

    def loaded(self, at: ClockReading) -> None:
        self.calls.append("loaded")
        for name in self.counts:
            self.timers.schedule(Expiry(name), at.now_ms + LIFE_MS)

    def tick(self, at: ClockReading) -> None:
        while (due := self.timers.pop_due(at.now_ms)) is not None:
            if self.log.append([CoordinatorRecord(due.owner_id.encode(), None)], at) is E.NONE:
                self.remove(due.owner_id)

    def topics_deleted(self, topics: Mapping[Uuid, str], at: ClockReading) -> None:
        self.calls += [f"deleted {name}" for name in topics.values()]

    def clean_up(self, at: ClockReading) -> None:
        self.calls.append(f"clean up at {at.now_ms}")

    def resign(self) -> None:
        self.answers += [(name, E.NOT_COORDINATOR) for name in self.waiting]
        self.waiting = []
        for name in list(self.counts):
            self.remove(name)


class Counting(Leading):
    """Broker 1 leads the counters' partitions, broker 2 follows."""

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(*(partition_image(each, replicas=(1, 2)) for each in range(partitions)))
        topic = CoordinatorTopic(
            name=TOPIC,
            partition_count=lambda: 7,
            commit_timeout_ms=lambda: COMMIT_TIMEOUT_MS,
            clean_up_interval_ms=lambda: CLEAN_UP_MS,
        )
        broker = self.broker
        log = BrokerCoordinatorLog(
            partition=lambda number: broker.partition(TOPIC, number),
            appended=broker.replicas.appended,
            flushed=broker.replicas.flushed,
            compression=Compression.NONE,
        )
        commits = CommitWaits(topic, broker.produce_purgatory, broker.complete, lambda: self.now_ms)
        self.memory = MemoryUse(lambda: 3 * COUNTER_BYTES)
        self.runtime = CoordinatorRuntime(
            1, topic, log, commits, lambda shard_log: CounterShard(shard_log, self.memory)
        )
        broker.followers.append(self.runtime)
        self.runtime.follow(broker.image.topic(TOPIC), self.now_ms)

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, 0)

    def shard(self, name: str = "a") -> CounterShard:
        found = self.runtime.shard_of(name)
        assert isinstance(found, CounterShard), found
        return found

    def follow(self) -> None:
        """Broker 2 has all that there is."""
        for number in self.partitions:
            self.fetch(self.partition(number).log_end_offset, number=number)

    def lead_again(self) -> None:
        """Broker 2 leads for a moment."""
        epoch = self.partitions[0].leader_epoch
        self.change(leader=2, leader_epoch=epoch + 1)
        assert self.runtime.shard_of("a") is E.NOT_COORDINATOR
        self.change(leader=1, leader_epoch=epoch + 2)


def test_an_answer_waits_until_the_isr_has_the_record() -> None:
    counting = Counting()
    shard = counting.shard()
    assert [shard.count(name, counting.at) for name in ("a", "a", "b")] == [E.NONE] * 3
    assert shard.answers == []
    counting.follow()
    assert shard.answers == [("a", 1), ("a", 2), ("b", 1)]


def test_an_answer_waits_as_long_as_the_topic_says() -> None:
    counting = Counting()
    shard = counting.shard()
    shard.count("a", counting.at)
    counting.pass_time(COMMIT_TIMEOUT_MS - 1)
    assert shard.answers == []
    counting.pass_time(1)
    assert shard.answers == [("a", E.COORDINATOR_NOT_AVAILABLE)]


def test_a_coordinator_that_resigns_answers_what_waits_and_returns_its_memory() -> None:
    counting = Counting()
    shard = counting.shard()
    shard.count("a", counting.at)
    assert counting.memory.total_bytes == COUNTER_BYTES
    counting.change(leader=2, leader_epoch=1)
    assert shard.answers == [("a", E.NOT_COORDINATOR)]
    assert (counting.runtime.shard_of("a"), counting.memory.total_bytes) == (E.NOT_COORDINATOR, 0)


def test_a_coordinator_that_leads_on_in_its_epoch_loads_nothing() -> None:
    counting = Counting()
    shard = counting.shard()
    shard.count("a", counting.at)
    counting.change(isr=(1,))
    counting.pass_time(0)
    assert counting.shard() is shard
    assert (shard.calls, shard.counts) == ([], {"a": 1})


def test_a_topic_that_was_made_again_is_another_one_although_its_epochs_are_equal() -> None:
    counting = Counting()
    shard = counting.shard()
    shard.count("a", counting.at)
    topic = counting.broker.image.topic(TOPIC)
    assert topic is not None
    counting.runtime.follow(topic, counting.now_ms)
    assert counting.shard() is shard
    made_again = replace(topic, topic_id=Uuid(b"n" * 16))
    counting.runtime.follow(made_again, counting.now_ms)
    assert shard.answers == [("a", E.NOT_COORDINATOR)]
    assert counting.runtime.shard_of("a") is not shard


def test_a_log_that_cannot_be_read_is_looked_at_again_after_a_second() -> None:
    counting = Counting()
    counting.shard().count("a", counting.at)
    counting.follow()
    counting.partition(0).offline = True
    counting.lead_again()
    began_ms = counting.now_ms
    counting.runtime.tick(began_ms, 0)
    assert counting.runtime.deadline_ms() == began_ms + 1_000
    counting.partition(0).offline = False
    counting.runtime.tick(began_ms + 999, 0)
    assert counting.runtime.shard_of("a") is E.COORDINATOR_LOAD_IN_PROGRESS
    counting.runtime.tick(began_ms + 1_000, 0)
    assert counting.runtime.shard_of("a") is not E.NOT_COORDINATOR
    counting.follow()
    assert counting.shard().counts == {"a": 1}


def test_a_new_coordinator_loads_its_log_to_the_end_and_serves_what_is_committed() -> None:
    counting = Counting()
    for _ in range(3):
        counting.shard().count("a", counting.at)
    counting.lead_again()
    assert counting.runtime.shard_of("a") is E.COORDINATOR_LOAD_IN_PROGRESS
    assert counting.runtime.shards() is E.COORDINATOR_LOAD_IN_PROGRESS
    assert counting.runtime.deadline_ms() == counting.now_ms
    counting.pass_time(0)
    assert counting.runtime.shard_of("a") is E.COORDINATOR_LOAD_IN_PROGRESS, "not committed"
    listed = counting.runtime.shards()
    assert isinstance(listed, list)
    assert [each.counts for each in listed] == [{"a": 3}]
    counting.follow()
    assert (counting.shard().counts, counting.shard().calls) == ({"a": 3}, ["loaded"])


def test_the_commit_of_an_earlier_load_does_not_end_a_later_one() -> None:
    counting = Counting()
    counting.shard().count("a", counting.at)
    for _ in range(2):
        counting.lead_again()
        counting.pass_time(0)
        assert counting.runtime.shard_of("a") is E.COORDINATOR_LOAD_IN_PROGRESS
    counting.follow()
    assert (counting.shard().counts, counting.shard().calls) == ({"a": 1}, ["loaded"])
    assert counting.memory.total_bytes == COUNTER_BYTES


def test_records_that_cannot_be_read_are_counted_by_reason() -> None:
    counting = Counting()
    log = counting.shard().log
    log.append([CoordinatorRecord(b"a", b"many"), CoordinatorRecord(b"b", b"4")], counting.at)
    counting.lead_again()
    counting.pass_time(0)
    counting.follow()
    assert (counting.shard().counts, counting.runtime.ignored) == ({"b": 4}, {"no number": 1})
    counting.lead_again()
    counting.pass_time(0)
    counting.follow()
    assert counting.runtime.ignored == {"no number": 2}, "of all loads"


def test_a_timer_fires_at_its_deadline_and_counts_anew_after_loading() -> None:
    counting = Counting()
    counting.shard().count("a", counting.at)
    counting.pass_time(LIFE_MS - 1)
    assert counting.runtime.deadline_ms() == counting.now_ms + 1
    counting.lead_again()
    counting.pass_time(0)
    counting.follow()
    counting.pass_time(LIFE_MS - 1)
    assert counting.shard().counts == {"a": 1}
    counting.pass_time(1)
    assert (counting.shard().counts, counting.memory.total_bytes) == ({}, 0)


def test_memory_is_bounded_over_all_shards() -> None:
    counting = Counting(partitions=2)
    names = ("a", "b", "c", "d")
    errors = [counting.shard(name).count(name, counting.at) for name in names]
    assert errors == [E.NONE, E.NONE, E.NONE, E.POLICY_VIOLATION]
    shards = counting.runtime.shards()
    assert isinstance(shards, list)
    assert [len(each.counts) > 0 for each in shards] == [True, True]
    assert counting.memory.total_bytes == 3 * COUNTER_BYTES


def test_a_key_belongs_to_one_partition_of_the_topic_and_before_that_of_the_settings() -> None:
    counting = Counting(partitions=2)
    for name in ("a", "b", "some other"):
        assert counting.shard(name).log.partition == key_partition(name, 2)
    counting.runtime.follow(None, counting.now_ms)
    assert counting.runtime.partition_of("hello") == 99_162_322 % 7


def test_shards_clean_up_once_an_interval_which_begins_with_the_first_partition() -> None:
    counting = Counting()
    start_ms = counting.now_ms
    assert counting.runtime.deadline_ms() == start_ms + CLEAN_UP_MS
    for _ in range(2 * CLEAN_UP_MS // 1_000):
        counting.pass_time(1_000)
    expected = [f"clean up at {start_ms + times * CLEAN_UP_MS}" for times in (1, 2)]
    assert counting.shard().calls == expected


def test_a_partition_that_is_led_after_a_pause_is_not_cleaned_up_at_once() -> None:
    counting = Counting()
    counting.change(leader=2, leader_epoch=1)
    assert counting.runtime.deadline_ms() is None, "there is no shard"
    counting.pass_time(3 * CLEAN_UP_MS)
    counting.change(leader=1, leader_epoch=2)
    assert counting.runtime.deadline_ms() == counting.now_ms + CLEAN_UP_MS
    counting.pass_time(0)
    assert counting.shard().calls == []


def test_a_partition_that_is_led_in_addition_does_not_put_off_the_clean_up() -> None:
    counting = Counting(partitions=2)
    counting.change(1, leader=2, leader_epoch=1)
    start_ms = counting.now_ms
    counting.pass_time(CLEAN_UP_MS - 1)
    counting.change(1, leader=1, leader_epoch=2)
    assert counting.runtime.deadline_ms() == start_ms + CLEAN_UP_MS


def test_deleted_topics_are_handed_to_shards_and_the_coordinators_own_is_not() -> None:
    counting = Counting()
    counting.pass_time(0)
    shard = counting.shard()
    own, brokers = list(counting.partitions.values()), list(counting.brokers.values())
    for topics in ({TOPIC: own, "other": []}, {TOPIC: own}):
        publish(counting.broker, image_of(topics, brokers), counting.now_ms)
    assert counting.runtime.deadline_ms() == counting.now_ms
    counting.pass_time(0)
    assert shard.calls == ["deleted other"]
    publish(counting.broker, image_of({}, brokers), counting.now_ms)
    counting.pass_time(0)
    assert (shard.calls, counting.runtime.shard_of("a")) == (["deleted other"], E.NOT_COORDINATOR)


def test_a_topic_that_is_deleted_while_a_partition_loads_is_handed_over_after_loading() -> None:
    counting = Counting()
    counting.shard().count("a", counting.at)
    own, brokers = list(counting.partitions.values()), list(counting.brokers.values())
    publish(counting.broker, image_of({TOPIC: own, "other": []}, brokers), counting.now_ms)
    epoch = counting.partitions[0].leader_epoch
    for leader in (2, 1):
        epoch += 1
        moved = [own[0]._replace(leader=leader, leader_epoch=epoch)]
        counting.partitions[0] = moved[0]
        publish(counting.broker, image_of({TOPIC: moved, "other": []}, brokers), counting.now_ms)
    publish(counting.broker, image_of({TOPIC: moved}, brokers), counting.now_ms)
    counting.pass_time(0)
    counting.follow()
    assert counting.shard().calls == ["loaded", "deleted other"]
