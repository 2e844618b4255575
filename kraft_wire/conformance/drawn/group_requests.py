"""Drawn requests about groups: offsets with and without members, and forbidden requests."""

from kraft_wire.conformance.drawn.scene import Scene
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest

__all__ = [
    "delete_groups",
    "describe_groups",
    "find_coordinator",
    "heartbeat",
    "leave_group",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "sync_group",
]

_BY_ID = 10
_OF_GROUPS = 8
_OF_MEMBERS = 3


def _group_id(scene: Scene) -> str:
    """Draw the group, seldom one that does not exist; never the empty id, which all share."""
    return f"{scene.group_id}-none" if scene.chance(5) else scene.group_id


def _member(scene: Scene) -> tuple[int, str]:
    """Draw generation and member id, mostly those of a client without a member."""
    return (-1, "") if scene.chance(70) else (scene.pick(-1, 0, 1), scene.pick("", "nobody"))


def offset_commit(scene: Scene, version: int) -> OffsetCommitRequest:
    """Draw a commit of positions."""
    generation, member_id = _member(scene)
    topic = scene.topic()
    wanted = OffsetCommitRequestTopic(
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=each,
                committed_offset=scene.offset(),
                committed_metadata=scene.pick("", "m", None),
            )
            for each in scene.partitions()
        ]
    )
    if version >= _BY_ID:
        wanted.topic_id = topic.topic_id
    else:
        wanted.name = topic.name
    return OffsetCommitRequest(
        group_id=scene.group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[wanted],
    )


def offset_fetch(scene: Scene, version: int) -> OffsetFetchRequest:
    """Draw a question for positions."""
    partitions, topic = scene.partitions(), scene.topic()
    if version < _OF_GROUPS:
        named = [OffsetFetchRequestTopic(name=topic.name, partition_indexes=partitions)]
        return OffsetFetchRequest(group_id=_group_id(scene), topics=named)
    wanted = OffsetFetchRequestTopics(partition_indexes=partitions)
    if version >= _BY_ID:
        wanted.topic_id = topic.topic_id
    else:
        wanted.name = topic.name
    group = OffsetFetchRequestGroup(group_id=_group_id(scene), topics=[wanted])
    return OffsetFetchRequest(groups=[group], require_stable=scene.pick(False, True))


def offset_delete(scene: Scene, version: int) -> OffsetDeleteRequest:
    """Draw a deletion of positions."""
    wanted = [OffsetDeleteRequestPartition(partition_index=each) for each in scene.partitions()]
    topic = OffsetDeleteRequestTopic(name=scene.topic().name, partitions=wanted)
    return OffsetDeleteRequest(group_id=_group_id(scene), topics=[topic])


def delete_groups(scene: Scene, version: int) -> DeleteGroupsRequest:
    """Draw a deletion of the group."""
    return DeleteGroupsRequest(groups_names=[_group_id(scene)])


def describe_groups(scene: Scene, version: int) -> DescribeGroupsRequest:
    """Draw a question for the group."""
    return DescribeGroupsRequest(groups=[_group_id(scene) for _ in range(scene.pick(1, 2))])


def find_coordinator(scene: Scene, version: int) -> FindCoordinatorRequest:
    """Draw a question for the coordinator of groups."""
    if version >= 4:
        return FindCoordinatorRequest(coordinator_keys=[_group_id(scene)])
    return FindCoordinatorRequest(key=_group_id(scene))


def heartbeat(scene: Scene, version: int) -> HeartbeatRequest:
    """Draw a heartbeat of a member that the group does not have."""
    generation, member_id = _member(scene)
    request = HeartbeatRequest(
        group_id=_group_id(scene), generation_id=generation, member_id=member_id
    )
    if version >= _OF_MEMBERS:
        request.group_instance_id = scene.pick(None, "static")
    return request


def sync_group(scene: Scene, version: int) -> SyncGroupRequest:
    """Draw a synchronization of a member that the group does not have."""
    generation, member_id = _member(scene)
    request = SyncGroupRequest(
        group_id=_group_id(scene), generation_id=generation, member_id=member_id
    )
    if version >= 5:
        request.protocol_type = scene.pick(None, "consumer")
        request.protocol_name = scene.pick(None, "range")
    return request


def leave_group(scene: Scene, version: int) -> LeaveGroupRequest:
    """Draw a farewell of members that the group does not have."""
    request = LeaveGroupRequest(group_id=_group_id(scene))
    if version < _OF_MEMBERS:
        request.member_id = scene.pick("", "nobody")
        return request
    request.members = [
        MemberIdentity(
            member_id=scene.pick("", "nobody"), group_instance_id=scene.pick(None, "static")
        )
        for _ in range(scene.pick(0, 1, 2))
    ]
    return request
