"""ShareFetch, API key 78, versions 1-2.

Behaviour:   acknowledges what the request names, then acquires records for the member · returns
             whole batches from that of the first acquired record to that of the last, with the
             acquired offsets and their delivery counts · waits for MinBytes until MaxWait, and
             while nothing may be acquired · the answer leaves when the acknowledgements are
             written · does not ask whether the member is in the group
Versions:    v2 acquire modes (KIP-1206), renewal of locks (KIP-1222)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.share.request_checks import is_member_id
from kraft_wire.broker.purgatory import DelayedFetch
from kraft_wire.broker.share_fetch.acknowledge_batches import acknowledge_all
from kraft_wire.broker.share_fetch.session import SessionPartition, ShareFetchContext, rotated
from kraft_wire.broker.share_fetch.share_answer import ShareFetchAnswer
from kraft_wire.broker.share_fetch.share_fetch_run import Results, ShareFetchRun, failed_data
from kraft_wire.broker.share_fetch.share_partitions import (
    SharePartitions,
    readable_topics,
    share_partitions_of,
)
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest, ShareFetchResponse

__all__ = ["handle"]

_FIRST_RENEW_VERSION: Final = 2
_ACQUIRE_MODES: Final = (0, 1)


def handle(
    broker: Broker, context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse | Parked:
    """Acknowledge, acquire, or wait for records.

    Errors, first match wins: UNSUPPORTED_VERSION, INVALID_REQUEST (group, member, limits of a
    renewing request), those of `ShareSessions.begin_fetch`, UNKNOWN_SERVER_ERROR (no such acquire
    mode), INVALID_SHARE_SESSION_EPOCH (another request of the session came meanwhile). A session
    too many is refused after MaxWait. Errors per partition, first match wins: UNKNOWN_TOPIC_ID,
    TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER or
    KAFKA_STORAGE_ERROR, those of loading a share partition.
    """
    if not serves_share_groups(broker.image):
        return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None or not is_member_id(request.member_id):
        return ShareFetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    renews = context.api_version >= _FIRST_RENEW_VERSION and request.is_renew_ack
    limits = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    if renews and any(limits):
        return ShareFetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    shares = share_partitions_of(broker)
    shares.settle_closed(arrival_of(context))
    fetch = shares.sessions.begin_fetch(
        request.group_id,
        request.member_id or "",
        request,
        context.connection_id,
        broker.topic_name,
    )
    if fetch is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        return _refuse_later(broker, context, request)
    if isinstance(fetch, ErrorCode):
        return ShareFetchResponse(error_code=fetch)
    return _served(shares, context, request, fetch, renews=renews)


def _served(
    shares: SharePartitions,
    context: RequestContext,
    request: ShareFetchRequest,
    fetch: ShareFetchContext,
    *,
    renews: bool,
) -> ShareFetchResponse | Parked:
    answer = ShareFetchAnswer(shares, context, request, fetch)
    may_read = readable_topics(shares, context, request.API_KEY)
    at = arrival_of(context)
    if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
        acknowledge_all(shares, context, request, may_read, answer.acknowledged)
    else:
        answer.acknowledged({}, at)
    if renews:
        answer.fetched([], at)  # a lock that was just renewed must not end while this waits
        return answer.now_or_later()
    wanted: list[SessionPartition] = []
    refused: Results = []
    for each in fetch.partitions(shares.broker.topic_name):
        error = ErrorCode.NONE
        if each.topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not may_read(each.topic):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not _exists(shares, each.topic, each.partition):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error is ErrorCode.NONE:
            wanted.append(each)
        else:
            refused.append((each, failed_data(each.partition, error)))
    if wanted and request.share_acquire_mode not in _ACQUIRE_MODES:
        return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    run = ShareFetchRun(shares, context, request, answer.fetched)
    run.begin(rotated(wanted, fetch.epoch), refused)
    return answer.now_or_later()


def _exists(shares: SharePartitions, topic: str, number: int) -> bool:
    found = shares.broker.image.topic(topic)
    return found is not None and number in found.partitions


def _refuse_later(
    broker: Broker, context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse | Parked:
    """Refuse a session too many after the time that its fetch would have waited."""
    refusal = ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED)
    if request.max_wait_ms <= 0 or broker.is_stopping:
        return refusal

    def refuse(now_ms: int, expired: bool) -> bool:
        broker.complete(context.reply_to, refusal)
        return True

    deadline_ms = context.now_ms + request.max_wait_ms
    broker.fetch_purgatory.park(DelayedFetch(context.reply_to, deadline_ms, refuse, []))
    return PARKED
