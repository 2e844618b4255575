"""Metadata, API key 3: brokers, topics, their leaders, and topics made on demand."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_CODE: Final = "topics[0].error_code"
_BY_ID: Final = 12
_GUIDE: Final = "Kafka protocol guide, Metadata API"


def _named(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=each) for each in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def _answer(broker: Subject, version: int, request: MetadataRequest) -> MetadataResponse:
    return broker.ask(request, version, MetadataResponse)


@case("Metadata", _GUIDE, since=4)
def one_topic(broker: Subject, version: int) -> None:
    """A topic has each partition once, and each leader is in replicas and ISR.

    Ask for a topic of three partitions.
    """
    topic = broker.topic(3)
    answer = _answer(broker, version, _named(topic.name))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "topics[0].name", topic.name)
    expect.equal(answer, "topics[0].is_internal", False)
    found = answer.topics[0].partitions
    indexes = sorted(each.partition_index for each in found)
    expect.true(indexes == [0, 1, 2], "partitions 0, 1, 2", indexes, "topics[0].partitions")
    brokers = {each.node_id for each in answer.brokers}
    for index, each in enumerate(found):
        path = f"topics[0].partitions[{index}]"
        expect.equal(answer, f"{path}.error_code", 0)
        leads = each.leader_id in each.isr_nodes and each.leader_id in each.replica_nodes
        expect.true(leads, "a leader in ISR and replicas", each.leader_id, f"{path}.leader_id")
        known = each.leader_id in brokers
        expect.true(known, "a leader among the brokers", each.leader_id, f"{path}.leader_id")


@case("Metadata", _GUIDE, until=3)
def one_topic_in_older_versions(broker: Subject, version: int) -> None:
    """A topic has each partition once.

    Ask for a topic of three partitions that exists.
    """
    topic = broker.topic(3)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    indexes = sorted(each.partition_index for each in answer.topics[0].partitions)
    expect.true(indexes == [0, 1, 2], "partitions 0, 1, 2", indexes, "topics[0].partitions")


@case("Metadata", _GUIDE, since=4)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION without auto-creation.

    Ask for a topic that does not exist, without auto-creation.
    """
    name = broker.name("absent")
    answer = _answer(broker, version, _named(name))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    expect.equal(answer, "topics[0].name", name)
    expect.equal(answer, "topics[0].partitions", [])


@case("Metadata", "org.apache.kafka.common.internals.Topic, validate", since=4)
def invalid_topic_name(broker: Subject, version: int) -> None:
    """An invalid topic name gets INVALID_TOPIC_EXCEPTION.

    Ask for a name that ends with "/" with auto-creation allowed.
    """
    name = f"{broker.name()}/"
    broker.made_topics.append(name)
    answer = _answer(broker, version, _named(name, create=True))
    expect.error(answer, _CODE, ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("Metadata", _GUIDE, since=1)
def no_topics(broker: Subject, version: int) -> None:
    """An empty list of topics returns brokers and no topics.

    Ask for no topic.
    """
    answer = _answer(broker, version, MetadataRequest(topics=[]))
    expect.equal(answer, "topics", [])
    expect.true(len(answer.brokers) > 0, "at least one broker", answer.brokers, "brokers")


@case("Metadata", _GUIDE, since=1)
def all_topics(broker: Subject, version: int) -> None:
    """A null list of topics returns every topic.

    Create a topic, ask for all.
    """
    topic = broker.topic()
    answer = _answer(broker, version, MetadataRequest(topics=None))
    names = [each.name for each in answer.topics]
    expect.true(topic.name in names, f"{topic.name} among them", len(names), "topics")


@case("Metadata", _GUIDE, until=0)
def all_topics_in_version_0(broker: Subject, version: int) -> None:
    """An empty list of topics means every topic in version 0.

    Create a topic, ask for none.
    """
    topic = broker.topic()
    answer = _answer(broker, version, MetadataRequest(topics=[]))
    names = [each.name for each in answer.topics]
    expect.true(topic.name in names, f"{topic.name} among them", len(names), "topics")


@case("Metadata", "KIP-78", since=2)
def cluster_id(broker: Subject, version: int) -> None:
    """The response has the cluster's id.

    Ask for no topic.
    """
    answer = _answer(broker, version, MetadataRequest(topics=[]))
    expect.true(bool(answer.cluster_id), "a cluster id", answer.cluster_id, "cluster_id")


@case("Metadata", _GUIDE, since=1)
def controller_is_a_broker(broker: Subject, version: int) -> None:
    """The controller id names one of the brokers, or is -1.

    Ask for no topic.
    """
    answer = _answer(broker, version, MetadataRequest(topics=[]))
    known = {-1, *(each.node_id for each in answer.brokers)}
    expect.true(answer.controller_id in known, "a broker", answer.controller_id, "controller_id")


@case("Metadata", "KIP-516, Metadata", since=10)
def topic_id(broker: Subject, version: int) -> None:
    """A topic has the id from its creation.

    Create a topic, ask for it by name.
    """
    topic = broker.topic()
    answer = _answer(broker, version, _named(topic.name))
    expect.equal(answer, "topics[0].topic_id", topic.topic_id)
    expect.true(topic.topic_id != ZERO_UUID, "an id", topic.topic_id, "topics[0].topic_id")


@case("Metadata", "KIP-516, Metadata", since=_BY_ID)
def by_topic_id(broker: Subject, version: int) -> None:
    """A topic can be requested by its id.

    Ask for an id with a null name.
    """
    topic = broker.topic()
    wanted = MetadataRequestTopic(topic_id=topic.topic_id, name=None)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "topics[0].name", topic.name)


@case("Metadata", "KIP-516, Metadata", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Ask for a topic id that does not exist.
    """
    wanted = MetadataRequestTopic(topic_id=Uuid(b"conform no topic"), name=None)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.UNKNOWN_TOPIC_ID)


@case("Metadata", "KIP-430", since=8)
def operations_that_were_not_asked_for(broker: Subject, version: int) -> None:
    """Authorized operations are the smallest int32 if they are not requested.

    Ask for a topic without its operations.
    """
    answer = _answer(broker, version, _named(broker.topic().name))
    expect.equal(answer, "topics[0].topic_authorized_operations", -(1 << 31))


@case("Metadata", "KIP-430", since=8)
def operations_that_were_asked_for(broker: Subject, version: int) -> None:
    """Authorized operations are a bit set if they are requested.

    Ask for a topic with its operations.
    """
    request = _named(broker.topic().name)
    request.include_topic_authorized_operations = True
    answer = _answer(broker, version, request)
    seen = answer.topics[0].topic_authorized_operations
    path = "topics[0].topic_authorized_operations"
    expect.true(seen >= 0, "a bit set", seen, path)


@case("Metadata", "KIP-516, Metadata", since=12)
def null_name_beside_a_name(broker: Subject, version: int) -> None:
    """A topic with neither name nor id fails the whole request; 4.3.1: UNKNOWN_SERVER_ERROR.

    Ask for a topic, and for one without name and id.
    """
    request = _named(broker.topic().name)
    assert request.topics is not None
    request.topics.append(MetadataRequestTopic(name=None))
    answer = _answer(broker, version, request)
    expect.internal_error(answer, _CODE)


@case("Metadata", "KIP-516, Metadata", since=10, until=_BY_ID - 1)
def topic_ids_in_versions_without_them(broker: Subject, version: int) -> None:
    """Versions 10 and 11 have topic ids in requests, but refuse them with INVALID_REQUEST.

    Ask for a topic by its id, then by name and id.
    """
    topic = broker.topic()
    for name in (None, topic.name):
        wanted = MetadataRequestTopic(topic_id=topic.topic_id, name=name)
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        answer = _answer(broker, version, request)
        expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
        expect.equal(answer, "topics[0].partitions", [])


@case("Metadata", "kafka.server.KafkaApis, handleTopicMetadataRequest", since=_BY_ID)
def name_beside_an_id(broker: Subject, version: int) -> None:
    """A request with a topic id is one by ids: topics without an id are not answered.

    Ask for one topic by name and for another one by id.
    """
    named, known = broker.topic(), broker.topic()
    request = _named(named.name)
    assert request.topics is not None
    request.topics.append(MetadataRequestTopic(topic_id=known.topic_id, name=None))
    names = [each.name for each in _answer(broker, version, request).topics]
    expect.true(names == [known.name], f"{known.name} alone", names, "topics")


@case("Metadata", "kafka.server.KafkaApis, handleTopicMetadataRequest", since=4)
def same_topic_twice(broker: Subject, version: int) -> None:
    """A topic that is named twice is described once, also one that does not exist.

    Ask for a topic twice, and twice for one that does not exist.
    """
    wanted = [broker.topic().name, broker.name("absent")]
    answer = _answer(broker, version, _named(*wanted, *wanted))
    found = sorted(each.name or "" for each in answer.topics)
    expect.true(found == sorted(wanted), "each topic once", found, "topics")


@case("Metadata", _GUIDE, since=1)
def internal_topic(broker: Subject, version: int) -> None:
    """The topic of committed offsets is internal.

    Find a group's coordinator, ask for __consumer_offsets.
    """
    name = broker.offsets_topic().name
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "topics[0].is_internal", True)


@case("Metadata", "KIP-430", since=8, until=10)
def operations_on_the_cluster(broker: Subject, version: int) -> None:
    """Authorized operations on the cluster are returned if they are requested.

    Ask for no topic, without the operations and with them.
    """
    answer = _answer(broker, version, MetadataRequest(topics=[]))
    expect.equal(answer, "cluster_authorized_operations", -(1 << 31))
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    answer = _answer(broker, version, request)
    seen = answer.cluster_authorized_operations
    expect.true(seen >= 0, "a bit set", seen, "cluster_authorized_operations")
