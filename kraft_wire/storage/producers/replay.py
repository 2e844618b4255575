"""Replay of a long log into a producer table, at a fraction of the cost of `update` per batch.

Only the last five batches of a producer determine its entry. So headers of plain batches are kept,
and applied to the table when a transaction, its marker or the end of the log needs it.
"""

from collections import deque

from kraft_wire.storage.indexes import AbortedTransaction
from kraft_wire.storage.producers.producer_state import BATCHES_KEPT, ProducerStates
from kraft_wire.wire.records.record_batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    RecordBatch,
)

__all__ = ["ProducerReplay"]

_ATTRIBUTES_AT = 22  # the low byte, which has every bit that is in use
_ORDER_MATTERS = TRANSACTIONAL_BIT | CONTROL_BIT


class ProducerReplay:
    """Batches that are not applied to a table yet."""

    __slots__ = ("_recent", "_states")

    def __init__(self, states: ProducerStates) -> None:
        self._states = states
        self._recent: dict[int, deque[bytes]] = {}

    def take(
        self, producer_id: int, view: memoryview, at: int, size_bytes: int
    ) -> AbortedTransaction | None:
        """Take the next batch of a producer; return the transaction that it aborts, if any."""
        assert producer_id >= 0, producer_id
        if view[at + _ATTRIBUTES_AT] & _ORDER_MATTERS:
            self.settle()
            return self._states.update(RecordBatch(view[at : at + size_bytes]))
        recent = self._recent.get(producer_id)
        if recent is None:
            recent = self._recent[producer_id] = deque(maxlen=BATCHES_KEPT)
        recent.append(bytes(view[at : at + HEADER_BYTES]))
        return None

    def settle(self) -> None:
        """Apply all batches taken so far."""
        for headers in self._recent.values():
            for header in headers:
                self._states.update(RecordBatch(memoryview(header)))
        self._recent.clear()
        assert not self._recent
