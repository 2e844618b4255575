"""A member of a streams group (KIP-1071), as its records describe it.

A member is a value: a heartbeat or a record makes another one in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from kraft_wire.broker.groups.object_sizes import MEMBER_BYTES
from kraft_wire.broker.groups.streams.assigned_tasks import (
    NOTHING_ASSIGNED,
    AssignedTasks,
    active_tasks,
    plain_tasks,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue,
)

__all__ = ["GONE_EPOCH", "MemberState", "StreamsMember", "UserEndpoint"]

GONE_EPOCH: Final = -1
"""Member epoch after the tombstone of the current assignment."""


class MemberState(IntEnum):
    """How far a member is on its way to its target; the value is that of its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """The member must give tasks back first."""
    UNRELEASED_TASKS = 3
    """Another process still has tasks that the member is to have."""
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> "MemberState":
        """Return a state by its number; one of a later release is unknown."""
        return cls(value) if value in tuple(cls) else cls.UNKNOWN


class UserEndpoint(NamedTuple):
    """The address at which an application answers queries about its tasks."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member; the defaults are those of a member without records."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    """The address with a leading slash."""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """The application's process: its members share state directories."""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: AssignedTasks = NOTHING_ASSIGNED
    pending_revocation: AssignedTasks = NOTHING_ASSIGNED

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> "StreamsMember":
        """Return the member after a record of what it is."""
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags={each.key: each.value for each in value.client_tags},
        )

    def with_current_assignment(
        self, value: StreamsGroupCurrentMemberAssignmentValue
    ) -> "StreamsMember":
        """Return the member after a record of its epoch and tasks."""
        epoch = value.member_epoch
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=AssignedTasks(
                active_tasks(value.active_tasks, epoch),
                plain_tasks(value.standby_tasks),
                plain_tasks(value.warmup_tasks),
            ),
            pending_revocation=AssignedTasks(
                active_tasks(value.active_tasks_pending_revocation, epoch),
                plain_tasks(value.standby_tasks_pending_revocation),
                plain_tasks(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> "StreamsMember":
        """Return the member after the tombstone of its current assignment."""
        return replace(
            self,
            member_epoch=GONE_EPOCH,
            previous_member_epoch=GONE_EPOCH,
            assigned=NOTHING_ASSIGNED,
            pending_revocation=NOTHING_ASSIGNED,
        )

    def moved(
        self, state: MemberState, epoch: int, assigned: AssignedTasks, pending: AssignedTasks
    ) -> "StreamsMember":
        """Return the member in a state; its epoch becomes the previous one, also if it stays."""
        return replace(
            self,
            state=state,
            member_epoch=epoch,
            previous_member_epoch=self.member_epoch,
            assigned=assigned,
            pending_revocation=pending,
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has what the target of an epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, as `object_sizes` counts it."""
        texts = (self.client_id, self.process_id, self.rack_id or "", *self.client_tags)
        length = sum(map(len, texts)) + sum(map(len, self.client_tags.values()))
        return MEMBER_BYTES + length + self.assigned.size_bytes + self.pending_revocation.size_bytes
