"""Log lines about batches that a producer's epoch or sequence forbids (KIP-98).

A refusal can be explained only by the partition's state of the producer: a gap after a leader
change, a fenced producer, or a mistake of either side. The client gets one error code. A client
that sends only such batches cannot fill the disk with log lines (`line_limit`).
"""

from typing import Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.log_line_limiter import LogLineLimiter
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import ProducerStateView
from kraft_wire.model import ReportEvent
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["REFUSALS", "ProducerRefusals"]

REFUSALS: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH}
)


class ProducerRefusals:
    """Writes the lines of one broker."""

    def __init__(self, report: ReportEvent) -> None:
        self._report = report
        self._limit = LogLineLimiter(self._suppressed)

    def tell(
        self, context: RequestContext, partition: Partition, batch: RecordBatch, error: ErrorCode
    ) -> None:
        """Write the line of one refusal, unless its reason and address are over the limit."""
        assert error in REFUSALS, error
        if not self._limit.may_write(context.client_host, error.name, context.now_ms):
            return
        known = _known(partition, batch.producer_id)
        self._report(
            "producer_refused",
            client=context.client_host,
            client_id=context.client_id,
            partition=partition.topic_partition,
            leader_epoch=partition.leader_epoch,
            log_end_offset=partition.log.log_end_offset,
            reason=error.name,
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            sequence=batch.base_sequence,
            last_epoch="-" if known is None else known.producer_epoch,
            last_sequence="-" if known is None else known.last_sequence,
        )

    def tick(self, now_ms: int) -> None:
        """Report the number of lines that the last second lacks."""
        self._limit.tick(now_ms)

    def _suppressed(self, host: str, reason: str, count: int) -> None:
        self._report("producer_refused_suppressed", client=host, reason=reason, count=count)


def _known(partition: Partition, producer_id: int) -> ProducerStateView | None:
    """Return the partition's state of a producer, None if it is unknown."""
    producers = partition.log.producer_states.active_producers()
    return next((each for each in producers if each.producer_id == producer_id), None)
