"""The topics that a consumer's subscription names, read from its opaque metadata.

The consumer protocol is internal to clients. The coordinator reads only the prefix that every
version shares (version, then the list of topics) and never refuses unreadable bytes: then it does
not know the group's topics, which only affects the expiry and deletion of offsets.
"""

from struct import Struct

__all__ = ["subscribed_topics"]

_INT16 = Struct(">h")
_INT32 = Struct(">i")


def subscribed_topics(metadata: bytes) -> tuple[str, ...] | None:
    """Return the topics of one subscription, or None if the bytes are not one."""
    try:
        return _read_topics(metadata)
    except (ValueError, IndexError):
        return None


def _read_topics(metadata: bytes) -> tuple[str, ...]:
    version, position = _read(_INT16, metadata, 0)
    count, position = _read(_INT32, metadata, position)
    if version < 0 or not 0 <= count <= len(metadata) // 2:
        raise ValueError(f"version {version}, {count} topics in {len(metadata)} bytes")
    topics = []
    for _ in range(count):
        size, position = _read(_INT16, metadata, position)
        if size < 0 or position + size > len(metadata):
            raise ValueError(f"a topic name of {size} bytes at {position}")
        topics.append(metadata[position : position + size].decode("utf-8"))
        position += size
    return tuple(topics)


def _read(field: Struct, metadata: bytes, position: int) -> tuple[int, int]:
    end = position + field.size
    if end > len(metadata):
        raise ValueError(f"the subscription ends at {len(metadata)}, {end} bytes are needed")
    return field.unpack_from(metadata, position)[0], end
