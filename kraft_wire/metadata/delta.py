"""The difference between two images, so that a reader need not compare everything.

A cluster may have a million partitions, and each committed batch makes an image. The replay of a
batch knows the keys of its records. `Touched` collects them from draft to draft, and a delta holds
the keys whose values have changed. After a snapshot no keys were collected: then both images are
compared as a whole (`MetadataDelta.between`), with the same result.

Not here: what a reader does with it (`broker.broker`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, TopicImage
from kraft_wire.metadata.image_draft import ImageDraft
from kraft_wire.model import Uuid

__all__ = ["MetadataDelta", "Touched"]

ConfigKey = tuple[int, str]
"""Type and name of a resource, as `MetadataImage.configs` has them."""


@frozen
class MetadataDelta:
    """The changes between two images that brokers apply."""

    before: MetadataImage
    after: MetadataImage
    topics: Mapping[str, Sequence[int]]
    """New and changed topics in name order, with their new and changed partitions.

    A topic that was deleted and created again is new.
    """
    deleted: Mapping[Uuid, str]
    """Ids of deleted topics, in the order of their names."""
    configs: frozenset[ConfigKey]
    """Resources whose explicit settings have changed. Only test membership, never iterate."""
    configured_topics: Sequence[str]
    """Names of those that are topics in `after`, in order."""
    acls: Sequence[Uuid] = ()
    """Ids of added, removed and changed access-control entries."""
    named_configs: frozenset[ConfigKey] = field(default=frozenset(), compare=False)
    """Resources with a record of a setting, also of an unchanged one: a broker then reads its files
    again (KIP-226). Only test membership."""

    @classmethod
    def between(cls, before: MetadataImage, after: MetadataImage) -> "MetadataDelta":
        """Compare two images as a whole, map by map where they do not share it."""
        touched = Touched()
        if after.topics_by_name is not before.topics_by_name:
            for topic in (*before.topics_by_name.values(), *after.topics_by_name.values()):
                if after.topics_by_name.get(topic.name) is not before.topics_by_name.get(
                    topic.name
                ):
                    touched.topics.setdefault(topic.topic_id, {}).update(
                        dict.fromkeys(topic.partitions)
                    )
        if after.configs is not before.configs:
            touched.configs = dict.fromkeys((*before.configs, *after.configs))
        if after.acls is not before.acls:
            touched.acls = dict.fromkeys((*before.acls, *after.acls))
        return touched.delta(before, after)

    @property
    def changes_brokers(self) -> bool:
        """Whether a registration was added, changed or removed."""
        return self.after.brokers is not self.before.brokers

    def changes_settings_of(self, node_id: int) -> bool:
        """Return whether a node's dynamic settings have changed, its own or those of all nodes."""
        assert node_id >= 0, node_id
        own = BROKER_RESOURCE, str(node_id)
        return own in self.configs or (BROKER_RESOURCE, "") in self.configs


class Touched:
    """Keys of replayed records, whether or not their values have changed."""

    def __init__(self) -> None:
        self.topics: dict[Uuid, dict[int, None]] = {}
        """Partition numbers by topic id, also of deleted topics; a new topic may have none here."""
        self.configs: dict[ConfigKey, None] = {}
        self.acls: dict[Uuid, None] = {}

    def add(self, draft: ImageDraft) -> None:
        """Add the keys that a finished draft has changed."""
        for topic_id, partitions in draft.touched_topics():
            self.topics.setdefault(topic_id, {}).update(dict.fromkeys(partitions))
        self.configs.update(dict.fromkeys(draft.configs.touched_keys))
        self.acls.update(dict.fromkeys(draft.acls.touched_keys))
        assert len(self.configs) >= len(draft.configs.touched_keys)

    def delta(self, before: MetadataImage, after: MetadataImage) -> MetadataDelta:
        """Return the delta between two images, which may differ only in the collected keys."""
        assert before.offset <= after.offset, (before.offset, after.offset)
        changed: dict[str, list[int]] = {}
        deleted: dict[Uuid, str] = {}
        for topic_id, numbers in self.topics.items():
            old, new = before.topic_by_id(topic_id), after.topic_by_id(topic_id)
            if new is None:
                deleted |= {} if old is None else {topic_id: old.name}
            elif new is not old:
                changed[new.name] = _changed_partitions(old, new, numbers)
        configs = [key for key in self.configs if after.config(*key) != before.config(*key)]
        named = [name for kind, name in configs if kind == TOPIC_RESOURCE]
        return MetadataDelta(
            before,
            after,
            topics={name: changed[name] for name in sorted(changed)},
            deleted=dict(sorted(deleted.items(), key=lambda each: each[1])),
            configs=frozenset(configs),
            configured_topics=sorted(name for name in named if after.topic(name) is not None),
            named_configs=frozenset(self.configs),
            acls=[each for each in self.acls if after.acls.get(each) != before.acls.get(each)],
        )


def _changed_partitions(
    old: TopicImage | None, new: TopicImage, touched: Iterable[int]
) -> list[int]:
    """Return the numbers of changed partitions."""
    if old is None:
        return list(new.partitions)
    assert old.topic_id == new.topic_id, (old.topic_id, new.topic_id)
    known = old.partitions
    assert len(new.partitions) >= len(known), "a topic only grows"
    changed = [each for each in touched if new.partitions[each] is not known.get(each)]
    assert len(changed) >= len(new.partitions) - len(known), "what is new was touched"
    return sorted(changed)
