"""Waits until the ISR has the records written to a coordinator's topic."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kraft_wire.broker.context import PARKED, Parked, ReplyTo, RequestContext
from kraft_wire.broker.coordination.append_errors import coordinator_error
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.topic import CoordinatorTopic
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import DelayedOperation, DelayedOperationPurgatory
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["CommitCallback", "CommitWaits"]

CommitCallback: TypeAlias = Callable[[ErrorCode, ClockReading], None]
"""Called once, with NONE when records are committed, else with an error for clients."""

_ALL_IN_SYNC: Final = -1


class CommitWaits:
    """Clients and coordinator steps that wait as long as the topic's commit timeout at most."""

    def __init__(
        self,
        topic: CoordinatorTopic,
        operations: DelayedOperationPurgatory,
        complete: Callable[[ReplyTo, Message], None],
        now_ms: Callable[[], int],
    ) -> None:
        """`complete` answers a client; `now_ms` returns the time of the broker's last call."""
        self._topic = topic
        self._operations = operations
        self._complete = complete
        self._now_ms = now_ms

    def answer_when_committed(
        self,
        context: RequestContext,
        required: Mapping[int, int],
        answer: Callable[[Mapping[int, ErrorCode]], Message],
    ) -> Parked:
        """Park a request until each partition's high watermark has reached its required offset.

        `answer` makes the response; it is given the partitions that failed, with errors for
        clients.
        """

        def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
            failed = {each.partition: coordinator_error(error) for each, error in errors.items()}
            self._complete(context.reply_to, answer(failed))

        self._park(context.reply_to, context.now_ms, required, finish)
        return PARKED

    def await_commit(
        self,
        partition: int,
        offset: int,
        at: ClockReading,
        on_committed: CommitCallback,
        timeout_ms: int | None = None,
    ) -> None:
        """Call `on_committed` once the ISR has the records below an offset, or on timeout.

        The coordinator itself waits, so a closed connection does not end the wait. `timeout_ms`
        replaces the topic's commit timeout.
        """
        name = TopicPartition(self._topic.name, partition)
        no_connection = ReplyTo(self._operations.new_internal_id(), 0)

        def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
            error = coordinator_error(errors.get(name, ErrorCode.NONE))
            on_committed(error, ClockReading(max(at.now_ms, self._now_ms()), at.wall_ms))

        self._park(no_connection, at.now_ms, {partition: offset}, finish, timeout_ms)

    def _park(
        self,
        reply_to: ReplyTo,
        now_ms: int,
        required: Mapping[int, int],
        finish: Callable[[dict[TopicPartition, ErrorCode]], None],
        timeout_ms: int | None = None,
    ) -> None:
        deadline_ms = now_ms + (timeout_ms or self._topic.commit_timeout_ms())
        offsets = {
            TopicPartition(self._topic.name, partition): Offset(offset)
            for partition, offset in required.items()
        }
        self._operations.park(
            DelayedOperation(reply_to, deadline_ms, offsets, _acknowledgement, finish)
        )


def _acknowledgement(partition: Partition, end_offset: Offset) -> ErrorCode | None:
    return partition.acknowledgement(end_offset, _ALL_IN_SYNC)
