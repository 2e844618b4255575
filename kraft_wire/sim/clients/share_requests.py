"""Requests of a share session (KIP-932): what a member fetches, and what it acknowledges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.wire.generated import share_acknowledge, share_fetch
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeRequest
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest

__all__ = [
    "Acknowledged",
    "Batch",
    "acknowledge_request",
    "acknowledged_by_partition",
    "fetch_request",
    "records_of",
]

_BYTES_MAX: Final = 2_000
_RECORDS_MAX: Final = 20

Batch = tuple[Uuid, int, int, int, int]
"""Topic id, partition, first and last offset, delivery count."""
Acknowledged = tuple[Batch, int]
"""A batch, and how its records are acknowledged."""


def records_of(batch: Batch) -> list[tuple[Uuid, int, int]]:
    """Return topic id, partition and offset of each record."""
    topic_id, number, first, last, _ = batch
    return [(topic_id, number, offset) for offset in range(first, last + 1)]


def acknowledged_by_partition(
    acknowledged: Iterable[Acknowledged],
) -> dict[tuple[Uuid, int], list[Acknowledged]]:
    """Return the batches of each partition, in the order of their offsets."""
    found: dict[tuple[Uuid, int], list[Acknowledged]] = {}
    for batch, kind in sorted(acknowledged):
        found.setdefault(batch[:2], []).append((batch, kind))
    return found


def _types(first_offset: int, last_offset: int, kind: int) -> list[int]:
    """Return one type for all records, or one for each, which means the same."""
    count = last_offset - first_offset + 1
    return [kind] * (count if first_offset % 2 else 1)


def acknowledge_request(
    group: str, member_id: str, session_epoch: int, acknowledged: Sequence[Acknowledged]
) -> ShareAcknowledgeRequest:
    """Return a request that only acknowledges."""
    topics: dict[Uuid, share_acknowledge.AcknowledgeTopic] = {}
    for at, batches in acknowledged_by_partition(acknowledged).items():
        topic = topics.setdefault(at[0], share_acknowledge.AcknowledgeTopic(topic_id=at[0]))
        listed = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=_types(first, last, kind)
            )
            for (_, _, first, last, _), kind in batches
        ]
        topic.partitions.append(
            share_acknowledge.AcknowledgePartition(
                partition_index=at[1], acknowledgement_batches=listed
            )
        )
    return ShareAcknowledgeRequest(
        group_id=group,
        member_id=member_id,
        share_session_epoch=session_epoch,
        topics=list(topics.values()),
    )


def fetch_request(
    group: str,
    member_id: str,
    session_epoch: int,
    new: Iterable[tuple[Uuid, int]],
    acknowledged: Mapping[tuple[Uuid, int], Sequence[Acknowledged]],
) -> ShareFetchRequest:
    """Return a request that names what is new in the session, and what it acknowledges."""
    topics: dict[Uuid, share_fetch.FetchTopic] = {}
    for at in sorted({*new, *acknowledged}):
        topic = topics.setdefault(at[0], share_fetch.FetchTopic(topic_id=at[0]))
        listed = [
            share_fetch.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=_types(first, last, kind)
            )
            for (_, _, first, last, _), kind in acknowledged.get(at, [])
        ]
        topic.partitions.append(
            share_fetch.FetchPartition(partition_index=at[1], acknowledgement_batches=listed)
        )
    return ShareFetchRequest(
        group_id=group,
        member_id=member_id,
        share_session_epoch=session_epoch,
        max_wait_ms=50,
        min_bytes=1,
        max_bytes=_BYTES_MAX,
        max_records=_RECORDS_MAX,
        batch_size=_RECORDS_MAX,
        topics=list(topics.values()),
    )
