"""What a heartbeat of a streams group must say, whatever the group: in Kafka's order and words."""

from collections.abc import Iterator
from typing import Final

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.topology.request_checks import (
    check_changelogs,
    check_regexes,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import StreamsGroupHeartbeatRequest

__all__ = ["JOIN", "LEAVE", "LEFT_FOR_A_WHILE", "check_request"]

JOIN: Final = 0
LEAVE: Final = -1
LEFT_FOR_A_WHILE: Final = -2
"""Member epochs of a request to join, to leave, and of a static member that will be back."""

_NOT_GIVEN: Final = -1


def check_request(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """Return why a request is refused. Errors: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    for message in _unsupported(request):
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    refused = None if request.topology is None else check_regexes(request.topology)
    if refused is not None:
        return refused
    for message in _texts(request):
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    refused = _check_join(request) if request.member_epoch == JOIN else _check_epoch(request)
    if refused is not None:
        return refused
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is None for each in tasks) and any(each is not None for each in tasks):
        message = "If one task-type is non-null, all must be non-null."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    if request.member_epoch != JOIN and request.topology is not None:
        message = "Topology can only be provided when (re-)joining."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest) -> Iterator[str]:
    """Yield what 4.3.1 does not support yet."""
    if request.instance_id is not None:
        yield "Static membership is not yet supported."
    if request.task_offsets is not None:
        yield "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        yield "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        yield "WarmupTasks are not supported yet."


def _texts(request: StreamsGroupHeartbeatRequest) -> Iterator[str]:
    named = (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    )
    for name, text in named:
        if text is not None and not text.strip():
            yield f"{name} can't be empty."


def _check_join(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    message = None
    if request.rebalance_timeout_ms == _NOT_GIVEN:
        message = "RebalanceTimeoutMs must be provided in first request."
    elif request.active_tasks is None or request.active_tasks:
        message = "ActiveTasks must be empty when (re-)joining."
    elif request.standby_tasks is None or request.standby_tasks:
        message = "StandbyTasks must be empty when (re-)joining."
    elif request.warmup_tasks is None or request.warmup_tasks:
        message = "WarmupTasks must be empty when (re-)joining."
    elif request.topology is None:
        message = "Topology must be non-null when (re-)joining."
    if message is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    assert request.topology is not None, request.member_id
    return check_changelogs(request.topology)


def _check_epoch(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    epoch = request.member_epoch
    if epoch == LEFT_FOR_A_WHILE:
        return Refusal(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    if epoch < LEFT_FOR_A_WHILE:
        message = f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None
