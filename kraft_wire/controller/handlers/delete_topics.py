"""DeleteTopics, API key 20, versions 1-6.

Behaviour:   deletes topics by name, from v6 on also by id; each is deleted or refused on its own;
             `delete.topic.enable=false` refuses all; the response has name and id
Versions:    v5 error message, refused beyond the quota on topic changes, older ones only throttled
             (KIP-599) · v4 flexible · v6 topic ids (KIP-516)
Left out:    nothing
"""

from collections import Counter
from collections.abc import Iterator
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

    Errors, first match wins: TOPIC_DELETION_DISABLED of the request (INVALID_REQUEST below v3); per
    topic INVALID_REQUEST (neither or both of name and id, named twice), UNKNOWN_TOPIC_OR_PARTITION
    or UNKNOWN_TOPIC_ID, POLICY_VIOLATION (too many records). Last of all a topic may be refused by
    the quota: THROTTLING_QUOTA_EXCEEDED.
    """
    version = context.api_version
    assert request.MIN_VERSION <= version <= request.MAX_VERSION, version
    if not controller.settings.boolean("delete.topic.enable"):
        is_old = version < _DELETION_DISABLED_FROM
        error = ErrorCode.INVALID_REQUEST if is_old else ErrorCode.TOPIC_DELETION_DISABLED
        return ControllerResult(refuse(request, error, None))
    states = request.topics
    if version < _IDS_FROM:
        states = [DeleteTopicState(name=name) for name in request.topic_names]
    changes = topic_changes(controller, context, strict_from=_STRICT_FROM)
    asked = _Asked(controller, states)
    results: list[DeletableTopicResult] = []
    doomed: list[VersionedRecord] = []
    for state in asked.answered():
        result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
        try:
            topic = asked.topic(state, result)
            check_room(len(doomed) + 1, "topics")
            result.name, result.topic_id = topic.name, topic.topic_id
            changes.take(len(topic.partitions))
            doomed.append(VersionedRecord(RemoveTopicRecord(topic_id=topic.topic_id)))
        except Refusal as refusal:
            result.error_code = refusal.error
            result.error_message = refusal.message
        results.append(result)
    assert len(doomed) <= len(results) <= len(states)
    response = DeleteTopicsResponse(throttle_time_ms=changes.throttle_ms, responses=results)
    return ControllerResult(response, doomed)


def refuse(
    request: DeleteTopicsRequest, error: ErrorCode, message: str | None
) -> DeleteTopicsResponse:
    """Return the answer that refuses the request as a whole, without a message as in Kafka."""
    assert error is not ErrorCode.NONE
    states = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=state.name, topic_id=state.topic_id, error_code=error, error_message=None
            )
            for state in states
        ]
    )


class _Asked:
    """The topics of a request, of which each may be named by its name, its id, or wrongly."""

    def __init__(self, controller: Controller, states: list[DeleteTopicState]) -> None:
        self._controller = controller
        self._states = states
        self._named = Counter((state.name, state.topic_id) for state in states)
        self._ids = {state.topic_id for state in states if state.name is None} - {ZERO_UUID}
        self._with_name = set()
        assert ZERO_UUID not in self._ids, "it names no topic"
        """Ids of the topics that are named by their name, once."""
        for state in states:
            is_by_name = state.name is not None and state.topic_id == ZERO_UUID
            if is_by_name and self._named[state.name, state.topic_id] == 1:
                topic = controller.image.topic(state.name or "")
                self._with_name |= {topic.topic_id} if topic is not None else set()

    def answered(self) -> Iterator[DeleteTopicState]:
        """Yield what has an answer: repeated topics once, and of a topic with both its name."""
        seen = set()
        for state in self._states:
            key = state.name, state.topic_id
            is_well_formed = (state.name is None) != (state.topic_id == ZERO_UUID)
            is_named = state.name is None and state.topic_id in self._with_name
            if is_well_formed and (key in seen or (is_named and self._named[key] == 1)):
                continue
            seen.add(key)
            yield state
        assert seen <= self._named.keys()

    def topic(self, state: DeleteTopicState, result: DeletableTopicResult) -> TopicImage:
        """Return the topic to delete; a Refusal if it is named wrongly or does not exist."""
        words = None
        if state.name is None and state.topic_id == ZERO_UUID:
            words = "Neither topic name nor id were specified."
        elif state.name is not None and state.topic_id != ZERO_UUID:
            words = "You may not specify both topic name and topic id."
        elif self._named[state.name, state.topic_id] > 1:
            words = "Duplicate topic id." if state.name is None else "Duplicate topic name."
        if words is not None:
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
        topic = _find(self._controller, state)
        assert topic.topic_id != ZERO_UUID, topic
        if state.name is not None and topic.topic_id in self._ids:
            result.topic_id = topic.topic_id
            words = "The provided topic name maps to an ID that was already supplied."
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
        return topic


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
