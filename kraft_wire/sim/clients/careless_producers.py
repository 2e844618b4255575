"""A producer of invalid batches: each is wrong in one way, and no leader may accept it.

A refused batch leaves nothing in the log. The answer shows a leader that accepts one of these
batches, the logs show other effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.scheduler import EPOCH_MS
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["CARELESS_VALUE", "CarelessProducer"]

CARELESS_VALUE: Final = b"never to be seen"
_TIMEOUT_MS: Final = 800
_BODY_AT: Final = 61


class CarelessProducer(BrokerClient):
    """Sends batches that must be refused, one after another."""

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        number = self.random.choice(list(self.leaders))
        name = self.random.choice(list(_WRONGS))
        data = PartitionProduceData(index=number, records=_WRONGS[name]())
        topic = TopicProduceData(topic_id=self.topic_id, partition_data=[data])
        acks = self.random.choice((-1, 1))
        request = ProduceRequest(
            transactional_id=None, acks=acks, timeout_ms=_TIMEOUT_MS, topic_data=[topic]
        )
        node_id, topic_id = self.leaders[number][0], self.topic_id
        self.ask(node_id, request, lambda got: self._answered(node_id, topic_id, name, got))

    def _answered(self, node_id: int, topic_id: Uuid, name: str, response: Message | None) -> None:
        if not isinstance(response, ProduceResponse):
            self.again()
            return
        error = ErrorCode(response.responses[0].partition_responses[0].error_code)
        self.context.history.counts[f"careless {name} {error.name}"] += 1
        if error is ErrorCode.NONE:
            raise Violation("S57 OnlySoundBatches", node_id, self.topic, name, "was taken")
        if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID):
            self.again()
        else:
            self.later(self.think_us)


def _batch(key: bytes | None = b"k0", *, size_bytes: int = 0) -> bytearray:
    value = CARELESS_VALUE + bytes(size_bytes)
    return build_batch([Record(key=key, value=value, timestamp=EPOCH_MS)])


def _with_wrong_checksum() -> bytearray:
    data = _batch()
    data[-1] ^= 1
    return data


def _of_control_records() -> bytearray:
    record = Record(key=bytes(4), value=bytes(6), timestamp=EPOCH_MS)
    return build_batch([record], is_control=True)


def _of_a_transaction() -> bytearray:
    record = Record(key=b"k0", value=CARELESS_VALUE, timestamp=EPOCH_MS)
    return build_batch(
        [record], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def _with_too_many_offsets() -> bytearray:
    record = Record(key=b"k0", value=CARELESS_VALUE, timestamp=EPOCH_MS)
    return build_batch([record], last_offset=5)


def _too_large() -> bytearray:
    return _batch(size_bytes=4_000)


def _cut_short() -> bytearray:
    return _batch()[: _BODY_AT + 3]


_WRONGS: Final[dict[str, Callable[[], bytearray]]] = {
    "checksum": _with_wrong_checksum,
    "control records": _of_control_records,
    "transaction": _of_a_transaction,
    "offsets": _with_too_many_offsets,
    "size": _too_large,
    "end": _cut_short,
    "key": lambda: _batch(None),
}
"""The fault, and how such a batch is made; a compacted topic refuses records without a key."""
