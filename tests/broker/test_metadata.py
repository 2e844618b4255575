"""Metadata: which topics a request means, and each error before those that come after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.metadata import handle
from kraft_wire.broker.response_cache import AnswersOfImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.message import Message
from tests.broker.small_broker import (
    broker_image,
    context,
    id_of,
    image_of,
    partition_image,
    publish,
    small_broker,
)

UNKNOWN_ID = Uuid(b"nobody knows it.")


@pytest.fixture
def broker() -> Broker:
    brokers = [broker_image(1), broker_image(2, fenced=True), broker_image(3, listener="INTERNAL")]
    topics = {
        "led": [partition_image(0, leader_epoch=7)],
        "unled": [
            partition_image(0, leader=-1),
            partition_image(1, leader=2, replicas=(2, 1)),
            partition_image(2, leader=3, replicas=(3,)),
        ],
    }
    return small_broker(image_of(topics, brokers), auto_create_topics_enable=False)


def ask(
    broker: Broker, version: int, topics: Sequence[MetadataRequestTopic] | None
) -> MetadataResponse:
    body = answer(broker, version, topics).encode(version)
    response, end = MetadataResponse.decode(body, version)
    assert end == len(body)
    return response


def answer(
    broker: Broker, version: int, topics: Sequence[MetadataRequestTopic] | None, **asked: bool
) -> Message:
    wanted = None if topics is None else list(topics)
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, **asked)
    return handle(broker, context(version), request)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def errors(response: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [
        (0, [], ["led", "unled"]),
        (1, [], []),
        (1, None, ["led", "unled"]),
        (13, None, ["led", "unled"]),
        (13, [], []),
    ],
)
def test_no_topics_mean_all_in_version_0_and_none_since(
    broker: Broker,
    version: int,
    topics: list[MetadataRequestTopic] | None,
    expected: list[str],
) -> None:
    assert [topic.name for topic in ask(broker, version, topics).topics] == expected


def test_brokers_are_those_of_the_listener_that_are_not_fenced(broker: Broker) -> None:
    response = ask(broker, 13, None)
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [
        (1, "host1", 9001)
    ]
    assert response.controller_id == 1


def test_topic_that_is_named_twice_is_answered_once(broker: Broker) -> None:
    assert errors(ask(broker, 9, named("led", "led"))) == [("led", E.NONE)]


def test_unknown_and_invalid_names_are_told_apart(broker: Broker) -> None:
    assert errors(ask(broker, 9, named("absent", "no/name"))) == [
        ("absent", E.UNKNOWN_TOPIC_OR_PARTITION),
        ("no/name", E.INVALID_TOPIC_EXCEPTION),
    ]


def test_request_with_any_id_is_one_by_ids(broker: Broker) -> None:
    topics = [
        MetadataRequestTopic(name=None, topic_id=id_of("led")),
        MetadataRequestTopic(name=None, topic_id=UNKNOWN_ID),
        MetadataRequestTopic(name="unled"),
    ]
    response = ask(broker, 12, topics)
    assert errors(response) == [(None, E.UNKNOWN_TOPIC_ID), ("led", E.NONE)]
    assert response.topics[0].topic_id == UNKNOWN_ID


def test_missing_names_come_behind_the_topics_that_exist(broker: Broker) -> None:
    """4.3.1's `KafkaApis.getTopicMetadata`."""
    names = ("absent", "unled", "no/name", "led")
    assert [name for name, _ in errors(ask(broker, 9, named(*names)))] == [
        *("unled", "led"),
        *("absent", "no/name"),
    ]


def test_ids_before_version_12_refuse_the_request(broker: Broker) -> None:
    topics = [MetadataRequestTopic(name="led", topic_id=id_of("led")), *named("unled")]
    assert errors(ask(broker, 11, topics)) == [
        ("led", E.INVALID_REQUEST),
        ("unled", E.INVALID_REQUEST),
    ]


@pytest.mark.parametrize(("version", "top_level"), [(12, E.NONE), (13, E.UNKNOWN_SERVER_ERROR)])
def test_topic_without_name_and_id_refuses_the_request(
    broker: Broker, version: int, top_level: E
) -> None:
    response = ask(broker, version, [MetadataRequestTopic(name=None)])
    assert [topic.error_code for topic in response.topics] == [E.UNKNOWN_SERVER_ERROR]
    assert response.error_code == top_level


@pytest.mark.parametrize(
    ("version", "absent"), [(5, E.LEADER_NOT_AVAILABLE), (6, E.LISTENER_NOT_FOUND)]
)
def test_partition_without_a_leader_that_a_client_reaches_says_why(
    broker: Broker, version: int, absent: E
) -> None:
    (topic,) = ask(broker, version, named("unled")).topics
    assert topic.error_code == E.NONE
    assert [(each.error_code, each.leader_id) for each in topic.partitions] == [
        (E.LEADER_NOT_AVAILABLE, -1),
        (E.LEADER_NOT_AVAILABLE, -1),
        (absent, -1),
    ]
    assert [each.offline_replicas for each in topic.partitions] == [[], [2], [3]]


def test_first_version_leaves_out_replicas_that_a_client_does_not_reach() -> None:
    """4.3.1's `KRaftMetadataCache.partitionMetadata` with `errorUnavailableEndpoints`."""
    partitions = [
        partition_image(0, replicas=(1, 2), isr=(1,)),
        partition_image(1, replicas=(1, 3), isr=(3, 1)),
        partition_image(2, replicas=(2, 1), leader=-1, isr=(2,)),
        partition_image(3),
    ]
    brokers = [broker_image(1), broker_image(2, fenced=True), broker_image(3, listener="INTERNAL")]
    broker = small_broker(image_of({"t": partitions}, brokers))
    (topic,) = ask(broker, 0, named("t")).topics
    assert [
        (each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes)
        for each in topic.partitions
    ] == [
        (E.REPLICA_NOT_AVAILABLE, 1, [1], [1]),
        (E.REPLICA_NOT_AVAILABLE, 1, [1], [1]),
        (E.LEADER_NOT_AVAILABLE, -1, [1], []),
        (E.NONE, 1, [1], [1]),
    ]
    (topic,) = ask(broker, 1, named("t")).topics
    assert [each.replica_nodes for each in topic.partitions] == [[1, 2], [1, 3], [2, 1], [1]]


@pytest.mark.parametrize(
    ("log_dirs", "directory", "is_offline"),
    [
        ([7, 8], 7, False),
        ([7, 8], 9, True),
        ([7, 8], 0, False),
        ([7, 8], 1, False),
        ([7, 8], 2, True),
        ([], 9, False),
        ([], 2, True),
    ],
)
def test_replica_in_a_failed_directory_is_offline(
    log_dirs: list[int], directory: int, is_offline: bool
) -> None:
    """4.3.1's `KRaftMetadataCache.isReplicaInOfflineDir`: 0, 1 and 2 are reserved ids."""
    second = replace(broker_image(2), log_dirs=tuple(map(uuid_of, log_dirs)))
    partition = partition_image(0, replicas=(1, 2), directories=(uuid_of(0), uuid_of(directory)))
    broker = small_broker(image_of({"t": [partition]}, [broker_image(1), second]))
    (found,) = ask(broker, 12, named("t")).topics[0].partitions
    assert found.offline_replicas == ([2] if is_offline else [])


def uuid_of(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


def test_partition_with_a_leader_shows_it_with_its_epoch(broker: Broker) -> None:
    (partition,) = ask(broker, 13, named("led")).topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (E.NONE, 1, 7)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])


def test_second_client_gets_the_bytes_that_were_made_for_the_first(broker: Broker) -> None:
    assert answer(broker, 12, named("led")) is answer(broker, 12, named("led"))
    assert answer(broker, 12, None) is answer(broker, 12, None)


@pytest.mark.parametrize(
    ("version", "topics", "asked"),
    [
        (11, named("led"), {}),
        (10, named("unled"), {}),
        (10, named("led", "unled"), {}),
        (10, None, {}),
        (10, named("led"), {"include_topic_authorized_operations": True}),
        (10, named("led"), {"include_cluster_authorized_operations": True}),
    ],
)
def test_answer_is_that_of_a_broker_that_nobody_asked_before(
    broker: Broker,
    version: int,
    topics: Sequence[MetadataRequestTopic] | None,
    asked: dict[str, bool],
) -> None:
    fresh = answer(broker, version, topics, **asked).encode(version)
    broker.described_topics = AnswersOfImage()
    answer(broker, 10, named("led"))
    assert answer(broker, version, topics, **asked).encode(version) == fresh


def test_answer_ends_with_the_image_that_it_was_made_of(broker: Broker) -> None:
    assert ask(broker, 12, named("led")).topics[0].partitions[0].leader_epoch == 7
    led = {"led": [partition_image(0, leader_epoch=8)]}
    publish(broker, image_of(led, [broker_image(1)]))
    assert ask(broker, 12, named("led")).topics[0].partitions[0].leader_epoch == 8


def test_topic_that_is_missing_is_asked_for_each_time(broker: Broker) -> None:
    answer(broker, 12, named("led", "absent"))
    answer(broker, 12, named("led", "led"))
    assert broker.described_topics.size_bytes == 0


def test_answers_take_no_more_than_their_bytes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = len(answer(broker, 12, named("led")).encode(12))
    assert broker.described_topics.size_bytes == size_bytes
    monkeypatch.setattr(AnswersOfImage, "BYTES_MAX", size_bytes)
    assert answer(broker, 12, None) is not answer(broker, 12, None), "larger than all may be"
    assert broker.described_topics.size_bytes == 0
    assert answer(broker, 12, named("led")) is answer(broker, 12, named("led"))
    assert broker.described_topics.size_bytes == size_bytes
