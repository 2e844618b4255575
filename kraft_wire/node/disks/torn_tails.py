"""The line about a log whose end was cut at a start: its last append was not finished."""

from kraft_wire.model import ReportEvent
from kraft_wire.storage.log import Log

__all__ = ["report_torn_tail"]


def report_torn_tail(report: ReportEvent, log: Log) -> None:
    """Log how much recovery has cut, and where the log ends now; nothing of a whole log."""
    if log.cut_bytes:
        report(
            "torn_tail_cut",
            partition=log.topic_partition,
            log_end_offset=log.log_end_offset,
            bytes=log.cut_bytes,
        )
