"""One share fetch while it runs: when it is answered, and how it divides its bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.log_batches import size_of
from kraft_wire.broker.share_fetch.session import SessionPartition
from kraft_wire.broker.share_fetch.share_fetch_run import Results, ShareFetchRun, split_bytes
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    NodeEndpoint,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.broker.replication.leading import TOPIC
from tests.broker.share_fetch.sharing import GROUP, MEMBER, TOPIC_ID, Sharing, key_of
from tests.broker.small_broker import partition_image

WALL_MS = 77_000


class Chosen:
    """The source of chance: one number, and whether it was asked for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.asked: list[int] = []

    def below(self, bound: int) -> int:
        self.asked.append(bound)
        return self.number

    def bytes(self, count: int) -> bytes:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("max_bytes", "count", "chosen", "sizes"),
    [
        (9, 3, 0, [3, 3, 3]),
        (10, 3, 1, [3, 4, 3]),
        (11, 3, 2, [3, 3, 5]),
        (5, 3, 0, [3, 1, 1]),
        (2, 3, 2, [1, 0, 1]),
        (1, 3, 1, [0, 1, 0]),
        (7, 1, 0, [7]),
    ],
)
def test_bytes_that_are_left_over_go_to_partitions_at_random(
    max_bytes: int, count: int, chosen: int, sizes: list[int]
) -> None:
    random = Chosen(chosen)
    assert split_bytes(max_bytes, count, random) == sizes
    assert random.asked == ([count] if max_bytes % count else [])


class Run:
    """A fetch of the topic's first partition, and what it was answered."""

    def __init__(self, sharing: Sharing, **fields: int) -> None:
        limits = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(group_id=GROUP, member_id=MEMBER, **{**limits, **fields})
        context = replace(sharing.context(2), wall_ms=WALL_MS)
        self.answers: list[tuple[list[tuple[int, ErrorCode, bool]], ClockReading]] = []
        run = ShareFetchRun(sharing.shares, context, request, self._answered)
        run.begin([SessionPartition(TOPIC_ID, 0, TOPIC, False)], [])

    def _answered(self, results: Results, at: ClockReading) -> None:
        parts = [
            (data.partition_index, ErrorCode(data.error_code), bool(data.acquired_records))
            for _, data in results
        ]
        self.answers.append((parts, at))


def test_answer_has_the_time_of_its_run() -> None:
    """On both clocks: at once, when records come, and at the deadline."""
    sharing = Sharing()
    sharing.produce()
    began_ms = sharing.now_ms
    at_once = Run(sharing, max_wait_ms=500)
    found = [(0, ErrorCode.NONE, True)]
    assert at_once.answers == [(found, ClockReading(began_ms, WALL_MS))]
    woken, late = Run(sharing, max_wait_ms=500), Run(sharing, max_wait_ms=800)
    sharing.pass_time(499)
    sharing.produce()
    sharing.broker.fetch_purgatory.run_woken(sharing.now_ms)
    assert woken.answers == [(found, ClockReading(began_ms + 499, WALL_MS + 499))]
    sharing.pass_time(300)
    assert late.answers == []
    sharing.pass_time(1)
    assert late.answers == [
        ([(0, ErrorCode.NONE, False)], ClockReading(began_ms + 800, WALL_MS + 800))
    ]


@pytest.mark.parametrize(
    ("fields", "is_answered"),
    [
        ({"min_bytes": 79}, True),
        ({"min_bytes": 80}, False),
        ({"min_bytes": 80, "max_bytes": 79}, True),
        ({"min_bytes": 1 << 30, "max_bytes": 80}, False),
    ],
)
def test_answer_leaves_with_the_wanted_bytes_or_as_many_as_it_may_have(
    fields: dict[str, int], is_answered: bool
) -> None:
    sharing = Sharing()
    sharing.produce()
    assert bool(Run(sharing, max_wait_ms=500, **fields).answers) is is_answered


def test_ended_lock_counts_each_of_its_offsets() -> None:
    """`AcquisitionLockTimeoutPerSec`: also of locks that were renewed, and of single records."""
    sharing = Sharing()
    sharing.produce(4)
    sharing.produce(3)
    assert sharing.ask(0, 0, batch_size=1).acquired() == [(0, 3, 1), (4, 6, 1)]
    sharing.pass_time(10_000)
    renewed = sharing.acknowledge(1, (0, 3, [4]), (5, 5, [4]), renews=True)
    assert renewed.result == (ErrorCode.NONE, None)
    sharing.pass_time(19_999)
    assert sharing.share().lock_timeouts_count == 0
    sharing.pass_time(1)
    assert sharing.share().lock_timeouts_count == 2
    sharing.pass_time(10_000)
    assert sharing.share().lock_timeouts_count == 7


def test_partition_whose_start_was_deleted_begins_at_the_log_s() -> None:
    """Without records at first, at once, and beside those of another partition."""
    sharing = Sharing(partition_image(0), partition_image(1))
    sharing.produce(2)
    sharing.produce(1, number=1)
    sharing.delete_records(1)
    limits = {"min_bytes": 1 << 20, "max_records": 1, "share_acquire_mode": 1}
    answer = sharing.ask(0, 0, 1, max_wait_ms=500, **limits)
    assert (answer.acquired(0), answer.acquired(1)) == ([], [(0, 0, 1)])
    assert answer.parts[0].error_code == ErrorCode.NONE
    assert sharing.share().start_offset == 1
    assert sharing.ask(1).acquired() == [(1, 1, 1)]


def test_partition_of_another_broker_is_an_error_of_its_own() -> None:
    """Without a replica here, and one that the topic does not have."""
    sharing = Sharing(partition_image(0), partition_image(1, leader=2, replicas=(2, 3)))
    sharing.produce()
    shares = sharing.shares
    errors = [shares.leader_error(TOPIC, TOPIC_ID, number) for number in (0, 1, 2)]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, unknown]


def test_partition_without_acknowledgements_has_a_result_beside_one_with_some() -> None:
    """As in Kafka; with none at all there are no results."""
    sharing = Sharing(partition_image(0), partition_image(1))
    sharing.produce()
    assert sharing.ask(0, 0, 1).acquired() == [(0, 0, 1)]
    assert sharing.ask(1, 0, 1).parts == {}
    parts = sharing.ask(2, 1, acknowledges={0: [(0, 0, [1])]}).parts
    assert {number: data.acknowledge_error_code for number, data in parts.items()} == {0: 0, 1: 0}


def test_share_partitions_and_sessions_go_when_share_groups_are_switched_off() -> None:
    sharing = Sharing()
    sharing.produce()
    sharing.ask(0, 0)
    assert (len(sharing.shares), len(sharing.shares.sessions)) == (1, 1)
    sharing.share_level = 0
    sharing.partitions[0] = sharing.partitions[0]._replace(leader_epoch=1, partition_epoch=1)
    sharing.publish()
    assert (len(sharing.shares), len(sharing.shares.sessions)) == (0, 0)


class Quota:
    """Notes the sizes of answers."""

    def __init__(self) -> None:
        self.measured: list[tuple[int, int]] = []

    def fetch_bytes_max(self, context: object, bytes_max: int) -> int:
        return bytes_max

    def fetched(self, context: object, size_bytes: int, now_ms: int) -> int:
        self.measured.append((size_bytes, now_ms))
        return 0


def test_quota_counts_the_answer_with_its_length_but_without_acknowledgements() -> None:
    sharing = Sharing()
    sharing.produce(3)
    quota = sharing.broker.fetch_quota = Quota()
    for member in ("a", "b"):
        answer = sharing.ask(0, 0, member=member)
        topics = answer.response.responses
        measured = ShareFetchResponse(responses=topics)
        sizes = map(size_of, measured.encode_parts(2))
        assert quota.measured.pop() == (4 + sum(sizes), sharing.now_ms)


def test_group_without_sessions_takes_no_other_group_along() -> None:
    sharing = Sharing()
    sharing.persister.start(key_of(0, "other"), 0)
    sharing.ask(0, 0, connection=77)
    sharing.ask(0, 0, group="other", connection=78)
    sharing.broker.connection_closed(77)
    sharing.pass_time(1)
    assert [each.key for each in sharing.shares] == [key_of(0, "other")]


def test_share_partition_stays_as_long_as_this_broker_leads_and_reads_it() -> None:
    sharing = Sharing(partition_image(0, replicas=(1, 2)), partition_image(1))
    sharing.ask(0, 0, 1)
    before = list(sharing.shares)
    sharing.change(0, isr=(1,))
    assert list(sharing.shares) == before
    sharing.change(0, leader=2, leader_epoch=1)
    assert list(sharing.shares) == before[1:]
    sharing.partition(1).offline = True
    assert sharing.ask(0, 1).parts[1].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert list(sharing.shares) == []


def test_result_of_an_acknowledgement_is_beside_its_partition_only() -> None:
    sharing = Sharing(partition_image(0), partition_image(1))
    sharing.produce()
    sharing.ask(0, 0, 1)
    sharing.produce(number=1)
    answer = sharing.ask(1, acknowledges={0: [(7, 7, [1])]})
    errors = {number: data.acknowledge_error_code for number, data in answer.parts.items()}
    assert errors == {0: ErrorCode.INVALID_REQUEST, 1: ErrorCode.NONE}
    assert answer.acquired(1) == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("leader", "endpoints"),
    [(2, [NodeEndpoint(node_id=2, host="host2", port=9002, rack=None)]), (7, [])],
)
def test_leader_is_named_with_its_whole_endpoint_if_that_is_known(
    leader: int, endpoints: list[NodeEndpoint]
) -> None:
    led = partition_image(1, leader=leader, leader_epoch=5, replicas=(1, leader))
    sharing = Sharing(partition_image(0), led)
    answer = sharing.ask(0, 0, 1)
    named = answer.parts[1].current_leader
    assert (named.leader_id, named.leader_epoch) == (leader, 5)
    assert answer.response.node_endpoints == endpoints


def test_duration_before_the_first_moment_of_the_clock_begins_with_its_first_record() -> None:
    reset = {"share.auto.offset.reset": "by_duration:PT1H"}
    sharing = Sharing(starts=-1, group_config=reset)
    sharing.produce(time_ms=0)
    sharing.produce(time_ms=5)
    sharing.wall_ms = 9
    assert sharing.ask(0, 0).acquired() == [(0, 1, 1)]
