"""DeleteTopics: deletion that is switched off, and topics that are named twice."""

import pytest

from kraft_wire.model import Uuid
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
