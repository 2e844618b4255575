"""DeleteTopics, API key 20, versions 1-6.

Behaviour:   deletes topics by name, from v6 on also by id; each is deleted or refused on its own;
             `delete.topic.enable=false` refuses all; the response has name and id
Versions:    v5 error message, refused beyond the quota on topic changes, older ones only throttled
             (KIP-599) · v4 flexible · v6 topic ids (KIP-516)
Left out:    nothing
"""

from collections import Counter
from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import Refusal, check_room
from kraft_wire.controller.topic_change_quota import topic_changes
from kraft_wire.metadata.image import TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord

__all__ = ["handle", "refuse"]

_IDS_FROM: Final = 6
_STRICT_FROM: Final = 5
_DELETION_DISABLED_FROM: Final = 3


def handle(
    controller: Controller, context: ControllerContext, request: DeleteTopicsRequest
) -> ControllerResult:
    """Delete topics.

    Errors per topic, first match wins: TOPIC_DELETION_DISABLED (INVALID_REQUEST below v3),
    INVALID_REQUEST (neither or both of name and id, named twice), UNKNOWN_TOPIC_OR_PARTITION or
    UNKNOWN_TOPIC_ID, POLICY_VIOLATION (too many records). Last of
    all a topic may be refused by the quota: THROTTLING_QUOTA_EXCEEDED.
    """
    version = context.api_version
    assert request.MIN_VERSION <= version <= request.MAX_VERSION, version
    states = request.topics
    if version < _IDS_FROM:
        states = [DeleteTopicState(name=name) for name in request.topic_names]
    changes = topic_changes(controller, context, strict_from=_STRICT_FROM)
    named = Counter((state.name, state.topic_id) for state in states)
    results: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    doomed: dict[bytes, VersionedRecord] = {}
    named_twice = _named_by_id_and_name(controller, states)
    for state in states:
        if state.name is None and state.topic_id in named_twice:
            continue
        result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
        try:
            _check_enabled(controller, version)
            _check_state(state, named[state.name, state.topic_id])
            topic = _find(controller, state)
            if topic.topic_id in named_twice:
                result.topic_id = topic.topic_id
                words = "The provided topic name maps to an ID that was already supplied."
                raise Refusal(ErrorCode.INVALID_REQUEST, words)
            check_room(len(doomed) + 1, "topics")
            result.name, result.topic_id = topic.name, topic.topic_id
            changes.take(len(topic.partitions))
            record = RemoveTopicRecord(topic_id=topic.topic_id)
            doomed[topic.topic_id] = VersionedRecord(record)
        except Refusal as refusal:
            result.error_code = refusal.error
            result.error_message = refusal.message
        results[state.name, state.topic_id] = result
    assert len(results) == len(named) - len(named_twice)
    assert len(doomed) <= len(results)
    response = DeleteTopicsResponse(
        throttle_time_ms=changes.throttle_ms, responses=list(results.values())
    )
    return ControllerResult(response, list(doomed.values()))


def refuse(
    request: DeleteTopicsRequest, error: ErrorCode, message: str | None
) -> DeleteTopicsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    states = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=state.name, topic_id=state.topic_id, error_code=error, error_message=message
            )
            for state in states
        ]
    )


def _named_by_id_and_name(controller: Controller, states: list[DeleteTopicState]) -> set[bytes]:
    """Return the ids of topics that a request has by name and by id; the name is answered."""
    ids = {state.topic_id for state in states if state.name is None}
    found = (controller.image.topic(state.name) for state in states if state.name is not None)
    return {topic.topic_id for topic in found if topic is not None and topic.topic_id in ids}


def _check_enabled(controller: Controller, version: int) -> None:
    if controller.settings.boolean("delete.topic.enable"):
        return
    words = ErrorCode.TOPIC_DELETION_DISABLED.message
    if version < _DELETION_DISABLED_FROM:
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED, words)


def _check_state(state: DeleteTopicState, count: int) -> None:
    assert count > 0, state
    words = None
    if state.name is None and state.topic_id == ZERO_UUID:
        words = "Neither topic name nor id were specified."
    elif state.name is not None and state.topic_id != ZERO_UUID:
        words = "You may not specify both topic name and topic id."
    elif count > 1:
        words = "Duplicate topic id." if state.name is None else "Duplicate topic name."
    if words is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, words)


def _find(controller: Controller, state: DeleteTopicState) -> TopicImage:
    assert (state.name is None) != (state.topic_id == ZERO_UUID), state
    if state.name is None:
        topic = controller.image.topic_by_id(state.topic_id)
        if topic is None:
            raise Refusal.of(ErrorCode.UNKNOWN_TOPIC_ID)
        assert topic.topic_id == state.topic_id
        return topic
    topic = controller.image.topic(state.name)
    if topic is None:
        raise Refusal.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic
