"""Members of a streams group (KIP-1071): one subtopology that reads a topic, a task a partition.

It has no state, so that the broker creates no internal topics.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.epoch_member import LEFT, EpochMember, Told
from kraft_wire.sim.judge.group_epochs import GroupEpochs, Owned, Place
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    Topology,
)
from kraft_wire.wire.message import Message

__all__ = ["STREAMS_GROUP", "StreamsMember"]

STREAMS_GROUP: Final = "streams"
_SUBTOPOLOGY: Final = "0"
_REBALANCE_MS: Final = 1_500


class StreamsMember(EpochMember):
    """One member of the group `STREAMS_GROUP` on one topic, in a process of its own."""

    kind = "streams"

    def __init__(
        self, context: ClientContext, epochs: GroupEpochs, number: int, topic: str
    ) -> None:
        super().__init__(context, epochs, number, topic, STREAMS_GROUP)
        self._process_id = f"process-{number}"

    def in_log(self, places: frozenset[Place]) -> Owned:
        """Return the tasks that read partitions."""
        return frozenset((_SUBTOPOLOGY, number) for _, number in places)

    def lost_answer(self) -> None:
        """Join again: 4.3.1 names the tasks of a member once, and ours does as well."""
        self.lose_place()

    def heartbeat_request(self) -> StreamsGroupHeartbeatRequest:
        """Return a heartbeat with all active tasks; the first one has the topology."""
        numbers = sorted(number for _, number in self.owned)
        active = [TaskIds(subtopology_id=_SUBTOPOLOGY, partitions=numbers)] if numbers else []
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=-1,
            active_tasks=active,
            standby_tasks=[],
            warmup_tasks=[],
        )
        if self.epoch == 0 or self.must_tell:
            request.rebalance_timeout_ms = _REBALANCE_MS
            request.process_id = self._process_id
        if self.epoch == 0:
            only = Subtopology(subtopology_id=_SUBTOPOLOGY, source_topics=[self.topic])
            request.topology = Topology(epoch=0, subtopologies=[only])
        return request

    def told(self, response: Message | None) -> Told | None:
        """Return error code, member epoch and the partitions of active tasks."""
        if not isinstance(response, StreamsGroupHeartbeatResponse) or self.topic_id is None:
            return None
        assigned = None
        if response.active_tasks is not None:
            assigned = frozenset(
                (self.topic_id, number)
                for each in response.active_tasks
                for number in each.partitions
            )
        return response.error_code, response.member_epoch, assigned

    def leave(self) -> None:
        """Leave, and return as the same member."""
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=LEFT
        )
        self.lose_place()
        self.depart(request)
