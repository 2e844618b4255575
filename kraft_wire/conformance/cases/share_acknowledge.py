"""ShareAcknowledge, API key 79: members of share groups decide about their records (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_members import MEMBER_ID, OTHER_MEMBER_ID, ask_about_shares
from kraft_wire.conformance.share_records import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Batch,
    acknowledge,
    expect_acquired,
    records_of_a_group,
    share_fetch,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kraft_wire.wire.generated.share_fetch import ShareFetchResponse

_API: Final = "ShareAcknowledge"
_SOURCE: Final = "KIP-932, ShareAcknowledge API"
_SESSIONS: Final = "KIP-932, Share sessions"
_CHECKS: Final = "kafka.server.share.SharePartitionManager, acknowledge"
_CODE: Final = "responses[0].partitions[0].error_code"
_RENEWAL_SINCE: Final = 2
_FINAL: Final = -1
_UNKNOWN_TYPE: Final = 5
_MADE_UP: Final = Uuid(bytes(range(1, 17)))


def _sent(
    broker: Subject, version: int, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    return ask_about_shares(broker, request, version, ShareAcknowledgeResponse)


def _refused(
    broker: Subject, version: int, request: ShareAcknowledgeRequest, code: ErrorCode
) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "responses", [])


def _decided(
    broker: Subject, version: int, request: ShareAcknowledgeRequest, code: ErrorCode
) -> None:
    """Send an acknowledgement, and expect the result of its partition."""
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, _CODE, code)


def _acquire(
    broker: Subject, group_id: str, topic: Topic, member_id: str = MEMBER_ID
) -> ShareFetchResponse:
    """Open a share session that acquires records."""
    request = share_fetch(group_id, 0, topic, member_id=member_id)
    return broker.prepare(request, ShareFetchResponse)


def _fetched(broker: Subject, group_id: str, epoch: int, *wanted: tuple[int, int, int]) -> None:
    """State what a fetch in the member's session acquires."""
    request = share_fetch(group_id, epoch, max_wait_ms=0)
    expect_acquired(broker.prepare(request, ShareFetchResponse), *wanted)


def _in_turn(broker: Subject, version: int, code: ErrorCode, *faults: list[Batch]) -> None:
    """Acquire 3 records, send faulty acknowledgements, and then a good one."""
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        for epoch, batches in enumerate(faults, 1):
            _decided(broker, version, acknowledge(group_id, epoch, topic, *batches), code)
        good = acknowledge(group_id, len(faults) + 1, topic, (0, 2, [ACCEPT]))
        _decided(broker, version, good, ErrorCode.NONE)


@case(_API, _SOURCE)
def each_type(broker: Subject, version: int) -> None:
    """Of records that are missing, released, rejected or accepted only the released come again.

    Write 3 records, acquire them, acknowledge each with another type, fetch; accept what came.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, 1, topic, (0, 2, [GAP, RELEASE, REJECT]))
        answer = _sent(broker, version, request)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "responses[0].topic_id", topic.topic_id)
        expect.equal(answer, "responses[0].partitions[0].partition_index", 0)
        expect.error(answer, _CODE, ErrorCode.NONE)
        _fetched(broker, group_id, 2, (1, 1, 2))
        request = acknowledge(group_id, 3, topic, (1, 1, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.NONE)
        _fetched(broker, group_id, 4)


@case(_API, _SOURCE)
def one_type_for_a_range(broker: Subject, version: int) -> None:
    """One type decides about all records of a range.

    Write 3 records, acquire them, release them with one type, fetch them again.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, 1, topic, (0, 2, [RELEASE]))
        _decided(broker, version, request, ErrorCode.NONE)
        _fetched(broker, group_id, 2, (0, 2, 2))


@case(_API, _SOURCE)
def final_acknowledgement(broker: Subject, version: int) -> None:
    """An acknowledgement with epoch -1 is done, then the session ends and releases the rest.

    Write 3 records, acquire them, accept the first with epoch -1, acquire as another member.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, _FINAL, topic, (0, 0, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.NONE)
        expect_acquired(_acquire(broker, group_id, topic, OTHER_MEMBER_ID), (1, 2, 2))
        again = acknowledge(group_id, _FINAL, topic, (0, 0, [ACCEPT]))
        _refused(broker, version, again, ErrorCode.SHARE_SESSION_NOT_FOUND)


@case(_API, _SOURCE)
def records_of_another_member(broker: Subject, version: int) -> None:
    """Records that another member has acquired are refused with INVALID_RECORD_STATE.

    Acquire 3 records, open a session of another member, which accepts them.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        other = share_fetch(group_id, 0, topic, member_id=OTHER_MEMBER_ID, max_wait_ms=0)
        expect_acquired(broker.prepare(other, ShareFetchResponse))
        request = acknowledge(group_id, 1, topic, (0, 2, [ACCEPT]), member_id=OTHER_MEMBER_ID)
        _decided(broker, version, request, ErrorCode.INVALID_RECORD_STATE)


@case(_API, _SOURCE)
def released_records(broker: Subject, version: int) -> None:
    """Records that a member has released are refused with INVALID_RECORD_STATE.

    Acquire 3 records, release the last, accept all: nothing is accepted. Release the first two.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, 1, topic, (2, 2, [RELEASE]))
        _decided(broker, version, request, ErrorCode.NONE)
        request = acknowledge(group_id, 2, topic, (0, 2, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.INVALID_RECORD_STATE)
        request = acknowledge(group_id, 3, topic, (0, 1, [RELEASE]))
        _decided(broker, version, request, ErrorCode.NONE)
        _fetched(broker, group_id, 4, (0, 2, 2))


@case(_API, _CHECKS)
def decided_records(broker: Subject, version: int) -> None:
    """Records below the start of the share partition are passed over, without an error.

    Acquire 3 records, accept the first two twice.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        for epoch in (1, 2):
            request = acknowledge(group_id, epoch, topic, (0, 1, [ACCEPT]))
            _decided(broker, version, request, ErrorCode.NONE)


@case(_API, _SOURCE)
def malformed_batches(broker: Subject, version: int) -> None:
    """Malformed batches are refused with INVALID_REQUEST, and change nothing.

    Acquire 3 records, send an inverted range, overlapping ranges, no types, too few and too many
    types, types below and above the known ones; then accept all.
    """
    faults: list[list[Batch]] = [
        [(2, 0, [ACCEPT])],
        [(1, 2, [ACCEPT]), (0, 1, [ACCEPT])],
        [(0, 2, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 2, [ACCEPT] * 4)],
        [(0, 2, [-1])],
        [(0, 2, [_UNKNOWN_TYPE])],
        [(0, 2, [RENEW])],
    ]
    _in_turn(broker, version, ErrorCode.INVALID_REQUEST, *faults)


@case(_API, _CHECKS)
def records_past_the_acquired(broker: Subject, version: int) -> None:
    """Offsets behind the last acquired record are refused with INVALID_REQUEST.

    Acquire 3 records, accept 4, accept the fourth, then accept all.
    """
    faults: list[list[Batch]] = [[(0, 3, [ACCEPT])], [(3, 3, [ACCEPT])]]
    _in_turn(broker, version, ErrorCode.INVALID_REQUEST, *faults)


@case(_API, "KIP-1222", since=_RENEWAL_SINCE)
def renewal(broker: Subject, version: int) -> None:
    """A renewal keeps records acquired; the response has the lock's time.

    Acquire 3 records, renew them, fetch as another member, accept them.
    """
    with records_of_a_group(broker) as (group_id, topic):
        lock = _acquire(broker, group_id, topic).acquisition_lock_timeout_ms
        request = acknowledge(group_id, 1, topic, (0, 2, [RENEW]))
        request.is_renew_ack = True
        answer = _sent(broker, version, request)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "acquisition_lock_timeout_ms", lock)
        other = share_fetch(group_id, 0, topic, member_id=OTHER_MEMBER_ID, max_wait_ms=0)
        expect_acquired(broker.prepare(other, ShareFetchResponse))
        request = acknowledge(group_id, 2, topic, (0, 2, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.NONE)


@case(_API, "KIP-1222", since=_RENEWAL_SINCE)
def renewal_that_is_switched_off(broker: Subject, version: int) -> None:
    """A group without renewals refuses them with INVALID_RECORD_STATE.

    Set share.renew.acknowledge.enable to false, acquire 3 records, renew them.
    """
    settings = {"share.renew.acknowledge.enable": "false"}
    with records_of_a_group(broker, settings=settings) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, 1, topic, (0, 2, [RENEW]))
        request.is_renew_ack = True
        _decided(broker, version, request, ErrorCode.INVALID_RECORD_STATE)


@case(_API, _SESSIONS)
def unknown_session(broker: Subject, version: int) -> None:
    """An acknowledgement without a share session is refused with SHARE_SESSION_NOT_FOUND.

    Acknowledge in a new group: with epoch 1, with epoch -1.
    """
    group_id, topic = broker.group(), broker.topic()
    for epoch in (1, _FINAL):
        request = acknowledge(group_id, epoch, topic, (0, 0, [ACCEPT]))
        _refused(broker, version, request, ErrorCode.SHARE_SESSION_NOT_FOUND)


@case(_API, _SESSIONS)
def unexpected_epoch(broker: Subject, version: int) -> None:
    """An acknowledgement opens no session, and needs the next epoch.

    Acquire 3 records, accept them with epochs 0, 2 and 1.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        for epoch in (0, 2):
            request = acknowledge(group_id, epoch, topic, (0, 2, [ACCEPT]))
            _refused(broker, version, request, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        request = acknowledge(group_id, 1, topic, (0, 2, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.NONE)


@case(_API, _CHECKS)
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION, a topic UNKNOWN_TOPIC_ID.

    Acquire records, acknowledge records of partition 9 and of an unknown topic id.
    """
    with records_of_a_group(broker) as (group_id, topic):
        expect_acquired(_acquire(broker, group_id, topic), (0, 2, 1))
        request = acknowledge(group_id, 1, topic, (0, 0, [ACCEPT]), partition=9)
        _decided(broker, version, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        unknown = Topic("made-up", _MADE_UP)
        request = acknowledge(group_id, 2, unknown, (0, 0, [ACCEPT]))
        _decided(broker, version, request, ErrorCode.UNKNOWN_TOPIC_ID)


@case(_API, "kafka.server.KafkaApis, handleShareAcknowledgeRequest")
def names_without_text(broker: Subject, version: int) -> None:
    """A request without a group or without a proper member id is refused with INVALID_REQUEST.

    Acknowledge without a group; without a member id, with an empty one, with one of 37 characters.
    """
    group_id, topic = broker.group(), broker.topic()
    named = [(None, MEMBER_ID), (group_id, None), (group_id, ""), (group_id, "x" * 37)]
    for group, member in named:
        request = acknowledge(group, 1, topic, (0, 0, [ACCEPT]), member_id=member)
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)
