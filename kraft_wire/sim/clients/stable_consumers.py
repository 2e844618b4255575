"""Consumers that read committed records only; each answer is held against the whole log."""

from __future__ import annotations

from kraft_wire.sim.clients.consumers import Consumer
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.transactions.history import TransactionHistory
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import PartitionData

__all__ = ["StableConsumer"]


class StableConsumer(Consumer):
    """Reads up to the last stable offset, and skips aborted records."""

    def __init__(
        self, context: ClientContext, history: TransactionHistory, number: int, topic: str
    ) -> None:
        super().__init__(context, number, topic)
        self.isolation_level = 1
        self._transactions = history

    def _take(self, node_id: int, data: PartitionData, epoch: int) -> bool:
        if data.error_code == ErrorCode.NONE:
            truth = self._truth(data.partition_index)
            self._transactions.read_committed(node_id, truth, data)
        return super()._take(node_id, data, epoch)
