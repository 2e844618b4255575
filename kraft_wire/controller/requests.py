"""Decide requests: the handler of the API runs, and its records are encoded for one batch.

`decide` reads the controller's image and changes no metadata. The host appends the records, calls
`Controller.appended`, and answers once they are committed.
"""

from dataclasses import replace

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.dispatch import handler, refuser
from kraft_wire.controller.refusal import BATCH_BYTES_MAX, BATCH_RECORDS_MAX
from kraft_wire.metadata.records import encode_record
from kraft_wire.wire.generated.alter_partition import AlterPartitionRequest
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from kraft_wire.wire.message import Message, UnencodableMessage

__all__ = ["decide", "names_nothing", "nobody_active", "refuse"]


def decide(
    controller: Controller, context: ControllerContext, request: Message
) -> ControllerResult:
    """Return the result of a request; its API must be one of the controller's.

    Errors in order: NOT_CONTROLLER while the controller is not active, the handler's own,
    INVALID_REQUEST where a record cannot be encoded, RECORD_LIST_TOO_LARGE.
    """
    assert context.now_ms >= 0, context
    assert context.wall_ms >= 0, context
    if not controller.is_active and not names_nothing(request):
        return ControllerResult(refuse(request, ErrorCode.NOT_CONTROLLER, nobody_active()))
    result = handler(request.API_KEY)(controller, context, request)
    assert len(result.records) <= BATCH_RECORDS_MAX or not result.is_atomic
    return _encoded(request, result) if result.records else result


def refuse(request: Message, error: ErrorCode, message: str | None) -> Message:
    """Return the response of the request's API that refuses it as a whole."""
    assert error is not ErrorCode.NONE
    return refuser(request.API_KEY)(request, error, message)


def names_nothing(request: Message) -> bool:
    """Return whether a request has an empty list: as in Kafka any controller answers it."""
    assert request.API_KEY >= 0, request
    match request:
        case AlterPartitionRequest() | AlterPartitionReassignmentsRequest():
            return not request.topics
        case ListPartitionReassignmentsRequest():
            return request.topics is not None and not request.topics
        case ElectLeadersRequest():
            return request.topic_partitions is not None and not request.topic_partitions
    return False


def nobody_active(leader_id: int = -1) -> str:
    """Return the message beside NOT_CONTROLLER, in Kafka's words; -1: no leader is known."""
    assert leader_id >= -1, leader_id
    if leader_id < 0:
        return "No controller appears to be active."
    return f"The active controller appears to be node {leader_id}."


def _encoded(request: Message, result: ControllerResult) -> ControllerResult:
    """Add the records as bytes, or refuse values too long for a record, or records for a batch.

    A byte of a request that is not UTF-8 becomes three bytes in a record, so a name may not fit.
    """
    try:
        values = tuple(encode_record(record) for record in result.records)
    except UnencodableMessage as problem:
        words = f"The change cannot be recorded: {problem}"
        return ControllerResult(refuse(request, ErrorCode.INVALID_REQUEST, words))
    if result.is_atomic and sum(map(len, values)) > BATCH_BYTES_MAX:
        words = f"The change takes more than {BATCH_BYTES_MAX} bytes of the metadata log."
        return ControllerResult(refuse(request, ErrorCode.RECORD_LIST_TOO_LARGE, words))
    assert len(values) == len(result.records)
    return replace(result, values=values)
