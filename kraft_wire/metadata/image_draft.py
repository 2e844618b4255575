"""The next image while records are applied to it: only changed maps are copied.

A draft belongs to one batch, or to one metadata transaction; `finish` returns the image. A
discarded draft has no effect, as an aborted transaction needs.
"""

from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar

from kraft_wire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kraft_wire.metadata.layered_map import own_copy
from kraft_wire.model import Uuid

__all__ = ["ImageDraft", "MetadataFault", "TouchedMap"]

K = TypeVar("K")
V = TypeVar("V")


class MetadataFault(Exception):
    """A record that contradicts the log before it; the node must stop."""


class TouchedMap(Generic[K, V]):
    """A map over another one, copied at the first change."""

    __slots__ = ("_base", "_copy", "_keys")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._copy: MutableMapping[K, V] | None = None
        self._keys: dict[K, None] | None = {} if base else None
        """The changes, in order; None over an empty base, where the copy has all entries."""

    def get(self, key: K) -> V | None:
        """Return the current value."""
        return self.now.get(key)

    def put(self, key: K, value: V) -> None:
        """Set a value."""
        self._own()[key] = value
        if self._keys is not None:
            self._keys[key] = None
        assert self.now[key] is value

    def drop(self, key: K) -> bool:
        """Remove a key; return whether it existed."""
        if key not in self.now:
            return False
        del self._own()[key]
        if self._keys is not None:
            self._keys[key] = None
        assert key not in self.now
        return True

    @property
    def now(self) -> Mapping[K, V]:
        """The map with its changes: the base itself without any."""
        return self._base if self._copy is None else self._copy

    @property
    def touched(self) -> bool:
        """Whether anything was changed."""
        return self._copy is not None

    @property
    def touched_keys(self) -> Collection[K]:
        """Changed keys that are in the map now, or were in the base."""
        keys = self.now if self._keys is None else self._keys
        assert self.touched or not keys, "an untouched map has no touched keys"
        return keys

    def _own(self) -> MutableMapping[K, V]:
        if self._copy is None:
            self._copy = own_copy(self._base)
            assert self._copy is not self._base
        return self._copy


class ImageDraft:
    """An image under change. Replayers change the maps; topics have methods of their own."""

    def __init__(self, base: MetadataImage) -> None:
        assert len(base.topics_by_name) == len(base.topic_names)
        self.base = base
        self.features = TouchedMap(base.finalized_features)
        self.brokers = TouchedMap(base.brokers)
        self.controllers = TouchedMap(base.controllers)
        self.configs = TouchedMap(base.configs)
        self.client_quotas = TouchedMap(base.client_quotas)
        self.scram = TouchedMap(base.scram)
        self.acls = TouchedMap(base.acls)
        self.delegation_tokens = TouchedMap(base.delegation_tokens)
        self.next_producer_id = base.next_producer_id
        self.zk_migration_state = base.zk_migration_state
        self._topics = TouchedMap(base.topics_by_name)
        self._names = TouchedMap(base.topic_names)
        self._partitions: dict[Uuid, TouchedMap[int, PartitionImage]] = {}
        self.is_finished = False
        """Whether an image shares its maps, which must not change then."""

    def add_topic(self, name: str, topic_id: Uuid) -> None:
        """Add a topic without partitions."""
        assert not self.is_finished, "an image is never changed"
        if name in self._topics.now or topic_id in self._names.now:
            raise MetadataFault(f"topic {name} already exists")
        self._topics.put(name, TopicImage(name, topic_id, {}))
        self._names.put(topic_id, name)
        assert len(self._topics.now) == len(self._names.now)

    def remove_topic(self, topic_id: Uuid) -> str:
        """Remove a topic with its partitions and return its name."""
        assert not self.is_finished, "an image is never changed"
        name = self.topic_name(topic_id)
        self._topics.drop(name)
        self._names.drop(topic_id)
        self._partitions.pop(topic_id, None)
        assert name not in self._topics.now
        return name

    def topic_name(self, topic_id: Uuid) -> str:
        """Return the name of a topic that must exist."""
        name = self._names.get(topic_id)
        if name is None:
            raise MetadataFault(f"unknown topic id {topic_id.hex()}")
        assert name in self._topics.now, name
        return name

    def topic_ids(self) -> Iterator[Uuid]:
        """The ids of all topics, in no particular order."""
        assert len(self._topics.now) == len(self._names.now)
        return iter(list(self._names.now))

    def topic_id(self, name: str) -> Uuid:
        """Return the id of a topic that must exist."""
        topic = self._topics.get(name)
        if topic is None:
            raise MetadataFault(f"unknown topic {name}")
        assert topic.name == name, topic
        return topic.topic_id

    def partitions(self, topic_id: Uuid) -> TouchedMap[int, PartitionImage]:
        """Return the partitions of a topic, to be read or changed."""
        assert not self.is_finished, "an image is never changed"
        changed = self._partitions.get(topic_id)
        if changed is None:
            topic = self._topics.get(self.topic_name(topic_id))
            assert topic is not None, topic_id
            changed = self._partitions[topic_id] = TouchedMap(topic.partitions)
        assert topic_id in self._names.now, topic_id
        return changed

    def touched_topics(self) -> Iterator[tuple[Uuid, Collection[int]]]:
        """Yield added, removed and changed topics; existing ones with their changed partitions."""
        for topic_id in self._names.touched_keys:
            yield topic_id, ()
        for topic_id, partitions in self._partitions.items():
            assert topic_id in self._names.now, topic_id
            if partitions.touched:
                yield topic_id, partitions.touched_keys

    def finish(self, offset: int, epoch: int) -> MetadataImage:
        """Return the image after the last record, which has the given offset and leader epoch."""
        assert offset >= self.base.offset, (offset, self.base.offset)
        assert not self.is_finished, "a draft is of one image"
        self.is_finished = True
        for topic_id, partitions in self._partitions.items():
            if partitions.touched:
                self._put_partitions(topic_id, partitions.now)
        assert len(self._topics.now) == len(self._names.now)
        features_epoch = offset if self.features.touched else self.base.finalized_features_epoch
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            finalized_features=self.features.now,
            finalized_features_epoch=features_epoch,
            brokers=self.brokers.now,
            controllers=self.controllers.now,
            topics_by_name=self._topics.now,
            topic_names=self._names.now,
            configs=self.configs.now,
            client_quotas=self.client_quotas.now,
            scram=self.scram.now,
            acls=self.acls.now,
            delegation_tokens=self.delegation_tokens.now,
            next_producer_id=self.next_producer_id,
            zk_migration_state=self.zk_migration_state,
        )

    def _put_partitions(self, topic_id: Uuid, partitions: Mapping[int, PartitionImage]) -> None:
        assert self._partitions[topic_id].touched, topic_id
        assert self.is_finished, "no later record changes them again"
        name = self.topic_name(topic_id)
        in_order = {number: partitions[number] for number in sorted(partitions)}
        if in_order and list(in_order) != list(range(len(in_order))):
            raise MetadataFault(f"partitions of {name} have gaps: {list(in_order)}")
        self._topics.put(name, TopicImage(name, topic_id, in_order))
