"""ShareFetch: what a member gets, when it waits, and what it is refused."""

from typing import Any

import pytest

from kraft_wire.model import FileSlice, StorageError
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import ShareFetchResponse
from tests.broker.replication.leading import TOPIC
from tests.broker.share_fetch.sharing import GROUP, MEMBER, Sharing, key_of
from tests.broker.small_broker import id_of, partition_image

E = ErrorCode
OTHER = "m2"


class Allowing:
    """The authorizer's decisions: topics that may be read."""

    def __init__(self, *topics: str) -> None:
        self.topics = topics

    def share_rights(self, context: object, api_key: int) -> Any:
        return lambda topic: topic in self.topics


def test_errors_in_order() -> None:
    """932-FEAT-03, 932-FETCH-01, 932-FETCH-05, 932-FETCH-09, 932-FETCH-10: whole, then parts."""
    sharing = Sharing(partition_image(0), partition_image(1, leader=2), share_level=0)
    faulty: dict[str, Any] = {"member": "", "group": None, "is_renew_ack": True}
    assert sharing.ask(5, 0, **faulty).error == E.UNSUPPORTED_VERSION
    sharing.share_level = 1
    sharing.publish()
    assert sharing.ask(5, 0, **faulty).error == E.INVALID_REQUEST
    assert sharing.ask(5, 0, member="").error == E.INVALID_REQUEST
    assert sharing.ask(5, 0, member="m" * 37).error == E.INVALID_REQUEST
    assert sharing.ask(5, 0, share_acquire_mode=2).error == E.SHARE_SESSION_NOT_FOUND
    assert sharing.ask(0, 0, share_acquire_mode=2).error == E.UNKNOWN_SERVER_ERROR
    parked = sharing.ask(1, max_wait_ms=500)
    sharing.acknowledge(2, (0, 0, [1]))
    sharing.pass_time(500)
    assert parked.error == E.INVALID_SHARE_SESSION_EPOCH
    sharing.broker.rights = Allowing()
    unknown = sharing.ask(0, 0, topic_id=id_of("nowhere"), member=OTHER)
    assert unknown.parts[0].error_code == E.UNKNOWN_TOPIC_ID
    assert sharing.ask(0, 9).parts[9].error_code == E.TOPIC_AUTHORIZATION_FAILED
    sharing.broker.rights = Allowing(TOPIC)
    assert sharing.ask(0, 9).parts[9].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert sharing.ask(0, 1).parts[1].error_code == E.NOT_LEADER_OR_FOLLOWER
    sharing.partition().offline = True
    assert sharing.ask(0, 0).parts[0].error_code == E.KAFKA_STORAGE_ERROR


def test_leader_elsewhere_is_named_with_its_address() -> None:
    """932-FETCH-09: CurrentLeader and NodeEndpoints."""
    sharing = Sharing(partition_image(0, leader=2, leader_epoch=7, replicas=(1, 2)))
    answer = sharing.ask(0, 0)
    leader = answer.parts[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 7)
    assert [(each.node_id, each.host) for each in answer.response.node_endpoints] == [(2, "host2")]


def test_session_too_many_is_refused_after_its_wait() -> None:
    sharing = Sharing(source=NodeSettings({"group.share.max.share.sessions": "1"}))
    sharing.ask(0, 0)
    waiting = sharing.ask(0, 0, member=OTHER, max_wait_ms=200)
    assert waiting.is_parked
    sharing.pass_time(200)
    assert waiting.error == E.SHARE_SESSION_LIMIT_REACHED
    assert sharing.ask(0, 0, member=OTHER).error == E.SHARE_SESSION_LIMIT_REACHED


@pytest.mark.parametrize("version", [1, 2])
def test_whole_batches_leave_as_a_slice_of_the_log(version: int) -> None:
    """932-FETCH-06, 932-FETCH-07, 932-FETCH-08: from the first acquired one to the last."""
    sharing = Sharing()
    for count in (3, 2, 4):
        sharing.produce(count)
    answer = sharing.ask(0, 0, version=version)
    assert answer.acquired() == [(0, 8, 1)]
    assert answer.batches() == [(0, 2), (3, 4), (5, 8)]
    assert isinstance(answer.parts[0].records, FileSlice)
    assert answer.response.acquisition_lock_timeout_ms == 30_000
    sharing.acknowledge(1, (0, 2, [1]), (3, 4, [2]), (5, 8, [1]))
    again = sharing.ask(2, version=version)
    assert (again.acquired(), again.batches()) == ([(3, 4, 2)], [(3, 4)])


def test_counts_that_differ_are_ranges_of_their_own() -> None:
    """932-FETCH-06, 932-REC-02, 932-REC-05: equal counts are joined; a release keeps its count."""
    sharing = Sharing()
    sharing.produce(6)
    sharing.ask(0, 0)
    sharing.acknowledge(1, (2, 3, [2]))
    sharing.ask(2)
    sharing.acknowledge(3, (0, 5, [2]))
    assert sharing.ask(4).acquired() == [(0, 1, 2), (2, 3, 3), (4, 5, 2)]


def test_records_are_limited_whole_batches_in_mode_0_exactly_in_mode_1() -> None:
    """932-FETCH-04, 932-FETCH-05: the rest of a batch stays available with count 0."""
    sharing = Sharing()
    sharing.produce(10)
    assert sharing.ask(0, 0, max_records=3).acquired() == [(0, 9, 1)]
    sharing.acknowledge(1, (0, 9, [1]))
    sharing.produce(10)
    assert sharing.ask(2, max_records=3, share_acquire_mode=1).acquired() == [(10, 12, 1)]
    other = sharing.ask(0, 0, member=OTHER, max_records=100, share_acquire_mode=1)
    assert other.acquired() == [(13, 19, 1)]


def test_pieces_of_a_fetch_have_locks_of_their_own() -> None:
    """932-FETCH-04: BatchSize cuts at boundaries of log batches."""
    sharing = Sharing()
    for _ in range(4):
        sharing.produce(3)
    assert sharing.ask(0, 0, batch_size=4).acquired() == [(0, 5, 1), (6, 11, 1)]
    assert sharing.ask(0, 0, member=OTHER).acquired() == []


def test_bytes_are_divided_evenly_among_the_partitions() -> None:
    """932-FETCH-04: MaxBytes; the first batch of the answer is whole whatever its size."""
    sharing = Sharing(partition_image(0), partition_image(1))
    sizes = []
    for number in (0, 1):
        for _ in range(4):
            sharing.produce(number=number)
        sizes.append(sharing.partition(number).log.read)
    batch_bytes = 79
    answer = sharing.ask(0, 0, 1, max_bytes=4 * batch_bytes)
    assert [len(answer.batches(number)) for number in (0, 1)] == [2, 2]
    small = sharing.ask(1, max_bytes=1)
    assert sorted(len(small.batches(number)) for number in small.parts) in ([1], [0, 1])


def test_limits_that_are_no_limits() -> None:
    """932-FETCH-04: MaxRecords 0 asks for nothing, MaxBytes below 0 fails each partition."""
    sharing = Sharing()
    sharing.produce(3)
    assert sharing.ask(0, 0, max_records=0, max_wait_ms=500).parts == {}
    assert sharing.ask(1, max_records=-1).acquired() == []
    assert sharing.ask(2, max_bytes=0, max_wait_ms=500).acquired() == []
    assert sharing.ask(3, max_bytes=-1).parts[0].error_code == E.UNKNOWN_SERVER_ERROR
    assert sharing.ask(4, batch_size=0).acquired() == [(0, 2, 1)]


def test_fetch_waits_for_bytes_and_until_its_deadline() -> None:
    """932-FETCH-04, 932-FETCH-11: woken by the high watermark."""
    sharing = Sharing()
    waiting = sharing.ask(0, 0, min_bytes=150, max_wait_ms=1_000)
    sharing.produce()
    assert waiting.is_parked
    sharing.produce()
    assert waiting.acquired() == [(0, 1, 1)]
    late = sharing.ask(1, max_wait_ms=1_000)
    sharing.pass_time(999)
    assert late.is_parked
    sharing.pass_time(1)
    assert late.parts == {}


def test_fetch_is_woken_by_a_release_a_lock_s_end_and_a_load() -> None:
    """932-FETCH-11, 932-REC-03: each offers the records to another member."""
    sharing = Sharing()
    sharing.produce(2)
    sharing.persister.answers_at_once = False
    first = sharing.ask(0, 0, max_wait_ms=9_000)
    assert first.is_parked, "the share partition is loading"
    sharing.persister.answer(sharing.at)
    assert first.acquired() == [(0, 1, 1)]
    sharing.persister.answers_at_once = True
    second = sharing.ask(0, 0, member=OTHER, max_wait_ms=99_000)
    assert second.is_parked
    sharing.acknowledge(1, (0, 1, [2]))
    assert second.acquired() == [(0, 1, 2)]
    third = sharing.ask(2, max_wait_ms=99_000)
    sharing.pass_time(29_999)
    assert third.is_parked
    sharing.pass_time(1)
    assert third.acquired() == [(0, 1, 3)]


def test_fetch_is_woken_by_the_room_that_archived_records_leave() -> None:
    """932-REC-06, 932-FETCH-11: room is there once the write of the lock's end is confirmed."""
    limits = {"share.partition.max.record.locks": "100", "share.delivery.count.limit": "2"}
    sharing = Sharing(group_config=limits)
    for _ in range(3):
        sharing.produce(60)
    assert sharing.ask(0, 0).acquired() == [(0, 119, 1)]
    sharing.acknowledge(1, (0, 119, [2]))
    assert sharing.ask(2).acquired() == [(0, 119, 2)]
    waiting = sharing.ask(0, 0, member=OTHER, max_wait_ms=99_000)
    sharing.persister.answers_at_once = False
    sharing.pass_time(30_000)
    assert waiting.is_parked, "the archived records are still in flight"
    while sharing.persister.waiting:
        sharing.persister.answer(sharing.at)
    assert waiting.acquired() == [(120, 179, 1)]


def test_nothing_waits_for_a_broker_that_stops() -> None:
    """What waits is answered, and what comes late does not wait, so that connections close."""
    limits = {"group.share.max.share.sessions": "1"}
    sharing = Sharing(source=NodeSettings(limits))
    waiting = sharing.ask(0, 0, max_wait_ms=9_000)
    too_many = sharing.ask(0, 0, member=OTHER, max_wait_ms=9_000)
    sharing.broker.stop(sharing.now_ms)
    assert (waiting.error, waiting.acquired()) == (E.NONE, [])
    assert too_many.error == E.SHARE_SESSION_LIMIT_REACHED
    late = sharing.ask(1, max_wait_ms=9_000)
    assert (late.error, late.acquired()) == (E.NONE, [])
    assert sharing.ask(0, 0, member=OTHER, max_wait_ms=9_000).error == too_many.error


def test_as_many_partitions_wait_as_the_setting_allows() -> None:
    """One more is answered at once: what waits takes memory."""
    sharing = Sharing(partition_image(0), partition_image(1), purgatory_max_partitions=2)
    waiting = sharing.ask(0, 0, 1, max_wait_ms=9_000)
    assert waiting.is_parked
    assert sharing.ask(0, 0, member=OTHER, max_wait_ms=9_000).acquired() == []
    assert sharing.broker.fetch_purgatory.partitions_count == 2
    sharing.produce()
    assert waiting.acquired() == [(0, 0, 1)]


def test_lost_connection_releases_the_records_of_its_sessions() -> None:
    """With the next tick, which is due at once."""
    sharing = Sharing()
    sharing.produce(2)
    assert sharing.ask(0, 0, connection=77).acquired() == [(0, 1, 1)]
    waiting = sharing.ask(0, 0, member=OTHER, max_wait_ms=9_000)
    sharing.broker.connection_closed(77)
    assert sharing.broker.deadline_ms() == 0
    sharing.pass_time(1)
    assert waiting.acquired() == [(0, 1, 2)]
    assert sharing.ask(1).error == E.SHARE_SESSION_NOT_FOUND


def test_sessions_of_a_lost_connection_are_gone_before_the_next_request() -> None:
    """Also if that comes before the tick."""
    sharing = Sharing(source=NodeSettings({"group.share.max.share.sessions": "1"}))
    sharing.produce(2)
    assert sharing.ask(0, 0, connection=77).acquired() == [(0, 1, 1)]
    sharing.broker.connection_closed(77)
    assert sharing.ask(0, 0, member=OTHER, connection=78).error == E.NONE
    sharing.broker.connection_closed(78)
    late = sharing.acknowledge(1, (0, 1, [1]), member=OTHER)
    assert late.error == E.SHARE_SESSION_NOT_FOUND


def test_last_session_of_a_group_takes_its_share_partitions_out_of_memory() -> None:
    sharing = Sharing()
    sharing.ask(0, 0, connection=77)
    assert len(sharing.shares) == 1
    sharing.broker.connection_closed(77)
    sharing.pass_time(1)
    assert len(sharing.shares) == 0


def test_acknowledgements_are_done_before_the_fetch() -> None:
    """932-FETCH-03, 932-ACK-12: what is released comes back at once, with its result."""
    sharing = Sharing()
    sharing.produce(4)
    sharing.ask(0, 0)
    answer = sharing.ask(1, acknowledges={0: [(0, 1, [1]), (2, 3, [2])]})
    assert answer.acquired() == [(2, 3, 2)]
    assert answer.parts[0].acknowledge_error_code == E.NONE
    refused = sharing.ask(2, acknowledges={0: [(0, 1, [1]), (9, 9, [1])]})
    assert refused.parts[0].acknowledge_error_code == E.INVALID_REQUEST
    assert (refused.parts[0].acknowledge_error_message or "").startswith("Batch record not found")
    assert refused.acquired() == []


def test_answer_waits_until_its_acknowledgements_are_written() -> None:
    """932-ACK-06: records that were acquired meanwhile leave with it."""
    sharing = Sharing()
    sharing.produce(2)
    sharing.ask(0, 0)
    sharing.produce(1)
    sharing.persister.answers_at_once = False
    waiting = sharing.ask(1, acknowledges={0: [(0, 1, [1])]})
    assert waiting.is_parked
    sharing.persister.answer(sharing.at)
    assert waiting.acquired() == [(2, 2, 1)]
    assert waiting.parts[0].acknowledge_error_code == E.NONE


def test_renewing_fetch_asks_for_nothing_and_gets_no_records() -> None:
    """932-FETCH-12, 932-ACK-10: and its lock begins anew."""
    sharing = Sharing()
    sharing.produce(2)
    sharing.ask(0, 0)
    sharing.produce(1)
    none: dict[str, Any] = dict.fromkeys(
        ("max_bytes", "min_bytes", "max_records", "max_wait_ms"), 0
    )
    renewal = {0: [(0, 1, [4])]}
    sharing.pass_time(20_000)
    for limit in none:
        bad = {**none, limit: 1}
        assert sharing.ask(1, acknowledges=renewal, is_renew_ack=True, **bad).error == 42
    answer = sharing.ask(1, acknowledges=renewal, is_renew_ack=True, **none)
    assert (answer.acquired(), answer.parts[0].acknowledge_error_code) == ([], E.NONE)
    sharing.pass_time(20_000)
    assert sharing.ask(0, 0, member=OTHER).acquired() == [(2, 2, 1)]


def test_last_request_acknowledges_and_releases_the_rest() -> None:
    """Nothing is fetched."""
    sharing = Sharing()
    sharing.produce(4)
    sharing.ask(0, 0)
    answer = sharing.ask(-1, acknowledges={0: [(0, 1, [1])]})
    assert answer.parts[0].acknowledge_error_code == E.NONE
    assert sharing.ask(0, 0, member=OTHER).acquired() == [(2, 3, 2)]
    assert sharing.ask(1).error == E.SHARE_SESSION_NOT_FOUND


def test_any_member_id_may_fetch() -> None:
    """932-FETCH-02: the group coordinator is not asked."""
    sharing = Sharing()
    sharing.produce(1)
    assert sharing.ask(0, 0, member="nobody").acquired() == [(0, 0, 1)]


def test_unknown_partition_is_an_error_of_its_own() -> None:
    """932-FETCH-10: the others are fetched; Kafka fails the whole request for an unknown topic."""
    sharing = Sharing()
    sharing.produce(1)
    answer = sharing.ask(0, 0, 5)
    assert answer.parts[5].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.acquired() == [(0, 0, 1)]
    unknown = sharing.ask(1, 3, topic_id=id_of("nowhere"))
    assert unknown.parts[3].error_code == E.UNKNOWN_TOPIC_ID


class Quota:
    """Throttles answers above a number of bytes."""

    def __init__(self, allowed_bytes: int) -> None:
        self.allowed_bytes = allowed_bytes

    def fetch_bytes_max(self, context: object, bytes_max: int) -> int:
        return bytes_max

    def fetched(self, context: object, size_bytes: int, now_ms: int) -> int:
        return 250 if size_bytes > self.allowed_bytes else 0


def test_throttled_answer_is_empty_although_records_were_acquired() -> None:
    """932-FETCH-13: they wait for the end of their lock."""
    sharing = Sharing()
    sharing.produce(1)
    sharing.broker.fetch_quota = Quota(100)
    answer = sharing.ask(0, 0)
    assert (answer.parts, answer.response.throttle_time_ms) == ({}, 250)
    sharing.broker.fetch_quota = None
    assert sharing.ask(1).acquired() == []
    sharing.pass_time(30_000)
    assert sharing.ask(2).acquired() == [(0, 0, 2)]


def test_first_load_that_fails_is_answered_and_tried_again() -> None:
    """What the share coordinator says becomes an error of the partition."""
    sharing = Sharing(starts=None)
    assert sharing.ask(0, 0).parts[0].error_code == E.UNKNOWN_SERVER_ERROR
    sharing.persister.start(key_of(), 0)
    for error, expected in (
        (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
        (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE),
        (E.FENCED_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
        (E.FENCED_STATE_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
        (E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND),
        (E.UNSUPPORTED_VERSION, E.UNKNOWN_SERVER_ERROR),
    ):
        sharing.persister.next_error = error
        assert sharing.ask(0, 0).parts[0].error_code == expected
    sharing.produce(1)
    assert sharing.ask(0, 0).acquired() == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("reset", "first"),
    [("latest", 4), ("earliest", 0), ("by_duration:PT1H", 2)],
)
def test_new_group_begins_where_its_setting_says(reset: str, first: int) -> None:
    """932-REC-08: latest unless the group says otherwise; nothing is stored before the first
    acknowledgement."""
    config = {} if reset == "latest" else {"share.auto.offset.reset": reset}
    topic_config = {"message.timestamp.after.max.ms": str(1 << 62)}
    sharing = Sharing(starts=-1, group_config=config, config=topic_config)
    hour_ms = 3_600_000
    sharing.produce(2, time_ms=0)
    sharing.produce(2, time_ms=2 * hour_ms)
    sharing.wall_ms = 2 * hour_ms + 5
    sharing.ask(0, 0)
    sharing.produce(1, time_ms=2 * hour_ms)
    sharing.ask(1)
    assert sharing.share().start_offset == first
    assert sharing.persister.writes == []


def test_new_group_does_not_begin_below_what_a_former_leader_has_shown() -> None:
    """932-REC-08: `Partition.fetchOffsetForTimestamp` of 4.3.1 throws OffsetNotAvailable.

    Records 2 and 3 were committed before the election; the new leader does not know that yet.
    """
    sharing = Sharing(
        partition_image(0, replicas=(1, 2)), written={0: 4}, high_watermarks={0: 2}, starts=-1
    )
    assert sharing.ask(0, 0).parts[0].error_code == E.OFFSET_NOT_AVAILABLE
    sharing.fetch(4)
    assert sharing.ask(0, 0).parts[0].error_code == E.NONE
    assert sharing.share().start_offset == 4


def test_new_group_that_begins_by_duration_waits_for_a_record_of_that_age() -> None:
    """932-REC-08: `ShareFetchUtils.offsetForTimestamp` of 4.3.1 throws OffsetNotAvailable."""
    sharing = Sharing(
        starts=-1,
        group_config={"share.auto.offset.reset": "by_duration:PT1H"},
        config={"message.timestamp.after.max.ms": str(1 << 62)},
    )
    sharing.wall_ms = 7_200_000
    sharing.produce(2, time_ms=0)
    assert sharing.ask(0, 0).parts[0].error_code == E.OFFSET_NOT_AVAILABLE
    sharing.produce(1, time_ms=7_200_000)
    assert sharing.ask(0, 0).acquired() == [(2, 2, 1)]


def test_retention_moves_the_start_without_an_error() -> None:
    """932-REC-09: the answer has no records, the next one goes on."""
    sharing = Sharing()
    sharing.produce(3)
    sharing.produce(3)
    sharing.delete_records(4)
    answer = sharing.ask(0, 0)
    assert (answer.parts[0].error_code, answer.acquired()) == (E.NONE, [])
    assert sharing.share().start_offset == 4
    assert sharing.ask(1).acquired() == [(4, 5, 1)]


def test_share_partition_is_dropped_when_the_broker_stops_to_lead() -> None:
    """932-REC-14: the next leader reads the state; what was acquired is available there."""
    sharing = Sharing(partition_image(0, replicas=(1, 2)))
    sharing.partition().log.high_watermark = sharing.partition().log_end_offset
    sharing.ask(0, 0)
    assert len(sharing.shares) == 1
    sharing.change(leader=2, leader_epoch=1)
    assert len(sharing.shares) == 0
    assert sharing.ask(0, 0).parts[0].error_code == E.NOT_LEADER_OR_FOLLOWER
    sharing.change(leader=1, leader_epoch=2)
    sharing.ask(0, 0)
    assert sharing.persister.reads[-1] == (key_of(), 2)


def test_share_partition_is_dropped_with_its_topic() -> None:
    """4.3.1 removes it from its cache in `SharePartitionListener.onDeleted`."""
    sharing = Sharing()
    sharing.produce()
    sharing.ask(0, 0)
    assert len(sharing.shares) == 1
    sharing.partitions.clear()
    sharing.publish()
    assert len(sharing.shares) == 0
    sharing.pass_time(30_000)
    assert sharing.persister.writes == [], "no lock of it ends"


def test_lower_feature_level_drops_sessions_and_share_partitions() -> None:
    """932-FEAT-03: members begin anew when it is raised again."""
    sharing = Sharing()
    sharing.ask(0, 0)
    sharing.share_level = 0
    sharing.publish()
    assert len(sharing.shares) == len(sharing.shares.sessions) == 0
    assert sharing.ask(1).error == E.UNSUPPORTED_VERSION
    sharing.share_level = 1
    sharing.publish()
    assert sharing.ask(1).error == E.SHARE_SESSION_NOT_FOUND


def test_answer_encodes_in_both_versions() -> None:
    for version in (1, 2):
        sharing = Sharing()
        sharing.produce(2)
        answer = sharing.ask(0, 0, version=version).response
        raw = b"".join(
            part.read() if isinstance(part, FileSlice) else bytes(part)
            for part in answer.encode_parts(version)
        )
        decoded, _ = ShareFetchResponse.decode(raw, version)
        assert decoded.responses[0].partitions[0].acquired_records[0].last_offset == 1


def test_session_of_another_member_is_no_reason_to_release() -> None:
    sharing = Sharing()
    sharing.produce(1)
    sharing.ask(0, 0)
    sharing.ask(0, 0, member=OTHER)
    sharing.ask(-1, member=OTHER)
    assert sharing.share().in_flight.first.state_at(0).member_id == MEMBER
    assert sharing.shares.sessions.get(GROUP, MEMBER) is not None


class _Disk:
    """A file that cannot be read any more."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        raise StorageError("pread", "/t-0", "EIO")

    def fileno(self) -> int:
        return -1


class _Replaced:
    """An object of which some attributes are others."""

    def __init__(self, former: object, **others: object) -> None:
        self._former = former
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> object:
        return getattr(self._former, name)


def _refuse(*_: object, **__: object) -> None:
    raise StorageError("read", "/t-0", "EIO")


@pytest.mark.parametrize("is_found", [False, True])
def test_disk_that_cannot_be_read_is_an_error_of_its_partition(is_found: bool) -> None:
    """KAFKA_STORAGE_ERROR beside the records of another partition, and the broker is told.

    The answer does not wait for more, and the other partition gives as many records as wanted.
    """
    sharing = Sharing(partition_image(0), partition_image(1))
    for number in (0, 1):
        sharing.produce(2, number=number)
    partition, failures = sharing.partition(), list[StorageError]()
    usual = partition.log.read

    def read(*arguments: Any, **more: Any) -> Any:
        found = usual(*arguments, **more)
        assert isinstance(found.records, FileSlice)
        records = FileSlice(_Disk(), 0, found.records.size_bytes)
        return _Replaced(found, records=records)

    partition.failed = failures.append
    partition.log = _Replaced(partition.log, read=read if is_found else _refuse)
    limits = {"max_records": 2, "share_acquire_mode": 1, "max_wait_ms": 500}
    answer = sharing.ask(0, 0, 1, min_bytes=1 if is_found else 1 << 20, **limits)
    assert answer.parts[0].error_code == E.KAFKA_STORAGE_ERROR
    assert answer.acquired(0) == []
    assert answer.acquired(1) == [(0, 1, 1)]
    assert len(failures) == 1


def test_disk_that_does_not_say_where_a_new_group_begins_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sharing = Sharing(starts=-1, group_config={"share.auto.offset.reset": "by_duration:PT1H"})
    sharing.produce(1)
    partition, failures = sharing.partition(), list[StorageError]()
    partition.failed = failures.append
    monkeypatch.setattr(type(sharing.broker.logs), "offset_for_timestamp", _refuse)
    assert sharing.ask(0, 0).parts[0].error_code == E.KAFKA_STORAGE_ERROR
    assert len(failures) == 1


def test_topic_that_was_made_again_is_unknown_by_its_former_id() -> None:
    sharing = Sharing()
    assert sharing.shares.leader_error(TOPIC, id_of(TOPIC), 0) == E.NONE
    assert sharing.shares.leader_error(TOPIC, id_of("former"), 0) == E.UNKNOWN_TOPIC_ID
    sharing.partition().offline = True
    assert sharing.shares.leader_error(TOPIC, id_of("former"), 0) == E.UNKNOWN_TOPIC_ID
    assert sharing.shares.leader_error(TOPIC, id_of(TOPIC), 0) == E.KAFKA_STORAGE_ERROR
