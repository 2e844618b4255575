"""A tool that describes the groups of other clients (KIP-848, KIP-932, KIP-1071).

S76: a description shows what the coordinator's log has. It is judged if that log was the same
before the request and after the answer, on one leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.sim.clients.consumer_members import CONSUMER_GROUP
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE
from kraft_wire.sim.clients.group_tool import GROUP_IS_AS_LEFT
from kraft_wire.sim.clients.members import GROUP
from kraft_wire.sim.clients.share_members import SHARE_GROUP
from kraft_wire.sim.clients.streams_members import STREAMS_GROUP
from kraft_wire.sim.clients.tool import Tool
from kraft_wire.sim.judge.coordinator_replay import groups_in_log
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_describe import ShareGroupDescribeRequest
from kraft_wire.wire.generated.streams_group_describe import StreamsGroupDescribeRequest
from kraft_wire.wire.message import Message

__all__ = ["DescribingTool"]

_REQUESTS: Final = {
    CONSUMER_GROUP: ConsumerGroupDescribeRequest,
    SHARE_GROUP: ShareGroupDescribeRequest,
    STREAMS_GROUP: StreamsGroupDescribeRequest,
}
_STABLE_IN_RECORDS: Final = {CONSUMER_GROUP: 0, SHARE_GROUP: 0, STREAMS_GROUP: 1}
"""The state of a member that has its whole target."""


class DescribingTool(Tool):
    """Describes one group after the other, and lists the members of the classic one."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic, CONSUMER_GROUP)

    def steps(self) -> tuple[Callable[[], None], ...]:
        return (self._describe,)

    def _describe(self) -> None:
        assert self.coordinator is not None, self.number
        self.group = self.random.choice((*_REQUESTS, GROUP))
        request: Message = DescribeGroupsRequest(groups=[self.group])
        if self.group != GROUP:
            request = _REQUESTS[self.group](group_ids=[self.group])
        before = groups_in_log(self.stage.machines[self.coordinator])

        def answered(node_id: int, response: Message | None) -> None:
            after = groups_in_log(self.stage.machines[node_id])
            found: Any = response
            if found is None or ErrorCode(found.groups[0].error_code) in WRONG_NODE:
                self.coordinator = None
                self.again()
                return
            if before is not None and after is not None and before[0] == after[0]:
                self._judge(node_id, found.groups[0], before[1])
            self.later(self.think_us)

        self.ask_coordinator(request, answered)

    def _judge(self, node_id: int, shown: Any, state: Any) -> None:
        if self.group == GROUP and shown.group_state != "Stable":
            return  # between two generations the log does not have the group yet
        self.context.judge.looked[GROUP_IS_AS_LEFT] += 1
        if self.group == GROUP:
            wanted, found = _classic_in_log(state), _classic_shown(shown)
        else:
            wanted, found = _in_log(state, self.group), _shown(shown)
        if wanted is not None and found != wanted:
            facts = (self.group, "is described as", found, "its log has", wanted)
            raise Violation(GROUP_IS_AS_LEFT, node_id, *facts)


# --- the classic group -------------------------------------------------------------------------


def _classic_in_log(state: Any) -> object:
    """Return the members of the last generation; None if the log has none."""
    group = state.groups.get(GROUP)
    if group is None or not group.members:
        return None
    return group.protocol_name, {
        each.member_id: (each.client_id, each.assignment) for each in group.members.values()
    }


def _classic_shown(shown: Any) -> object:
    """Return the same of a description."""
    return shown.protocol_data, {
        each.member_id: (each.client_id, bytes(each.member_assignment)) for each in shown.members
    }


# --- the other groups --------------------------------------------------------------------------


def _in_log(state: Any, group_id: str) -> object:
    group = state.other_groups.get(group_id)
    if group is None:
        return None
    members = {
        each.member_id: (each.member_epoch, each.client_id, *_of_kind(group_id, each, group))
        for each in group.members.values()
    }
    return (_state_of(group_id, group), group.epoch, group.assignment_epoch, members)


def _state_of(group_id: str, group: Any) -> str:
    if not len(group.members):
        return "Empty"
    if group_id == SHARE_GROUP:
        return "Stable"
    if group_id == STREAMS_GROUP and (
        group.topology is None or group.topology.epoch != group.validated_topology_epoch
    ):
        return "NotReady"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    stable = _STABLE_IN_RECORDS[group_id]
    is_done = all(
        each.state == stable and each.member_epoch == group.assignment_epoch
        for each in group.members.values()
    )
    return "Stable" if is_done else "Reconciling"


def _of_kind(group_id: str, member: Any, group: Any) -> tuple[object, ...]:
    """Return subscription, partitions and target of a member; tasks for the streams group."""
    if group_id == STREAMS_GROUP:
        target = group.targets.get(member.member_id)
        active = {} if target is None else target.active
        return (_sets(member.assigned.active), _sets(active))
    names = sorted(member.subscribed_topic_names)
    if group_id == SHARE_GROUP:
        return (names, _sets(member.assigned))
    held = {key: [*numbers] for key, numbers in member.assigned.items()}
    for key, numbers in member.pending_revocation.items():
        held[key] = [*held.get(key, ()), *numbers]
    return (names, _sets(held), _sets(group.targets.get(member.member_id) or {}))


def _sets(topics: Any) -> dict[Any, list[int]]:
    return {key: sorted(numbers) for key, numbers in topics.items() if len(numbers)}


def _shown(group: Any) -> object:
    members = {
        each.member_id: (each.member_epoch, each.client_id, *_member_shown(each))
        for each in group.members
    }
    return (group.group_state, group.group_epoch, group.assignment_epoch, members)


def _member_shown(member: Any) -> tuple[object, ...]:
    if hasattr(member, "process_id"):
        both = (member.assignment.active_tasks, member.target_assignment.active_tasks)
        return tuple({each.subtopology_id: sorted(each.partitions) for each in one} for one in both)
    shown = [member.assignment]
    if hasattr(member, "target_assignment"):
        shown.append(member.target_assignment)
    topics = [
        {each.topic_id: sorted(each.partitions) for each in one.topic_partitions} for one in shown
    ]
    return (sorted(member.subscribed_topic_names), *topics)
