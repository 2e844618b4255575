"""The objects of a drawn sequence: topics, a group, a producer, and the generator of one seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.end_txn import EndTxnResponse
from kraft_wire.wire.generated.init_producer_id import InitProducerIdResponse
from kraft_wire.wire.generated.produce import ProduceResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.structs import Struct

__all__ = ["MISSING", "Scene"]

T = TypeVar("T")

MISSING: Final = Topic("conform-no-such-topic", Uuid(b"conform no topic"))
"""A topic that no broker has."""

_PARTITIONS: Final = (3, 1)
_KEPT: Final = {"retention.ms": "-1"}
"""The times of the records are long past."""
_ODD: Final = (-2, -1, 0, 1, 2, 5, 100)
_FIXED: Final = frozenset({"acks", "min_bytes"})
"""Numbers that decide whether and when there is an answer; as those that end in `_ms` do."""


class Scene:
    """The topics, group and producer of one sequence; draws among them and among odd values."""

    def __init__(self, broker: Subject, seed: int) -> None:
        self.random = Random(seed)
        self.topics = [broker.topic(count, _KEPT) for count in _PARTITIONS]
        self.group_id = broker.group()
        self.producer = broker.producer()
        self.next_sequence = 0
        """The sequence number with which an idempotent batch for the first partition continues."""
        self.transactional_id = broker.transactional_id()
        self.transaction_sequence = 0
        """The sequence number with which the first partition continues in this producer epoch."""
        self._owner = (-1, -1)
        self.new_names = [broker.name() for _ in range(3)]
        """Topics that requests of the sequence may create and delete."""
        broker.made_topics += self.new_names

    def pick(self, *values: T) -> T:
        """Draw one value."""
        return self.random.choice(values)

    def chance(self, percent: int) -> bool:
        """Draw whether something happens."""
        return self.random.randrange(100) < percent

    def topic(self) -> Topic:
        """Draw a topic, seldom one that does not exist."""
        return MISSING if self.chance(10) else self.pick(*self.topics)

    def partition(self) -> int:
        """Draw a partition, seldom one that the topics do not have."""
        return self.pick(-1, 3, 9) if self.chance(10) else self.random.randrange(3)

    def partitions(self) -> list[int]:
        """Draw one to three partitions, seldom one of them twice."""
        return [self.partition() for _ in range(self.pick(1, 1, 2, 3))]

    def epoch(self) -> int:
        """Draw a leader epoch: unknown, the first one, or a later one."""
        return self.pick(-1, -1, 0, 0, 1, 7)

    def offset(self) -> int:
        """Draw an offset near the start of a short log."""
        return self.random.randrange(-1, 14)

    def transaction_owner(self) -> tuple[int, int]:
        """Draw producer id and epoch of the transactional producer, seldom those of another one."""
        producer_id, epoch = self._owner
        if self.chance(10):
            others = (producer_id, max(epoch - 1, 0)), (producer_id, epoch + 1), (1 << 40, 0)
            return self.pick(*others)
        return producer_id, epoch

    def take(self, response: Message) -> None:
        """Take over a response's changes of the producer: its epoch and its next sequence."""
        if isinstance(response, ProduceResponse):
            (answer,) = response.responses[0].partition_responses
            self.transaction_sequence += answer.error_code == 0
        elif isinstance(response, InitProducerIdResponse | EndTxnResponse):
            if response.error_code or response.producer_id < 0:
                return
            self._owner = (response.producer_id, response.producer_epoch)
            self.transaction_sequence = 0

    def with_oddity(self, request: Struct, percent: int = 20) -> None:
        """Replace a number somewhere in a request by an odd one, in so many percent of them."""
        if not self.chance(percent):
            return
        places = list(_numbers(request))
        if places:
            owner, name = self.pick(*places)
            setattr(owner, name, self.pick(*_ODD))


def _numbers(struct: Struct) -> Sequence[tuple[Struct, str]]:
    found: list[tuple[Struct, str]] = []
    for name in struct.field_names:
        value = getattr(struct, name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and name not in _FIXED and not name.endswith("_ms"):
            found.append((struct, name))
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Struct):
                found += _numbers(each)
    return found
