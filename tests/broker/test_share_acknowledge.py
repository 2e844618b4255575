"""ShareAcknowledge: what a member may say about its records, and what becomes of them."""

import pytest

from kraft_wire.broker.share_fetch.record_state import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeResponse
from tests.broker.replication.leading import TOPIC
from tests.broker.share_fetch.sharing import ShareWaiting, Sharing
from tests.broker.small_broker import id_of, partition_image
from tests.broker.test_share_fetch import OTHER, Allowing

E = ErrorCode


def sharing_records(count: int = 4, **settings: object) -> Sharing:
    """The member has acquired the first records; its next epoch is 1."""
    sharing = Sharing(**settings)  # type: ignore[arg-type]  # of Sharing
    sharing.produce(count)
    assert sharing.ask(0, 0).acquired() == [(0, count - 1, 1)]
    return sharing


def test_errors_in_order() -> None:
    sharing = Sharing(share_level=0)
    assert sharing.acknowledge(0, group=None).error == E.UNSUPPORTED_VERSION
    sharing.share_level = 1
    sharing.publish()
    assert sharing.acknowledge(0, group=None).error == E.INVALID_REQUEST
    assert sharing.acknowledge(0, member="").error == E.INVALID_REQUEST
    assert sharing.acknowledge(0).error == E.INVALID_SHARE_SESSION_EPOCH
    assert sharing.acknowledge(3).error == E.SHARE_SESSION_NOT_FOUND
    sharing.ask(0, 0)
    assert sharing.acknowledge(3).error == E.INVALID_SHARE_SESSION_EPOCH


def test_errors_of_a_partition_come_in_order() -> None:
    """932-ACK-13, 932-FETCH-01: topic id, form, right, partition, share partition."""
    sharing = Sharing()
    sharing.ask(0)
    sharing.broker.rights = Allowing()
    bad, good = (5, 3, [1]), (0, 0, [1])
    nowhere = id_of("nowhere")
    assert sharing.acknowledge(1, bad, topic_id=nowhere).result == (E.UNKNOWN_TOPIC_ID, None)
    assert sharing.acknowledge(2, bad, number=9).result == (E.INVALID_REQUEST, None)
    assert sharing.acknowledge(3, good, number=9).result[0] == E.TOPIC_AUTHORIZATION_FAILED
    sharing.broker.rights = Allowing(TOPIC)
    missing = sharing.acknowledge(4, good, number=9).result
    assert missing == (E.UNKNOWN_TOPIC_OR_PARTITION, None)
    text = "This server does not host this topic-partition."
    assert sharing.acknowledge(5, good).result == (E.UNKNOWN_TOPIC_OR_PARTITION, text)


@pytest.mark.parametrize(
    ("kind", "state", "again"),
    [
        (0, ARCHIVED, []),
        (1, ACKNOWLEDGED, []),
        (2, AVAILABLE, [(1, 2, 2)]),
        (3, ARCHIVED, []),
    ],
)
def test_type_is_the_state_that_is_written(
    kind: int, state: int, again: list[tuple[int, int, int]]
) -> None:
    """932-ACK-01, 932-REC-04: gap and reject archive, release makes available."""
    sharing = sharing_records()
    assert sharing.acknowledge(1, (1, 2, [kind])).result == (E.NONE, None)
    ((_, write),) = sharing.persister.writes
    assert {(each.delivery_state, each.delivery_count) for each in write.batches} == {(state, 1)}
    assert sharing.ask(2).acquired() == again


@pytest.mark.parametrize(
    "batches",
    [
        [(3, 2, [1])],
        [(2, 3, [1]), (0, 1, [1])],
        [(0, 3, [])],
        [(0, 3, [1, 1])],
        [(0, 3, [5])],
        [(0, 3, [-1])],
        [(0, 3, [4])],
    ],
)
def test_form_of_batches_is_checked(batches: list[tuple[int, int, list[int]]]) -> None:
    """932-ACK-02, 932-ACK-03, 932-ACK-10: a renewal needs a request that says so."""
    sharing = sharing_records()
    assert sharing.acknowledge(1, *batches).result == (E.INVALID_REQUEST, None)
    assert sharing.persister.writes == []
    assert sharing.acknowledge(2, (0, 1, [1]), (1, 1, [1])).result[0] != E.INVALID_REQUEST


def test_types_may_be_one_for_each_offset() -> None:
    """932-ACK-02, 932-REC-13: the records of a batch part."""
    sharing = sharing_records()
    assert sharing.acknowledge(1, (0, 3, [1, 2, 3, 1])).result == (E.NONE, None)
    assert sharing.share().start_offset == 1
    assert sharing.ask(2).acquired() == [(1, 1, 2)]


def test_renewal_below_version_2_is_no_type() -> None:
    sharing = sharing_records()
    assert sharing.acknowledge(1, (0, 3, [4]), version=1).result[0] == E.INVALID_REQUEST


def test_only_the_holder_may_acknowledge() -> None:
    """932-ACK-04: INVALID_RECORD_STATE for others, and for records that are not acquired."""
    sharing = sharing_records()
    sharing.ask(0, 0, member=OTHER)
    answer = sharing.acknowledge(1, (0, 3, [1]), member=OTHER)
    assert answer.result == (E.INVALID_RECORD_STATE, "Member is not the owner of batch record")
    sharing.acknowledge(1, (0, 1, [2]))
    released = sharing.acknowledge(2, (0, 1, [1])).result
    assert released == (
        E.INVALID_RECORD_STATE,
        "The offset cannot be acknowledged. The offset is not acquired.",
    )


def test_all_batches_of_a_partition_or_none() -> None:
    """932-ACK-05, 932-ACK-09: the last offset is not in flight."""
    sharing = sharing_records()
    result = sharing.acknowledge(1, (0, 1, [1]), (2, 9, [1])).result
    text = "Batch record not found. The last offset in request is past acquired records."
    assert result == (E.INVALID_REQUEST, text)
    assert sharing.persister.writes == []
    assert sharing.acknowledge(2, (0, 3, [1])).result == (E.NONE, None)


def test_answer_leaves_when_the_state_is_durable() -> None:
    """932-ACK-06, 932-REC-07: the start moves then, and the write has the one before."""
    sharing = sharing_records()
    sharing.persister.answers_at_once = False
    waiting = sharing.acknowledge(1, (0, 1, [1]))
    assert waiting.is_parked
    assert sharing.share().start_offset == 0
    ((_, write),) = sharing.persister.writes
    assert (write.start_offset, write.delivery_complete_count) == (0, 2)
    sharing.persister.answer(sharing.at)
    assert waiting.result == (E.NONE, None)
    assert sharing.share().start_offset == 2


def test_failed_write_undoes_the_change() -> None:
    """932-ACK-07: the member has its records still, unless the lock has ended meanwhile."""
    sharing = sharing_records()
    sharing.persister.next_error = E.NOT_COORDINATOR
    assert sharing.acknowledge(1, (0, 3, [1])).result == (E.COORDINATOR_NOT_AVAILABLE, None)
    sharing.persister.next_error = E.NOT_COORDINATOR
    sharing.persister.answers_at_once = False
    waiting = sharing.acknowledge(2, (0, 3, [1]))
    sharing.pass_time(30_000)
    sharing.persister.answer(sharing.at)
    assert waiting.result == (E.COORDINATOR_NOT_AVAILABLE, None)
    assert sharing.ask(3).acquired() == [(0, 3, 2)]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (E.FENCED_STATE_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
        (E.FENCED_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
        (E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND),
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_fenced_write_drops_the_share_partition(given: E, error: E) -> None:
    """The errors of `SharePartitionManager.fencedSharePartitionHandler` of 4.3.1."""
    sharing = sharing_records()
    sharing.persister.next_error = given
    answer = sharing.acknowledge(1, (0, 3, [1]))
    assert answer.result[0] == error
    assert len(sharing.shares) == 0
    sharing.ask(2)
    assert len(sharing.persister.reads) == 2


def test_offsets_below_the_start_are_ignored() -> None:
    """932-ACK-08: an acknowledgement that comes again succeeds."""
    sharing = sharing_records()
    sharing.acknowledge(1, (0, 1, [1]))
    assert sharing.acknowledge(2, (0, 1, [1])).result == (E.NONE, None)
    assert len(sharing.persister.writes) == 1


def test_renewal_restarts_the_lock_and_writes_nothing() -> None:
    """932-ACK-10, 932-ACK-11, 932-ACK-14: state and count stay, and the answer tells the time."""
    sharing = sharing_records()
    sharing.pass_time(20_000)
    renewed = sharing.acknowledge(1, (0, 3, [4]), renews=True)
    assert renewed.result == (E.NONE, None)
    assert isinstance(renewed.answer, ShareAcknowledgeResponse)
    assert renewed.answer.acquisition_lock_timeout_ms == 30_000
    assert sharing.persister.writes == []
    sharing.pass_time(20_000)
    assert sharing.acknowledge(2, (0, 3, [1])).result == (E.NONE, None)


def test_renewal_may_be_off_for_a_group() -> None:
    """932-ACK-10: INVALID_RECORD_STATE with Kafka's text."""
    sharing = sharing_records(group_config={"share.renew.acknowledge.enable": "false"})
    result = sharing.acknowledge(1, (0, 3, [4]), renews=True).result
    text = "Renewing acquisition locks is not enabled for the group."
    assert result == (E.INVALID_RECORD_STATE, text)


def test_limit_of_deliveries_archives() -> None:
    """932-REC-04, 932-REC-03: 2 for this group; one write for each lock."""
    sharing = sharing_records(group_config={"share.delivery.count.limit": "2"})
    sharing.acknowledge(1, (0, 3, [2]))
    assert sharing.ask(2).acquired() == [(0, 3, 2)]
    sharing.pass_time(30_000)
    last = sharing.persister.writes[-1][1].batches
    assert {each.delivery_state for each in last} == {ARCHIVED}
    assert sharing.share().start_offset == 4


def test_limit_of_deliveries_archives_where_a_lock_ends_while_a_write_fails() -> None:
    """932-REC-04: the record was delivered as often as the limit allows."""
    sharing = Sharing(group_config={"share.delivery.count.limit": "2"})
    sharing.produce(1)
    sharing.ask(0, 0)
    sharing.acknowledge(1, (0, 0, [2]))
    assert sharing.ask(2).acquired() == [(0, 0, 2)]
    sharing.persister.next_error = E.COORDINATOR_NOT_AVAILABLE
    sharing.persister.answers_at_once = False
    waiting = sharing.acknowledge(3, (0, 0, [1]))
    sharing.pass_time(30_000)
    while sharing.persister.waiting:
        sharing.persister.answer(sharing.at)
    assert waiting.result[0] == E.COORDINATOR_NOT_AVAILABLE
    sharing.persister.answers_at_once = True
    assert sharing.ask(4).acquired() == []


def test_last_delivery_is_alone_and_those_before_in_halves() -> None:
    """932-REC-12: with the limit of 5, 16 records: 16, 16, 16, then 8, then one."""
    sharing = Sharing()
    sharing.produce(16)
    epoch, counts = 0, []
    for _ in range(5):
        ranges = sharing.ask(epoch, *([] if epoch else [0])).acquired()
        counts.append(sum(last - first + 1 for first, last, _ in ranges))
        first, last = ranges[0][0], ranges[-1][1]
        sharing.acknowledge(epoch + 1, (first, last, [2]))
        epoch += 2
    assert counts == [16, 16, 16, 8, 1]


def test_window_of_records_in_flight_is_limited() -> None:
    """932-REC-06: 100 for this group; a batch may overshoot, a release makes room between."""
    sharing = Sharing(group_config={"share.partition.max.record.locks": "100"})
    for _ in range(3):
        sharing.produce(60)
    assert sharing.ask(0, 0).acquired() == [(0, 119, 1)]
    assert sharing.ask(1).acquired() == []
    sharing.acknowledge(2, (60, 119, [2]))
    assert sharing.ask(3).acquired() == [(60, 119, 2)]


def test_new_leader_takes_over_stored_batches_and_fetches_holes() -> None:
    """932-REC-14, 932-REC-15: counts from the last write; holes were acquired before."""
    sharing = Sharing()
    for _ in range(4):
        sharing.produce(5)
    key = next(iter(sharing.persister.states))
    sharing.persister.start(key, 5, (5, 9, 0, 1), (15, 19, 2, 1))
    assert sharing.ask(0, 0).acquired() == [(5, 9, 2), (10, 14, 1)]
    assert sharing.share().end_offset == 19


def test_unknown_stored_state_fails_the_load() -> None:
    sharing = Sharing()
    key = next(iter(sharing.persister.states))
    sharing.persister.start(key, 0, (0, 1, 9, 1))
    assert sharing.ask(0, 0).parts[0].error_code == E.UNKNOWN_SERVER_ERROR


def test_last_acknowledgement_closes_the_session() -> None:
    """Records that it does not name are released."""
    sharing = sharing_records()
    assert sharing.acknowledge(-1, (0, 1, [1])).result == (E.NONE, None)
    assert sharing.ask(0, 0, member=OTHER).acquired() == [(2, 3, 2)]
    assert sharing.acknowledge(-1, (0, 1, [1])).error == E.SHARE_SESSION_NOT_FOUND


def test_leader_elsewhere_is_named() -> None:
    sharing = Sharing(partition_image(0, replicas=(1, 2)))
    sharing.ask(0, 0)
    sharing.partition().log.high_watermark = sharing.partition().log_end_offset
    sharing.persister.next_error = E.FENCED_LEADER_EPOCH
    _acquire_one(sharing)
    answer = sharing.acknowledge(2, (0, 0, [1]))
    assert answer.result[0] == E.NOT_LEADER_OR_FOLLOWER
    assert isinstance(answer.answer, ShareAcknowledgeResponse)
    data = answer.answer.responses[0].partitions[0]
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 0)
    assert [each.node_id for each in answer.answer.node_endpoints] == [1]


def _acquire_one(sharing: Sharing) -> ShareWaiting:
    sharing.produce(1, acks=1)
    sharing.partition().log.high_watermark = sharing.partition().log_end_offset
    return sharing.ask(1)
