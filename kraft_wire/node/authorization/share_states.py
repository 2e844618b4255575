"""Refusals of requests to the share coordinator: an error for each share partition (KIP-932)."""

from collections.abc import Mapping
from typing import Any, Final

from kraft_wire.wire.generated import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from kraft_wire.wire.generated.delete_share_group_state import DeleteShareGroupStateResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateResponse
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponse,
)
from kraft_wire.wire.generated.write_share_group_state import WriteShareGroupStateResponse
from kraft_wire.wire.message import Message

__all__ = ["refuse_share_state", "requests_share_state"]

_PARTS: Final[Mapping[int, tuple[Any, Any, Any]]] = {
    InitializeShareGroupStateRequest.API_KEY: (
        InitializeShareGroupStateResponse,
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.PartitionResult,
    ),
    ReadShareGroupStateResponse.API_KEY: (
        ReadShareGroupStateResponse,
        read_share_group_state.ReadStateResult,
        read_share_group_state.PartitionResult,
    ),
    WriteShareGroupStateResponse.API_KEY: (
        WriteShareGroupStateResponse,
        write_share_group_state.WriteStateResult,
        write_share_group_state.PartitionResult,
    ),
    DeleteShareGroupStateResponse.API_KEY: (
        DeleteShareGroupStateResponse,
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.PartitionResult,
    ),
    ReadShareGroupStateSummaryResponse.API_KEY: (
        ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.PartitionResult,
    ),
}
"""By API key: the response and its parts, which have the same fields in all of them."""


def requests_share_state(request: Message) -> bool:
    """Whether a request is to the share coordinator."""
    return request.API_KEY in _PARTS


def refuse_share_state(request: Any, error: ErrorCode, words: str | None) -> Message:
    """Return an error for each share partition that a request names."""
    response, topic_result, partition_result = _PARTS[request.API_KEY]
    results = [
        topic_result(
            topic_id=topic.topic_id,
            partitions=[
                partition_result(partition=each.partition, error_code=error, error_message=words)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    refused: Message = response(results=results)
    return refused
