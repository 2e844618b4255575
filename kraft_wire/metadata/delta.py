"""What differs between two images: what a reader has to look at, instead of at everything.

A cluster may have a million partitions, and each committed batch makes an image. The replay of a
batch knows which keys its records named; `Touched` collects them from draft to draft, and a delta
holds those keys whose values have changed. After a snapshot no keys were collected: then both
images are compared as a whole (`MetadataDelta.between`), with the same outcome.

Not here: what a reader does with it (`broker.broker`).
"""

from collections.abc import Iterable, Mapping, Sequence

from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, TopicImage
from kraft_wire.metadata.image_draft import ImageDraft
from kraft_wire.model import Uuid

__all__ = ["MetadataDelta", "Touched"]

ConfigKey = tuple[int, str]
"""Type and name of a resource, as `MetadataImage.configs` has them."""


@frozen
class MetadataDelta:
    """The way from one image to a later one, as far as brokers follow it."""

    before: MetadataImage
    after: MetadataImage
    topics: Mapping[str, Sequence[int]]
    """Topics that are new or have changed, in name order, and which of their partitions are.

    A topic that was deleted and made again is new.
    """
    deleted: Mapping[Uuid, str]
    """Ids of the topics that are gone, in the order of the names that they had."""
    configs: frozenset[ConfigKey]
    """Resources whose explicit settings have changed. To be asked, never to be iterated."""
    configured_topics: Sequence[str]
    """Names of those that are topics of `after`, in order."""
    acls: Sequence[Uuid] = ()
    """Ids of the access-control entries that came, went or changed."""

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
        """Whether a registration came, changed or went."""
        return self.after.brokers is not self.before.brokers

    def changes_settings_of(self, node_id: int) -> bool:
        """Tell whether a node has other dynamic settings than before, its own or all nodes'."""
        assert node_id >= 0, node_id
        own = BROKER_RESOURCE, str(node_id)
        return own in self.configs or (BROKER_RESOURCE, "") in self.configs


class Touched:
    """The keys that records named, whether or not what is under them is another thing now."""

    def __init__(self) -> None:
        self.topics: dict[Uuid, dict[int, None]] = {}
        """By id, gone ones too: the numbers of partitions; of a new topic none need to be here."""
        self.configs: dict[ConfigKey, None] = {}
        self.acls: dict[Uuid, None] = {}

    def add(self, draft: ImageDraft) -> None:
        """Take note of what a draft changes, once it is finished."""
        for topic_id, partitions in draft.touched_topics():
            self.topics.setdefault(topic_id, {}).update(dict.fromkeys(partitions))
        self.configs.update(dict.fromkeys(draft.configs.touched_keys))
        self.acls.update(dict.fromkeys(draft.acls.touched_keys))
        assert len(self.configs) >= len(draft.configs.touched_keys)

    def delta(self, before: MetadataImage, after: MetadataImage) -> MetadataDelta:
        """Return what has changed; nothing else may have, from the one image to the other."""
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
            acls=[each for each in self.acls if after.acls.get(each) != before.acls.get(each)],
        )


def _changed_partitions(
    old: TopicImage | None, new: TopicImage, touched: Iterable[int]
) -> list[int]:
    """Return the numbers of partitions that are not what they were."""
    if old is None:
        return list(new.partitions)
    assert old.topic_id == new.topic_id, (old.topic_id, new.topic_id)
    known = old.partitions
    assert len(new.partitions) >= len(known), "a topic only grows"
    changed = [each for each in touched if new.partitions[each] is not known.get(each)]
    assert len(changed) >= len(new.partitions) - len(known), "what is new was touched"
    return sorted(changed)
