"""Errors of all readers of record bytes that a peer sent or that are on the disk.

A reader of batches, records or compressed bodies raises one of these and nothing else. They have
the reason and the position of the batch for a log line; the broker decides on the error code for
the client (CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE).
"""

__all__ = ["CorruptRecordBatch", "DecompressedTooLarge", "InvalidRecord"]


class CorruptRecordBatch(Exception):
    """The bytes are not a whole, well-formed record batch or message set."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(f"{reason} (batch at byte {position})")
        self.reason = reason
        self.position = position


class InvalidRecord(CorruptRecordBatch):
    """The batch is whole, but its records are malformed or differ from its header."""


class DecompressedTooLarge(CorruptRecordBatch):
    """The decompressed size exceeds a limit of `DecompressionLimits`."""
