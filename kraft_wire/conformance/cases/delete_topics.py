"""DeleteTopics, API key 20: by name and by id."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_CODE: Final = "responses[0].error_code"
_BY_ID: Final = 6
_SOURCE: Final = "kafka.server.ControllerApis, deleteTopics"


def _delete(broker: Subject, version: int, *names: str) -> DeleteTopicsResponse:
    request = DeleteTopicsRequest(timeout_ms=int(broker.target.timeout_s * 1000))
    if version >= _BY_ID:
        request.topics = [DeleteTopicState(name=each) for each in names]
    else:
        request.topic_names = list(names)
    return broker.ask(request, version, DeleteTopicsResponse)


@case("DeleteTopics", "KIP-4, DeleteTopics")
def existing_topic(broker: Subject, version: int) -> None:
    """A topic is deleted; deleting it again is UNKNOWN_TOPIC_OR_PARTITION.

    Create a topic, delete it twice.
    """
    name = broker.topic().name
    answer = _delete(broker, version, name)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "responses[0].name", name)
    expect.error(_delete(broker, version, name), _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DeleteTopics", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Delete a topic that does not exist.
    """
    answer = _delete(broker, version, broker.name("absent"))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DeleteTopics", _SOURCE)
def nothing_to_delete(broker: Subject, version: int) -> None:
    """A request without topics has a response without topics.

    Delete nothing.
    """
    expect.equal(_delete(broker, version), "responses", [])


@case("DeleteTopics", _SOURCE)
def same_topic_twice(broker: Subject, version: int) -> None:
    """A topic that the request names twice is refused with INVALID_REQUEST, and is not deleted.

    Name a topic twice, then delete it.
    """
    name = broker.topic().name
    expect.error(_delete(broker, version, name, name), _CODE, ErrorCode.INVALID_REQUEST)
    expect.error(_delete(broker, version, name), _CODE, ErrorCode.NONE)


@case("DeleteTopics", "KIP-516, DeleteTopics", since=_BY_ID)
def by_topic_id(broker: Subject, version: int) -> None:
    """A topic is deleted by its id, and the response names it.

    Create a topic, delete its id.
    """
    topic = broker.topic()
    wanted = DeleteTopicState(name=None, topic_id=topic.topic_id)
    request = DeleteTopicsRequest(topics=[wanted], timeout_ms=5000)
    answer = broker.ask(request, version, DeleteTopicsResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "responses[0].name", topic.name)


@case("DeleteTopics", "KIP-516, DeleteTopics", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Delete a topic id that does not exist.
    """
    wanted = DeleteTopicState(name=None, topic_id=Uuid(b"conform no topic"))
    request = DeleteTopicsRequest(topics=[wanted], timeout_ms=5000)
    answer = broker.ask(request, version, DeleteTopicsResponse)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_ID)


@case("DeleteTopics", _SOURCE, since=_BY_ID)
def name_and_id_at_once(broker: Subject, version: int) -> None:
    """An entry with both name and id is refused with INVALID_REQUEST.

    Delete an entry that has both.
    """
    topic = broker.topic()
    wanted = DeleteTopicState(name=topic.name, topic_id=topic.topic_id)
    request = DeleteTopicsRequest(topics=[wanted], timeout_ms=5000)
    answer = broker.ask(request, version, DeleteTopicsResponse)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("DeleteTopics", _SOURCE, since=_BY_ID)
def name_and_id_of_one_topic(broker: Subject, version: int) -> None:
    """A topic in two entries, by name and by id, is refused with INVALID_REQUEST.

    Delete a topic by name and by id in one request: one response for both.
    """
    topic = broker.topic()
    states = [DeleteTopicState(name=topic.name), DeleteTopicState(topic_id=topic.topic_id)]
    states[1].name = None
    request = DeleteTopicsRequest(topics=states, timeout_ms=5000)
    answer = broker.ask(request, version, DeleteTopicsResponse)
    count = len(answer.responses)
    expect.true(count == 1, "one response", count, "responses")
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
