"""Kafka's default partitioner: the murmur2 hash of a key, and its partition.

Source: `org.apache.kafka.common.utils.Utils.murmur2` and `BuiltInPartitioner`, whose results every
client with the default partitioner of Java shares.
"""

from typing import Final

__all__ = ["murmur2", "partition_of_key"]

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def partition_of_key(key: bytes, partitions_count: int) -> int:
    """Return the partition of a key."""
    assert partitions_count > 0, partitions_count
    return (murmur2(key) & 0x7FFFFFFF) % partitions_count


def murmur2(data: bytes) -> int:
    """Return the hash as an unsigned 32-bit number."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = (value * _FACTOR & _MASK) ^ word
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15
