"""Group and transaction requests with some of their rights: partial answers, order, silence."""

from typing import Any

import pytest

from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.node.authorization.asker import NO_OPERATIONS
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.list_transactions import ListTransactionsRequest
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest
from kraft_wire.wire.generated.sync_group import SyncGroupRequest
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.node.authorization.guarded_node import (
    ADMINISTRATOR,
    CLUSTER,
    CLUSTER_NAME,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    GuardedDoor,
    guarded_node,
)

NONE, NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_ID = 0, 29, 30, 31, 53


@pytest.fixture
def node() -> GuardedDoor:
    return with_coordinators()


def with_coordinators(**overrides: str) -> GuardedDoor:
    node = guarded_node("mine", "theirs", **overrides)
    for key_type in (0, 1):
        for _ in range(3):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g", "x"])
            found = node.ask(request, host=ADMINISTRATOR)
            node.advance(100)
        assert [each.error_code for each in found.coordinators] == [0, 0]
    return node


def commit(group: str, *topics: str) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)],
            )
            for name in topics
        ],
    )


def errors_by_topic(answer: Any) -> dict[str, int]:
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def test_offsets_are_committed_for_readable_topics_alone(node: GuardedDoor) -> None:
    """SEC-API-09: the group comes first (30), then each topic (29); others are committed."""
    request = commit("g", "mine", "theirs", "missing")
    assert set(errors_by_topic(node.ask(request, 8)).values()) == {NO_GROUP}
    node.permit(GROUP, "g", Op.READ)
    assert set(errors_by_topic(node.ask(request, 8)).values()) == {NO_TOPIC}
    node.permit(TOPIC, "mine", Op.READ)
    answer = node.ask(commit("g", "mine", "theirs", "missing"), 8)
    assert errors_by_topic(answer) == {"mine": NONE, "theirs": NO_TOPIC, "missing": NO_TOPIC}
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    kept = node.ask(everything, 8, host=ADMINISTRATOR)
    assert [topic.name for topic in kept.groups[0].topics] == ["mine"]


def test_a_commit_that_waits_for_its_flush_is_completed_with_what_was_refused() -> None:
    """A parked answer gets the refused topics when it comes."""
    node = with_coordinators(log_flush_interval_messages="1")
    node.permit(GROUP, "g", Op.READ)
    node.permit(TOPIC, "mine", Op.READ)
    node.keeps_flushes_back = True
    assert node.ask(commit("g", "mine", "theirs"), 8, connection=77) is None
    reply, _, _ = node._waiting[77]
    node.flush()
    assert errors_by_topic(reply.response) == {"mine": NONE, "theirs": NO_TOPIC}


def test_offsets_of_all_topics_are_shown_without_hidden_ones(node: GuardedDoor) -> None:
    """SEC-API-02, SEC-API-09: hidden where all were asked for, refused where named."""
    committed = node.ask(commit("g", "mine", "theirs"), 8, host=ADMINISTRATOR)
    assert errors_by_topic(committed) == {"mine": NONE, "theirs": NONE}
    node.permit(GROUP, "g", Op.DESCRIBE)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    everything = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="hidden", topics=None),
            OffsetFetchRequestGroup(group_id="g", topics=None),
        ]
    )
    hidden, shown = node.ask(everything, 8).groups
    assert (hidden.group_id, hidden.error_code, hidden.topics) == ("hidden", NO_GROUP, [])
    assert [topic.name for topic in shown.topics] == ["mine"]
    named = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=[
                    OffsetFetchRequestTopics(name=name, partition_indexes=[0])
                    for name in ("mine", "theirs")
                ],
            )
        ]
    )
    (group,) = node.ask(named, 8).groups
    assert errors_by_topic(group) == {"mine": NONE, "theirs": NO_TOPIC}
    assert [topic.partitions[0].committed_offset for topic in group.topics] == [5, -1]


def test_groups_are_listed_as_far_as_they_may_be_described(node: GuardedDoor) -> None:
    """SEC-API-02, SEC-ACL-13: ListGroups hides groups and leaves no line of it."""
    for group in ("seen", "unseen"):
        node.ask(commit(group, "mine"), 8, host=ADMINISTRATOR)
    assert node.ask(ListGroupsRequest()).groups == []
    assert node.denied == []
    node.permit(GROUP, "seen", Op.READ)
    assert [group.group_id for group in node.ask(ListGroupsRequest()).groups] == ["seen"]
    node.permit(CLUSTER, CLUSTER_NAME, Op.DESCRIBE)
    assert len(node.ask(ListGroupsRequest()).groups) == 2


def test_described_groups_show_the_operations_that_are_allowed(node: GuardedDoor) -> None:
    """SEC-ACL-14, SEC-API-09: READ implies DESCRIBE; bits 3 and 8; a refused group has none."""
    node.permit(GROUP, "g", Op.READ)
    request = DescribeGroupsRequest(groups=["g", "other"], include_authorized_operations=True)
    by_id = {each.group_id: each for each in node.ask(request, 5).groups}
    assert by_id["g"].authorized_operations == 1 << Op.READ | 1 << Op.DESCRIBE
    assert (by_id["other"].error_code, by_id["other"].authorized_operations) == (
        NO_GROUP,
        -(2**31),
    )


def joining(*topics: str, group: str = "new") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )


def test_a_member_may_read_its_group_and_describe_every_topic_that_it_names(
    node: GuardedDoor,
) -> None:
    """SEC-API-17: READ on the group (30), then DESCRIBE on all topics (29), or nothing is done."""
    request = joining("mine", "theirs")
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    assert node.ask(request).error_code == NO_GROUP
    node.permit(GROUP, "new", Op.READ)
    assert node.ask(request).error_code == NO_TOPIC
    assert node.ask(ListGroupsRequest(), host=ADMINISTRATOR).groups == []
    node.permit(TOPIC, "theirs", Op.DESCRIBE)
    assert node.ask(request).error_code == NONE


def test_a_group_that_has_a_hidden_topic_is_described_without_members(node: GuardedDoor) -> None:
    """SEC-API-16: DESCRIBE on the group (30), and on every topic that is assigned (29).

    A topic that a member only names, as one that is missing, is shown in 4.3.1 too.
    """
    for group, topic in (("new", "theirs"), ("other", "mine")):
        joined = node.ask(joining(topic, "missing", group=group), host=ADMINISTRATOR)
        assert joined.error_code == NONE
    request = ConsumerGroupDescribeRequest(
        group_ids=["new", "other"], include_authorized_operations=True
    )

    def described() -> dict[str, tuple[int, str | None, int]]:
        groups = node.ask(request).groups
        for each in groups:  # 4.3.1's `KafkaApis.handleConsumerGroupDescribe`: a new, empty one
            is_shown = each.error_code == NONE
            assert (each.group_epoch > 0, each.group_state != "") == (is_shown, is_shown)
            assert (each.authorized_operations != NO_OPERATIONS) is is_shown
        return {
            each.group_id: (each.error_code, each.error_message, len(each.members))
            for each in groups
        }

    node.permit(TOPIC, "mine", Op.DESCRIBE)
    assert described() == {"new": (NO_GROUP, None, 0), "other": (NO_GROUP, None, 0)}
    node.permit(GROUP, "*", Op.DESCRIBE)
    words = "The group has described topic(s) that the client is not authorized to describe."
    assert described() == {"new": (NO_TOPIC, words, 0), "other": (NONE, None, 1)}
    node.permit(TOPIC, "theirs", Op.DESCRIBE)
    assert described()["new"] == (NONE, None, 1)


def test_offset_delete_asks_for_the_group_and_each_topic(node: GuardedDoor) -> None:
    """SEC-API-09: DELETE on the group (30), then READ on each topic (29)."""
    node.ask(commit("g", "mine", "theirs"), 8, host=ADMINISTRATOR)
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
            for name in ("mine", "theirs")
        ],
    )
    assert node.ask(request).error_code == NO_GROUP
    node.permit(GROUP, "g", Op.DELETE)
    node.permit(TOPIC, "mine", Op.READ)
    answer = node.ask(request)
    assert errors_by_topic(answer) == {"mine": NONE, "theirs": NO_TOPIC}


def test_coordinators_are_told_key_by_key(node: GuardedDoor) -> None:
    """SEC-API-09, SEC-API-10: keys without the right are refused, in the request's order."""
    node.permit(GROUP, "g", Op.DESCRIBE)
    node.permit(TRANSACTIONAL_ID, "x", Op.DESCRIBE)
    groups = node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["other", "g"]), 4)
    assert [(each.key, each.error_code) for each in groups.coordinators] == [
        ("other", NO_GROUP),
        ("g", NONE),
    ]
    ids = node.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x", "other"]), 4)
    assert [(each.key, each.error_code) for each in ids.coordinators] == [
        ("x", NONE),
        ("other", NO_ID),
    ]


def partitions(*topics: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=1,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )


def test_coordinators_of_one_key_are_refused_in_the_words_of_apache(node: GuardedDoor) -> None:
    """handleFindCoordinatorRequestLessThanV4 of 4.3.1: the error has its own message."""
    node.permit(GROUP, "g", Op.DESCRIBE)
    node.permit(TRANSACTIONAL_ID, "x", Op.DESCRIBE)
    told = {}
    for kind, key in ((0, "g"), (0, "other"), (1, "x"), (1, "other"), (7, "g")):
        answer = node.ask(FindCoordinatorRequest(key_type=kind, key=key), 3)
        told[kind, key] = answer.error_code, answer.error_message, answer.node_id
    assert told[0, "g"] == told[1, "x"] == (NONE, "NONE", 1)
    assert told[0, "other"] == (NO_GROUP, "Group authorization failed.", -1)
    assert told[1, "other"] == (NO_ID, "Transactional Id authorization failed.", -1)
    assert told[7, "g"][0] == ErrorCode.INVALID_REQUEST


def test_coordinators_of_share_partitions_are_told_to_brokers_alone(node: GuardedDoor) -> None:
    """getCoordinator of 4.3.1: 42 before version 6; then one refusal for all keys."""
    keys = [f"{group}:AAAAAAAAQACAAAAAAAAAAQ:0" for group in "gh"]
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=keys)
    for version in (4, 5):
        told = [each.error_code for each in node.ask(request, version).coordinators]
        assert told == [ErrorCode.INVALID_REQUEST] * 2
    assert node.ask(FindCoordinatorRequest(key_type=2, key=keys[0]), 3).error_code == 42
    node.denied.clear()
    refused = node.ask(request, 6).coordinators
    assert [each.key for each in refused] == keys
    assert {(each.error_code, each.error_message) for each in refused} == {
        (NO_CLUSTER, "Cluster authorization failed.")
    }
    assert {(each.node_id, each.host, each.port) for each in refused} == {(-1, "", -1)}
    assert len(node.denied) == 1
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    found = node.ask(request, 6).coordinators
    assert {each.error_code for each in found} <= {NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}


@pytest.mark.parametrize(
    ("version", "kind", "name", "expected"),
    [
        (5, None, "p", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (5, "consumer", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (5, "consumer", "p", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (4, None, None, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_a_sync_without_its_protocol_is_refused_before_the_group(
    node: GuardedDoor, version: int, kind: str | None, name: str | None, expected: int
) -> None:
    """handleSyncGroupRequest of 4.3.1 (KIP-559): both are mandatory from version 5."""
    request = SyncGroupRequest(group_id="g", member_id="m", protocol_type=kind, protocol_name=name)
    assert node.ask(request, version).error_code == expected


def test_offsets_of_all_topics_have_no_hidden_ones_before_version_8(node: GuardedDoor) -> None:
    """SEC-API-09: a null list of topics, of one group."""
    node.ask(commit("g", "mine", "theirs"), 8, host=ADMINISTRATOR)
    everything = OffsetFetchRequest(group_id="g", topics=None)
    for version in (2, 7):
        refused = node.ask(everything, version)
        assert (refused.error_code, refused.topics) == (NO_GROUP, [])
    node.permit(GROUP, "g", Op.DESCRIBE)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    for version in (2, 7):
        shown = node.ask(everything, version)
        assert shown.error_code == NONE
        assert [(each.name, each.partitions[0].committed_offset) for each in shown.topics] == [
            ("mine", 5)
        ]


def test_one_refused_topic_keeps_all_others_out_of_a_transaction(node: GuardedDoor) -> None:
    """SEC-API-10: 53 for all; else 29 for the refused, 55 for the others, 3 for missing ones."""

    def errors(*topics: str) -> list[int]:
        answer = node.ask(partitions(*topics), 3)
        return [
            topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        ]

    assert errors("mine", "theirs") == [NO_ID, NO_ID]
    node.permit(TRANSACTIONAL_ID, "x", Op.WRITE)
    node.permit(TOPIC, "mine", Op.WRITE)
    node.permit(TOPIC, "missing", Op.WRITE)
    not_attempted, unknown = ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors("mine", "theirs", "missing", "__consumer_offsets") == [
        not_attempted,
        NO_TOPIC,
        unknown,
        NO_TOPIC,
    ]


def test_brokers_alone_add_partitions_of_several_transactions(node: GuardedDoor) -> None:
    """SEC-API-11: version 4 and later need CLUSTER_ACTION, whatever else is allowed."""
    node.permit(TRANSACTIONAL_ID, "x", Op.WRITE)
    node.permit(TOPIC, "mine", Op.WRITE)
    assert node.ask(AddPartitionsToTxnRequest(), 5).error_code == NO_CLUSTER
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    assert node.ask(AddPartitionsToTxnRequest(), 5).error_code == NONE


def test_idempotent_producers_need_one_topic_that_they_may_write(node: GuardedDoor) -> None:
    """SEC-API-12: 31 without; WRITE on any topic is enough, a transactional id has its own."""
    assert node.ask(InitProducerIdRequest(transactional_id=None), 5).error_code == NO_CLUSTER
    node.permit(TOPIC, "mine", Op.WRITE)
    assert node.ask(InitProducerIdRequest(transactional_id=None), 5).error_code == NONE
    own = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000)
    assert node.ask(own, 5).error_code == NO_ID
    node.permit(TRANSACTIONAL_ID, "x", Op.WRITE)
    assert node.ask(own, 5).error_code != NO_ID


def begun(node: GuardedDoor, *names: str) -> dict[str, int]:
    """Begin a transaction over both topics with each id; return their producers."""
    found = {}
    for name in names:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        made = node.ask(request, 4, host=ADMINISTRATOR)
        assert made.error_code == NONE, made
        found[name] = made.producer_id
        topics = [AddPartitionsToTxnTopic(name=each, partitions=[0]) for each in ("mine", "theirs")]
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=topics,
        )
        answer = node.ask(added, 3, host=ADMINISTRATOR)
        assert [each.partition_error_code for each in _results(answer)] == [NONE, NONE], answer
        node.advance(100)
    return found


def _results(answer: Any) -> list[Any]:
    topics = answer.results_by_topic_v3_and_below
    return [each for topic in topics for each in topic.results_by_partition]


@pytest.mark.parametrize("names", ["gxhy", "xgyh", "ggxx", "xy", "gh"])
def test_each_transaction_is_described_to_those_who_may_see_it(
    node: GuardedDoor, names: str
) -> None:
    """53 in its place for the others; topics that may not be described are left out."""
    producers = begun(node, "g", "h", "x", "y")
    for name in ("x", "y"):
        node.permit(TRANSACTIONAL_ID, name, Op.DESCRIBE)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    answer = node.ask(DescribeTransactionsRequest(transactional_ids=list(names)))
    found = [
        (each.transactional_id, each.error_code, each.producer_id, [t.topic for t in each.topics])
        for each in answer.transaction_states
    ]
    seen = {name: (name, NONE, producers[name], ["mine"]) for name in "xy"}
    hidden = {name: (name, NO_ID, 0, list[str]()) for name in "gh"}
    assert found == [(seen | hidden)[name] for name in names]


def test_transactions_are_listed_to_those_who_may_see_them(node: GuardedDoor) -> None:
    producers = begun(node, "g", "x", "h", "y")
    assert node.ask(ListTransactionsRequest()).transaction_states == []
    for name in ("x", "y"):
        node.permit(TRANSACTIONAL_ID, name, Op.DESCRIBE)
    answer = node.ask(ListTransactionsRequest())
    found = {each.transactional_id: each.producer_id for each in answer.transaction_states}
    assert found == {name: producers[name] for name in ("x", "y")}


def share_group_without_members(node: GuardedDoor, *topics: str) -> None:
    """Have a share group read topics, and leave it."""
    epoch = 0
    for is_leaving in (False, False, False, True):
        request = ShareGroupHeartbeatRequest(
            group_id="s",
            member_id="member",
            member_epoch=-1 if is_leaving else epoch,
            subscribed_topic_names=list(topics) if epoch == 0 else None,
        )
        answer = node.ask(request, host=ADMINISTRATOR)
        assert answer.error_code == NONE, answer
        epoch = answer.member_epoch
        node.advance(6_000)


def test_offsets_of_share_groups_are_changed_for_readable_topics_alone() -> None:
    """30 for the group; then 29 for each topic that may not be read, which stays as it is."""
    node = with_coordinators()
    share_group_without_members(node, "mine", "theirs")
    alter = AlterShareGroupOffsetsRequest(
        group_id="s",
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[AlterShareGroupOffsetsRequestPartition(start_offset=0)],
            )
            for name in ("theirs", "mine")
        ],
    )
    delete = DeleteShareGroupOffsetsRequest(
        group_id="s",
        topics=[
            DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in ("theirs", "mine")
        ],
    )
    assert [node.ask(each).error_code for each in (alter, delete)] == [NO_GROUP] * 2
    for operation in (Op.READ, Op.DELETE):
        node.permit(GROUP, "s", operation)
    node.permit(TOPIC, "mine", Op.READ)
    altered = node.ask(alter)
    assert altered.error_code == NONE
    found = {each.topic_name: each.partitions[0].error_code for each in altered.responses}
    assert found == {"mine": NONE, "theirs": NO_TOPIC}
    ids = {each.topic_name: each.topic_id for each in altered.responses}
    assert ids == {name: node.node.broker.image.topic(name).topic_id for name in ids}
    deleted = node.ask(delete)
    assert deleted.error_code == NONE
    found = {each.topic_name: each.error_code for each in deleted.responses}
    assert found == {"mine": NONE, "theirs": NO_TOPIC}


def test_offsets_in_a_transaction_need_the_right_to_read_each_topic(node: GuardedDoor) -> None:
    """SEC-API-10: 53 without the id, 30 without the group, then 29 topic by topic."""
    producer = begun(node, "x")["x"]
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
            for name in ("theirs", "mine", "missing")
        ],
    )
    assert set(errors_by_topic(node.ask(request, 3)).values()) == {NO_ID}
    node.permit(TRANSACTIONAL_ID, "x", Op.WRITE)
    assert set(errors_by_topic(node.ask(request, 3)).values()) == {NO_GROUP}
    node.permit(GROUP, "g", Op.READ)
    node.permit(TOPIC, "mine", Op.READ)
    found = errors_by_topic(node.ask(request, 3))
    mine = found.pop("mine")
    assert mine not in (NO_ID, NO_GROUP, NO_TOPIC)
    assert found == {"theirs": NO_TOPIC, "missing": NO_TOPIC}
