"""TxnOffsetCommit: offsets that wait for the end of a transaction.

Ids are those of docs/KIPS.md. The log is a real one; the test is the transaction coordinator.
"""

import pytest

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.offsets.table import OffsetKey
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.handlers import delete_groups, offset_delete, txn_offset_commit
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.broker.replication.leading import TOPIC, Waiting
from tests.broker.small_broker import id_of, partition_image
from tests.broker.transactional import (
    GROUP,
    OFFSETS,
    Transactional,
    commit_plain,
    fetched_offsets,
    marked,
    offset_error,
)


@pytest.fixture
def broker() -> Transactional:
    return Transactional()


def shard_of(broker: Transactional) -> GroupShard:
    shard = broker.broker.groups.shard_of(GROUP)
    assert isinstance(shard, GroupShard)
    return shard


def begin(broker: Transactional, offset: int, **fields: int) -> None:
    """Commit the first offset of a transaction."""
    sent = broker.commit_offset(offset, **fields)  # type: ignore[arg-type]  # ids and numbers
    broker.answer()
    assert offset_error(sent) is E.NONE


def end(broker: Transactional, **fields: int | bool) -> None:
    (result,) = marked(broker.mark(topic=OFFSETS, **fields))  # type: ignore[arg-type]  # of a marker
    assert result[3] is E.NONE


@pytest.mark.parametrize(
    ("version", "is_verify_only"), [(0, True), (3, True), (4, True), (5, False)]
)
def test_the_first_commit_of_a_transaction_asks_the_coordinator(
    broker: Transactional, version: int, is_verify_only: bool
) -> None:
    """TXN-GROUP-05: of the group's offsets partition; later ones do not ask."""
    sent = broker.commit_offset(5, version=version)
    assert sent.is_parked
    (question,) = broker.answer()
    assert question.verify_only is is_verify_only
    assert [(each.name, each.partitions) for each in question.topics] == [(OFFSETS, [0])]
    assert offset_error(sent) is E.NONE
    assert offset_error(broker.commit_offset(6, version=version)) is E.NONE


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (3, E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE),
        (4, E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
        (5, E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (3, E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (5, E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH),
        (5, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (5, E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_errors_of_the_transaction_coordinator(
    broker: Transactional, version: int, error: E, expected: E
) -> None:
    """TXN-GROUP-05, TXN-FEAT-08: nothing is written."""
    sent = broker.commit_offset(5, version=version)
    broker.answer(error)
    assert offset_error(sent) is expected
    assert broker.broker.partitions[OFFSETS, 0].log_end_offset == 0


@pytest.mark.parametrize(
    ("version", "expected"),
    [(1, E.COORDINATOR_NOT_AVAILABLE), (2, E.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_a_coordinator_that_cannot_be_reached_is_loading(
    broker: Transactional, version: int, expected: E
) -> None:
    sent = broker.commit_offset(5, version=version)
    assert broker.questions()
    broker.requests.failed(broker.now_ms, 0)
    assert offset_error(sent) is expected


def test_errors_before_any_question(broker: Transactional) -> None:
    """TXN-GROUP-05: first match wins."""
    assert offset_error(broker.commit_offset(5, topic="none")) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert offset_error(broker.commit_offset(5, number=9)) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert offset_error(broker.commit_offset(5, group_id="")) is E.INVALID_GROUP_ID
    end(broker, epoch=3)
    assert offset_error(broker.commit_offset(5, epoch=2)) is E.INVALID_PRODUCER_EPOCH
    broker.offsets_image = partition_image(0, leader=2, replicas=(2, 1), leader_epoch=1)
    broker.publish()
    assert offset_error(broker.commit_offset(5, epoch=4)) is E.NOT_COORDINATOR
    broker.offsets_image = partition_image(0, leader=2, replicas=(2,), leader_epoch=2)
    broker.publish()
    assert offset_error(broker.commit_offset(5, epoch=4)) is E.NOT_COORDINATOR
    broker.offsets_image = None
    broker.publish()
    assert offset_error(broker.commit_offset(5, epoch=4)) is E.COORDINATOR_NOT_AVAILABLE


def test_a_marker_in_between_voids_the_answer(broker: Transactional) -> None:
    """TXN-PROD-11: the guard is the offsets partition's."""
    sent = broker.commit_offset(5, version=4)
    question = broker.questions()
    end(broker, is_commit=False)
    broker.respond(question)
    assert offset_error(sent) is E.INVALID_TXN_STATE


def test_offsets_are_invisible_until_the_commit_marker(broker: Transactional) -> None:
    """TXN-GROUP-01, TXN-GROUP-06."""
    begin(broker, 5)
    broker.commit_offset(6, number=1)
    assert fetched_offsets(broker, 0, 1) == {0: (-1, E.NONE), 1: (-1, E.NONE)}
    unstable = (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert fetched_offsets(broker, 0, 1, require_stable=True) == {0: unstable, 1: unstable}
    assert fetched_offsets(broker, require_stable=True) == {}, "pending ones alone are absent"
    end(broker, epoch=1, transaction_version=2)
    assert fetched_offsets(broker, require_stable=True) == {0: (5, E.NONE), 1: (6, E.NONE)}


def test_offsets_of_an_aborted_transaction_are_dropped(broker: Transactional) -> None:
    """TXN-GROUP-01."""
    commit_plain(broker, 3)
    begin(broker, 5)
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (-1, E.UNSTABLE_OFFSET_COMMIT)}
    assert fetched_offsets(broker, 0) == {0: (3, E.NONE)}
    end(broker, is_commit=False)
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (3, E.NONE)}
    assert shard_of(broker).env.memory.total_bytes > 0
    shard_of(broker).release()
    assert shard_of(broker).env.memory.total_bytes == 0


@pytest.mark.parametrize(("is_plain_first", "expected"), [(True, 5), (False, 3)])
def test_the_later_record_wins(broker: Transactional, is_plain_first: bool, expected: int) -> None:
    """TXN-GROUP-02: not the later marker."""
    if is_plain_first:
        commit_plain(broker, 3)
    begin(broker, 5)
    if not is_plain_first:
        commit_plain(broker, 3)
    end(broker)
    assert fetched_offsets(broker, 0) == {0: (expected, E.NONE)}


def test_of_two_transactions_the_later_record_wins(broker: Transactional) -> None:
    """TXN-GROUP-02."""
    begin(broker, 5, producer_id=10)
    begin(broker, 6, producer_id=11)
    end(broker, producer_id=11)
    end(broker, producer_id=10)
    assert fetched_offsets(broker, 0) == {0: (6, E.NONE)}


def test_a_refused_marker_decides_nothing(broker: Transactional) -> None:
    """TXN-MARK-03, TXN-GROUP-01."""
    begin(broker, 5, epoch=1)
    ((_, _, _, error),) = marked(broker.mark(topic=OFFSETS, epoch=1, transaction_version=2))
    assert error is E.INVALID_PRODUCER_EPOCH
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (-1, E.UNSTABLE_OFFSET_COMMIT)}


def test_a_marker_counts_once_the_isr_has_it(broker: Transactional) -> None:
    """TXN-GROUP-06, TXN-MARK-07: until then the offset is unstable, and the former one is shown."""
    commit_plain(broker, 3)
    begin(broker, 5)
    broker.offsets_image = partition_image(0, replicas=(1, 2), leader_epoch=0)._replace(
        partition_epoch=1
    )
    broker.publish()
    log = broker.broker.partitions[OFFSETS, 0].log
    marker = broker.mark(topic=OFFSETS)
    assert marker.is_parked
    assert log.high_watermark < log.log_end_offset
    assert fetched_offsets(broker, 0) == {0: (3, E.NONE)}
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (-1, E.UNSTABLE_OFFSET_COMMIT)}
    broker.offsets_image = partition_image(0)._replace(partition_epoch=2)
    broker.publish()
    assert not marker.is_parked
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (5, E.NONE)}


def test_pending_offsets_survive_a_move_of_the_coordinator(broker: Transactional) -> None:
    """TXN-GROUP-01, TXN-MARK-09: the log is read again; the marker finds what is pending."""
    begin(broker, 5)
    for leader, epoch in ((2, 1), (1, 2)):
        replicas = (1, 2)
        broker.offsets_image = partition_image(
            0, leader=leader, replicas=replicas, isr=(leader,), leader_epoch=epoch
        )
        broker.publish()
        if leader == 2:
            ((_, _, _, moved),) = marked(broker.mark(topic=OFFSETS))
            assert moved is E.NOT_LEADER_OR_FOLLOWER
    ((_, _, _, loading),) = marked(broker.mark(topic=OFFSETS))
    assert loading is E.NOT_LEADER_OR_FOLLOWER
    broker.pass_time(0)
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (-1, E.UNSTABLE_OFFSET_COMMIT)}
    end(broker)
    assert fetched_offsets(broker, 0, require_stable=True) == {0: (5, E.NONE)}


def test_deletions_drop_pending_offsets(broker: Transactional) -> None:
    """TXN-GROUP-07: of an offset, and of the group."""
    begin(broker, 5)
    broker.commit_offset(6, number=1)
    topic = OffsetDeleteRequestTopic(
        name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    deleted = offset_delete.handle(broker.broker, broker.context(0), request)
    assert deleted.error_code == E.NONE  # type: ignore[union-attr]  # nothing to wait for
    assert fetched_offsets(broker, 0, 1, require_stable=True) == {
        0: (-1, E.NONE),
        1: (-1, E.UNSTABLE_OFFSET_COMMIT),
    }
    delete_groups.handle(
        broker.broker, broker.context(2), DeleteGroupsRequest(groups_names=[GROUP])
    )
    end(broker)
    assert fetched_offsets(broker, 0, 1) == {0: (-1, E.NONE), 1: (-1, E.NONE)}


def test_expiry_passes_over_pending_offsets() -> None:
    """TXN-GROUP-07: and keeps their group."""
    broker = Transactional(offsets_retention_minutes=1)
    commit_plain(broker, 3)
    begin(broker, 5)
    runtime = broker.broker.groups.runtime
    runtime.tick(broker.now_ms, 1)
    runtime.tick(broker.now_ms + 600_000, 600_000)
    assert fetched_offsets(broker, 0) == {0: (3, E.NONE)}
    end(broker, is_commit=False)
    runtime.tick(broker.now_ms + 1_200_000, 1_200_000)
    assert fetched_offsets(broker) == {}
    assert GROUP not in shard_of(broker).groups


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, E.NONE),
        ({"generation_id": 3, "member_id": "m"}, E.NONE),
        ({"generation_id": 2, "member_id": "m"}, E.ILLEGAL_GENERATION),
        ({"generation_id": 3, "member_id": "x"}, E.UNKNOWN_MEMBER_ID),
        ({"generation_id": 3, "member_id": ""}, E.UNKNOWN_MEMBER_ID),
        ({"generation_id": -1, "member_id": "m"}, E.ILLEGAL_GENERATION),
    ],
)
def test_a_named_member_is_checked_against_the_group(
    broker: Transactional, fields: dict[str, int | str], error: E
) -> None:
    """TXN-GROUP-03, TXN-GROUP-04: also while the group rebalances."""
    shard = shard_of(broker)
    group = ClassicGroup(GROUP, shard.env.memory, 0, GroupState.COMPLETING_REBALANCE)
    shard.groups[GROUP] = group
    group.generation_id = 3
    group.members["m"] = group  # type: ignore[assignment]  # looked up by its id alone
    sent = broker.commit_offset(5, **fields)  # type: ignore[arg-type]  # fields of the request
    broker.answer()
    assert offset_error(sent) is error


@pytest.mark.parametrize("is_streams", [False, True])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, E.NONE),
        ({"generation_id": 9, "member_id": "m"}, E.NONE),
        ({"generation_id": 8, "member_id": "m"}, E.ILLEGAL_GENERATION),
        ({"generation_id": 10, "member_id": "m"}, E.ILLEGAL_GENERATION),
        ({"generation_id": 9, "member_id": "x"}, E.UNKNOWN_MEMBER_ID),
        ({"generation_id": 9, "member_id": ""}, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_named_member_of_another_protocol_is_checked_by_its_epoch(
    broker: Transactional, is_streams: bool, fields: dict[str, int | str], error: E
) -> None:
    """STALE_MEMBER_EPOCH is ILLEGAL_GENERATION here, as TxnOffsetCommit has no other."""
    shard = shard_of(broker)
    if is_streams:
        streams = StreamsGroup(GROUP, shard.env.memory)
        streams.put_member(StreamsMember("m", member_epoch=9))
        shard.other_groups[GROUP] = streams
    else:
        consumers = ConsumerGroup(GROUP, shard.env.memory)
        consumers.put_member(ConsumerMember("m", member_epoch=9))
        shard.other_groups[GROUP] = consumers
    sent = broker.commit_offset(5, **fields)  # type: ignore[arg-type]  # fields of the request
    broker.answer()
    assert offset_error(sent) is error
    assert (broker.broker.partitions[OFFSETS, 0].log_end_offset > 0) is (error is E.NONE)


def test_a_share_group_has_no_offsets_to_commit(broker: Transactional) -> None:
    """`ShareGroup.validateOffsetCommit` throws GroupIdNotFoundException, also with an old epoch."""
    shard = shard_of(broker)
    shard.other_groups[GROUP] = ShareGroup(GROUP, shard.env.memory)
    sent = broker.commit_offset(5, generation_id=-1)
    broker.answer()
    assert offset_error(sent) is E.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("generation_id", "error"), [(0, E.ILLEGAL_GENERATION), (-1, E.NONE), (-2, E.NONE)]
)
def test_a_group_that_does_not_exist(broker: Transactional, generation_id: int, error: E) -> None:
    """TXN-GROUP-03, TXN-GROUP-04: without a generation it is made; an empty one asks no more."""
    sent = broker.commit_offset(5, generation_id=generation_id, member_id="m")
    broker.answer()
    assert offset_error(sent) is error
    assert (GROUP in shard_of(broker).groups) is (error is E.NONE)


def test_metadata_that_is_too_long_is_refused_alone(broker: Transactional) -> None:
    sent = broker.commit_offset(5, metadata="m" * 4_097)
    broker.answer()
    assert offset_error(sent) is E.OFFSET_METADATA_TOO_LARGE


def test_the_records_are_one_transactional_batch(broker: Transactional) -> None:
    """TXN-GROUP-01: producer id, epoch, base sequence 0, as 4.3.1 writes them."""
    begin(broker, 5, epoch=4)
    log = broker.broker.partitions[OFFSETS, 0].log
    (state,) = log.producer_states.active_producers()
    assert (state.producer_epoch, state.last_sequence, state.transaction_first_offset) == (4, 0, 0)


def test_verification_can_be_switched_off() -> None:
    """TXN-PROD-19: for versions below 5."""
    broker = Transactional(transaction_partition_verification_enable=False)
    sent = broker.commit_offset(5, version=4)
    assert offset_error(sent) is E.NONE
    assert broker.commit_offset(5, version=5, producer_id=12).is_parked


UNKNOWN = E.UNKNOWN_TOPIC_OR_PARTITION


def commit_topics(
    broker: Transactional, topics: list[tuple[str, list[int]]]
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Commit offset 5 of partitions of topics; number and error of each partition of the answer."""
    request = TxnOffsetCommitRequest(
        transactional_id="writer",
        group_id=GROUP,
        producer_id=10,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=5)
                    for number in numbers
                ],
            )
            for name, numbers in topics
        ],
    )
    context = broker.context(5)
    sent = Waiting(broker, context, txn_offset_commit.handle(broker.broker, context, request))
    if sent.is_parked:
        broker.answer()
    assert isinstance(sent.answer, TxnOffsetCommitResponse)
    return [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in sent.answer.topics
    ]


def test_partitions_that_do_not_exist_are_answered_before_the_others(broker: Transactional) -> None:
    """4.3.1's `TxnOffsetCommitResponse.Builder.merge`."""
    assert commit_topics(broker, [(TOPIC, [8, 0, 9])]) == [
        (TOPIC, [(8, UNKNOWN), (9, UNKNOWN), (0, E.NONE)])
    ]
    assert commit_topics(broker, [(TOPIC, [0]), ("gone", [3])]) == [
        ("gone", [(3, UNKNOWN)]),
        (TOPIC, [(0, E.NONE)]),
    ]


def test_a_topic_without_partitions_is_answered_if_it_does_not_exist(broker: Transactional) -> None:
    """4.3.1's `KafkaApis.handleTxnOffsetCommitRequest`."""
    assert commit_topics(broker, [(TOPIC, []), ("gone", [])]) == [("gone", [])]


def test_a_partition_that_is_named_twice_has_two_answers(broker: Transactional) -> None:
    """4.3.1's `OffsetMetadataManager.commitTransactionalOffset`: each has its own error."""
    assert commit_topics(broker, [(TOPIC, [0, 0]), (TOPIC, [0])]) == [
        (TOPIC, [(0, E.NONE), (0, E.NONE)]),
        (TOPIC, [(0, E.NONE)]),
    ]


@pytest.mark.parametrize(("generation_id", "error"), [(6, E.ILLEGAL_GENERATION), (7, E.NONE)])
def test_an_older_epoch_of_a_member_is_enough_for_what_it_has_had_since(
    broker: Transactional, generation_id: int, error: E
) -> None:
    """4.3.1's `OffsetMetadataManager.commitTransactionalOffset`, with the topic's id (KIP-1251)."""
    shard = shard_of(broker)
    epochs: JavaHashMap[int, int] = JavaHashMap()
    epochs[0] = 7
    assigned: JavaHashMap[Uuid, JavaHashMap[int, int]] = JavaHashMap()
    assigned[id_of(TOPIC)] = epochs
    consumers = ConsumerGroup(GROUP, shard.env.memory)
    consumers.put_member(ConsumerMember("m", member_epoch=9, assigned=assigned))
    shard.other_groups[GROUP] = consumers
    sent = broker.commit_offset(5, generation_id=generation_id, member_id="m")
    broker.answer()
    assert offset_error(sent) is error
    if error is E.NONE:
        end(broker)
        committed = shard.offsets.get(OffsetKey(GROUP, TOPIC, 0))
        assert committed is not None
        assert committed.topic_id == ZERO_UUID
