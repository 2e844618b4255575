"""Answers that wait until the ISR has what a request wrote into `__consumer_offsets`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.groups.shard import coordinator_error
from kraft_wire.broker.groups.store import OFFSETS_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import ParkedOperation
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["answer_when_safe"]

_ALL_IN_SYNC: Final = -1


def answer_when_safe(
    broker: "Broker",
    context: RequestContext,
    safe_at: Mapping[int, int],
    answer: Callable[[Mapping[int, ErrorCode]], Message],
) -> Parked:
    """Park until each partition's high watermark is there, `offsets.commit.timeout.ms` at most.

    `answer` makes the response; it is given the partitions that failed, with errors for clients.
    """

    def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
        told = {each.partition: coordinator_error(error) for each, error in errors.items()}
        broker.complete(context.reply_to, answer(told))

    deadline_ms = context.now_ms + broker.settings.offsets_commit_timeout_ms
    required = {
        TopicPartition(OFFSETS_TOPIC, partition): Offset(offset)
        for partition, offset in safe_at.items()
    }
    operation = ParkedOperation(context.reply_to, deadline_ms, required, _acknowledgement, finish)
    broker.produce_purgatory.park(operation)
    return PARKED


def _acknowledgement(partition: Partition, end_offset: Offset) -> ErrorCode | None:
    return partition.acknowledgement(end_offset, _ALL_IN_SYNC)
