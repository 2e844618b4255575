"""DeleteTopics: deletion that is switched off, and topics that are named twice."""

import pytest

from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.cluster import OneNodeCluster
from tests.controller.plain_requests import create


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_switched_off(version: int, error: ErrorCode) -> None:
    cluster = OneNodeCluster({"delete.topic.enable": "false"})
    response = cluster.ask(DeleteTopicsRequest(topic_names=["t"]), version)
    assert isinstance(response, DeleteTopicsResponse)
    assert [each.error_code for each in response.responses] == [error]


def test_deletion_that_is_switched_off_is_refused_for_each_mention_without_a_message() -> None:
    """ControllerApis.deleteTopics and DeleteTopicsRequest.getErrorResponse of 4.3.1."""
    cluster = OneNodeCluster({"delete.topic.enable": "false"})
    states = [DeleteTopicState(name="t"), DeleteTopicState(name="t")]
    response = cluster.ask(DeleteTopicsRequest(topics=states), 6)
    assert isinstance(response, DeleteTopicsResponse)
    answers = [(each.name, each.error_code, each.error_message) for each in response.responses]
    assert answers == [("t", ErrorCode.TOPIC_DELETION_DISABLED, None)] * 2


TWICE = "Duplicate topic name."
MAPS = "The provided topic name maps to an ID that was already supplied."
BOTH = "You may not specify both topic name and topic id."
NEITHER = "Neither topic name nor id were specified."


@pytest.mark.parametrize(
    ("mentions", "answers", "is_deleted"),
    [
        ("name id", [("t", "id", MAPS)], False),
        ("name name id", [("t", "", TWICE), ("t", "id", None)], True),
        ("id id name", [(None, "id", "Duplicate topic id."), ("t", "id", MAPS)], False),
        ("both id", [("t", "id", BOTH), ("t", "id", None)], True),
        ("both name", [("t", "id", BOTH), ("t", "id", None)], True),
        ("both both", [("t", "id", BOTH), ("t", "id", BOTH)], False),
        ("neither neither", [(None, "", NEITHER), (None, "", NEITHER)], False),
    ],
)
def test_each_way_to_name_a_topic_is_answered_as_in_kafka(
    mentions: str, answers: list[tuple[str | None, str, str | None]], is_deleted: bool
) -> None:
    """ControllerApis.deleteTopics of 4.3.1, which gives its answers in any order."""
    cluster = OneNodeCluster()
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    topic_id = cluster.loader.image.topics_by_name["t"].topic_id
    states = {
        "name": DeleteTopicState(name="t"),
        "id": DeleteTopicState(name=None, topic_id=topic_id),
        "both": DeleteTopicState(name="t", topic_id=topic_id),
        "neither": DeleteTopicState(name=None),
    }
    request = DeleteTopicsRequest(topics=[states[each] for each in mentions.split()])
    response = cluster.ask(request, 6)
    assert isinstance(response, DeleteTopicsResponse)
    ids = {topic_id: "id", ZERO_UUID: ""}
    found = [(each.name, ids[each.topic_id], each.error_message) for each in response.responses]
    assert found == answers
    assert ("t" not in cluster.loader.image.topics_by_name) == is_deleted


def test_topic_named_by_name_and_by_id_is_not_deleted() -> None:
    cluster = OneNodeCluster()
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    topic_id = cluster.loader.image.topics_by_name["t"].topic_id
    states = [
        DeleteTopicState(name="t"),
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name="t", topic_id=topic_id),
    ]
    response = cluster.ask(DeleteTopicsRequest(topics=states), 6)
    assert isinstance(response, DeleteTopicsResponse)
    codes = [each.error_code for each in response.responses]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert cluster.loader.image.topics_by_name.keys() == {"t"}


def test_errors_in_order() -> None:
    """A topic that does not exist is named twice."""

    def error(settings: dict[str, str], *states: DeleteTopicState) -> int:
        request = DeleteTopicsRequest(topics=list(states))
        response = OneNodeCluster(settings).ask(request, 6)
        assert isinstance(response, DeleteTopicsResponse)
        return response.responses[0].error_code

    absent = DeleteTopicState(name="absent")
    disabled = {"delete.topic.enable": "false"}
    assert error(disabled, absent, absent) == ErrorCode.TOPIC_DELETION_DISABLED
    assert error({}, absent, absent) == ErrorCode.INVALID_REQUEST
    assert error({}, absent) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_id = DeleteTopicState(name=None, topic_id=Uuid(b"id of no topic.."))
    assert error({}, by_id) == ErrorCode.UNKNOWN_TOPIC_ID
