"""The shared parts of all clients of brokers: links to them, and the judges of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from kraft_wire.sim.judge.data_history import DataHistory
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.wire.generated.produce import LeaderIdAndEpoch, NodeEndpoint
from kraft_wire.wire.message import Message

__all__ = ["ClientContext"]


class ClientContext:
    """Given to every client of brokers in one world."""

    def __init__(self, stage: Stage, traffic: Traffic, judge: ReplicaJudge) -> None:
        self.stage = stage
        self.traffic = traffic
        self.judge = judge
        self.truth = judge.truth
        self.history = DataHistory(self.truth)
        self.producer_ids: dict[int, int] = {}
        """Producer id -> the client that got it."""
        self.settled_us: int | None = None
        """When the cluster had settled, None until then."""

    def producer_id_again(self, producer_id: int) -> NoReturn:
        """No producer id is given twice, whichever broker gives it."""
        raise Violation("S10 AckedIsCommitted", 0, "producer id", producer_id, "given twice")

    def leader_is_reachable(
        self, node_id: int, leader: LeaderIdAndEpoch | None, endpoints: Sequence[NodeEndpoint]
    ) -> None:
        """S62: an answer that names a leader has that broker's address (KIP-951)."""
        named = [each.node_id for each in endpoints if each.host and each.port > 0]
        if leader is not None and leader.leader_id >= 0 and leader.leader_id not in named:
            facts = ("names leader", leader.leader_id, "with endpoints of", named)
            raise Violation("S62 LeaderIsReachable", node_id, *facts)

    def unanswered(self, node_id: int, client: int, request: Message, asked_us: int) -> None:
        """A client gave up a request; L6: requests sent after the cluster settled are answered.

        A lost connection does not count: its other end may have been gone for long.
        """
        self.stage.marks[f"{request.NAME} given up"] += 1
        if self.settled_us is not None and asked_us >= self.settled_us:
            facts = ("client", client, request.NAME, "of", asked_us, "was not answered")
            raise Violation("L6 ParkedRequestsEnd", node_id, *facts)
