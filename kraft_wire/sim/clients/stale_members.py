"""A client that speaks as a member of a generation that is over, or as a member that nobody knows.

S67 OnlyMembersCommit: a coordinator takes neither an offset nor a sign of life from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.members import GROUP, GroupMember
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["StaleMember"]

_NEVER_COMMITTED: Final = 1 << 40
_UNKNOWN: Final = "nobody"
_THINK_US: Final = 100_000


class StaleMember(BrokerClient):
    """Asks the coordinator that a member has found for what must be refused."""

    def __init__(self, context: ClientContext, number: int, members: Sequence[GroupMember]) -> None:
        super().__init__(context, number, members[0].topic)
        self._members = members
        self.think_us = _THINK_US

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        member = self.random.choice(self._members)
        if member.coordinator is None or member.generation < 1:
            self.later(self.think_us)
            return
        is_unknown = self.random.random() < 0.3
        member_id = _UNKNOWN if is_unknown else member.member_id
        generation = member.generation - (not is_unknown)
        is_commit = self.random.random() < 0.7
        request = self._commit(generation, member_id) if is_commit else None
        request = request or HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id
        )
        node_id, facts = member.coordinator, (member_id, generation, "of", member.generation)
        if not is_commit and not self._is_coordinator(node_id):
            self.later(self.think_us)
            return
        self.ask(node_id, request, lambda got: self._answered(node_id, facts, got))

    def _is_coordinator(self, node_id: int) -> bool:
        """Tell whether a broker is the coordinator: one that was replaced knows former members."""
        offsets = self.context.truth.of_topic(OFFSETS_TOPIC)
        return all(self.context.judge.leads(node_id, each) for each in offsets)

    def _commit(self, generation: int, member_id: str) -> Message:
        assert self.topic_id is not None, self.topic
        number = self.random.choice(list(self.leaders))
        place = OffsetCommitRequestPartition(
            partition_index=number, committed_offset=_NEVER_COMMITTED
        )
        return OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(topic_id=self.topic_id, partitions=[place])],
        )

    def _answered(self, node_id: int, facts: tuple[object, ...], response: Message | None) -> None:
        match response:
            case OffsetCommitResponse():
                error = ErrorCode(response.topics[0].partitions[0].error_code)
            case HeartbeatResponse():
                error = ErrorCode(response.error_code)
            case _:
                self.again()
                return
        self.context.history.counts[f"stale member {error.name}"] += 1
        if error is ErrorCode.NONE:
            raise Violation("S67 OnlyMembersCommit", node_id, type(response).__name__, *facts)
        self.later(self.think_us)
