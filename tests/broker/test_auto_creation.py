"""Topics that Metadata has created: with whose defaults, and how often the controller is asked.

As `DefaultAutoTopicCreationManager` of 4.3.1 does it: a name that is on its way is not asked for
again; counts that the broker's own file does not name are the controller's to choose; Kafka's own
topics are made as their coordinators want them.
"""

from typing import Any

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers import metadata
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.broker.small_broker import context, image_of, small_broker


def broker_of(**file: str) -> Broker:
    """A broker with these lines in its file, dots as underscores; its controller is silent."""
    broker: Broker = small_broker(image_of({}))
    lines = {name.replace("_", "."): text for name, text in file.items()}
    broker.settings = BrokerSettings.of(NodeSettings(lines))
    return broker


def ask(broker: Broker, *names: str, now_ms: int = 0) -> list[int]:
    """Ask for topics as a producer does; return the errors."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    body = metadata.handle(broker, context(9, now_ms=now_ms), request).encode(9)
    return [topic.error_code for topic in MetadataResponse.decode(body, 9)[0].topics]


def asked(broker: Broker) -> list[list[CreatableTopic]]:
    """What the controller was asked to create, request by request."""
    channel: Any = broker.controller
    requests = [request for _, request in channel.asked]
    assert all(isinstance(each, CreateTopicsRequest) for each in requests)
    return [each.topics for each in requests]


def names_asked(broker: Broker) -> list[list[str]]:
    return [[topic.name for topic in topics] for topics in asked(broker)]


def answer(broker: Broker, number: int, error: ErrorCode) -> None:
    """Let the controller answer a request."""
    channel: Any = broker.controller
    tag, request = channel.asked[number]
    results = [CreatableTopicResult(name=each.name, error_code=error) for each in request.topics]
    broker.controller_answered(tag, CreateTopicsResponse(topics=results), broker.now_ms)


# -- how often ---------------------------------------------------------------------------------


def test_a_topic_that_is_on_its_way_is_not_asked_for_again() -> None:
    broker = broker_of()
    for _ in range(3):
        assert ask(broker, "new") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ask(broker, "new", "other") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert names_asked(broker) == [["new"], ["other"]]


def test_a_topic_that_was_refused_is_asked_for_again() -> None:
    broker = broker_of()
    ask(broker, "new")
    answer(broker, 0, ErrorCode.INVALID_REPLICATION_FACTOR)
    ask(broker, "new")
    assert names_asked(broker) == [["new"], ["new"]]


def test_a_topic_of_which_no_controller_says_anything_is_asked_for_again() -> None:
    broker = broker_of()
    ask(broker, "new")
    ask(broker, "new", now_ms=59_999)
    ask(broker, "new", now_ms=60_000)
    assert names_asked(broker) == [["new"], ["new"]]
    answer(broker, 0, ErrorCode.NONE)  # late: the second question is open all the same


def test_whoever_invents_names_does_not_make_the_broker_remember_all_of_them() -> None:
    broker = broker_of()
    for number in range(30):
        ask(broker, *(f"t-{number}-{each}" for each in range(1_000)))
    assert sum(map(len, names_asked(broker))) == 10_000


@pytest.mark.parametrize("version", [4, 8, 9, 13])
def test_nothing_is_created_for_a_client_that_forbids_it(version: int) -> None:
    broker = broker_of()
    topics = [MetadataRequestTopic(name="new")]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answered = metadata.handle(broker, context(version), request).encode(version)
    (topic,) = MetadataResponse.decode(answered, version)[0].topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert names_asked(broker) == []


def test_nothing_is_created_where_the_operator_forbids_it() -> None:
    broker = broker_of(auto_create_topics_enable="false")
    assert ask(broker, "new") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert names_asked(broker) == []


# -- with whose defaults -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "partitions", "replicas"),
    [
        ({}, -1, -1),
        ({"num_partitions": "4"}, 4, -1),
        ({"default_replication_factor": "3"}, -1, 3),
        ({"num_partitions": "1", "default_replication_factor": "1"}, 1, 1),
    ],
)
def test_the_controller_chooses_the_counts_that_the_brokers_file_does_not_name(
    file: dict[str, str], partitions: int, replicas: int
) -> None:
    broker = broker_of(**file)
    ask(broker, "new")
    ((topic,),) = asked(broker)
    assert (topic.num_partitions, topic.replication_factor) == (partitions, replicas)
    assert topic.configs == []


def test_kafkas_own_topics_are_made_as_their_coordinators_want_them() -> None:
    broker = broker_of(transaction_state_log_min_isr="1", num_partitions="7")
    ask(broker, "__consumer_offsets", "__transaction_state", "__share_group_state")
    (topics,) = asked(broker)
    assert [(each.num_partitions, each.replication_factor) for each in topics] == [(50, 3)] * 3
    assert [{each.name: each.value for each in topic.configs} for topic in topics] == [
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        },
        {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
        },
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": "104857600",
            "min.insync.replicas": "2",
            "retention.ms": "-1",
        },
    ]


# -- what a controller may say -----------------------------------------------------------------


@pytest.mark.parametrize(
    "topics",
    [
        [CreatableTopicResult(name="new", error_code=4_711)],
        [CreatableTopicResult(name="stranger", error_code=-1)],
        [CreatableTopicResult(name="new"), CreatableTopicResult(name="new", error_code=-1)],
        [],
    ],
    ids=["a code of a later release", "another topic", "twice", "nothing"],
)
def test_an_answer_that_cannot_be_right_costs_the_broker_nothing(
    topics: list[CreatableTopicResult],
) -> None:
    broker = broker_of()
    ask(broker, "new")
    channel: Any = broker.controller
    tag, _ = channel.asked[0]
    broker.controller_answered(tag, CreateTopicsResponse(topics=topics), broker.now_ms)
    channel.broker = broker
    channel.answer_at_once = lambda request: CreateTopicsResponse(topics=topics)
    assert ask(broker, "new")[0] in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, 4_711}
