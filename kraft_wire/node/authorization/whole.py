"""Guards of requests that are served or refused as a whole, and the answers that refuse them.

The rights are those of the table; if a request has several steps, each has its own error.
"""

from typing import Final

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from kraft_wire.apis.rights import ResourceType
from kraft_wire.broker.handlers.fetch import refuse as refuse_fetch
from kraft_wire.controller.requests import refuse
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.share_states import (
    refuse_share_state,
    requests_share_state,
)
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraft_wire.wire.generated.describe_client_quotas import DescribeClientQuotasResponse
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["cluster", "group", "nothing", "refused", "transaction"]

_PROTOCOL_NULLABLE_FROM: Final = 7
"""Of JoinGroup."""


def nothing(asked: Asked) -> Verdict:
    """Serve every client: the table names no right."""
    assert not asked.needs, asked.request.NAME
    return Passed(asked.request)


def cluster(asked: Asked) -> Verdict:
    """Refuse the whole request without its only right, which is on the cluster."""
    (need,) = asked.needs
    assert all(right.resource is ResourceType.CLUSTER for right in need.rights), need
    if asked.asker.meets(need):
        return Passed(asked.request)
    return refused(asked.request, need.error, asked.context.api_version)


def group(asked: Asked) -> Verdict:
    """Refuse a request about one group without the right on it."""
    (need,) = asked.needs
    if asked.asker.meets(need, str(getattr(asked.request, "group_id"))):  # noqa: B009  # of several classes
        return Passed(asked.request)
    return refused(asked.request, need.error, asked.context.api_version)


def transaction(asked: Asked) -> Verdict:
    """Refuse a request about one transactional id without the rights on it and on its group."""
    for need in asked.needs:
        is_id = need.rights[-1].resource is ResourceType.TRANSACTIONAL_ID
        field = "transactional_id" if is_id else "group_id"
        if not asked.asker.meets(need, str(getattr(asked.request, field))):
            return refused(asked.request, need.error, asked.context.api_version)
    return Passed(asked.request)


def refused(request: Message, error: ErrorCode, version: int) -> Message:
    """Return an answer of only an error to a request, in Kafka's form (`getErrorResponse`)."""
    if APIS[request.API_KEY].owner is Owner.CONTROLLER:
        return refuse(request, error, error.message)
    match request:
        case AlterReplicaLogDirsRequest():
            return _moves(request, error)
        case WriteTxnMarkersRequest():
            return _markers(request, error)
        case DescribeUserScramCredentialsRequest():
            users = [
                DescribeUserScramCredentialsResult(error_code=error, error_message=None)
                for _ in request.users or ()
            ]
            return DescribeUserScramCredentialsResponse(
                error_code=error, error_message=None, results=users
            )
        case DescribeConfigsRequest():
            return _configs(request, error)
        case FetchRequest():
            return refuse_fetch(request, error, version)
    if requests_share_state(request):
        return refuse_share_state(request, error, error.message)
    answer = response_class(request.API_KEY)()
    _set_error(answer, error)
    if isinstance(answer, JoinGroupResponse):
        answer.generation_id = -1
        answer.protocol_name = None if version >= _PROTOCOL_NULLABLE_FROM else ""
    elif isinstance(answer, DescribeClientQuotasResponse):
        answer.entries, answer.error_message = None, None
    return answer


def _set_error(answer: Message, error: ErrorCode) -> None:
    """Set the common fields of answers: a top-level error code, and a message."""
    assert "error_code" in answer.field_names, answer.NAME
    setattr(answer, "error_code", error)  # noqa: B010  # of several classes
    for name in ("producer_id", "producer_epoch"):
        if name in answer.field_names:
            setattr(answer, name, -1)
    if "error_message" in answer.field_names:
        setattr(answer, "error_message", error.message)  # noqa: B010  # as above


def _moves(request: AlterReplicaLogDirsRequest, error: ErrorCode) -> AlterReplicaLogDirsResponse:
    """Repeat each topic under each directory, as it is named."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _markers(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _configs(request: DescribeConfigsRequest, error: ErrorCode) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=error,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )
