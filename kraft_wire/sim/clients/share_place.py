"""The place of a member in a share group (KIP-932): heartbeats, and the partitions it may read."""

from __future__ import annotations

from abc import abstractmethod

from kraft_wire.model import Uuid
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE, CoordinatedClient
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["SharePlace"]


class SharePlace(CoordinatedClient):
    """A client with a member id, an epoch and an assignment."""

    def __init__(self, context: ClientContext, number: int, topic: str, group: str) -> None:
        super().__init__(context, number, topic, group)
        self.member_id = self.new_member_id()
        self.epoch = 0
        """0 while it has no place in the group."""
        self.owned: list[tuple[Uuid, int]] = []
        self._must_tell = True
        """Whether the next heartbeat names its topic: it is new, or an answer was lost."""

    @abstractmethod
    def lose_connections(self) -> None:
        """Close every connection, as a client that dies: its sessions end, its records are free."""

    def heartbeat(self, epoch: int) -> None:
        """Join with epoch 0, stay with the member's own, leave with -1."""
        must_tell = epoch == 0 or (epoch > 0 and self._must_tell)
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=[self.topic] if must_tell else None,
        )
        if epoch < 0:
            self.lose_connections()
            self.epoch, self.owned = 0, []
        self.ask_coordinator(request, self._heard)

    def _heard(self, _: int, response: Message | None) -> None:
        self._must_tell = True
        if not isinstance(response, ShareGroupHeartbeatResponse):
            self.again()
            return
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            self.context.history.counts[f"share group {error.name}"] += 1
            if error in WRONG_NODE:
                self.coordinator = None
            else:
                self.epoch, self.owned = 0, []
            self.again()
            return
        self._must_tell = False
        self.epoch = max(response.member_epoch, 0)
        if response.member_epoch < 0:
            self.context.history.counts["share member left"] += 1
            self.member_id = self.new_member_id()
        if response.assignment is not None:
            self.owned = [
                (each.topic_id, number)
                for each in response.assignment.topic_partitions
                for number in each.partitions
            ]
        self.later(self.think_us)
