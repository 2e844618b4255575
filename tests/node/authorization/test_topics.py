"""Requests about topics with some of their rights: hidden and refused topics, names, settings."""

from typing import Any

import pytest

from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.model import ZERO_UUID, Uuid, uuid_from_text
from kraft_wire.node.authorization.asker import NO_OPERATIONS
from kraft_wire.wire.generated.alter_configs import AlterConfigsRequest, AlterConfigsResource
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.node.authorization.guarded_node import (
    ADMINISTRATOR,
    ALL,
    CLUSTER,
    CLUSTER_NAME,
    CONTROLLER_LISTENER,
    DENY,
    PREFIXED,
    STRANGER,
    TOPIC,
    GuardedDoor,
    guarded_node,
)

NONE, UNKNOWN, NO_TOPIC, NO_GROUP, NO_CLUSTER = 0, 3, 29, 30, 31
UNKNOWN_ID = uuid_from_text("AAAAAAAAQACAAAAAAAAAAQ")


@pytest.fixture
def node() -> GuardedDoor:
    return guarded_node("mine", "theirs", auto_create_topics_enable="true")


def id_of(node: GuardedDoor, name: str) -> Uuid:
    topic = node.node.broker.image.topic(name)
    assert topic is not None
    return topic.topic_id


def described(node: GuardedDoor, *names: str, version: int = 13, **more: Any) -> dict[str, Any]:
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics if topics or version == 0 else None, **more)
    return {each.name: each for each in node.ask(request, version).topics}


def test_metadata_hides_and_refuses_topics(node: GuardedDoor) -> None:
    """SEC-API-01, SEC-API-02: a missing topic is refused like one that is there."""
    assert described(node) == {}
    named = described(node, "theirs", "missing", allow_auto_topic_creation=False)
    assert {name: each.error_code for name, each in named.items()} == {
        "theirs": NO_TOPIC,
        "missing": NO_TOPIC,
    }
    assert {each.topic_id for each in named.values()} == {ZERO_UUID}
    node.permit(TOPIC, "mine", Op.WRITE)
    assert list(described(node)) == ["mine"]
    assert list(described(node, version=0)) == ["mine"]
    assert described(node, "theirs", version=0)["theirs"].error_code == NO_TOPIC


def test_refused_topics_come_behind_the_others(node: GuardedDoor) -> None:
    """4.3.1's `KafkaApis.handleTopicMetadataRequest`: those that may not be created come first."""
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    node.permit(TOPIC, "new", Op.DESCRIBE)
    answers = described(node, "theirs", "new", "mine")
    assert [(name, each.error_code) for name, each in answers.items()] == [
        ("mine", NONE),
        ("new", NO_TOPIC),
        ("theirs", NO_TOPIC),
    ]


def test_a_topic_is_not_hidden_from_the_next_asker(node: GuardedDoor) -> None:
    """Answers that depend on who asks are not kept for others."""
    everything = MetadataRequest(topics=None)
    assert len(node.ask(everything, host=ADMINISTRATOR).topics) == 2
    assert node.ask(everything).topics == []
    assert len(node.ask(everything, host=ADMINISTRATOR).topics) == 2


def test_metadata_by_id_never_shows_a_refused_name(node: GuardedDoor) -> None:
    """SEC-API-08: an id that is unknown is told, one that is refused has no name."""
    topics = [
        MetadataRequestTopic(topic_id=each, name=None)
        for each in (id_of(node, "theirs"), UNKNOWN_ID)
    ]
    answers = {each.topic_id: each for each in node.ask(MetadataRequest(topics=topics)).topics}
    refused, unknown = answers[id_of(node, "theirs")], answers[UNKNOWN_ID]
    assert (refused.error_code, refused.name) == (NO_TOPIC, None)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topics_are_created_on_demand_with_the_right_to(node: GuardedDoor) -> None:
    """SEC-API-07: DESCRIBE and CREATE, on the topic or the cluster; else 29 and no topic."""
    node.permit(TOPIC, "new", Op.DESCRIBE, pattern=PREFIXED)
    assert described(node, "new-1")["new-1"].error_code == NO_TOPIC
    assert node.node.broker.image.topic("new-1") is None
    assert described(node, "new-1", allow_auto_topic_creation=False)["new-1"].error_code == UNKNOWN
    node.permit(TOPIC, "new-1", Op.CREATE)
    assert described(node, "new-1", "new-2")["new-2"].error_code == NO_TOPIC
    assert node.node.broker.image.topic("new-1") is not None
    node.permit(CLUSTER, CLUSTER_NAME, Op.CREATE)
    described(node, "new-2")
    assert node.node.broker.image.topic("new-2") is not None


def test_operations_in_an_answer_are_those_that_are_allowed(node: GuardedDoor) -> None:
    """SEC-ACL-14: bits of the operations; 0 for a cluster that may not be described."""
    node.permit(TOPIC, "mine", Op.WRITE)
    shown = described(node, "mine", include_topic_authorized_operations=True)["mine"]
    assert shown.topic_authorized_operations == 1 << Op.WRITE | 1 << Op.DESCRIBE
    assert described(node, "mine")["mine"].topic_authorized_operations == NO_OPERATIONS
    of_cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert node.ask(of_cluster).cluster_authorized_operations == 0
    metadata = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert node.ask(metadata, 10).cluster_authorized_operations == 0
    node.permit(CLUSTER, CLUSTER_NAME, Op.DESCRIBE)
    assert node.ask(of_cluster).cluster_authorized_operations == 1 << Op.DESCRIBE
    assert node.ask(metadata, 10).cluster_authorized_operations == 1 << Op.DESCRIBE


def test_pages_of_topics_hold_only_allowed_ones(node: GuardedDoor) -> None:
    """SEC-API-02: no page, and no cursor, names a hidden topic."""
    everything = DescribeTopicPartitionsRequest(response_partition_limit=1)
    nothing = node.ask(everything)
    assert (nothing.topics, nothing.next_cursor) == ([], None)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    page = node.ask(everything)
    assert [topic.name for topic in page.topics] == ["mine"]
    assert page.next_cursor is None
    assert page.topics[0].topic_authorized_operations == 1 << Op.DESCRIBE
    assert not any("theirs" in each for each in node.denied), "the request does not name it"
    behind = DescribeTopicPartitionsRequest(
        response_partition_limit=9, cursor=Cursor(topic_name="n", partition_index=0)
    )
    assert node.ask(behind).topics == []
    named = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in ("mine", "theirs", "missing")],
        response_partition_limit=9,
    )
    assert {each.name: each.error_code for each in node.ask(named).topics} == {
        "mine": NONE,
        "theirs": NO_TOPIC,
        "missing": NO_TOPIC,
    }


def batch() -> bytes:
    return bytes(build_batch([Record(value=b"v", timestamp=1)]))


def produce(*names: str, acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch())]
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name in names],
    )


def end_of(node: GuardedDoor, name: str) -> int:
    partition = node.node.broker.partition(name, 0)
    assert partition is not None
    return partition.log.log_end_offset


def test_a_page_that_begins_at_a_hidden_topic_begins_behind_it(node: GuardedDoor) -> None:
    """DescribeTopicPartitionsRequestHandler of 4.3.1: the cursor counts for its own topic alone."""
    node.permit(TOPIC, "theirs", Op.DESCRIBE)
    cursor = Cursor(topic_name="mine", partition_index=5)
    for names in ([], ["mine", "theirs"]):
        topics = [TopicRequest(name=name) for name in names]
        page = node.ask(DescribeTopicPartitionsRequest(topics=topics, cursor=cursor))
        shown = {each.name: (each.error_code, len(each.partitions)) for each in page.topics}
        assert shown == {"theirs": (NONE, 1), **({"mine": (NO_TOPIC, 0)} if names else {})}
        assert page.next_cursor is None


@pytest.mark.parametrize(
    ("names", "cursor"),
    [
        (["mine"], Cursor(topic_name="nobody", partition_index=0)),
        ([], Cursor(topic_name="mine", partition_index=-1)),
    ],
)
def test_a_cursor_of_no_page_is_invalid_for_everybody(
    node: GuardedDoor, names: list[str], cursor: Cursor
) -> None:
    """InvalidRequestException of 4.3.1, before any right is asked for."""
    topics = [TopicRequest(name=name) for name in names]
    request = DescribeTopicPartitionsRequest(topics=topics, cursor=cursor)
    node.denied.clear()
    for host in (ADMINISTRATOR, STRANGER):
        answer = node.ask(request, host=host)
        assert {each.error_code for each in answer.topics} <= {ErrorCode.INVALID_REQUEST}
        assert [each.name for each in answer.topics] == names
    assert node.denied == []


def test_deletion_that_is_disabled_is_told_to_everybody() -> None:
    """ControllerApis.deleteTopics of 4.3.1: TOPIC_DELETION_DISABLED comes before all rights."""
    node = guarded_node("mine", delete_topic_enable="false")
    node.denied.clear()
    early = DeleteTopicsRequest(topic_names=["mine"])
    late = DeleteTopicsRequest(topics=[DeleteTopicState(name="mine")])
    for request, version, error in ((early, 2, 42), (early, 3, 73), (late, 6, 73)):
        answers = node.ask(request, version).responses
        assert [(each.name, each.error_code) for each in answers] == [("mine", error)]
    assert node.denied == []
    assert node.node.broker.image.topic("mine") is not None


def test_metadata_of_a_topic_without_name_and_id_is_refused_as_a_whole(node: GuardedDoor) -> None:
    """handleTopicMetadataRequest of 4.3.1: ids from version 12 on, and no right of a null name."""
    node.denied.clear()
    nameless = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    early = MetadataRequest(topics=[MetadataRequestTopic(topic_id=UNKNOWN_ID, name="theirs")])
    for request, version, error in ((nameless, 12, -1), (early, 11, 42)):
        for host in (ADMINISTRATOR, STRANGER):
            (topic,) = node.ask(request, version, host=host).topics
            assert (topic.error_code, topic.partitions) == (error, [])
    assert node.denied == []


def test_records_are_appended_where_they_may_be_written(node: GuardedDoor) -> None:
    """SEC-API-03: 29 per partition, and the others are appended."""
    node.permit(TOPIC, "mine", Op.WRITE)
    answer = node.ask(produce("theirs", "mine", "missing"), 12)
    errors = {each.name: each.partition_responses[0].error_code for each in answer.responses}
    assert errors == {"mine": NONE, "theirs": NO_TOPIC, "missing": NO_TOPIC}
    assert (end_of(node, "mine"), end_of(node, "theirs")) == (1, 0)


def test_a_refusal_without_acknowledgements_closes_the_connection(node: GuardedDoor) -> None:
    """SEC-API-04: what may be written is written."""
    node.permit(TOPIC, "mine", Op.WRITE)
    assert node.ask(produce("mine", acks=0), 12) == "silent"
    assert node.ask(produce("mine", "theirs", acks=0), 12) == "closed"
    assert node.ask(produce("theirs", acks=0), 12) == "closed"
    assert (end_of(node, "mine"), end_of(node, "theirs")) == (2, 0)


def test_transactional_records_need_the_right_on_their_id(node: GuardedDoor) -> None:
    """SEC-API-03: 53 for all partitions, before topics and without an id too."""
    node.permit(TOPIC, "mine", Op.WRITE)
    for name in ("x", None):
        records = build_batch(
            [Record(value=b"v", timestamp=1)],
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        request = produce("mine")
        request.transactional_id = name
        request.topic_data[0].partition_data[0].records = bytes(records)
        (topic,) = node.ask(request, 11).responses
        assert topic.partition_responses[0].error_code == 53


def fetch(*names: str, session: tuple[int, int] = (0, 0), replica: int = -1) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        max_bytes=1_000_000,
        replica_id=replica,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1_000)]
            )
            for name in names
        ],
    )


def fetched(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


def test_fetches_read_what_may_be_read(node: GuardedDoor) -> None:
    """SEC-API-05, SEC-API-01: READ for each topic; a missing one is refused alike."""
    node.ask(produce("mine", "theirs"), 12, host=ADMINISTRATOR)
    node.permit(TOPIC, "mine", Op.READ)
    answer = node.ask(fetch("mine", "theirs", "missing"), 12)
    assert fetched(answer) == {"mine": NONE, "theirs": NO_TOPIC, "missing": NO_TOPIC}
    by_name = {topic.topic: topic.partitions[0].records for topic in answer.responses}
    assert len(by_name["mine"]) > 0
    assert len(by_name["theirs"]) == 0


def test_a_replica_needs_the_brokers_right_alone(node: GuardedDoor) -> None:
    """SEC-API-05: READ gives a replica nothing; without CLUSTER_ACTION all partitions are 29."""
    node.permit(TOPIC, "mine", Op.READ)
    assert fetched(node.ask(fetch("mine", "missing", replica=1), 12)) == {
        "mine": NO_TOPIC,
        "missing": NO_TOPIC,
    }
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    assert NO_TOPIC not in fetched(node.ask(fetch("mine", replica=1), 12)).values()


def test_an_unknown_id_is_unknown_behind_a_refused_one(node: GuardedDoor) -> None:
    """KIP-516: a consumer that has an id of a deleted topic needs UNKNOWN_TOPIC_ID to refresh."""
    request = fetch("theirs", "deleted")
    theirs, deleted = id_of(node, "theirs"), Uuid(b"x" * 16)
    request.topics[0].topic_id, request.topics[1].topic_id = theirs, deleted
    answer = node.ask(request, 13)
    codes = {each.topic_id: each.partitions[0].error_code for each in answer.responses}
    assert codes == {theirs: NO_TOPIC, deleted: ErrorCode.UNKNOWN_TOPIC_ID}


def test_a_session_is_judged_at_every_fetch(node: GuardedDoor) -> None:
    """SEC-ACL-10, SEC-API-05: a right that is lost is missed at once, though nothing is new."""
    node.permit(TOPIC, "mine", Op.READ)
    first = node.ask(fetch("mine"), 12)
    assert fetched(first) == {"mine": NONE}
    session = first.session_id
    assert session > 0
    assert fetched(node.ask(fetch(session=(session, 1)), 12)) == {}
    node.permit(TOPIC, "mine", Op.READ, permission=DENY)
    assert fetched(node.ask(fetch(session=(session, 2)), 12)) == {"mine": NO_TOPIC}


def test_a_fetch_of_refused_partitions_does_not_wait(node: GuardedDoor) -> None:
    request = fetch("theirs")
    request.max_wait_ms, request.min_bytes = 30_000, 1
    assert fetched(node.ask(request, 12)) == {"theirs": NO_TOPIC}


def create(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000)


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER_LISTENER])
def test_topics_are_created_by_name(node: GuardedDoor, listener: str) -> None:
    """SEC-API-13: CREATE on the topic; its settings are shown with DESCRIBE_CONFIGS alone."""
    node.permit(TOPIC, "a", Op.CREATE, pattern=PREFIXED)
    node.permit(TOPIC, "ab", Op.DESCRIBE_CONFIGS)
    answer = node.ask(create("aa", "ab", "theirs", "twice", "twice"), 7, listener=listener)
    by_name = {each.name: each for each in answer.topics}
    assert {name: each.error_code for name, each in by_name.items()} == {
        "aa": NONE,
        "ab": NONE,
        "theirs": NO_TOPIC,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert by_name["theirs"].error_message == "Authorization failed."
    hidden, shown = by_name["aa"], by_name["ab"]
    assert (hidden.topic_config_error_code, hidden.num_partitions, hidden.configs) == (
        NO_TOPIC,
        -1,
        [],
    )
    assert (shown.topic_config_error_code, shown.num_partitions) == (NONE, 1)
    assert shown.configs


def test_topics_are_deleted_and_named_as_far_as_they_may_be_described(node: GuardedDoor) -> None:
    """SEC-API-08: by id without DESCRIBE no name; with it name and id; unknown ids are 100."""
    theirs = id_of(node, "theirs")

    def delete(*states: DeleteTopicState) -> list[tuple[str | None, int]]:
        answer = node.ask(DeleteTopicsRequest(topics=list(states), timeout_ms=1_000), 6)
        return [(each.name, each.error_code) for each in answer.responses]

    by_id = DeleteTopicState(name=None, topic_id=theirs)
    assert delete(by_id) == [(None, NO_TOPIC)]
    assert delete(DeleteTopicState(name="theirs")) == [("theirs", NO_TOPIC)]
    assert delete(DeleteTopicState(name="missing")) == [("missing", NO_TOPIC)]
    unknown = DeleteTopicState(name=None, topic_id=UNKNOWN_ID)
    assert delete(unknown) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]
    node.permit(TOPIC, "*", Op.DESCRIBE)
    assert delete(by_id) == [("theirs", NO_TOPIC)]
    assert delete(DeleteTopicState(name="missing")) == [("missing", UNKNOWN)]
    assert node.node.broker.image.topic("theirs") is not None
    node.permit(TOPIC, "theirs", Op.DELETE)
    assert delete(by_id) == [("theirs", NONE)]


def test_settings_need_the_right_of_their_resource(node: GuardedDoor) -> None:
    """SEC-API-15: a topic's, a group's, and the cluster's for a broker."""
    resources = [(2, "mine"), (2, "missing"), (32, "g"), (4, "1")]
    read = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in resources
        ]
    )
    change = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in resources
        ]
    )
    expected = [NO_TOPIC, NO_TOPIC, NO_GROUP, NO_CLUSTER]
    assert [each.error_code for each in node.ask(read).results] == expected
    assert [each.error_code for each in node.ask(change).responses] == expected
    node.permit(TOPIC, "*", Op.ALTER_CONFIGS)
    assert sorted(each.error_code for each in node.ask(read).results) == [
        NONE,
        UNKNOWN,
        NO_GROUP,
        NO_CLUSTER,
    ]
    node.permit(CLUSTER, CLUSTER_NAME, ALL)
    assert NO_CLUSTER not in [each.error_code for each in node.ask(change).responses]
