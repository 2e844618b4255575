"""What clients are told of brokers and leaders, over small images."""

from dataclasses import replace

import pytest

from kraft_wire.broker.metadata.metadata_cache import (
    CLUSTER_OPERATIONS,
    INTERNAL_TOPICS,
    TOPIC_OPERATIONS,
    AliveBroker,
    CurrentLeader,
    alive_brokers,
    current_leader,
    is_internal,
    no_replica_error,
    offline_replicas,
    operation_bits,
)
from kraft_wire.metadata.directory_ids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.small_broker import LISTENER, broker_image, image_of, partition_image

FIRST, SECOND = Uuid(b"first directory."), Uuid(b"other directory.")


def cluster() -> MetadataImage:
    """Broker 2 is fenced, 3 has another listener, 4 is in a rack, 5 is not registered."""
    brokers = [
        replace(broker_image(4), rack="r"),
        broker_image(1),
        broker_image(2, fenced=True),
        broker_image(3, listener="INTERNAL"),
    ]
    leaders = [1, 2, 3, 4, 5, -1]
    partitions = [
        partition_image(number, leader=leader, leader_epoch=10 + number)
        for number, leader in enumerate(leaders)
    ]
    return image_of({"t": partitions}, brokers)


def test_clients_are_told_of_the_brokers_of_their_listener_that_are_alive() -> None:
    found = alive_brokers(cluster(), LISTENER)
    assert found == [AliveBroker(1, "host1", 9001, None), AliveBroker(4, "host4", 9004, "r")]
    assert alive_brokers(cluster(), "INTERNAL") == [AliveBroker(3, "host3", 9003, None)]
    assert alive_brokers(cluster(), "SSL") == []


@pytest.mark.parametrize(
    ("topic", "partition", "expected"),
    [
        ("t", 0, CurrentLeader(1, 10, "host1", 9001, None)),
        ("t", 1, CurrentLeader(2, 11, None, -1, None)),
        ("t", 2, CurrentLeader(3, 12, None, -1, None)),
        ("t", 3, CurrentLeader(4, 13, "host4", 9004, "r")),
        ("t", 4, CurrentLeader(5, 14, None, -1, None)),
        ("t", 5, CurrentLeader(-1, 15, None, -1, None)),
        ("t", 6, CurrentLeader(-1, -1, None, -1, None)),
        ("u", 0, CurrentLeader(-1, -1, None, -1, None)),
    ],
)
def test_leader_is_named_with_its_address_if_it_can_be_reached(
    topic: str, partition: int, expected: CurrentLeader
) -> None:
    assert current_leader(cluster(), topic, partition, LISTENER) == expected


def test_partition_without_a_replica_here_is_known_or_not() -> None:
    image = cluster()
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    found = [no_replica_error(image, *name) for name in (("t", 5), ("t", 6), ("u", 0))]
    assert found == [E.NOT_LEADER_OR_FOLLOWER, unknown, unknown]


@pytest.mark.parametrize(
    ("log_dirs", "directories", "offline"),
    [
        ((), (), []),
        ((FIRST,), (), []),
        ((FIRST,), (FIRST, FIRST), []),
        ((FIRST,), (SECOND, FIRST), [1]),
        ((FIRST,), (FIRST, SECOND), [4]),
        ((FIRST, SECOND), (FIRST, SECOND), []),
        ((FIRST,), (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY), []),
        ((FIRST,), (LOST_DIRECTORY, FIRST), [1]),
        ((), (LOST_DIRECTORY, SECOND), [1]),
    ],
)
def test_replica_is_offline_if_its_directory_is_not_listed(
    log_dirs: tuple[Uuid, ...], directories: tuple[Uuid, ...], offline: list[int]
) -> None:
    """KIP-112, KIP-858: a broker that lists no directories may have all."""
    brokers = [replace(broker_image(number), log_dirs=log_dirs) for number in (1, 4)]
    view = partition_image(0, replicas=(1, 4), directories=directories)
    assert offline_replicas(image_of({}, brokers), view, LISTENER) == offline


def test_replica_is_offline_if_its_broker_cannot_be_reached() -> None:
    view = partition_image(0, replicas=(5, 4, 3, 2, 1))
    assert offline_replicas(cluster(), view, LISTENER) == [5, 3, 2]


def test_operations_are_the_bits_of_their_codes() -> None:
    """`AclEntry.supportedOperations` of 4.3.1, with the codes of `AclOperation`."""
    topic = {"READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8}
    configs = {"DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11}
    cluster_only = {"CLUSTER_ACTION": 9, "IDEMPOTENT_WRITE": 12}
    assert sum(1 << code for code in (topic | configs).values()) == TOPIC_OPERATIONS
    of_cluster = {name: topic[name] for name in ("CREATE", "ALTER", "DESCRIBE")}
    wanted = (of_cluster | configs | cluster_only).values()
    assert sum(1 << code for code in wanted) == CLUSTER_OPERATIONS
    assert (operation_bits([]), operation_bits([0, 3])) == (0, 9)


def test_topics_of_coordinators_are_internal() -> None:
    names = ["__consumer_offsets", "__transaction_state", "__share_group_state"]
    assert sorted(names) == sorted(INTERNAL_TOPICS)
    assert [is_internal(name) for name in (*names, "t", "__other")] == [True] * 3 + [False] * 2
