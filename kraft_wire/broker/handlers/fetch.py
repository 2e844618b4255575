"""Fetch, API key 1, versions 4-18.

Behaviour:   returns whole batches, the first of which contains the requested offset · returns the
             first batch of the response whatever its size · waits for MinBytes until MaxWait,
             unless an existing partition has an error or diverges · an unknown topic or partition
             is an error of that partition · a follower reads to the log end, and its fetch offsets
             acknowledge records to the leader; a consumer may read committed records from a
             follower, and is sent to one in its rack if `replica.selector.class` is Kafka's
             selector
Versions:    v7 sessions (KIP-227) · v9 leader epoch fencing (KIP-320) · v11 reading from followers
             (KIP-392) · v12 divergence (KIP-595) · v13 topic ids (KIP-516) · v15 the broker's epoch
             (KIP-903) · v16 node endpoints (KIP-951)
Left out:    throttling of followers; selectors of read replicas but Kafka's own
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.fetching.fetch_run import FetchRun
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.broker.purgatory import DelayedFetch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

__all__ = ["handle", "refuse"]

_ISOLATION_LEVELS: Final = (0, 1)
_RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_CONSUMER: Final = -1
_UNKNOWN: Final = -1
_UNKNOWN_PARTITION: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_NO_RECORDS: Final = b""
_FIRST_SESSION_VERSION: Final = 7
_FIRST_TOPIC_ID_VERSION: Final = 13
_FIRST_REPLICA_STATE_VERSION: Final = 15


def handle(
    broker: Broker, context: RequestContext, request: FetchRequest
) -> FetchResponse | Parked:
    """Return what there is, or wait for more.

    KIP-227 for sessions. Top-level errors are those of `FetchSessionCache.begin`; per partition,
    first match wins: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER of what
    others have, KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID, FENCED_LEADER_EPOCH,
    UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH (without an epoch
    NOT_LEADER_OR_FOLLOWER) of a node without a replica, OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER
    of a broker that is not registered, or was before. Below version 6 KAFKA_STORAGE_ERROR is
    NOT_LEADER_OR_FOLLOWER. A parked fetch is read again from the top when a partition of it grows.
    UNKNOWN_SERVER_ERROR is what Kafka answers to an isolation level that does not exist, where a
    partition of the fetch does.
    """
    replica_id, replica_epoch = _replica(request, context.api_version)
    is_follower = replica_id >= 0
    # Non-obvious 14: below version 7 the defaults of the fields mean "no session".
    begun = broker.fetch_sessions.begin(
        request,
        context.api_version,
        context.now_ms,
        privileged=is_follower,
        topic_names=broker.topic_name,
        owner=context.principal,
    )
    if isinstance(begun, ErrorCode):
        return FetchResponse(error_code=begun)
    run = FetchRun(broker, context, request, begun, replica_id, replica_epoch)
    if broker.rights is not None:
        run.refuse(broker.rights.fetch_rights(context, is_follower=is_follower))
    if request.isolation_level not in _ISOLATION_LEVELS and _reads_any(broker, run):
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, context.api_version)
    if broker.settings.replica_selector_class == _RACK_AWARE and not is_follower:
        run.rack = request.rack_id
    results = run.read()
    if run.is_satisfied() or request.max_wait_ms <= 0 or broker.is_stopping:
        return run.response(results, context.now_ms)
    purgatory, count = broker.fetch_purgatory, len(begun.partitions())
    has_room = purgatory.partitions_count + count <= broker.settings.purgatory_max_partitions
    watched = run.watched() if has_room else []
    if not watched:
        return run.response(results, context.now_ms)
    deadline_ms = context.now_ms + request.max_wait_ms
    purgatory.park(
        DelayedFetch(context.reply_to, deadline_ms, run.run_again, watched, is_follower, count)
    )
    return PARKED


def _reads_any(broker: Broker, run: FetchRun) -> bool:
    """Whether a partition of the fetch exists; Kafka reads the level only then."""
    return any(
        wanted.topic is not None
        and wanted.key not in run.nowhere
        and no_replica_error(broker.image, wanted.topic, wanted.partition) is not _UNKNOWN_PARTITION
        for wanted in run.fetch.partitions()
    )


def refuse(request: FetchRequest, error: ErrorCode, version: int) -> FetchResponse:
    """Refuse a whole request, in its session; before topic ids, its partitions have the error too.

    `FetchRequest.getErrorResponse` of 4.3.1.
    """
    if version >= _FIRST_TOPIC_ID_VERSION:
        return FetchResponse(error_code=error, session_id=request.session_id)
    topics = [
        FetchableTopicResponse(
            topic=topic.topic,
            partitions=[
                PartitionData(
                    partition_index=each.partition,
                    error_code=error,
                    high_watermark=_UNKNOWN,
                    records=_NO_RECORDS,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    top_level = error if version >= _FIRST_SESSION_VERSION else ErrorCode.NONE
    return FetchResponse(error_code=top_level, session_id=request.session_id, responses=topics)


def _replica(request: FetchRequest, version: int) -> tuple[int, int]:
    """Return the sender's broker id and epoch, if it is a broker."""
    if version < _FIRST_REPLICA_STATE_VERSION:
        return request.replica_id, _UNKNOWN
    state = request.replica_state
    return (_CONSUMER, _UNKNOWN) if state is None else (state.replica_id, state.replica_epoch)
