"""What waits until the ISR has what was written into `__consumer_offsets`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import PARKED, Parked, ReplyTo, RequestContext
from kraft_wire.broker.groups.environment import CommitHeard
from kraft_wire.broker.groups.moment import Moment
from kraft_wire.broker.groups.shard import coordinator_error
from kraft_wire.broker.groups.store import OFFSETS_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import ParkedOperation
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["CommitWaits", "answer_when_safe"]

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


class CommitWaits:
    """What the coordinator itself waits for; no connection that closes can end it."""

    def __init__(self, broker: "Broker", now_ms: Callable[[], int]) -> None:
        """`now_ms` tells the time of the coordinator's last call."""
        self._broker = broker
        self._now_ms = now_ms
        self._waits = 0

    def await_commit(self, partition: int, offset: int, at: Moment, heard: CommitHeard) -> None:
        """Call `heard` once the ISR has what lies below an offset, or never will in time."""
        name = TopicPartition(OFFSETS_TOPIC, partition)
        self._waits += 1
        nobody = ReplyTo(-self._waits, 0)

        def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
            error = coordinator_error(errors.get(name, ErrorCode.NONE))
            heard(error, Moment(max(at.now_ms, self._now_ms()), at.wall_ms))

        deadline_ms = at.now_ms + self._broker.settings.offsets_commit_timeout_ms
        required = {name: Offset(offset)}
        self._broker.produce_purgatory.park(
            ParkedOperation(nobody, deadline_ms, required, _acknowledgement, finish)
        )


def _acknowledgement(partition: Partition, end_offset: Offset) -> ErrorCode | None:
    return partition.acknowledgement(end_offset, _ALL_IN_SYNC)
