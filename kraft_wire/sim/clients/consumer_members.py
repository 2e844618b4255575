"""Members of a consumer group (KIP-848). Some are static, and leave for a while."""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.epoch_member import LEFT, EpochMember, Told
from kraft_wire.sim.judge.group_epochs import GroupEpochs
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.message import Message

__all__ = ["CONSUMER_GROUP", "ConsumerMember"]

CONSUMER_GROUP: Final = "c"
_REBALANCE_MS: Final = 1_500
_LEFT_FOR_A_WHILE: Final = -2


class ConsumerMember(EpochMember):
    """One member of the group `CONSUMER_GROUP` on one topic."""

    kind = "consumer"

    def __init__(
        self,
        context: ClientContext,
        epochs: GroupEpochs,
        number: int,
        topic: str,
        *,
        is_static: bool,
    ) -> None:
        super().__init__(context, epochs, number, topic, CONSUMER_GROUP)
        self.instance_id = f"instance-{number}" if is_static else None

    def heartbeat_request(self) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat; a static member always names its instance."""
        is_full = self.epoch == 0 or self.must_tell
        topics: dict[bytes, TopicPartitions] = {}
        for topic_id, number in sorted(self.owned):
            topic = topics.setdefault(topic_id, TopicPartitions(topic_id=topic_id, partitions=[]))
            topic.partitions.append(number)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=_REBALANCE_MS if is_full else -1,
            subscribed_topic_names=[self.topic] if is_full else None,
            topic_partitions=list(topics.values()),
        )

    def told(self, response: Message | None) -> Told | None:
        """Return error code, member epoch and assignment."""
        if not isinstance(response, ConsumerGroupHeartbeatResponse):
            return None
        assigned = None
        if response.assignment is not None:
            assigned = frozenset(
                (each.topic_id, number)
                for each in response.assignment.topic_partitions
                for number in each.partitions
            )
        return response.error_code, response.member_epoch, assigned

    def leave(self) -> None:
        """Leave; a static member only for a while, and it returns under another id."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=LEFT if self.instance_id is None else _LEFT_FOR_A_WHILE,
            instance_id=self.instance_id,
            rebalance_timeout_ms=-1,
        )
        self.lose_place()
        if self.instance_id is not None:
            self.member_id = self.new_member_id()
        self.depart(request)
