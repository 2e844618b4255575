"""When a fetch with `MinBytes` waits, and when Kafka's `DelayedFetch` would answer it at once."""

from typing import Any

import pytest

from kraft_wire.broker.fetching import fetch_run
from kraft_wire.broker.handlers import fetch
from kraft_wire.model import FileSlice
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.message import UnencodableMessage
from tests.broker.replication.leading import TOPIC, Leading, Waiting, batch
from tests.broker.small_broker import partition_image

VERSION = 12
BATCH_BYTES = len(batch())


def asked(leading: Leading, *partitions: int, offset: int = 0, **fields: Any) -> Waiting:
    """Fetch as a consumer that would wait for a minute."""
    wanted = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number in partitions
    ]
    topic = FetchTopic(topic=TOPIC, partitions=wanted)
    request = FetchRequest(max_wait_ms=60_000, topics=[topic], session_epoch=-1, **fields)
    context = leading.context(VERSION)
    return Waiting(leading, context, fetch.handle(leading.broker, context, request))


def size(data: PartitionData) -> int:
    """Bytes of records."""
    records = data.records
    return records.size_bytes if isinstance(records, FileSlice) else len(records or b"")


def partitions(waiting: Waiting) -> list[PartitionData]:
    """The answer for each."""
    assert isinstance(waiting.answer, FetchResponse), waiting.answer
    return waiting.answer.responses[0].partitions


def test_a_fetch_waits_for_no_more_bytes_than_it_takes() -> None:
    """Its MinBytes counts as MaxBytes at most, and as the broker's `fetch.max.bytes`."""
    leading = Leading(partition_image(0))
    for _ in range(5):
        leading.produce()
    own = asked(leading, 0, min_bytes=1_000_000, max_bytes=2 * BATCH_BYTES)
    assert size(own.fetched) == 2 * BATCH_BYTES
    leading = Leading(partition_image(0), fetch_max_bytes=3 * BATCH_BYTES)
    for _ in range(5):
        leading.produce()
    brokers = asked(leading, 0, min_bytes=1_000_000, max_bytes=1 << 20)
    assert size(brokers.fetched) == 3 * BATCH_BYTES


def test_a_batch_that_has_no_room_left_is_no_reason_to_wait() -> None:
    leading = Leading(partition_image(0), partition_image(1))
    leading.produce(number=0)
    leading.produce(20, number=1)
    max_bytes = 2 * BATCH_BYTES
    both = asked(leading, 0, 1, min_bytes=max_bytes, max_bytes=max_bytes)
    assert not both.is_parked
    sizes = [size(data) for data in partitions(both)]
    assert sizes == [BATCH_BYTES, 0]


@pytest.mark.parametrize(("room", "is_parked"), [(20, False), (21, True)])
def test_a_batch_without_room_counts_as_the_room_that_its_partition_has(
    room: int, is_parked: bool
) -> None:
    """`DelayedFetch`: the lesser of what is there and the partition's MaxBytes."""
    leading = Leading(partition_image(0), partition_image(1))
    for number in (0, 1):
        leading.produce(number=number)
    wanted = [
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=20)
        for number in (0, 1)
    ]
    request = FetchRequest(
        max_wait_ms=60_000,
        topics=[FetchTopic(topic=TOPIC, partitions=wanted)],
        session_epoch=-1,
        min_bytes=BATCH_BYTES + room,
        max_bytes=1 << 20,
    )
    context = leading.context(VERSION)
    waiting = Waiting(leading, context, fetch.handle(leading.broker, context, request))
    assert waiting.is_parked == is_parked


@pytest.mark.parametrize("batches", range(1, 7))
def test_partitions_share_the_bytes_of_one_answer(batches: int) -> None:
    """KIP-74: each partition may use what those before it have left, one batch at least."""
    leading = Leading(*(partition_image(number) for number in range(4)))
    for number in range(4):
        for _ in range(2):
            leading.produce(number=number)
    answer = asked(leading, 0, 1, 2, 3, min_bytes=1, max_bytes=batches * BATCH_BYTES)
    sizes = [size(data) for data in partitions(answer)]
    left, expected = batches, []
    for _ in range(4):
        expected.append(min(2, left) * BATCH_BYTES)
        left -= min(2, left)
    assert sizes == expected


def test_what_is_left_of_an_older_segment_is_answered_at_once() -> None:
    """More cannot come to it: the reader would wait its whole time, segment by segment."""
    leading = Leading(partition_image(0), config={"segment.bytes": str(BATCH_BYTES)})
    for _ in range(3):
        leading.produce()
    assert len(leading.partition().log.segments) == 3  # type: ignore[attr-defined]  # a real log
    behind = asked(leading, 0, min_bytes=2 * BATCH_BYTES, max_bytes=1 << 20)
    assert size(behind.fetched) == BATCH_BYTES
    at_the_end = asked(leading, 0, offset=2, min_bytes=2 * BATCH_BYTES, max_bytes=1 << 20)
    assert at_the_end.is_parked
    leading.produce()
    assert size(at_the_end.fetched) == BATCH_BYTES, "it has become an older one"


def test_a_topic_that_is_deleted_ends_the_wait_for_it() -> None:
    leading = Leading(partition_image(0))
    waiting = asked(leading, 0, min_bytes=1, max_bytes=1 << 20)
    assert waiting.is_parked
    leading.partitions = {}
    leading.publish()
    assert waiting.fetched.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_place_that_never_was_ends_no_wait_for_others() -> None:
    leading = Leading(partition_image(0))
    waiting = asked(leading, 0, 7, min_bytes=2 * BATCH_BYTES, max_bytes=1 << 20)
    assert waiting.is_parked
    leading.produce()
    assert waiting.is_parked
    leading.produce()
    assert not waiting.is_parked


def test_a_fetch_that_names_too_much_beside_those_that_wait_is_answered_at_once() -> None:
    """Each takes memory per partition, there or not, for as long as its client likes."""
    leading = Leading(partition_image(0), purgatory_max_partitions=5)
    purgatory = leading.broker.fetch_purgatory
    waiting = asked(leading, 0, 7, 8, min_bytes=1)
    assert waiting.is_parked
    beyond = asked(leading, 0, 7, 8, min_bytes=1)
    assert size(beyond.fetched) == 0
    assert asked(leading, 0, 7, min_bytes=1).is_parked, "there is room for two"
    assert (len(purgatory), purgatory.partitions_count) == (2, 5)
    leading.produce()
    assert not waiting.is_parked
    assert purgatory.partitions_count == 0
    assert asked(leading, 0, 7, 8, offset=1, min_bytes=1).is_parked
    purgatory.forget(leading.context(VERSION).connection_id - 1)
    assert purgatory.partitions_count == 0


class Quota:
    """A quota that measures responses and throttles no client."""

    def fetch_bytes_max(self, context: object, bytes_max: int) -> int:
        return bytes_max

    def fetched(self, context: object, size_bytes: int, now_ms: int) -> int:
        return 0


@pytest.mark.parametrize("version", [11, 12])
def test_an_answer_that_cannot_be_encoded_is_not_measured(version: int) -> None:
    """Each byte of a name that is no UTF-8 is a character of three bytes in the answer.

    Measured when its time was over, the answer ended the process. The node closes the connection.
    """
    leading = Leading(partition_image(0))
    leading.broker.fetch_quota = Quota()
    topics = [
        FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0)]),
        FetchTopic(topic="\ufffd" * 20_000, partitions=[FetchPartition(partition=0)]),
    ]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics, session_epoch=-1)
    context = leading.context(version)
    waiting = Waiting(leading, context, fetch.handle(leading.broker, context, request))
    assert waiting.is_parked
    leading.broker.fetch_purgatory.expire(context.now_ms + 500)
    assert waiting.answer is not None
    with pytest.raises(UnencodableMessage):
        waiting.answer.encode(version)


def test_places_that_never_were_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of 190,000 of them made each produce to the one that is there take half a second."""
    leading = Leading(partition_image(0))
    looks: list[int] = []
    monkeypatch.setattr(
        fetch_run,
        "no_replica_error",
        lambda image, topic, partition: (
            looks.append(partition) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
    )
    waiting = asked(leading, 0, *range(1, 50), min_bytes=3 * BATCH_BYTES)
    for _ in range(2):
        leading.produce()
        assert waiting.is_parked
    assert looks == list(range(1, 50))
    leading.produce()
    assert [data.partition_index for data in partitions(waiting)] == list(range(50))
