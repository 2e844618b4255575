"""Throttled replicas that are out of sync wait; others do not, but their bytes count (KIP-73)."""

from __future__ import annotations

from kraft_wire.broker.replication.throttle import ReplicationThrottle
from kraft_wire.model import TopicPartition
from kraft_wire.node.quotas.replication_quota import ReplicationQuota
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse
from tests.broker.replication.followers import (
    BACKOFF_MS,
    Follower,
    asked_names,
    data,
    forgotten_names,
    id_of,
)
from tests.broker.replication.leading import FETCH_VERSION, TOPIC, Leading
from tests.broker.small_broker import partition_image
from tests.storage.making import batch_bytes

IN_SYNC, OUT_OF_SYNC = 2, 3
A, B = ("a", 0), ("b", 0)


def quota(role: str, broker: int, **lists: str) -> ReplicationQuota:
    """A throttle of 1,000 bytes a second."""
    throttle = ReplicationQuota(role, broker, Windows(11, 1_000))
    throttle.set_bound(1_000)
    for topic, partitions in lists.items():
        throttle.throttle(topic, partitions)
    return throttle


def leading(partitions: str) -> tuple[Leading, ReplicationQuota]:
    """A leader of two partitions with 50 records and an exceeded throttle."""
    images = [
        partition_image(number, replicas=(1, IN_SYNC, OUT_OF_SYNC), isr=(1, IN_SYNC))
        for number in (0, 1)
    ]
    leader = Leading(*images, written={0: 50, 1: 50})
    throttle = quota("leader", 1, **{TOPIC: partitions})
    leader.broker.leader_throttle = throttle
    throttle.record(5_000, leader.now_ms)
    return leader, throttle


def test_leader_sends_nothing_to_a_throttled_follower_outside_the_isr() -> None:
    """SEC-QUOTA-20: a member of the ISR gets its records, and so does a partition not listed."""
    leader, throttle = leading("0:1,1:2")
    assert leader.fetch(0, replica=OUT_OF_SYNC).fetched.records == b""
    assert leader.fetch(0, replica=IN_SYNC).fetched.records
    assert leader.fetch(0, replica=OUT_OF_SYNC, number=1).fetched.records
    throttle.set_bound(1 << 40)
    assert leader.fetch(0, replica=OUT_OF_SYNC).fetched.records


def test_throttled_follower_waits_for_its_deadline_and_is_known_to_the_leader() -> None:
    """SEC-QUOTA-20: growth does not wake it; then it is answered without records or an error."""
    leader, _ = leading("*")
    waiting = leader.fetch(50, replica=IN_SYNC, max_wait_ms=500)
    throttled = leader.fetch(40, replica=OUT_OF_SYNC, max_wait_ms=500)
    leader.produce(acks=1)
    assert not waiting.is_parked
    assert throttled.is_parked
    leader.pass_time(500)
    fetched = throttled.fetched
    assert (fetched.records, fetched.error_code) == (b"", 0)
    leadership = leader.partition().leadership
    assert leadership is not None
    assert leadership.followers[OUT_OF_SYNC].log_end_offset == 40


def test_leader_counts_what_members_of_the_isr_get_too() -> None:
    """SEC-QUOTA-20: an answer's size with its throttled partitions alone, as in Kafka."""
    leader, throttle = leading("0:1")
    before = throttle.bytes_per_second(leader.now_ms)
    other = leader.fetch(0, replica=IN_SYNC, number=1)
    empty = FetchResponse(session_id=1)
    counted = throttle.bytes_per_second(leader.now_ms) - before
    assert counted == 4 + len(empty.encode(FETCH_VERSION))
    assert other.fetched.records
    before = throttle.bytes_per_second(leader.now_ms)
    listed = leader.fetch(0, replica=IN_SYNC)
    assert isinstance(listed.answer, FetchResponse)
    parts = listed.answer.encode_parts(FETCH_VERSION)
    sizes = [each.size_bytes if hasattr(each, "size_bytes") else len(each) for each in parts]
    counted = throttle.bytes_per_second(leader.now_ms) - before
    assert counted == 4 + sum(sizes)


def following(throttle: ReplicationThrottle) -> Follower:
    """A follower of the topics a and b, both a record behind the leader."""
    follower = Follower()
    for name in (A, B):
        follower.make(name)
    follower.follow(A, B)
    follower.fetchers.throttle = lambda: throttle
    follower.fetcher.throttle = follower.fetchers.throttle
    assert asked_names(follower.request()) == [A, B]
    records(follower, a=data(batch_bytes(0), high_watermark=2), b=data(high_watermark=2))
    return follower


def records(follower: Follower, **found: object) -> None:
    """Answer the fetch of some topics."""
    follower.answer_with(
        FetchResponse(
            session_id=9,
            responses=[
                FetchableTopicResponse(topic_id=id_of(topic), partitions=[each])  # type: ignore[list-item]  # a PartitionData
                for topic, each in found.items()
            ],
        )
    )


def test_follower_leaves_out_throttled_partitions_while_the_rate_is_exceeded() -> None:
    """SEC-QUOTA-20: others go on; it asks for them again when there is room."""
    throttle = quota("follower", 1, a="0:1")
    follower = following(throttle)
    assert throttle.bytes_per_second(follower.now_ms) == len(batch_bytes(0))
    throttle.record(3_000, follower.now_ms)
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([], [A])
    records(follower)
    follower.now_ms += 1_000
    assert forgotten_names(follower.request()) == []
    records(follower)
    follower.now_ms += 4_000
    assert asked_names(follower.request()) == [A]


def test_follower_in_sync_is_not_throttled() -> None:
    """SEC-QUOTA-20: it has all committed records since its last append."""
    throttle = quota("follower", 1, a="*")
    follower = following(throttle)
    follower.request()
    records(follower, a=data(batch_bytes(1), high_watermark=2))
    throttle.record(3_000, follower.now_ms)
    request = follower.request()
    assert forgotten_names(request) == []
    assert A in follower.remembered


def test_follower_whose_partitions_all_wait_asks_again_after_the_backoff() -> None:
    """SEC-QUOTA-20: the wait has an end even if the throttle is removed meanwhile."""
    throttle = quota("follower", 1, a="*", b="*")
    follower = following(throttle)
    throttle.record(3_000, follower.now_ms)
    assert forgotten_names(follower.request()) == [A, B]
    follower.answer_with(FetchResponse(session_id=9))
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() == follower.now_ms + BACKOFF_MS
    follower.fetcher.throttle = lambda: None
    follower.now_ms += BACKOFF_MS
    assert asked_names(follower.request()) == [A, B]


def test_partition_that_is_forgotten_while_it_waits_does_not_come_back() -> None:
    """SEC-QUOTA-20: it has another leader, or it was deleted."""
    throttle = quota("follower", 1, a="*")
    follower = following(throttle)
    throttle.record(3_000, follower.now_ms)
    follower.request()
    records(follower)
    follower.fetchers.forget(follower.partitions[TopicPartition(*A)])
    throttle.set_bound(None)
    assert asked_names(follower.request()) == []
