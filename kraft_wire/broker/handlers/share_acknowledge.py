"""ShareAcknowledge, API key 79, versions 1-2.

Behaviour:   acknowledges, releases or rejects records that the member has acquired, or renews
             their locks · all batches of a partition or none · the answer leaves when they are
             written · epoch -1 closes the share session and releases the member's other records
Versions:    v2 renewal of locks, and their duration (KIP-1222)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading, arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.groups.share.request_checks import is_member_id
from kraft_wire.broker.metadata.metadata_cache import current_leader
from kraft_wire.broker.share_fetch.acknowledge_batches import AcknowledgeResults, acknowledge_all
from kraft_wire.broker.share_fetch.session import FINAL_EPOCH
from kraft_wire.broker.share_fetch.share_partitions import readable_topics, share_partitions_of
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

__all__ = ["handle"]

_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(
    broker: Broker, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | Parked:
    """Change the states of a member's records.

    Errors, first match wins: UNSUPPORTED_VERSION, INVALID_REQUEST (group, member),
    INVALID_SHARE_SESSION_EPOCH (0), SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH. Per
    partition those of `acknowledge_all`.
    """
    if not serves_share_groups(broker.image):
        return ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    group_id, member_id = request.group_id, request.member_id
    if group_id is None or member_id is None or not is_member_id(member_id):
        return ShareAcknowledgeResponse(error_code=ErrorCode.INVALID_REQUEST)
    shares = share_partitions_of(broker)
    shares.settle_closed(arrival_of(context))
    error = shares.sessions.begin_acknowledge(group_id, member_id, request.share_session_epoch)
    if error is not ErrorCode.NONE:
        return ShareAcknowledgeResponse(error_code=error)
    deferred = DeferredResponse[ShareAcknowledgeResponse](broker.complete, context.reply_to)

    def acknowledged(results: AcknowledgeResults, at: ClockReading) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            shares.close_session(group_id, member_id, at)
        deferred.send(_answer(broker, context, group_id, results))

    may_read = readable_topics(shares, context, request.API_KEY)
    acknowledge_all(shares, context, request, may_read, acknowledged)
    return deferred.result()


def _answer(
    broker: Broker, context: RequestContext, group_id: str, results: AcknowledgeResults
) -> ShareAcknowledgeResponse:
    topics: dict[Uuid, ShareAcknowledgeTopicResponse] = {}
    endpoints: dict[int, NodeEndpoint] = {}
    for (topic_id, number), outcome in results.items():
        data = PartitionData(
            partition_index=number, error_code=outcome.error, error_message=outcome.message
        )
        name = broker.topic_name(topic_id)
        if outcome.error in _LEADER_ERRORS and name is not None:
            leader = current_leader(broker.image, name, number, context.listener)
            data.current_leader = LeaderIdAndEpoch(
                leader_id=leader.broker_id, leader_epoch=leader.leader_epoch
            )
            if leader.host is not None:
                endpoints[leader.broker_id] = NodeEndpoint(
                    node_id=leader.broker_id, host=leader.host, port=leader.port, rack=leader.rack
                )
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id=topic_id)
        topic.partitions.append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=share_partitions_of(broker)
        .settings.of(group_id)
        .record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=list(endpoints.values()),
    )
