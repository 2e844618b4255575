"""DeleteGroups, API key 42: groups without members (KIP-229)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_COMMIT_VERSION = 8


@case("DeleteGroups", "KIP-229")
def group_with_members(broker: Subject, version: int) -> None:
    """A group with members is refused with NON_EMPTY_GROUP.

    Join, sync, delete.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    request = DeleteGroupsRequest(groups_names=[group_id])
    answer = broker.ask(request, version, DeleteGroupsResponse)
    expect.equal(answer, "results[0].group_id", group_id)
    expect.error(answer, "results[0].error_code", ErrorCode.NON_EMPTY_GROUP)


@case("DeleteGroups", "KIP-229")
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Delete a group without members and offsets.
    """
    request = DeleteGroupsRequest(groups_names=[broker.group()])
    answer = broker.ask(request, version, DeleteGroupsResponse)
    expect.error(answer, "results[0].error_code", ErrorCode.GROUP_ID_NOT_FOUND)


@case("DeleteGroups", "KIP-229")
def empty_group(broker: Subject, version: int) -> None:
    """A group without members is deleted with its offsets.

    Commit an offset without a member, delete the group, delete it again: GROUP_ID_NOT_FOUND.
    """
    group_id, topic = broker.group(), broker.topic().name
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    commit = OffsetCommitRequest(group_id=group_id, topics=topics)
    broker.prepare(commit, OffsetCommitResponse, until=_COMMIT_VERSION)
    request = DeleteGroupsRequest(groups_names=[group_id])
    answer = broker.ask(request, version, DeleteGroupsResponse)
    expect.error(answer, "results[0].error_code", ErrorCode.NONE)
    answer = broker.ask(request, version, DeleteGroupsResponse)
    expect.error(answer, "results[0].error_code", ErrorCode.GROUP_ID_NOT_FOUND)


@case("DeleteGroups", "KIP-229")
def same_group_twice(broker: Subject, version: int) -> None:
    """A group that is named twice is answered, by Apache Kafka once.

    Delete a group that does not exist, twice in one request.
    """
    request = DeleteGroupsRequest(groups_names=[broker.group()] * 2)
    answer = broker.ask(request, version, DeleteGroupsResponse)
    found = len(answer.results)
    expect.true(found > 0, "a result", found, "results")
    expect.as_release(found == 1, "one result", found, "results")


@case("DeleteGroups", "kafka.server.KafkaApis, handleDeleteGroupsRequest")
def groups_on_their_own(broker: Subject, version: int) -> None:
    """Groups of one request are deleted, and refused, on their own.

    Delete a group with a member, and one that does not exist.
    """
    group_id, absent = broker.group(), broker.group()
    stable_member(broker, group_id)
    request = DeleteGroupsRequest(groups_names=[absent, group_id])
    answer = broker.ask(request, version, DeleteGroupsResponse)
    codes = {each.group_id: each.error_code for each in answer.results}
    wanted = {
        group_id: int(ErrorCode.NON_EMPTY_GROUP),
        absent: int(ErrorCode.GROUP_ID_NOT_FOUND),
    }
    expect.true(codes == wanted, str(wanted), codes, "results")
