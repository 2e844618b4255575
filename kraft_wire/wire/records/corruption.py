"""The declared errors of everything that reads record bytes written by a peer or found on disk.

A reader of batches, records or compressed bodies raises one of these and nothing else. They carry
the reason and the position of the batch, so that a log line can name both; which error code a
client gets is the broker's decision (CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE).
"""

__all__ = ["CorruptRecordBatch", "DecompressedTooLarge", "InvalidRecord"]


class CorruptRecordBatch(Exception):
    """The bytes are no whole, well-formed record batch or message set."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(f"{reason} (batch at byte {position})")
        self.reason = reason
        self.position = position


class InvalidRecord(CorruptRecordBatch):
    """The batch is whole, but the records in it do not have the shape that it declares."""


class DecompressedTooLarge(CorruptRecordBatch):
    """Decompressing would pass a limit of `DecompressionLimits`."""
