"""CreateTopics: the records of a topic, and the bounds of one atomic change."""

import pytest

from kraft_wire.metadata.image import TOPIC_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import ONE_UUID, Uuid
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from tests.controller.cluster import DIRECTORY, OneNodeCluster
from tests.controller.plain_requests import create


def test_topic_is_one_record_its_settings_and_one_record_per_partition() -> None:
    cluster = OneNodeCluster()
    before = len(cluster.committed)
    setting = CreatableTopicConfig(name="retention.ms", value="5")
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1, configs=[setting])
    assert create(cluster, topic) == [ErrorCode.NONE]
    head, config, *partitions = (each.record for each in cluster.committed[before:])
    assert isinstance(head, TopicRecord)
    assert config == ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="t", name="retention.ms", value="5"
    )
    assert partitions == [
        PartitionRecord(
            partition_id=number,
            topic_id=head.topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY],
        )
        for number in range(2)
    ]


@pytest.mark.parametrize(("level", "version"), [(16, 0), (17, 1), (23, 2), (30, 2)])
def test_partition_is_recorded_in_the_version_of_the_metadata_level(
    level: int, version: int
) -> None:
    cluster = OneNodeCluster()
    record = FeatureLevelRecord(name="metadata.version", feature_level=level)
    cluster.commit([VersionedRecord(record)])
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    assert cluster.committed[-1].version == version
    last = cluster.committed[-1].record
    assert isinstance(last, PartitionRecord)
    assert bool(last.directories) == (version > 0)


def test_directory_of_a_broker_with_several_is_left_to_the_broker() -> None:
    cluster = OneNodeCluster(brokers=0)
    cluster.add_broker(1, log_dirs=[Uuid(b"1" * 16), Uuid(b"2" * 16)])
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    last = cluster.committed[-1].record
    assert isinstance(last, PartitionRecord)
    assert last.directories == [ONE_UUID]


def test_fenced_replica_of_an_assignment_is_not_in_sync() -> None:
    cluster = OneNodeCluster()
    cluster.add_broker(2, fenced=True)
    chosen = CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[chosen])
    assert create(cluster, topic) == [ErrorCode.NONE]
    created = cluster.loader.image.topics_by_name["t"].partitions[0]
    assert (created.replicas, created.isr, created.leader) == ((2, 1), (1,), 1)
    topic.name = "u"
    chosen.broker_ids = [2]
    assert create(cluster, topic) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    grown = CreatePartitionsTopic(
        name="t", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[2])]
    )
    response = cluster.ask(CreatePartitionsRequest(topics=[grown]), 3)
    assert isinstance(response, CreatePartitionsResponse)
    assert response.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_topics_larger_than_a_batch_are_refused_all_together() -> None:
    """As in 4.3.1: of a request either everything that is in order is done, or nothing."""
    cluster = OneNodeCluster()
    topics = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in (("a", 6_000), ("b", 4_001))
    ]
    assert create(cluster, *topics) == [ErrorCode.POLICY_VIOLATION] * 2
    assert create(cluster, topics[0]) == [0]
    topics[1].num_partitions, topics[1].name = -1, "no name"
    topics[0].name, topics[0].num_partitions = "huge", (1 << 31) - 1
    assert create(cluster, *topics) == [ErrorCode.POLICY_VIOLATION] * 2
    chosen = [
        CreatableReplicaAssignment(partition_index=number, broker_ids=[1])
        for number in range(10_000)
    ]
    topic = CreatableTopic(name="d", num_partitions=-1, replication_factor=-1, assignments=chosen)
    assert create(cluster, topic) == [ErrorCode.POLICY_VIOLATION]
    grown = CreatePartitionsTopic(name="a", count=16_001, assignments=None)
    response = cluster.ask(CreatePartitionsRequest(topics=[grown]), 3)
    assert isinstance(response, CreatePartitionsResponse)
    assert response.results[0].error_code == ErrorCode.POLICY_VIOLATION


def test_topic_that_is_named_twice_is_refused_once_and_not_created() -> None:
    cluster = OneNodeCluster()
    before = len(cluster.committed)
    twice = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert create(cluster, twice, twice) == [ErrorCode.INVALID_REQUEST]
    assert len(cluster.committed) == before


def test_refusal_of_the_longest_name_and_value_fits_into_an_answer() -> None:
    cluster = OneNodeCluster()
    longest = "x" * 32_767
    answer = cluster.ask(CreateTopicsRequest(topics=[CreatableTopic(name=longest)]), 7)
    assert len(answer.encode(7)) < 65_536
    change = AlterableConfig(name="retention.ms", config_operation=0, value=longest)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert len(answer.encode(1)) < 65_536


def topic(name: str, partitions: int, replicas: int, *, is_config_bad: bool) -> CreatableTopic:
    config = CreatableTopicConfig(name="retention.ms", value="x" if is_config_bad else "5")
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, configs=[config]
    )


def assigned(topic: CreatableTopic) -> CreatableTopic:
    """Add an assignment to a broker that does not exist."""
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[9])]
    return topic


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ([assigned(topic("no/name", 0, 9, is_config_bad=True))] * 2, ErrorCode.INVALID_REQUEST),
        ([assigned(topic("old", 0, 9, is_config_bad=True))], ErrorCode.TOPIC_ALREADY_EXISTS),
        ([assigned(topic("no/name", 0, 9, is_config_bad=True))], ErrorCode.INVALID_TOPIC_EXCEPTION),
        ([assigned(topic("new", 0, 9, is_config_bad=True))], ErrorCode.INVALID_CONFIG),
        ([assigned(topic("new", 0, 9, is_config_bad=False))], ErrorCode.INVALID_REQUEST),
        (
            [assigned(topic("new", -1, -1, is_config_bad=False))],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        ([topic("new", 0, 0, is_config_bad=False)], ErrorCode.INVALID_REPLICATION_FACTOR),
        ([topic("new", 0, 1, is_config_bad=False)], ErrorCode.INVALID_PARTITIONS),
    ],
)
def test_errors_in_order(topics: list[CreatableTopic], error: ErrorCode) -> None:
    cluster = OneNodeCluster()
    assert create(cluster, topic("old", 1, 1, is_config_bad=False)) == [ErrorCode.NONE]
    assert create(cluster, *topics) == [error]


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        ((0, 1), ErrorCode.NONE),
        ((1, 0), ErrorCode.NONE),
        ((0, 0), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((0, 1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((0, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((-1, 0), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_chosen_partitions_are_numbered_from_0_on_once_each(
    numbers: tuple[int, ...], error: ErrorCode
) -> None:
    """`ReplicationControlManager.createTopic`."""
    chosen = [CreatableReplicaAssignment(partition_index=each, broker_ids=[1]) for each in numbers]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=chosen)
    cluster = OneNodeCluster()
    assert create(cluster, topic) == [error]
    assert ("t" in cluster.loader.image.topics_by_name) == (error is ErrorCode.NONE)


def messages(cluster: OneNodeCluster, *topics: CreatableTopic) -> list[str | None]:
    response = cluster.ask(CreateTopicsRequest(topics=list(topics)), 7)
    assert isinstance(response, CreateTopicsResponse)
    return [each.error_message for each in response.topics]


@pytest.mark.parametrize(("present", "name"), [("_", "."), ("__", "..")])
def test_a_collision_is_named_before_the_name_itself(present: str, name: str) -> None:
    """`ReplicationControlManager.validateNewTopicNames`: the second problem replaces the first."""
    cluster = OneNodeCluster()
    found = messages(cluster, topic(name, 1, 1, is_config_bad=False))
    assert found == [f"Topic name is invalid: '{name}' is not allowed"]
    assert create(cluster, topic(present, 1, 1, is_config_bad=False)) == [ErrorCode.NONE]
    found = messages(cluster, topic(name, 1, 1, is_config_bad=False))
    assert found == [f"Topic '{name}' collides with existing topic: {present}"]


def test_a_null_value_is_refused_beside_another_of_the_same_key() -> None:
    """`ReplicationControlManager.computeConfigChanges`."""
    asked = topic("t", 1, 1, is_config_bad=False)
    asked.configs = [
        CreatableTopicConfig(name="retention.ms", value=value) for value in (None, "5", None)
    ]
    words = "Null value not supported for topic configs: retention.ms,retention.ms"
    assert messages(OneNodeCluster(), asked) == [words]


def test_chosen_replicas_out_of_service_are_noticed_partition_by_partition() -> None:
    """`ReplicationControlManager.createTopic`: before the next partition is looked at."""
    cluster = OneNodeCluster()
    cluster.add_broker(2, fenced=True)
    asked = topic("t", -1, -1, is_config_bad=False)
    words = (
        "All brokers specified in the manual partition assignment for partition 3 are fenced or in "
        "controlled shutdown."
    )
    for later in ([9], [1]):
        asked.assignments = [
            CreatableReplicaAssignment(partition_index=3, broker_ids=[2]),
            CreatableReplicaAssignment(partition_index=0, broker_ids=later),
        ]
        assert messages(cluster, asked) == [words]
