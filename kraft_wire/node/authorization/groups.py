"""Guards of requests about groups and their committed offsets: group errors come before topics'."""

from typing import Final, cast

from kraft_wire.apis.rights import ResourceType
from kraft_wire.broker.groups.offsets.commit import failed_topics
from kraft_wire.broker.groups.share.request_checks import is_member_id
from kraft_wire.node.authorization.asker import NO_OPERATIONS, Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import (
    by_id_or_name,
    finishing,
    split,
    with_refused,
)
from kraft_wire.node.authorization.whole import group, refused
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.consumer_group_describe import (
    DescribedGroup as ConsumerDescribedGroup,
)
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kraft_wire.wire.generated.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsResponse
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kraft_wire.wire.generated.share_group_describe import (
    DescribedGroup as ShareDescribedGroup,
)
from kraft_wire.wire.generated.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest
from kraft_wire.wire.message import Message

__all__ = [
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "delete_groups",
    "describe_groups",
    "list_groups",
    "offset_commit",
    "offset_delete",
    "share_group_describe",
    "share_group_heartbeat",
    "sync_group",
]

_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)
_COMMIT_BY_ID_FROM: Final = 10
_PROTOCOL_MANDATORY_FROM: Final = 5


def sync_group(asked: Asked) -> Verdict:
    """SyncGroup: missing protocol fields are refused first."""
    request = cast("SyncGroupRequest", asked.request)
    if asked.context.api_version >= _PROTOCOL_MANDATORY_FROM and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return Passed(request)
    return group(asked)


def describe_groups(asked: Asked) -> Verdict:
    """DescribeGroups: group by group, with the allowed operations if requested."""
    request = cast("DescribeGroupsRequest", asked.request)
    (describe,) = asked.needs
    served, hidden = split(asked, describe, request.groups, lambda name: name)
    request.groups = served
    answers = [DescribedGroup(group_id=name, error_code=describe.error) for name in hidden]

    def change(answer: DescribeGroupsResponse) -> Message:
        for each in answer.groups:
            _name_operations(asked, each)
        answer.groups = answers + answer.groups
        return answer

    if not served and hidden:
        return change(DescribeGroupsResponse())
    return Passed(request, finishing(DescribeGroupsResponse, change))


def list_groups(asked: Asked) -> Verdict:
    """ListGroups: hide groups that may not be described, without audit lines."""
    (need,) = asked.needs
    cluster = need._replace(rights=need.rights[:1])
    one = need._replace(rights=need.rights[1:])
    if asked.asker.meets(cluster, is_silent=True):
        return Passed(asked.request)

    def change(answer: ListGroupsResponse) -> Message:
        answer.groups = [
            each for each in answer.groups if asked.asker.meets(one, each.group_id, is_silent=True)
        ]
        return answer

    return Passed(asked.request, finishing(ListGroupsResponse, change))


def delete_groups(asked: Asked) -> Verdict:
    """DeleteGroups: group by group."""
    request = cast("DeleteGroupsRequest", asked.request)
    (delete,) = asked.needs
    served, hidden = split(
        asked, delete, list(dict.fromkeys(request.groups_names)), lambda name: name
    )
    request.groups_names = served
    answers = [DeletableGroupResult(group_id=name, error_code=delete.error) for name in hidden]

    return with_refused(request, DeleteGroupsResponse, "results", answers, served)


def offset_commit(asked: Asked) -> Verdict:
    """OffsetCommit: the group, then topic by topic; unknown ids are refused first."""
    request = cast("OffsetCommitRequest", asked.request)
    read_group, read_topic = asked.needs
    if not asked.asker.meets(read_group, request.group_id):
        error = read_group.error
        return OffsetCommitResponse(topics=failed_topics(request.topics, error))
    name_of = by_id_or_name(asked, _COMMIT_BY_ID_FROM)
    request.topics, hidden = split(asked, read_topic, request.topics, name_of)
    answers = failed_topics(hidden, read_topic.error)

    topics = request.topics
    return with_refused(request, OffsetCommitResponse, "topics", answers, topics, first=True)


def offset_delete(asked: Asked) -> Verdict:
    """OffsetDelete: the group, then topic by topic; an error of the whole answer has no topics."""
    request = cast("OffsetDeleteRequest", asked.request)
    delete, read = asked.needs
    if not asked.asker.meets(delete, request.group_id):
        return refused(request, delete.error, asked.context.api_version)
    request.topics, hidden = split(asked, read, request.topics, lambda topic: topic.name)
    answers = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=read.error
                )
                for each in topic.partitions
            ],
        )
        for topic in hidden
    ]

    def change(answer: OffsetDeleteResponse) -> Message:
        if answer.error_code == ErrorCode.NONE:
            answer.topics = answers + answer.topics
        return answer

    return Passed(request, finishing(OffsetDeleteResponse, change) if hidden else None)


def consumer_group_heartbeat(asked: Asked) -> Verdict:
    """ConsumerGroupHeartbeat: the group, then all named topics, or nothing is served."""
    request = cast("ConsumerGroupHeartbeatRequest", asked.request)
    read, describe = asked.needs
    if not asked.asker.meets(read, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=read.error)
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if not all(asked.asker.meets(describe, name) for name in names):
        return ConsumerGroupHeartbeatResponse(error_code=describe.error)
    return Passed(request)


def consumer_group_describe(asked: Asked) -> Verdict:
    """ConsumerGroupDescribe: group by group; one with a hidden topic shows nothing but that."""
    request = cast("ConsumerGroupDescribeRequest", asked.request)
    describe, topic = asked.needs
    served, hidden = split(asked, describe, request.group_ids, lambda name: name)
    request.group_ids = served
    answers = [ConsumerDescribedGroup(group_id=name, error_code=describe.error) for name in hidden]

    def change(answer: ConsumerGroupDescribeResponse) -> Message:
        for each in answer.groups:
            _name_operations(asked, each)
        answer.groups = answers + [
            each
            if all(asked.asker.meets(topic, name) for name in _topics_of(each))
            else ConsumerDescribedGroup(
                group_id=each.group_id, error_code=topic.error, error_message=_HIDDEN_TOPICS
            )
            for each in answer.groups
        ]
        return answer

    if not served and hidden:
        return change(ConsumerGroupDescribeResponse())
    return Passed(request, finishing(ConsumerGroupDescribeResponse, change))


def share_group_heartbeat(asked: Asked) -> Verdict:
    """ShareGroupHeartbeat: the group, the member id, then all named topics."""
    request = cast("ShareGroupHeartbeatRequest", asked.request)
    read, describe = asked.needs
    if not asked.asker.meets(read, request.group_id):
        return ShareGroupHeartbeatResponse(error_code=read.error)
    if not is_member_id(request.member_id):
        return Passed(request)
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if not all(asked.asker.meets(describe, name) for name in names):
        return ShareGroupHeartbeatResponse(error_code=describe.error)
    return Passed(request)


def share_group_describe(asked: Asked) -> Verdict:
    """ShareGroupDescribe: group by group; one with a hidden topic shows nothing but that."""
    request = cast("ShareGroupDescribeRequest", asked.request)
    describe, topic = asked.needs
    served, hidden = split(asked, describe, request.group_ids, lambda name: name)
    request.group_ids = served
    answers = [ShareDescribedGroup(group_id=name, error_code=describe.error) for name in hidden]

    def change(answer: ShareGroupDescribeResponse) -> Message:
        for each in answer.groups:
            _name_operations(asked, each)
        answer.groups = answers + [
            each
            if all(asked.asker.meets(topic, name) for name in _assigned_topics(each))
            else ShareDescribedGroup(
                group_id=each.group_id, error_code=topic.error, error_message=_HIDDEN_TOPICS
            )
            for each in answer.groups
        ]
        return answer

    if not served and hidden:
        return change(ShareGroupDescribeResponse())
    return Passed(request, finishing(ShareGroupDescribeResponse, change))


def _name_operations(
    asked: Asked, group: DescribedGroup | ConsumerDescribedGroup | ShareDescribedGroup
) -> None:
    """Replace all operations in a description by those that the principal may do."""
    if group.authorized_operations != NO_OPERATIONS:
        group.authorized_operations = asked.asker.operations(ResourceType.GROUP, group.group_id)


def _topics_of(group: ConsumerDescribedGroup) -> list[str]:
    """Return every topic that is assigned; as in 4.3.1, subscribed ones alone do not count."""
    return list(
        dict.fromkeys(
            topic.topic_name
            for member in group.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        )
    )


def _assigned_topics(group: ShareDescribedGroup) -> list[str]:
    """Return every topic that is assigned in a share group."""
    return list(
        dict.fromkeys(
            part.topic_name
            for member in group.members
            for part in member.assignment.topic_partitions
        )
    )
