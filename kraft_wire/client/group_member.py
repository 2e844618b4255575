"""A member of a classic consumer group: joins, keeps its place, commits, leaves (KIP-62, KIP-394).

One thread does everything: the reader calls `beat` between rounds, and joins again when it returns
False. The member that leads the group assigns by range.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, RetryDeadline
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.group_offsets import commit_offsets, committed_offsets
from kraft_wire.client.range_assignment import (
    assigned_by_range,
    assignment_bytes,
    assignment_of_bytes,
    subscription_bytes,
    topics_of_subscription,
)
from kraft_wire.client.refused import one_line
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from kraft_wire.wire.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kraft_wire.wire.message import MalformedMessage

__all__ = ["GroupMember"]

_PROTOCOL_TYPE: Final = "consumer"
_ASSIGNOR: Final = "range"
_SESSION_MS: Final = 45_000
_REBALANCE_MS: Final = 60_000
_JOIN_SECONDS: Final = _REBALANCE_MS / 1000 + 10
_HEARTBEAT_SECONDS: Final = 3.0
_JOIN_VERSION_MAX: Final = 7
"""The last in which the leader always assigns."""
_LEAVE_VERSION_MAX: Final = 2
"""The last that names one member."""
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_OUTDATED: Final = _FORGOTTEN | {ErrorCode.REBALANCE_IN_PROGRESS}


class GroupMember:
    """One member of one group, subscribed to some topics."""

    def __init__(
        self,
        cluster: ClusterClient,
        coordinator: GroupCoordinator,
        topics: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._topics = sorted(topics)
        self._clock = clock
        self._member_id = ""
        self._generation_id = -1
        self._beat_at = 0.0

    def join(self) -> list[TopicPartition]:
        """Join, or join again, and return the assigned partitions. Errors: ClusterRefused."""
        patience = RetryDeadline(self._cluster.settings.deadline_seconds)
        while True:
            code, found = self._try_join()
            if found is not None:
                self._beat_at = self._clock() + _HEARTBEAT_SECONDS
                return found
            if patience.is_over:
                raise self._refused("not joined", code)
            if code in _FORGOTTEN:
                self._member_id = ""
            if code != ErrorCode.MEMBER_ID_REQUIRED:
                patience.pause()

    def committed(self, keys: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets of those partitions that have one."""
        return committed_offsets(self._coordinator, keys)

    def beat(self) -> bool:
        """Send a heartbeat when it is due; False where the member must join again."""
        if self._clock() < self._beat_at:
            return True
        self._beat_at = self._clock() + _HEARTBEAT_SECONDS
        request = HeartbeatRequest(
            group_id=self._coordinator.group,
            generation_id=self._generation_id,
            member_id=self._member_id,
        )
        answer = self._coordinator.send(request, HeartbeatResponse, _code)
        return self._still_belongs("no heartbeat", answer.error_code)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets; False where the member must join again, and they are not committed."""
        if not offsets:
            return True
        code = commit_offsets(self._coordinator, offsets, self._generation_id, self._member_id)
        return self._still_belongs("not committed", code)

    def leave(self) -> None:
        """Leave, so that the others need not wait for the session to end."""
        if not self._member_id:
            return
        request = LeaveGroupRequest(
            group_id=self._coordinator.group,
            member_id=self._member_id,
        )
        self._coordinator.send(request, LeaveGroupResponse, _code, at_most=_LEAVE_VERSION_MAX)
        self._member_id = ""

    def _try_join(self) -> tuple[int, list[TopicPartition] | None]:
        """Join and sync once; return the assignment, or the error after which to try again."""
        protocol = JoinGroupRequestProtocol(
            name=_ASSIGNOR, metadata=subscription_bytes(self._topics)
        )
        request = JoinGroupRequest(
            group_id=self._coordinator.group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[protocol],
        )
        joined = self._coordinator.send(
            request, JoinGroupResponse, _code, at_most=_JOIN_VERSION_MAX, seconds=_JOIN_SECONDS
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return joined.error_code, None
        if joined.error_code:
            return self._passing("not joined", joined.error_code), None
        self._member_id, self._generation_id = joined.member_id, joined.generation_id
        return self._sync(joined)

    def _sync(self, joined: JoinGroupResponse) -> tuple[int, list[TopicPartition] | None]:
        request = SyncGroupRequest(
            group_id=self._coordinator.group,
            generation_id=self._generation_id,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=self._assignments(joined) if joined.leader == joined.member_id else [],
        )
        answer = self._coordinator.send(request, SyncGroupResponse, _code, seconds=_JOIN_SECONDS)
        if answer.error_code:
            return self._passing("not assigned", answer.error_code), None
        try:
            return 0, assignment_of_bytes(answer.assignment)
        except MalformedMessage as error:
            raise ClusterRefused(f"group {self._coordinator.group}: assignment: {error}") from error

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Assign, as the leader of the group, by range."""
        subscriptions = {}
        for each in joined.members:
            try:
                subscriptions[each.member_id] = topics_of_subscription(each.metadata)
            except MalformedMessage as error:
                who = f"group {self._coordinator.group}: member {one_line(each.member_id)}"
                raise ClusterRefused(f"{who}: {error}") from error
        topics = sorted({topic for each in subscriptions.values() for topic in each})
        assigned = assigned_by_range(subscriptions, self._cluster.partitions_of(topics))
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=assignment_bytes(keys))
            for member, keys in assigned.items()
        ]

    def _passing(self, what: str, code: int) -> int:
        if code not in _OUTDATED:
            raise self._refused(what, code)
        return code

    def _still_belongs(self, what: str, code: int) -> bool:
        if code:
            self._passing(what, code)
        if code in _FORGOTTEN:
            self._member_id = ""
        return not code

    def _refused(self, what: str, code: int) -> ClusterRefused:
        return ClusterRefused(f"group {self._coordinator.group}: {what}: {error_name(code)}")


def _code(
    answer: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse,
) -> int:
    return answer.error_code
