"""TxnOffsetCommit, API key 28: offsets that a transaction commits (KIP-98, KIP-447)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import joined, stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import Producer, ended, new_producer
from kraft_wire.wire.generated.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_SOURCE: Final = (
    "org.apache.kafka.coordinator.group.OffsetMetadataManager, commitTransactionalOffset"
)
_MEMBERS_SINCE: Final = 3
_STABLE_SINCE: Final = 7
_JOIN_VERSION: Final = 5
_IMPLICIT_SINCE: Final = 5
_CODE: Final = "topics[0].partitions[0].error_code"


def _request(
    producer: Producer, group_id: str, topic: str, *partitions: int, metadata: str = "note"
) -> TxnOffsetCommitRequest:
    wanted = [
        TxnOffsetCommitRequestPartition(
            partition_index=each,
            committed_offset=5,
            committed_leader_epoch=0,
            committed_metadata=metadata,
        )
        for each in partitions or (0,)
    ]
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=wanted)],
    )


def _begun(broker: Subject, group_id: str) -> Producer:
    producer = new_producer(broker)
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group_id,
    )
    answer = broker.prepare(request, AddOffsetsToTxnResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return producer


def _fetched(broker: Subject, group_id: str, topic: str, require_stable: bool) -> tuple[int, int]:
    """Return offset and error; a partition or a group without an offset may be unknown."""
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)
    answer = broker.ask(request, _STABLE_SINCE, OffsetFetchResponse)
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return -1, 0
    expect.error(answer, "error_code", ErrorCode.NONE)
    listed = [each for topic in answer.topics for each in topic.partitions]
    return (listed[0].committed_offset, listed[0].error_code) if listed else (-1, 0)


@case("TxnOffsetCommit", "KIP-98, TxnOffsetCommitRequest")
def offsets_of_a_committed_transaction(broker: Subject, version: int) -> None:
    """Offsets are pending until their transaction commits (KIP-447).

    Commit an offset in a transaction, fetch it, stable and not; end the transaction, fetch it.
    """
    topic, group_id = broker.topic(), broker.group()
    producer = _begun(broker, group_id)
    request = _request(producer, group_id, topic.name)
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    pending = _fetched(broker, group_id, topic.name, require_stable=False)
    expect.true(pending == (-1, 0), "no offset and no error", pending)
    pending = _fetched(broker, group_id, topic.name, require_stable=True)
    wanted = (-1, int(ErrorCode.UNSTABLE_OFFSET_COMMIT))
    expect.true(pending == wanted, "UNSTABLE_OFFSET_COMMIT", pending)
    ended(broker, producer, committed=True)
    found = _fetched(broker, group_id, topic.name, require_stable=True)
    expect.true(found == (5, 0), "offset 5 and no error", found)


@case("TxnOffsetCommit", "KIP-98, TxnOffsetCommitRequest")
def offsets_of_an_aborted_transaction(broker: Subject, version: int) -> None:
    """Offsets of a transaction that aborts are dropped.

    Commit an offset in a transaction, abort, fetch it.
    """
    topic, group_id = broker.topic(), broker.group()
    producer = _begun(broker, group_id)
    request = _request(producer, group_id, topic.name)
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    ended(broker, producer, committed=False)
    found = _fetched(broker, group_id, topic.name, require_stable=True)
    expect.true(found == (-1, 0), "no offset and no error", found)


@case("TxnOffsetCommit", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.

    Commit offsets of a partition that a topic does not have, and of a topic that does not exist.
    """
    topic, group_id = broker.topic(), broker.group()
    producer = _begun(broker, group_id)
    for name, partition in ((topic.name, 7), (broker.name(), 0)):
        request = _request(producer, group_id, name, partition)
        answer = broker.ask(request, version, TxnOffsetCommitResponse)
        expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("TxnOffsetCommit", _SOURCE)
def metadata_too_large(broker: Subject, version: int) -> None:
    """Metadata of more than 4,096 bytes is OFFSET_METADATA_TOO_LARGE.

    Commit with metadata of 4,096 bytes, and of 4,097.
    """
    topic, group_id = broker.topic(), broker.group()
    producer = _begun(broker, group_id)
    sizes = ((4096, ErrorCode.NONE), (4097, ErrorCode.OFFSET_METADATA_TOO_LARGE))
    for size, code in sizes:
        request = _request(producer, group_id, topic.name, metadata="x" * size)
        answer = broker.ask(request, version, TxnOffsetCommitResponse)
        expect.error(answer, _CODE, code)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member is UNKNOWN_MEMBER_ID.

    Commit to a stable group as an unknown member.
    """
    topic, group_id = broker.topic(), broker.group()
    member = stable_member(broker, group_id)
    request = _request(_begun(broker, group_id), group_id, topic.name)
    request.member_id, request.generation_id = "made-up", member.generation_id
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_MEMBER_ID)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def other_generation(broker: Subject, version: int) -> None:
    """Another generation than the group's is ILLEGAL_GENERATION.

    Commit to a stable group with its generation, then with the next and the previous one.
    """
    topic, group_id = broker.topic(), broker.group()
    member = stable_member(broker, group_id)
    request = _request(_begun(broker, group_id), group_id, topic.name)
    request.member_id = member.member_id
    for generation, code in (
        (0, ErrorCode.NONE),
        (1, ErrorCode.ILLEGAL_GENERATION),
        (-1, ErrorCode.ILLEGAL_GENERATION),
    ):
        request.generation_id = member.generation_id + generation
        answer = broker.ask(request, version, TxnOffsetCommitResponse)
        expect.error(answer, _CODE, code)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def no_member_of_a_stable_group(broker: Subject, version: int) -> None:
    """A producer without a member id commits to a stable group.

    Commit without member and generation.
    """
    topic, group_id = broker.topic(), broker.group()
    stable_member(broker, group_id)
    request = _request(_begun(broker, group_id), group_id, topic.name)
    broker.ask(request, version, TxnOffsetCommitResponse)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def generation_of_an_unknown_group(broker: Subject, version: int) -> None:
    """A generation of a group that does not exist is refused.

    Commit with generation 3 to a new group.
    """
    topic, group_id = broker.topic(), broker.group()
    request = _request(_begun(broker, group_id), group_id, topic.name)
    request.member_id, request.generation_id = "made-up", 3
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.true(answer.topics[0].partitions[0].error_code != ErrorCode.NONE, "an error", 0, _CODE)


@case("TxnOffsetCommit", _SOURCE)
def empty_group_id(broker: Subject, version: int) -> None:
    """An empty group id is refused with INVALID_GROUP_ID.

    Commit to the group "".
    """
    topic, group_id = broker.topic(), broker.group()
    request = _request(_begun(broker, group_id), "", topic.name)
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.error(answer, _CODE, ErrorCode.INVALID_GROUP_ID)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def fenced_instance(broker: Subject, version: int) -> None:
    """An instance id of another member is refused with FENCED_INSTANCE_ID.

    Join as a static member, commit under its instance id as another member.
    """
    group_id, topic = broker.group(), broker.topic()
    member = joined(broker.connect(), _JOIN_VERSION, group_id, group_instance_id="instance")
    request = _request(_begun(broker, group_id), group_id, topic.name)
    request.generation_id = member.generation_id
    request.member_id, request.group_instance_id = "made-up", "instance"
    answer = broker.ask(request, version, TxnOffsetCommitResponse)
    expect.error(answer, _CODE, ErrorCode.FENCED_INSTANCE_ID)


@case("TxnOffsetCommit", "KIP-447", since=_MEMBERS_SINCE)
def member_of_an_empty_group(broker: Subject, version: int) -> None:
    """A group without members accepts a member id without a generation.

    Commit an offset to make the group, then another one with a member id and generation -1.
    """
    group_id, topic = broker.group(), broker.topic()
    producer = _begun(broker, group_id)
    for member_id in ("", "made-up"):
        request = _request(producer, group_id, topic.name)
        request.member_id = member_id
        answer = broker.ask(request, version, TxnOffsetCommitResponse)
        expect.error(answer, _CODE, ErrorCode.NONE)


@case("TxnOffsetCommit", "KIP-890")
def offsets_without_addition(broker: Subject, version: int) -> None:
    """From version 5 on a commit adds the group's offsets to the transaction by itself.

    Start a producer, and commit an offset without AddOffsetsToTxn: below version 5 it is refused.
    """
    group_id, topic = broker.group(), broker.topic()
    answer = broker.ask(
        _request(new_producer(broker), group_id, topic.name), version, TxnOffsetCommitResponse
    )
    found = answer.topics[0].partitions[0].error_code
    holds = (found == ErrorCode.NONE) == (version >= _IMPLICIT_SINCE)
    expect.true(holds, f"an error below version {_IMPLICIT_SINCE} alone", found, _CODE)
