"""A follower's incremental session (KIP-227): what it passes over is noted all the same."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.fetching.fetch_run import FetchRun
from kraft_wire.broker.fetching.fetch_session import WantedPartition
from kraft_wire.broker.handlers import fetch
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.broker.replication.leading import LAG_MAX_MS, TOPIC, Leading
from tests.broker.small_broker import broker_image, id_of, partition_image

PARTITIONS = 3


class Session:
    """Broker 2's session with the leader, over all partitions."""

    def __init__(self, leading: Leading, broker_epoch: int = 12) -> None:
        self.leading = leading
        self.broker_epoch = broker_epoch
        self.session_id, self.epoch = 0, 0
        self.fetch(dict.fromkeys(range(PARTITIONS), 0))

    def fetch(self, offsets: dict[int, int] | None = None) -> list[int]:
        """Fetch, listing what changed; return the partitions in the answer."""
        answer = self.asked(offsets)
        assert isinstance(answer, FetchResponse)
        assert answer.error_code == E.NONE
        self.session_id = answer.session_id
        return [each.partition_index for topic in answer.responses for each in topic.partitions]

    def asked(self, offsets: dict[int, int] | None = None, max_wait_ms: int = 0) -> object:
        """Fetch; return what the handler does."""
        asked = [
            FetchPartition(
                partition=number,
                current_leader_epoch=0,
                fetch_offset=offset,
                log_start_offset=0,
                partition_max_bytes=1 << 20,
            )
            for number, offset in (offsets or {}).items()
        ]
        request = FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            replica_state=ReplicaState(replica_id=2, replica_epoch=self.broker_epoch),
            topics=[FetchTopic(topic_id=id_of(TOPIC), partitions=asked)] if asked else [],
        )
        context = self.leading.context(18)
        self.epoch += 1
        return fetch.handle(self.leading.broker, context, request)


def cluster(**more: object) -> Leading:
    return Leading(
        *(partition_image(number, replicas=(1, 2), **more) for number in range(PARTITIONS))
    )


def test_an_idle_session_keeps_its_follower_in_every_isr() -> None:
    leading = cluster()
    session = Session(leading)
    for _ in range(20):
        leading.pass_time(LAG_MAX_MS // 2)
        assert session.fetch() == []
    leading.produce(acks=1)
    leading.pass_time(LAG_MAX_MS // 2)
    assert leading.asked == []
    leading.pass_time(LAG_MAX_MS // 2)
    leading.pass_time(LAG_MAX_MS // 2)
    assert leading.isrs_asked() == [{0: [(1, 11)]}]


def test_a_session_that_ends_keeps_nobody_in_an_isr() -> None:
    leading = cluster()
    Session(leading)
    leading.pass_time(10 * LAG_MAX_MS)
    leading.produce(acks=1)
    leading.pass_time(LAG_MAX_MS // 2)
    assert leading.isrs_asked() == [{0: [(1, 11)]}]


def test_fetch_that_is_woken_reads_no_partition_that_has_not_grown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of thousands of partitions each growth of one concerns that one."""
    leading = cluster()
    session = Session(leading)
    assert session.fetch() == []
    reads: list[int] = []
    read = FetchRun._read_partition

    def noted(run: FetchRun, wanted: WantedPartition, left: int) -> PartitionData:
        reads.append(wanted.partition)
        return read(run, wanted, left)

    monkeypatch.setattr(FetchRun, "_read_partition", noted)
    assert session.asked(max_wait_ms=500) is PARKED
    assert reads == []
    leading.produce(acks=1, number=1)
    leading.broker.fetch_purgatory.run_woken(leading.now_ms)
    assert reads == [1]
    assert len(leading.broker.fetch_purgatory) == 0


class Rights:
    """The authorizer's decision on whether brokers may fetch."""

    def __init__(self, *, may_fetch: bool) -> None:
        self.may_fetch = may_fetch

    def fetch_rights(self, context: object, *, is_follower: bool) -> Callable[[str | None], bool]:
        assert is_follower
        return lambda topic: self.may_fetch


@pytest.mark.parametrize("may_fetch", [True, False])
def test_session_of_a_broker_that_may_not_fetch_any_more_keeps_it_in_no_isr(
    may_fetch: bool,
) -> None:
    """`KafkaApis.handleFetchRequest` of 4.3.1 reads no partition for such a follower."""
    leading = cluster()
    session = Session(leading)
    assert session.fetch() == []
    leading.broker.rights = cast("Any", Rights(may_fetch=may_fetch))
    leading.pass_time(LAG_MAX_MS)
    assert session.fetch() == ([] if may_fetch else [0, 1, 2])
    leading.produce(acks=1)
    leading.pass_time(LAG_MAX_MS // 2)
    assert leading.isrs_asked() == ([] if may_fetch else [{0: [(1, 11)]}])


def test_growth_is_told_and_what_is_fetched_is_committed() -> None:
    leading = cluster()
    session = Session(leading)
    waiting = leading.produce(number=1)
    assert session.fetch() == [1]
    assert waiting.is_parked
    assert session.fetch({1: 1}) == []
    assert waiting.produced.error_code == E.NONE
    # Its own fetch committed that, so the next one hears of it.
    assert session.fetch() == [1]
    assert session.fetch() == []


def test_who_is_outside_the_isr_asks_to_be_let_in_with_each_fetch() -> None:
    leading = cluster(isr=(1,))
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    session = Session(leading)
    session.fetch()
    assert leading.asked == []
    leading.brokers[2] = broker_image(2)
    leading.publish()
    session.fetch()
    assert leading.isrs_asked() == [{0: [(1, 11), (2, 12)]}]
    leading.answer()
    assert leading.isrs_asked() == [{1: [(1, 11), (2, 12)], 2: [(1, 11), (2, 12)]}]


def test_another_life_of_the_broker_in_the_same_session_is_noted() -> None:
    leading = cluster()
    session = Session(leading)
    session.fetch()
    session.broker_epoch = 13
    session.fetch()
    leadership = leading.partition().leadership
    assert leadership is not None
    assert leadership.followers[2].broker_epoch == 13


def test_a_new_leader_epoch_is_told_by_its_error_though_nothing_else_changed() -> None:
    leading = cluster()
    session = Session(leading)
    session.fetch()
    leading.change(2, leader_epoch=1)
    assert session.fetch() == [2]


def test_only_a_broker_s_id_makes_a_session_that_consumers_cannot_have() -> None:
    """As `FetchRequest.isFromFollower` of 4.3.1: -2, which tools claim to be, is no broker."""
    leading = Leading(
        *(partition_image(number, replicas=(1, 2)) for number in range(PARTITIONS)),
        max_incremental_fetch_session_cache_slots=8,
    )

    def begin(replica_id: int) -> bool:
        """Whether a full fetch gets a session."""
        request = FetchRequest(
            session_epoch=0,
            replica_state=ReplicaState(replica_id=replica_id, replica_epoch=12),
            topics=[FetchTopic(topic_id=id_of(TOPIC), partitions=[FetchPartition()])],
        )
        answer = fetch.handle(leading.broker, leading.context(18), request)
        assert isinstance(answer, FetchResponse)
        return answer.session_id != 0

    assert all(begin(-1) for _ in range(8))
    assert not any(begin(-2) for _ in range(8))
    assert begin(2)
