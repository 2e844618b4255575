"""What a ConsumerGroupHeartbeat must say, whatever its group: in Kafka's order and words."""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.groups.consumer.checks import LEFT_FOR_A_WHILE
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_request"]

_JOIN: Final = 0
_LEAVE: Final = -1
_CLIENT_MADE_IDS_FROM: Final = 1


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> Refusal | None:
    """Return why a request is refused.

    Errors, first match wins: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    message = _ids(request, version) or _epoch(request)
    if message is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    assignor = request.server_assignor
    if assignor is None or assignor in assignors:
        return None
    return Refusal(
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
    )


def _ids(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    epoch = request.member_epoch
    needs_id = version >= _CLIENT_MADE_IDS_FROM or epoch > _JOIN or epoch == _LEAVE
    if needs_id and not request.member_id.strip():
        return "MemberId can't be empty."
    named = (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    for name, value in named:
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    return None


def _epoch(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.member_epoch == _JOIN:
        return _joining(request)
    if request.member_epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if request.member_epoch < LEFT_FOR_A_WHILE else None


def _joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )
    return None
