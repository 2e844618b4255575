"""CRC-32C (Castagnoli), the checksum of record batches v2.

One name for the rest of the package, so that the native wheel behind it can change in one place.
Kafka's older CRC-32 of message formats 0 and 1 is `zlib.crc32`, used in `legacy_batch`.
"""

from crc32c import crc32c as _checksum

__all__ = ["crc32c"]


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned checksum of `data`, continuing from `value`."""
    checksum: int = _checksum(data, value)
    return checksum
