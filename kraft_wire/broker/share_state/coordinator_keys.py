"""The key by which a share partition finds its coordinator: `group:topicId:partition`."""

from functools import lru_cache
from typing import Final

from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.model import uuid_from_text, uuid_to_text

__all__ = ["coordinator_key", "parse_coordinator_key", "state_partition"]

_REMEMBERED: Final = 10_000
"""Share partitions whose place is kept: to compute it takes a sixth of the time of a write."""
_INT32: Final = range(-(1 << 31), 1 << 31)


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the key of a share partition."""
    return f"{key.group_id}:{uuid_to_text(key.topic_id)}:{key.partition}"


@lru_cache(maxsize=_REMEMBERED)
def state_partition(key: SharePartitionKey, partition_count: int) -> int:
    """Return the partition of `__share_group_state` that has a share partition's records."""
    return key_partition(coordinator_key(key), partition_count)


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """Return the share partition of a key; the group's id may have colons.

    Raises ValueError for any other text. Colons at the end do not count, as in Kafka.
    """
    *group, topic, number = text.rstrip(":").split(":")  # ValueError for one part
    group_id = ":".join(group)
    if not group_id.strip("".join(map(chr, range(33)))):
        raise ValueError(f"{text!r} has no group")
    digits = number.removeprefix("-") if number.startswith("-") else number.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal() and int(number) in _INT32):
        raise ValueError(f"{number!r} is not a partition")
    return SharePartitionKey(group_id, uuid_from_text(topic), int(number))
