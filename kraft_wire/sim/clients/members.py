"""Members of one group: they join, share the partitions, commit offsets that only grow, and leave.

The classic protocol as Kafka's consumer speaks it: FindCoordinator, JoinGroup, SyncGroup,
OffsetFetch, then heartbeats and commits until a rebalance or an error. The leader of a generation
assigns the partitions in turn. Each committed offset has a unique note as its metadata, by which it
is found again.
"""

from __future__ import annotations

import json
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import judge_coordinator
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["GROUP", "GroupMember"]

GROUP: Final = "g"
_PROTOCOL: Final = "in turn"
_SESSION_MS: Final = 1_500
_REBALANCE_MS: Final = 1_000
_WRONG_NODE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_LEAVES_SHARE: Final = 0.01
_COMMITS_SHARE: Final = 0.5


class GroupMember(BrokerClient):
    """One member of the group `GROUP` on one topic."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic)
        self.generation = -1
        """-1 while it has no place in the group."""
        self.is_resting = False
        """Whether it only stays in the group."""
        self.is_last = False
        """Whether it only reads the committed offsets, once."""
        self.has_read_offsets = False
        self.coordinator: int | None = None
        """The broker that it takes for the group's coordinator."""
        self.member_id = ""
        self._owned: list[int] = []
        self._offsets: dict[int, int] = {}
        self._notes = 0
        self.timeout_us = 4_000_000

    def step(self) -> None:
        if self.is_done and not self.is_last:
            return
        if self.coordinator is None:
            self._find()
        elif self.is_last:
            self._read_offsets(list(self.leaders))
        elif self.generation < 0:
            self._join()
        elif any(number not in self._offsets for number in self._owned):
            self._read_offsets(self._owned)
        elif self.is_resting:
            self._heartbeat()
        elif self.random.random() < _LEAVES_SHARE:
            self._leave()
        elif self._owned and self.random.random() < _COMMITS_SHARE:
            self._commit(self.random.choice(self._owned))
        else:
            self._heartbeat()

    def _tell(self, message: Message) -> None:
        """Ask the coordinator; the answer goes to `_answered`."""
        node_id = self.coordinator
        assert node_id is not None, message
        self.ask(node_id, message, self._answered)

    def _refused(self, code: int) -> bool:
        """Handle an error; false without an error."""
        error = ErrorCode(code)
        if error is ErrorCode.NONE:
            return False
        self.context.history.counts[f"group {error.name}"] += 1
        if error in _WRONG_NODE:
            self.coordinator = None
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self._lose_place()
        elif error is not ErrorCode.REQUEST_TIMED_OUT:
            self._lose_place()
        self.again()
        return True

    def _lose_place(self) -> None:
        """Own nothing until the next generation: a member without a generation commits nothing."""
        self.generation = -1
        self._owned, self._offsets = [], {}

    def _answered(self, response: Message | None) -> None:
        match response:
            case JoinGroupResponse():
                self._joined(response)
            case HeartbeatResponse():
                if not self._refused(response.error_code):
                    self.later(self.think_us)
            case None:
                self.coordinator = None
                self.again()
            case _:
                self.member_id = ""  # it left
                self._lose_place()
                self.later(self.think_us)

    # -- joining ---------------------------------------------------------------------------------

    def _find(self) -> None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        node_id = self.some_broker()
        self.ask(node_id, request, lambda response: self._found(node_id, response))

    def _found(self, node_id: int, response: Message | None) -> None:
        if isinstance(response, FindCoordinatorResponse):
            found = response.coordinators[0]
            if found.error_code == 0 and found.node_id >= 0:
                offsets = self.context.truth.of_topic(OFFSETS_TOPIC)
                judge_coordinator(node_id, found, offsets)
                self.coordinator = found.node_id
                self.step()
                return
        self.again()

    def _join(self) -> None:
        self._tell(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=_SESSION_MS,
                rebalance_timeout_ms=_REBALANCE_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b"")],
            )
        )

    def _joined(self, response: JoinGroupResponse) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.step()
            return
        if self._refused(response.error_code):
            return
        self.member_id = response.member_id
        shares = []
        if response.leader == response.member_id:
            members = sorted(each.member_id for each in response.members)
            for at, member_id in enumerate(members):
                share = sorted(self.leaders)[at :: len(members)]
                content = json.dumps(share).encode()
                shares.append(SyncGroupRequestAssignment(member_id=member_id, assignment=content))
        self._sync(response.generation_id, shares)

    def _sync(self, generation: int, shares: list[SyncGroupRequestAssignment]) -> None:
        """Ask for a share; without an answer to this it has no place, and joins again."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=_PROTOCOL,
            assignments=shares,
        )
        assert self.coordinator is not None, self.number

        def synced(response: Message | None) -> None:
            if isinstance(response, SyncGroupResponse):
                self._synced(generation, response)
            else:
                self._answered(None)

        self.ask(self.coordinator, request, synced)

    def _synced(self, generation: int, response: SyncGroupResponse) -> None:
        if self._refused(response.error_code):
            return
        content = bytes(response.assignment)
        self.generation = generation
        self._owned = json.loads(content) if content else []
        history = self.context.history
        history.assigned(GROUP, self.generation, self.member_id, self._owned)
        self.later(self.think_us)

    def _leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id)
        self._tell(LeaveGroupRequest(group_id=GROUP, members=[identity]))

    def _heartbeat(self) -> None:
        self._tell(
            HeartbeatRequest(
                group_id=GROUP, generation_id=self.generation, member_id=self.member_id
            )
        )

    # -- offsets ---------------------------------------------------------------------------------

    def _commit(self, number: int) -> None:
        self.context.history.commits(GROUP, self.generation, self.member_id, number)
        self._notes += 1
        offset, note = self._offsets[number] + 1, f"{self.number}-{self._notes}"
        place = OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata=note
        )
        assert self.topic_id is not None, self.topic
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(topic_id=self.topic_id, partitions=[place])],
        )
        node_id = self.coordinator
        assert node_id is not None, self.number

        def committed(response: Message | None) -> None:
            if not isinstance(response, OffsetCommitResponse):
                self._answered(None)
                return
            if self._refused(response.topics[0].partitions[0].error_code):
                return
            self._offsets[number] = offset
            history = self.context.history
            history.offset_committed(node_id, (GROUP, self.topic, number), offset, note)
            self.later(self.think_us)

        self.ask(node_id, request, committed)

    def _read_offsets(self, numbers: list[int]) -> None:
        assert self.topic_id is not None, self.topic
        topics = [OffsetFetchRequestTopics(topic_id=self.topic_id, partition_indexes=numbers)]
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        node_id = self.coordinator
        assert node_id is not None, self.number
        owed = {number: self._owed(node_id, number) for number in numbers}

        def read(response: Message | None) -> None:
            if isinstance(response, OffsetFetchResponse):
                self._offsets_read(node_id, owed, response)
            else:
                self._answered(None)

        self.ask(node_id, OffsetFetchRequest(groups=[group]), read)

    def _owed(self, node_id: int, number: int) -> int:
        """Return how many commits of a partition a coordinator must know at a request now.

        A replaced coordinator that does not know it yet lacks its successor's commits.
        """
        context = self.context
        leads = all(context.judge.leads(node_id, p) for p in context.truth.of_topic(OFFSETS_TOPIC))
        return context.history.offsets_owed((GROUP, self.topic, number)) if leads else 0

    def _offsets_read(
        self, node_id: int, owed: dict[int, int], response: OffsetFetchResponse
    ) -> None:
        group = response.groups[0]
        if self._refused(group.error_code):
            return
        history = self.context.history
        for place in group.topics[0].partitions:
            if self._refused(place.error_code):
                return
            number = place.partition_index
            facts = ((GROUP, self.topic, number), place.committed_offset, place.metadata or "")
            history.offset_shown(node_id, *facts, owed[number])
            if self.is_last:
                history.offset_at_end(node_id, *facts)
            self._offsets[number] = max(place.committed_offset, 0)
        if self.is_last:
            self.has_read_offsets = True
        else:
            self.later(self.think_us)
