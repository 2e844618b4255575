"""ShareFetch, API key 78: members of share groups acquire records (KIP-932)."""

import time
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import batch, deleted_below, written
from kraft_wire.conformance.share_members import (
    MEMBER_ID,
    OTHER_MEMBER_ID,
    ask_about_shares,
    member_epoch,
    share_group,
)
from kraft_wire.conformance.share_records import (
    ACCEPT,
    REJECT,
    RELEASE,
    acquired,
    expect_acquired,
    fetch_partition,
    records_of_a_group,
    share_fetch,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import ended, new_producer, written_in
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)

_API: Final = "ShareFetch"
_SOURCE: Final = "KIP-932, ShareFetch API"
_SESSIONS: Final = "KIP-932, Share sessions"
_START: Final = "KIP-932, share.auto.offset.reset"
_HALF_A_DAY_MS: Final = 12 * 3_600_000
_RENEWAL_SINCE: Final = 2
_RECORD_LIMIT: Final = 1
_FINAL: Final = -1
_DELIVERIES_MAX: Final = 2
_LOCK_MS: Final = 20_000
_LISTED_AFTER_MS: Final = 500
"""Until then 4.3.1 may not list a partition that it still locks for the fetch before."""


def _sent(broker: Subject, version: int, request: ShareFetchRequest) -> ShareFetchResponse:
    return ask_about_shares(broker, request, version, ShareFetchResponse)


def _refused(broker: Subject, version: int, request: ShareFetchRequest, code: ErrorCode) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "responses", [])
    seen = answer.acquisition_lock_timeout_ms
    expect.as_release(seen == 0, "0", seen, "acquisition_lock_timeout_ms")


@case(_API, _SOURCE)
def new_records(broker: Subject, version: int) -> None:
    """A member acquires new records, for a lock's time, with delivery count 1.

    Write 3 records, open a share session.
    """
    with records_of_a_group(broker) as (group_id, topic):
        answer = _sent(broker, version, share_fetch(group_id, 0, topic))
        expect_acquired(answer, (0, 2, 1))
        expect.equal(answer, "responses[0].topic_id", topic.topic_id)
        expect.equal(answer, fetch_partition("partition_index"), 0)
        lock = answer.acquisition_lock_timeout_ms
        expect.true(lock > 0, "a lock's time", lock, "acquisition_lock_timeout_ms")
        records = bytes(answer.responses[0].partitions[0].records or b"")  # type: ignore[arg-type]  # decoded frames hold bytes
        wanted = batch(b"a", b"b", b"c")
        expect.true(records[16:] == wanted[16:], "the batch", records, fetch_partition("records"))


@case(_API, _SOURCE)
def locked_records(broker: Subject, version: int) -> None:
    """Records that a member has acquired are given to no other one.

    Write 3 records, open share sessions of two members.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        other = share_fetch(
            group_id, 0, topic, member_id=OTHER_MEMBER_ID, max_wait_ms=_LISTED_AFTER_MS
        )
        expect_acquired(_sent(broker, version, other))


@case(_API, _SOURCE)
def released_records(broker: Subject, version: int) -> None:
    """Released records are given again, with delivery count 2.

    Write 3 records, acquire them, fetch with an acknowledgement that releases the second.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        request = share_fetch(group_id, 1, topic, (0, 2, [ACCEPT, RELEASE, REJECT]))
        expect_acquired(_sent(broker, version, request), (1, 1, 2))


@case(_API, _SOURCE)
def accepted_records(broker: Subject, version: int) -> None:
    """Accepted records are given no more; an acknowledgement's result is beside new records.

    Write 3 records, acquire them, write 1 record, fetch with an acknowledgement of the first 3.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        written(broker, topic, batch(b"d"))
        request = share_fetch(group_id, 1, topic, (0, 2, [ACCEPT]))
        answer = _sent(broker, version, request)
        expect.error(answer, fetch_partition("acknowledge_error_code"), ErrorCode.NONE)
        expect_acquired(answer, (3, 3, 1))


@case(_API, _SOURCE)
def deliveries_of_each_record(broker: Subject, version: int) -> None:
    """Each record counts its own deliveries, within a batch too.

    Write 3 records, acquire them, release and acquire the first, release and acquire all.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        first = share_fetch(group_id, 1, topic, (0, 0, [RELEASE]))
        expect_acquired(_sent(broker, version, first), (0, 0, 2))
        every = share_fetch(group_id, 2, topic, (0, 2, [RELEASE]))
        expect_acquired(_sent(broker, version, every), (0, 0, 3), (1, 2, 2))


@case(_API, "KIP-932, share.record.lock.duration.ms")
def lock_of_the_group(broker: Subject, version: int) -> None:
    """The response has the time of a lock that its group has.

    Set share.record.lock.duration.ms to 20000, write 3 records, open a share session.
    """
    settings = {"share.record.lock.duration.ms": str(_LOCK_MS)}
    with records_of_a_group(broker, settings=settings) as (group_id, topic):
        answer = _sent(broker, version, share_fetch(group_id, 0, topic))
        expect_acquired(answer, (0, 2, 1))
        expect.equal(answer, "acquisition_lock_timeout_ms", _LOCK_MS)


@case(_API, _SOURCE)
def last_delivery(broker: Subject, version: int) -> None:
    """A record that is released at the limit of deliveries is given no more.

    Set share.delivery.count.limit to 2, write 1 record, acquire and release it twice, fetch.
    """
    limit = {"share.delivery.count.limit": str(_DELIVERIES_MAX)}
    with records_of_a_group(broker, batch(b"a"), settings=limit) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 0, 1))
        again = share_fetch(group_id, 1, topic, (0, 0, [RELEASE]))
        expect_acquired(_sent(broker, version, again), (0, 0, 2))
        last = share_fetch(group_id, 2, topic, (0, 0, [RELEASE]), max_wait_ms=0)
        expect_acquired(_sent(broker, version, last))


@case(_API, _SOURCE)
def record_locks_of_a_partition(broker: Subject, version: int) -> None:
    """A partition with as many acquired records as allowed gives no more.

    Set share.partition.max.record.locks to 100, write 3 batches of 60 records, fetch twice.
    """
    limit = {"share.partition.max.record.locks": "100"}
    sixty = batch(*[b"x"] * 60)
    with records_of_a_group(broker, sixty, sixty, sixty, settings=limit) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 119, 1))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1, max_wait_ms=0)))


@case(_API, _SESSIONS)
def as_many_locks_as_allowed(broker: Subject, version: int) -> None:
    """A partition whose acquired records are exactly as many as allowed gives no more.

    Set share.partition.max.record.locks to 100, write 3 batches of 50 records, fetch twice.
    """
    limit = {"share.partition.max.record.locks": "100"}
    fifty = batch(*[b"x"] * 50)
    with records_of_a_group(broker, fifty, fifty, fifty, settings=limit) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 99, 1))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1, max_wait_ms=0)))


@case(_API, _START)
def records_of_the_last_hour(broker: Subject, version: int) -> None:
    """A group that begins an hour ago acquires no older records.

    Set share.auto.offset.reset to by_duration:PT1H, write a record of 12 hours ago and a new one,
    fetch twice.
    """
    now_ms = int(time.time() * 1000)
    old, new = batch(b"a", first_ms=now_ms - _HALF_A_DAY_MS), batch(b"b", first_ms=now_ms)
    begins = {"share.auto.offset.reset": "by_duration:PT1H"}
    with records_of_a_group(broker, old, new, settings=begins) as (group_id, topic):
        request = share_fetch(group_id, 0, topic)
        expect_acquired(broker.prepare(request, ShareFetchResponse, until=version), (1, 1, 1))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1, max_wait_ms=0)))


@case(_API, _SOURCE)
def whole_batches(broker: Subject, version: int) -> None:
    """A member acquires the records it asked for, from Apache Kafka whole batches.

    Write batches of 2, 3 and 1 records, ask for 3 records.
    """
    batches = (batch(b"a", b"b"), batch(b"c", b"d", b"e"), batch(b"f"))
    with records_of_a_group(broker, *batches) as (group_id, topic):
        answer = _sent(broker, version, share_fetch(group_id, 0, topic, max_records=3))
        seen = acquired(answer)
        if seen != [(0, 2, 1)]:
            expect_acquired(answer, (0, 4, 1))
        is_whole = seen == [(0, 4, 1)]
        expect.as_release(is_whole, "whole batches", seen, fetch_partition("acquired_records"))


@case(_API, _SOURCE)
def batch_size(broker: Subject, version: int) -> None:
    """New records are locked in pieces of whole batches, each as large as the member asked for.

    Write 4 batches of 1 record, fetch with a batch size of 2.
    """
    batches = [batch(each) for each in (b"a", b"b", b"c", b"d")]
    with records_of_a_group(broker, *batches) as (group_id, topic):
        request = share_fetch(group_id, 0, topic)
        request.batch_size = 2
        expect_acquired(_sent(broker, version, request), (0, 1, 1), (2, 3, 1))


@case(_API, "KIP-932, share.isolation.level")
def aborted_records(broker: Subject, version: int) -> None:
    """A group that reads committed records is not given those of an aborted transaction.

    Write a record, abort a transaction with a record, write a record, fetch twice.
    """
    committed = {"share.isolation.level": "read_committed"}
    with records_of_a_group(broker, batch(b"a"), settings=committed) as (group_id, topic):
        producer = new_producer(broker)
        written_in(broker, producer, topic)
        ended(broker, producer, committed=False)
        written(broker, topic, batch(b"d"))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 0, 1))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1)), (2, 3, 1))


@case(_API, "KIP-1206", since=_RENEWAL_SINCE)
def record_limit(broker: Subject, version: int) -> None:
    """In record limit mode a member acquires no more records than it asked for.

    Write 3 records in a batch, ask for 2 records twice in record limit mode.
    """
    with records_of_a_group(broker) as (group_id, topic):
        for epoch, wanted in enumerate([(0, 1, 1), (2, 2, 1)]):
            request = share_fetch(group_id, epoch, topic, max_records=2)
            request.share_acquire_mode = _RECORD_LIMIT
            expect_acquired(_sent(broker, version, request), wanted)


@case(_API, _SESSIONS)
def no_records_asked_for(broker: Subject, version: int) -> None:
    """A fetch of no records is answered at once.

    Write 3 records, open a share session with a maximum of 0 records, then ask for 500.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic, max_records=0)))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1)), (0, 2, 1))


@case(_API, _SESSIONS)
def unchanged_partition(broker: Subject, version: int) -> None:
    """Only the first response of a session lists a partition without new records.

    Acquire 3 records with another member, open a session, fetch twice.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        for epoch, listed, wait_ms in ((0, 1, _LISTED_AFTER_MS), (1, 0, 0), (2, 0, 0)):
            named = topic if epoch == 0 else None
            request = share_fetch(
                group_id, epoch, named, member_id=OTHER_MEMBER_ID, max_wait_ms=wait_ms
            )
            answer = _sent(broker, version, request)
            expect.error(answer, "error_code", ErrorCode.NONE)
            found = len(answer.responses)
            expect.true(found == listed, f"{listed} topics", found, "responses")


@case(_API, _SESSIONS)
def added_partition(broker: Subject, version: int) -> None:
    """A partition that comes to a session later is listed once without records.

    Open a session with the first of two empty partitions, name the second one, fetch again.
    """
    topic = broker.topic(partitions=2)
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic, partitions=2)
        for epoch, named, listed in ((0, 0, [0]), (1, 1, [1]), (2, None, [])):
            request = share_fetch(
                group_id,
                epoch,
                None if named is None else topic,
                partition=named or 0,
                max_wait_ms=_LISTED_AFTER_MS,
            )
            answer = _sent(broker, version, request)
            expect.error(answer, "error_code", ErrorCode.NONE)
            found = [each.partition_index for one in answer.responses for each in one.partitions]
            expect.true(found == listed, str(listed), found, "responses")


@case(_API, _SESSIONS)
def ended_session(broker: Subject, version: int) -> None:
    """The end of a share session releases its records; the session is unknown then.

    Write 3 records, acquire them, end the session with epoch -1, acquire them as another member,
    end the session again.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        expect_acquired(_sent(broker, version, share_fetch(group_id, _FINAL)))
        other = share_fetch(group_id, 0, topic, member_id=OTHER_MEMBER_ID)
        expect_acquired(_sent(broker, version, other), (0, 2, 2))
        again = share_fetch(group_id, _FINAL)
        _refused(broker, version, again, ErrorCode.SHARE_SESSION_NOT_FOUND)


@case(_API, _SESSIONS)
def closed_connection(broker: Subject, version: int) -> None:
    """The end of a connection releases the records of its share sessions.

    Write 3 records, acquire them on another connection, open a session of another member, close the
    connection, acquire them as that member. Without another session 4.3.1 may count deliveries
    from 1 again.
    """
    with records_of_a_group(broker) as (group_id, topic):
        connection = broker.connect()
        answer = connection.ask(share_fetch(group_id, 0, topic), version, ShareFetchResponse)
        expect_acquired(answer, (0, 2, 1))
        opening = share_fetch(
            group_id, 0, topic, member_id=OTHER_MEMBER_ID, max_wait_ms=_LISTED_AFTER_MS
        )
        expect_acquired(_sent(broker, version, opening))
        connection.close()
        other = share_fetch(group_id, 1, member_id=OTHER_MEMBER_ID)
        expect_acquired(_sent(broker, version, other), (0, 2, 2))


@case(_API, _SESSIONS)
def forgotten_partition(broker: Subject, version: int) -> None:
    """A forgotten partition is not fetched until the member lists it a second time.

    Open a share session without records, write 3 records, remove the partition, list it.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic, max_records=0)))
        forgetting = share_fetch(group_id, 1, max_wait_ms=0)
        forgotten = ForgottenTopic(topic_id=topic.topic_id, partitions=[0])
        forgetting.forgotten_topics_data = [forgotten]
        expect_acquired(_sent(broker, version, forgetting))
        expect_acquired(_sent(broker, version, share_fetch(group_id, 2, topic)), (0, 2, 1))


@case(_API, _SESSIONS)
def unexpected_epoch(broker: Subject, version: int) -> None:
    """Another epoch than the next one is refused; the session stays open.

    Open a share session, fetch with epochs 2, 1, 1 and 2.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        _refused(broker, version, share_fetch(group_id, 2), wrong)
        expect_acquired(_sent(broker, version, share_fetch(group_id, 1, max_wait_ms=0)))
        _refused(broker, version, share_fetch(group_id, 1), wrong)
        expect_acquired(_sent(broker, version, share_fetch(group_id, 2, max_wait_ms=0)))


@case(_API, _SESSIONS)
def unknown_session(broker: Subject, version: int) -> None:
    """An epoch of a share session that does not exist is refused with SHARE_SESSION_NOT_FOUND.

    Fetch with epoch 1, and end the session of a new group.
    """
    group_id = broker.group()
    for each in (1, _FINAL):
        request = share_fetch(group_id, each)
        _refused(broker, version, request, ErrorCode.SHARE_SESSION_NOT_FOUND)


@case(_API, _SESSIONS)
def acknowledgement_in_a_new_session(broker: Subject, version: int) -> None:
    """A request that opens a share session and acknowledges is refused with INVALID_REQUEST.

    Open a share session with an acknowledgement.
    """
    request = share_fetch(broker.group(), 0, broker.topic(), (0, 0, [ACCEPT]))
    _refused(broker, version, request, ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def acknowledgement_of_others(broker: Subject, version: int) -> None:
    """An acknowledgement of another member's records fails, and the fetch does not.

    Acquire records, acknowledge them as another member within a fetch.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        other = {"member_id": OTHER_MEMBER_ID, "max_wait_ms": _LISTED_AFTER_MS}
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic, **other)))  # type: ignore[arg-type]  # the names fit
        request = share_fetch(group_id, 1, topic, (0, 2, [ACCEPT]), **other)  # type: ignore[arg-type]  # the names fit
        answer = _sent(broker, version, request)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.error(answer, fetch_partition("error_code"), ErrorCode.NONE)
        path = fetch_partition("acknowledge_error_code")
        expect.error(answer, path, ErrorCode.INVALID_RECORD_STATE)
        expect.equal(answer, fetch_partition("acquired_records"), [])


@case(_API, _SOURCE)
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION.

    Open a share session with partition 9 of a topic of 1 partition.
    """
    with records_of_a_group(broker) as (group_id, topic):
        answer = _sent(broker, version, share_fetch(group_id, 0, topic, partition=9))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, fetch_partition("partition_index"), 9)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        expect.error(answer, fetch_partition("error_code"), code)


@case(_API, "kafka.server.KafkaApis, handleShareFetchRequest")
def names_without_text(broker: Subject, version: int) -> None:
    """A request without a group or without a proper member id is refused with INVALID_REQUEST.

    Fetch without a group; without a member id, with an empty one, with one of 37 characters.
    """
    group_id = broker.group()
    named = [(None, MEMBER_ID), (group_id, None), (group_id, ""), (group_id, "x" * 37)]
    for group, member in named:
        request = share_fetch(group, 1, member_id=member)
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)


@case(_API, "KIP-1222", since=_RENEWAL_SINCE)
def renewal_that_fetches(broker: Subject, version: int) -> None:
    """A renewal that also asks for records is refused with INVALID_REQUEST.

    Send a renewal with each of the limits of a fetch.
    """
    group_id = broker.group()
    for limit in ("max_wait_ms", "min_bytes", "max_bytes", "max_records"):
        request = share_fetch(group_id, 1)
        request.is_renew_ack = True
        for each in ("max_wait_ms", "min_bytes", "max_bytes", "max_records"):
            setattr(request, each, int(each == limit))
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)


@case(_API, "KIP-932, In-flight records")
def deleted_records(broker: Subject, version: int) -> None:
    """Records that were deleted from the log are given no more; the others are.

    Write 3 records, acquire them, delete the first two, release all, fetch until there are records.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_sent(broker, version, share_fetch(group_id, 0, topic)), (0, 2, 1))
        deleted_below(broker, topic, 2)
        request = share_fetch(group_id, 1, topic, (0, 2, [RELEASE]), max_wait_ms=500)
        _expect_next(broker, version, request, (2, 2, 2))


@case(_API, "KIP-932, In-flight records")
def records_deleted_before_a_fetch(broker: Subject, version: int) -> None:
    """A group that begins at the earliest offset begins behind deleted records.

    Write records one by one, delete the first, then have a member join, and fetch.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"), batch(b"b"), batch(b"c"))
    deleted_below(broker, topic, 1)
    with share_group(broker, {"share.auto.offset.reset": "earliest"}) as group_id:
        member_epoch(broker, group_id, topic)
        request = share_fetch(group_id, 0, topic, max_wait_ms=500)
        _expect_next(broker, version, request, (1, 2, 1))


def _expect_next(
    broker: Subject, version: int, request: ShareFetchRequest, *wanted: tuple[int, int, int]
) -> None:
    """Fetch in a session until records are acquired, which are some runs. Errors: Mismatch."""
    for _ in broker.attempts(f"the records {list(wanted)}"):
        answer = _sent(broker, version, request)
        expect.error(answer, "error_code", ErrorCode.NONE)
        found = acquired(answer)
        if found:
            expect.true(found == list(wanted), str(list(wanted)), found, "acquired_records")
            return
        request.share_session_epoch += 1
        for each in request.topics[0].partitions:
            each.acknowledgement_batches = []
