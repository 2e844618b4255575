"""Groups for administrative tools: list, describe, delete."""

from collections.abc import Collection
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.offsets.delete import write_tombstones
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroupState
from kraft_wire.wire.generated.describe_groups import DescribedGroup, DescribedGroupMember
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListedGroup

__all__ = ["delete_group", "describe_group", "list_groups"]

_CLASSIC: Final = "classic"
_NOT_FOUND_ERROR_FROM: Final = 6
_FILTERS: Final = {StreamsGroupState.NOT_READY.value: "not_ready"}
"""States that a filter names otherwise than in lower case, as in Kafka."""


def list_groups(
    shard: GroupShard, states: Collection[str], types: Collection[str]
) -> list[ListedGroup]:
    """Return the groups of the requested states and types; none requested means all.

    `states` and `types` are in lower case; an unknown state or type matches no group.
    """
    listed = [_listed(group) for group in shard.groups.values()]
    listed += [_listed_other(group) for group in shard.other_groups.values()]
    return [
        group
        for group in listed
        if (not states or _FILTERS.get(group.group_state, group.group_state.lower()) in states)
        and (not types or group.group_type.lower() in types)
    ]


def describe_group(shard: GroupShard, group_id: str, api_version: int) -> DescribedGroup:
    """Describe a classic group; metadata of members only while the group is stable.

    A group that does not exist is dead, with GROUP_ID_NOT_FOUND since v6 (KIP-1043).
    """
    group = shard.groups.get(group_id)
    if group is None:
        reason = f"Group {group_id} not found."
        if group_id in shard.other_groups:
            reason = f"Group {group_id} is not a classic group."
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if api_version >= _NOT_FOUND_ERROR_FROM:
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            dead.error_message = reason
        return dead
    protocol_name = group.protocol_name if group.is_in(GroupState.STABLE) else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol_name or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol_name is None else member.protocols[protocol_name],
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def delete_group(shard: GroupShard, group_id: str, at: ClockReading) -> Appended:
    """Delete a group without members, and all its offsets.

    Errors, first match wins: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, those of the append. The group is
    deleted last: after an error an empty group with the remaining offsets is left. The answer must
    wait for the returned high watermark.
    """
    group = shard.groups.get(group_id)
    other = shard.other_groups.get(group_id)
    if group is None and other is None:
        return Appended(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and not group.is_in(GroupState.EMPTY):
        return Appended(ErrorCode.NON_EMPTY_GROUP)
    if other is not None and not other.is_empty:
        return Appended(ErrorCode.NON_EMPTY_GROUP)
    removed = write_tombstones(shard, shard.offsets.keys_of(group_id), at)
    if removed.error is not ErrorCode.NONE:
        return removed
    tombstones = [group_tombstone(group_id)] if other is None else other.tombstones()
    appended = shard.log.append_for_later(tombstones, at)
    if appended.error is ErrorCode.NONE:
        shard.remove_group(group_id, at)
    return appended


def _listed(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=_CLASSIC,
    )


def _listed_other(group: OtherGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.kind.value,
        group_state=group.state_name,
        group_type=group.kind.value,
    )
