"""The acknowledgements of one request: their form, who may send them, and their results.

ShareFetch and ShareAcknowledge name them in the same way. Each partition has a result of its own;
the request is answered when the last write is confirmed or refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.acknowledge import Acknowledgement
from kraft_wire.broker.share_fetch.share_partition import Outcome
from kraft_wire.broker.share_fetch.share_partitions import SharePartitions
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["AcknowledgeRequest", "AcknowledgeResults", "acknowledge_all"]

_RENEW: Final = 4
_FIRST_RENEW_VERSION: Final = 2
_NO_ERROR: Final = Outcome(ErrorCode.NONE)

AcknowledgeResults: TypeAlias = dict[tuple[Uuid, int], Outcome]
"""By topic id and partition, in the order of the request."""


class _Batch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class _Partition(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[_Batch]: ...


class _Topic(Protocol):
    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[_Partition]: ...


class AcknowledgeRequest(Protocol):
    """What both requests have in common."""

    group_id: str | None
    member_id: str | None
    is_renew_ack: bool

    @property
    def topics(self) -> Sequence[_Topic]:
        """The topics with their partitions and batches."""
        ...


def acknowledge_all(
    shares: SharePartitions,
    context: RequestContext,
    request: AcknowledgeRequest,
    may_read: Callable[[str], bool],
    then: Callable[[AcknowledgeResults, ClockReading], None],
) -> None:
    """Acknowledge what a request names; `then` gets the results, maybe before this returns.

    Errors per partition, first match wins: UNKNOWN_TOPIC_ID, INVALID_REQUEST (the form),
    TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, those of `acknowledge`. As in Kafka a
    partition without batches has a result only beside one with batches.
    """
    results: AcknowledgeResults = {}
    wanted: dict[tuple[Uuid, int], list[Acknowledgement]] = {}
    idle: AcknowledgeResults = {}
    max_type = _RENEW if context.api_version >= _FIRST_RENEW_VERSION else _RENEW - 1
    for topic in request.topics:
        name = shares.broker.topic_name(topic.topic_id)
        for partition in topic.partitions:
            key = topic.topic_id, partition.partition_index
            batches = [
                Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
                for each in partition.acknowledgement_batches
            ]
            error = _refusal(shares, name, key[1], batches, may_read, max_type, request)
            results.pop(key, None)
            if error != ErrorCode.NONE:
                results[key] = Outcome(error)
            elif batches:
                wanted[key] = batches
            else:
                idle[key] = _NO_ERROR
    at = ClockReading(context.now_ms, context.wall_ms)
    if not wanted:
        then(results, at)
        return
    _send(shares, request, wanted, {**results, **idle}, at, then)


def _send(
    shares: SharePartitions,
    request: AcknowledgeRequest,
    wanted: Mapping[tuple[Uuid, int], Sequence[Acknowledgement]],
    results: AcknowledgeResults,
    at: ClockReading,
    then: Callable[[AcknowledgeResults, ClockReading], None],
) -> None:
    """Acknowledge in each share partition; answer after the last one."""
    waiting = dict.fromkeys(wanted)
    group_id, member_id = request.group_id or "", request.member_id or ""

    def done(key: tuple[Uuid, int], outcome: Outcome, at: ClockReading) -> None:
        results[key] = outcome
        del waiting[key]
        if not waiting:
            then(results, at)

    for key, batches in wanted.items():
        shares.acknowledge(
            SharePartitionKey(group_id, *key),
            member_id,
            batches,
            at,
            lambda outcome, at, key=key: done(key, outcome, at),  # type: ignore[misc]  # a default binds it
        )


def _refusal(
    shares: SharePartitions,
    topic: str | None,
    number: int,
    batches: Sequence[Acknowledgement],
    may_read: Callable[[str], bool],
    max_type: int,
    request: AcknowledgeRequest,
) -> ErrorCode:
    """Return why a partition's batches are refused before they come to a share partition."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not _are_sound(batches, max_type, may_renew=request.is_renew_ack):
        return ErrorCode.INVALID_REQUEST
    if not may_read(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = shares.broker.image.topic(topic)
    if found is None or number not in found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _are_sound(batches: Sequence[Acknowledgement], max_type: int, *, may_renew: bool) -> bool:
    """Whether batches are in order, and have one type for all offsets or one for each."""
    end_offset = -1
    for first, last, types in batches:
        if first > last or first < end_offset or not types:
            return False
        if len(types) > 1 and len(types) != last - first + 1:
            return False
        if not all(0 <= each <= max_type for each in types):
            return False
        if _RENEW in types and not may_renew:
            return False
        end_offset = last
    return True
