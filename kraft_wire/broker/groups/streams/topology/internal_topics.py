"""Creation of the internal topics that a streams group lacks, as its members' heartbeats ask.

The answer to a heartbeat says what the client may not create, and which creations have failed.
A topic whose creation failed is not requested again while the error is kept: two heartbeats.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kraft_wire.broker.groups.streams.topology.failures import GroupStatus
from kraft_wire.broker.metadata.topic_creation import ANSWER_WITHIN_MS, TopicCreation
from kraft_wire.broker.ports import AskController
from kraft_wire.wire.error_names import error_of
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsResponse
from kraft_wire.wire.generated.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse

__all__ = ["InternalTopicCreation", "create_internal_topics"]

_ERRORS_MAX: Final = 1_000
_SHOWN_MAX: Final = 3
_TIMED_OUT: Final = "CreateTopicsRequest to controller timed out"


class _KeptError(NamedTuple):
    message: str
    until_ms: int


class _Unanswered(NamedTuple):
    names: list[str]
    until_ms: int
    errors_kept_ms: int


class InternalTopicCreation:
    """Requests internal topics of the controller, and keeps the errors for a while."""

    __slots__ = ("_creation", "_errors", "_unanswered")

    def __init__(self, ask_controller: AskController) -> None:
        """`ask_controller` sends a request and calls back with the response, or never."""
        self._creation = TopicCreation(ask_controller)
        self._errors: dict[str, _KeptError] = {}
        self._unanswered: deque[_Unanswered] = deque()

    def request(
        self, topics: Mapping[str, CreatableTopic], errors_kept_ms: int, now_ms: int
    ) -> None:
        """Request topics, but for those that failed lately; errors are kept so long."""
        self._time_out(now_ms)
        wanted = {name: topic for name, topic in topics.items() if not self.errors([name], now_ms)}
        unanswered = _Unanswered([], now_ms + ANSWER_WITHIN_MS, errors_kept_ms)

        def answered(response: CreateTopicsResponse, now_ms: int) -> None:
            if unanswered in self._unanswered:
                self._unanswered.remove(unanswered)
            for topic in response.topics:
                if topic.error_code and topic.name is not None:
                    message = topic.error_message or error_of(topic.error_code).message
                    self._keep(topic.name, message, now_ms, errors_kept_ms)

        unanswered.names.extend(self._creation.send(wanted, now_ms, answered))
        if unanswered.names:
            self._unanswered.append(unanswered)

    def errors(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Return the messages that are kept, in the order of the names."""
        found = {name: self._errors[name] for name in names if name in self._errors}
        return {name: each.message for name, each in found.items() if each.until_ms > now_ms}

    def _time_out(self, now_ms: int) -> None:
        """Note what the controller has not answered, as of the time when that was clear."""
        while self._unanswered and self._unanswered[0].until_ms <= now_ms:
            unanswered = self._unanswered.popleft()
            for name in unanswered.names:
                self._keep(name, _TIMED_OUT, unanswered.until_ms, unanswered.errors_kept_ms)

    def _keep(self, name: str, message: str, now_ms: int, kept_ms: int) -> None:
        errors = self._errors
        errors[name] = _KeptError(message, now_ms + kept_ms)
        for each in [each for each, error in errors.items() if error.until_ms <= now_ms]:
            del errors[each]
        if len(errors) > _ERRORS_MAX:
            del errors[min(errors, key=lambda each: errors[each].until_ms)]


def create_internal_topics(
    response: StreamsGroupHeartbeatResponse,
    topics: Mapping[str, CreatableTopic],
    *,
    may_create: Callable[[str], bool] | None,
    creation: InternalTopicCreation,
    errors_kept_ms: int,
    now_ms: int,
) -> None:
    """Request topics, and complete the status of the answer to the heartbeat that lacks them.

    `may_create` decides whether the client may create a topic; None: there is no authorizer. With
    one that it may not create, nothing is created. `errors_kept_ms` is twice the group's heartbeat
    interval.
    """
    if not topics:
        return
    refused = [] if may_create is None else [name for name in topics if not may_create(name)]
    if refused:
        _add_detail(response, f"Unauthorized to CREATE on topics {', '.join(refused)}.")
        return
    creation.request(topics, errors_kept_ms, now_ms)
    errors = creation.errors(topics, now_ms)
    if errors and _missing_topics_status(response) is not None:
        _add_detail(response, f"Creation failed: {_summary(errors)}.")


def _summary(errors: Mapping[str, str]) -> str:
    listed = [f"{name} ({message})" for name, message in errors.items()]
    shown, more = ", ".join(listed[:_SHOWN_MAX]), len(listed) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    status = _missing_topics_status(response)
    if status is not None:
        status.status_detail = f"{status.status_detail}; {detail}"
        return
    status = Status(status_code=GroupStatus.MISSING_INTERNAL_TOPICS, status_detail=detail)
    response.status = [*(response.status or ()), status]


def _missing_topics_status(response: StreamsGroupHeartbeatResponse) -> Status | None:
    for status in response.status or ():
        if status.status_code == GroupStatus.MISSING_INTERNAL_TOPICS:
            return status
    return None
