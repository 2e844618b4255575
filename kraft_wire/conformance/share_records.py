"""Share fetches and acknowledgements of one partition (KIP-932), for the cases about them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.requests import batch, written
from kraft_wire.conformance.share_members import MEMBER_ID, member_epoch, share_group
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.conformance.verdict import NothingYet
from kraft_wire.wire.generated import share_acknowledge as acknowledging
from kraft_wire.wire.generated import share_fetch as fetching
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeRequest
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest, ShareFetchResponse

__all__ = [
    "ACCEPT",
    "GAP",
    "REJECT",
    "RELEASE",
    "RENEW",
    "Batch",
    "acknowledge",
    "acquired",
    "expect_acquired",
    "fetch_partition",
    "records_of_a_group",
    "share_fetch",
]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Types of acknowledgement."""
Batch = tuple[int, int, Sequence[int]]
"""First offset, last offset, types."""
_WAIT_MS: Final = 5_000
_BYTES: Final = 1 << 20
_RECORDS: Final = 500
_RESET: Final = "share.auto.offset.reset"


@contextmanager
def records_of_a_group(
    broker: Subject, *batches: bytes, settings: dict[str, str] | None = None
) -> Iterator[tuple[str, Topic]]:
    """Write batches, or one of 3 records, for a new group with a member that reads from the start.

    Returns the group's id and the topic.
    """
    topic = broker.topic()
    written(broker, topic, *(batches or (batch(b"a", b"b", b"c"),)))
    with share_group(broker, {_RESET: "earliest", **(settings or {})}) as group_id:
        member_epoch(broker, group_id, topic)
        yield group_id, topic


def share_fetch(
    group_id: str | None,
    epoch: int,
    topic: Topic | None = None,
    *acknowledged: Batch,
    member_id: str | None = MEMBER_ID,
    partition: int = 0,
    max_records: int = _RECORDS,
    max_wait_ms: int = _WAIT_MS,
) -> ShareFetchRequest:
    """Return a share fetch that names a partition of a topic, or none."""
    named = fetching.FetchPartition(
        partition_index=partition,
        acknowledgement_batches=[
            fetching.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in acknowledged
        ],
    )
    topics = [] if topic is None else [(topic.topic_id, [named])]
    return ShareFetchRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=_BYTES,
        max_records=max_records,
        batch_size=_RECORDS,
        topics=[fetching.FetchTopic(topic_id=each, partitions=of) for each, of in topics],
        forgotten_topics_data=[],
    )


def acknowledge(
    group_id: str | None,
    epoch: int,
    topic: Topic,
    *batches: Batch,
    member_id: str | None = MEMBER_ID,
    partition: int = 0,
) -> ShareAcknowledgeRequest:
    """Return an acknowledgement of records of a partition."""
    named = acknowledging.AcknowledgePartition(
        partition_index=partition,
        acknowledgement_batches=[
            acknowledging.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in batches
        ],
    )
    topics = [acknowledging.AcknowledgeTopic(topic_id=topic.topic_id, partitions=[named])]
    return ShareAcknowledgeRequest(
        group_id=group_id, member_id=member_id, share_session_epoch=epoch, topics=topics
    )


def fetch_partition(field: str) -> str:
    """Return the path of a field of the first partition of a ShareFetchResponse."""
    return f"responses[0].partitions[0].{field}"


def acquired(answer: ShareFetchResponse) -> list[tuple[int, int, int]]:
    """Return first offset, last offset and delivery count of what a response acquired."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def expect_acquired(answer: ShareFetchResponse, *wanted: tuple[int, int, int]) -> None:
    """State that a response has no error and acquired some runs of records; raises Mismatch.

    A response without records may be early: a share fetch is also answered while the state of
    the records is being read or written. It raises NothingYet.
    """
    expect.error(answer, "error_code", ErrorCode.NONE)
    for topic in answer.responses:
        for each in topic.partitions:
            codes = (each.error_code, each.acknowledge_error_code)
            expect.true(not any(codes), "no error", codes, fetch_partition("error_code"))
    seen = acquired(answer)
    path = fetch_partition("acquired_records") if answer.responses else "responses"
    if wanted and not seen:
        raise NothingYet(str(list(wanted)), str(seen), path)
    expect.true(seen == list(wanted), str(list(wanted)), seen, path)
