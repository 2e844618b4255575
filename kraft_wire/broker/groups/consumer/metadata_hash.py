"""The hash of the topics that a group subscribes to (KIP-1101): a new one raises the epoch.

It covers id, name, partitions and racks of each topic that exists. The hash of a topic is kept
while the topic does not change in the metadata.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from kraft_wire.broker.groups.consumer.xxh3 import xxh3_64
from kraft_wire.broker.groups.java_collections import java_order
from kraft_wire.metadata.image import MetadataImage, TopicImage

__all__ = ["TopicHashes"]

_MAGIC: Final = b"\x00"
_UUID: Final = Struct(">QQ")
_UUID_LITTLE: Final = Struct("<QQ")
_INT32: Final = Struct("<i")
_INT64: Final = Struct("<Q")


class TopicHashes:
    """The hashes of topics, by name, as long as the topics do not change."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def group_hash(self, names: Iterable[str], image: MetadataImage) -> int:
        """Return the hash of a group's topics, as a signed number; 0 if none exists."""
        hashes = b""
        for name in sorted(names, key=java_order):
            topic = image.topic(name)
            if topic is not None:
                hashes += _INT64.pack(self._topic_hash(topic, image))
        value = xxh3_64(hashes) if hashes else 0
        return value - (value >> 63 << 64)

    def _topic_hash(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._known.get(topic.name)
        if known is None or known[0] is not topic:
            known = (topic, xxh3_64(_encoded(topic, image)))
            self._known[topic.name] = known
        return known[1]


def _encoded(topic: TopicImage, image: MetadataImage) -> bytes:
    parts = [_MAGIC, _UUID_LITTLE.pack(*_UUID.unpack(topic.topic_id)), _text(topic.name)]
    parts.append(_INT32.pack(len(topic.partitions)))
    for number in range(len(topic.partitions)):
        parts.append(_INT32.pack(number))
        replicas = topic.partitions[number].replicas
        brokers = [image.brokers[each] for each in replicas if each in image.brokers]
        for rack in sorted(each.rack for each in brokers if each.rack is not None):
            parts += [_INT32.pack(len(rack.encode("utf-16-le")) // 2), _text(rack)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + _INT32.pack(len(encoded) // 2)
