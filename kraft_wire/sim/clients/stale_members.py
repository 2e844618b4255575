"""A client that commits offsets as a member of a generation that is over, or as an unknown member.

S67 OnlyMembersCommit: no coordinator takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.members import GROUP, GroupMember
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.error_code import ErrorCode
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
    """Sends requests that must be refused to the coordinator that a member has found."""

    def __init__(self, context: ClientContext, number: int, members: Sequence[GroupMember]) -> None:
        super().__init__(context, number, members[0].topic)
        self._members = members

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        member = self.random.choice(self._members)
        if member.coordinator is None or member.generation < 1:
            self.later(_THINK_US)
            return
        member_id, generation = member.member_id, member.generation - 1
        if self.random.random() < 0.3:
            member_id, generation = _UNKNOWN, member.generation
        place = OffsetCommitRequestPartition(
            partition_index=self.random.choice(list(self.leaders)),
            committed_offset=_NEVER_COMMITTED,
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(topic_id=self.topic_id, partitions=[place])],
        )
        node_id, facts = member.coordinator, (member_id, generation, "of", member.generation)
        self.ask(node_id, request, lambda got: self._answered(node_id, facts, got))

    def _answered(self, node_id: int, facts: tuple[object, ...], response: Message | None) -> None:
        if not isinstance(response, OffsetCommitResponse):
            self.again()
            return
        error = ErrorCode(response.topics[0].partitions[0].error_code)
        self.context.history.counts[f"stale member {error.name}"] += 1
        if error is ErrorCode.NONE:
            raise Violation("S67 OnlyMembersCommit", node_id, *facts)
        self.later(_THINK_US)
