"""A classic group: its members, its generation, and the vote for a protocol.

Bookkeeping only. Nothing here answers a request, sets a timer or writes a record; `rebalance.py`
and its neighbours do. This class keeps the state consistent. KIP-345 for static members, KIP-394
for members that hold an id but have not joined.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.classic.member import Member, ParkedRequest
from kraft_wire.broker.groups.classic.states import (
    CAN_REBALANCE,
    GroupEvent,
    GroupState,
    next_state,
)
from kraft_wire.broker.groups.classic.subscription import subscribed_topics
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES, PENDING_MEMBER_BYTES
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["CONSUMER_PROTOCOL_TYPE", "AwaitedAssignments", "ClassicGroup", "set_awaited"]

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type whose member metadata is a subscription to topics."""


class AwaitedAssignments(NamedTuple):
    """The leader's assignments of a generation, which must be committed before members get them."""

    safe_at: int
    """The high watermark that commits it."""
    by_member: Mapping[str, bytes]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        return sum(len(assignment) for assignment in self.by_member.values())


class ClassicGroup:
    """One group; `members`, `static_members` and the counters always agree."""

    __slots__ = (
        "_joined_count",
        "_support",
        "awaited",
        "generation_id",
        "group_id",
        "initial_delay",
        "leader_id",
        "members",
        "memory",
        "new_member_added",
        "pending_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "size_bytes",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(
        self,
        group_id: str,
        memory: MemoryUse,
        wall_ms: int | None,
        state: GroupState = GroupState.EMPTY,
    ) -> None:
        self.group_id = group_id
        self.memory = memory
        self.state = state
        self.previous_state = state
        self.state_timestamp_ms = wall_ms
        """Wall clock of the last change of state; None if an old record does not have it."""
        self.generation_id = 0
        self.protocol_type: str | None = None
        """None for a group that only ever committed offsets."""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Group instance id to member id."""
        self.pending_members: dict[str, None] = {}
        """Ids given out with MEMBER_ID_REQUIRED that have not joined yet (KIP-394)."""
        self.pending_sync_members: dict[str, None] = {}
        """Members of the generation that have not asked for their assignment."""
        self.awaited: AwaitedAssignments | None = None
        """The leader's newest assignments; a replay also takes the newest of several in the log."""
        self.subscribed_topics: dict[str, None] | None = None
        """None if the coordinator cannot know them."""
        self.new_member_added = False
        """Whether someone joined during the current piece of the initial delay (KIP-134)."""
        self.initial_delay: tuple[int, int] | None = None
        """Delay running and time left after it, while the first rebalance waits for members."""
        self.size_bytes = 0
        """Memory that the group takes, as `object_sizes` counts it."""
        self._resize(GROUP_BYTES + len(group_id))
        self._joined_count = 0
        self._support: dict[str, int] = {}

    # --- What the group is -------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        """Whether the group's state is one of these."""
        return self.state in states

    def leads(self, member_id: str) -> bool:
        """Whether this member computes the group's assignment."""
        return self.leader_id == member_id

    @property
    def can_rebalance(self) -> bool:
        """Whether a change of membership may start a rebalance now."""
        return self.state in CAN_REBALANCE

    @property
    def joined_count(self) -> int:
        """How many members wait for the answer to their JoinGroup request."""
        return self._joined_count

    @property
    def all_joined(self) -> bool:
        """Whether all members have joined, and all given ids too."""
        return len(self.members) == self._joined_count and not self.pending_members

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, so that their subscriptions can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts, never negative."""
        return max(0, *(member.rebalance_timeout_ms for member in self.members.values()), 0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; consumers of unknown topics count as reading all."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a member with these protocols could be a member beside the present ones."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(
            self._support.get(name, 0) == len(self.members) for name in protocols
        )

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check that a request comes from a current member.

        Errors, first match wins: UNKNOWN_MEMBER_ID (instance never joined), FENCED_INSTANCE_ID
        (the instance has a newer member id), UNKNOWN_MEMBER_ID.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # --- Members -----------------------------------------------------------------------------

    def add(self, member: Member, waiting: ParkedRequest | None) -> None:
        """Make the member part of the group; the first one leads and sets the protocol type."""
        assert member.member_id not in self.members, member.member_id
        assert member.awaiting_join is None, member
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type, (self.protocol_type, member)
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, member
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        self.set_awaiting_join(member, waiting)
        self._forget_pending(member.member_id)

    def add_pending(self, member_id: str) -> None:
        """Remember an id that was given out (KIP-394)."""
        assert member_id not in self.members, member_id
        self.pending_members[member_id] = None
        self._resize(PENDING_MEMBER_BYTES + len(member_id))

    def update(
        self,
        member: Member,
        protocols: Mapping[str, bytes],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        waiting: ParkedRequest | None,
    ) -> None:
        """Replace the member's own data by that of its newest JoinGroup."""
        assert self.members.get(member.member_id) is member, member.member_id
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.set_awaiting_join(member, waiting)

    def remove(self, member_id: str) -> Member | None:
        """Drop the member or the given id; a new leader is the member that joined earliest."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            self.set_awaiting_join(member, None)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leads(member_id):
            self.leader_id = next(iter(self.members), None)
        self._forget_pending(member_id)
        self.pending_sync_members.pop(member_id, None)
        return member

    def replace_static(self, group_instance_id: str, new_member_id: str) -> tuple[Member, Member]:
        """Give the instance a new member id (KIP-345); return the fenced member and the new one.

        The new member has all data of the old one, including its assignment, and no parked request.
        """
        old = self.members.pop(self.static_members[group_instance_id])
        self._count(old, -1)
        new = Member(
            member_id=new_member_id,
            group_instance_id=group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        if old.awaiting_join is not None:
            self._joined_count -= 1
        self.members[new_member_id] = new
        self.static_members[group_instance_id] = new_member_id
        self._count(new, 1)
        if self.leads(old.member_id):
            self.leader_id = new_member_id
        if old.member_id in self.pending_sync_members:
            del self.pending_sync_members[old.member_id]
            self.pending_sync_members[new_member_id] = None
        return old, new

    def set_awaiting_join(
        self, member: Member, waiting: ParkedRequest | None
    ) -> ParkedRequest | None:
        """Note whether the member has a parked JoinGroup request; return the one it had."""
        before = member.awaiting_join
        self._joined_count += (waiting is not None) - (before is not None)
        member.awaiting_join = waiting
        assert 0 <= self._joined_count <= len(self.members), self._joined_count
        return before

    def set_assignment(self, member: Member, assignment: bytes) -> None:
        """Store the bytes that the leader computed for the member."""
        self._resize(len(assignment) - len(member.assignment))
        member.assignment = assignment

    def not_yet_rejoined(self) -> Iterator[Member]:
        """Yield the members without a parked JoinGroup request."""
        return (member for member in self.members.values() if member.awaiting_join is None)

    def elect_joined_leader(self) -> bool:
        """Keep a leader that joined, else elect the first joined member; false without one."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        joined = (m.member_id for m in self.members.values() if m.awaiting_join is not None)
        elected = next(joined, None)
        if elected is None:
            return False
        self.leader_id = elected
        return True

    # --- Generations -------------------------------------------------------------------------

    def apply(self, event: GroupEvent, wall_ms: int) -> None:
        """Move to the state that the table names for the event."""
        state = next_state(self.state, event)
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = wall_ms

    def form_generation(self, wall_ms: int) -> None:
        """Begin the next generation with the present members, or an empty one without any."""
        self.generation_id = epoch_after(self.generation_id)
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.read_subscriptions()
        event = GroupEvent.GENERATION_FORMED if self.members else GroupEvent.LAST_MEMBER_LEFT
        self.apply(event, wall_ms)
        self.pending_sync_members.clear()

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among those that every member supports.

        Each member votes for its first choice; of equal votes the one voted for first wins.
        """
        assert self.members, self.group_id
        candidates = {name: None for name, n in self._support.items() if n == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def read_subscriptions(self) -> dict[str, None] | None:
        """Return every topic that a member subscribes to; None if that is unknown."""
        if not self.uses_consumer_protocol:
            return None
        topics: dict[str, None] = {}
        if self.members and self.protocol_name is None:
            return None
        for member in self.members.values():
            assert self.protocol_name is not None, self.group_id
            read = subscribed_topics(member.protocols[self.protocol_name])
            if read is None:
                return None
            topics.update(dict.fromkeys(read))
        return topics

    def release(self) -> None:
        """Release the counted memory of the group, which is removed."""
        self._resize(-self.size_bytes)

    def _resize(self, more_bytes: int) -> None:
        self.size_bytes += more_bytes
        self.memory.add(more_bytes)

    def _forget_pending(self, member_id: str) -> None:
        if member_id in self.pending_members:
            del self.pending_members[member_id]
            self._resize(-PENDING_MEMBER_BYTES - len(member_id))

    def _count(self, member: Member, sign: int) -> None:
        """Add the member to the group's totals, or take it out of them."""
        self._resize(sign * member.size_bytes)
        for name in member.protocols:
            supporters = self._support.get(name, 0) + sign
            assert supporters >= 0, (self.group_id, name)
            if supporters:
                self._support[name] = supporters
            else:
                del self._support[name]


def set_awaited(group: ClassicGroup, awaited: AwaitedAssignments | None) -> None:
    """Keep assignments until they are committed, instead of older ones; None drops them."""
    more_bytes = 0 if awaited is None else awaited.size_bytes
    more_bytes -= 0 if group.awaited is None else group.awaited.size_bytes
    group.awaited = awaited
    group.size_bytes += more_bytes
    group.memory.add(more_bytes)
