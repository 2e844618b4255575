"""Deltas: what replaying counted is what a comparison of both images as a whole finds."""

from dataclasses import replace
from random import Random

import pytest

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from tests.metadata.observed_records import observed_records
from tests.metadata.random_records import History

ONE, OTHER = Uuid(b"1" * 16), Uuid(b"2" * 16)


def topics_changed(before: MetadataImage, after: MetadataImage) -> dict[str, list[int]]:
    """Compare every partition of both images by its fields, the obvious way."""
    changed = {}
    for topic in after.topics():
        known = before.topic_by_id(topic.topic_id)
        old = {} if known is None else known.partitions
        numbers = [each for each in topic.partitions if topic.partitions[each] != old.get(each)]
        if known is None or numbers:
            changed[topic.name] = numbers
    return changed


def check(delta: MetadataDelta) -> None:
    """Hold a delta against both of its images."""
    before, after = delta.before, delta.after
    assert delta.topics == topics_changed(before, after)
    assert list(delta.topics) == sorted(delta.topics)
    gone = [each for each in before.topics() if after.topic_by_id(each.topic_id) is None]
    assert list(delta.deleted.items()) == [(each.topic_id, each.name) for each in gone]
    keys = before.configs.keys() | after.configs.keys()
    changed = {key for key in keys if before.config(*key) != after.config(*key)}
    assert delta.configs == changed
    named = sorted(name for kind, name in changed if kind == TOPIC_RESOURCE)
    assert list(delta.configured_topics) == [name for name in named if after.topic(name)]
    ids = before.acls.keys() | after.acls.keys()
    others = {each for each in ids if before.acls.get(each) != after.acls.get(each)}
    assert set(delta.acls) == others
    whole = MetadataDelta.between(before, after)
    assert sorted(delta.acls) == sorted(whole.acls)
    assert (delta.topics, delta.deleted) == (whole.topics, whole.deleted)
    assert (delta.configs, delta.configured_topics) == (whole.configs, whole.configured_topics)


def topic(name: str = "t", topic_id: Uuid = ONE, partitions: int = 1) -> list[Message]:
    """Return the records of a topic on broker 1."""
    made = [
        PartitionRecord(partition_id=number, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
        for number in range(partitions)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *made]


def config(name: str = "t", value: str | None = "1") -> ConfigRecord:
    """Return the record of one setting of a topic."""
    return ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name=name, name="retention.ms", value=value
    )


def is_empty(delta: MetadataDelta) -> bool:
    return not any((delta.deleted, delta.topics, delta.configs, delta.configured_topics))


class Log:
    """A metadata log in whole batches, and whoever follows it by deltas."""

    def __init__(self, *first: Message) -> None:
        self.loader = MetadataLoader()
        self.append(*first)
        self.loader.take_delta()

    def append(self, *records: Message) -> None:
        self.loader.take_batch(records, self.loader.last_offset + 1, 1)

    def delta(self, *records: Message) -> MetadataDelta:
        """Append a batch and return what has changed since the last call."""
        if records:
            self.append(*records)
        delta = self.loader.take_delta()
        check(delta)
        return delta


def test_first_delta_leads_from_an_empty_image() -> None:
    loader = MetadataLoader()
    loader.take_batch([*topic(partitions=2), config()], 0, 1)
    delta = loader.take_delta()
    assert (delta.before, delta.after) == (EMPTY_IMAGE, loader.image)
    assert (delta.topics, delta.configured_topics) == ({"t": [0, 1]}, ["t"])
    check(delta)


def test_delta_leads_from_the_image_that_was_taken_last_over_all_batches_since() -> None:
    log = Log(*topic(partitions=3))
    before = log.loader.image
    log.append(PartitionChangeRecord(partition_id=2, topic_id=ONE, isr=[]))
    assert log.loader.image is not before, "whoever looks in between takes nothing away"
    delta = log.delta(PartitionChangeRecord(partition_id=0, topic_id=ONE, leader=-1), config())
    assert delta.before is before
    assert (delta.topics, delta.configs) == ({"t": [0, 2]}, {(TOPIC_RESOURCE, "t")})
    assert not log.delta().topics


def test_topic_that_is_made_again_is_gone_and_new() -> None:
    log = Log(*topic(partitions=2))
    delta = log.delta(RemoveTopicRecord(topic_id=ONE), *topic(topic_id=OTHER))
    assert (delta.deleted, delta.topics) == ({ONE: "t"}, {"t": [0]})


def test_what_came_and_went_in_between_is_not_there() -> None:
    log = Log()
    delta = log.delta(*topic(), config(), RemoveTopicRecord(topic_id=ONE))
    assert is_empty(delta)
    log.append(*topic(), config())
    delta = log.delta(RemoveTopicRecord(topic_id=ONE))
    assert is_empty(delta)


def test_setting_that_is_set_again_has_not_changed() -> None:
    log = Log(*topic(), config())
    delta = log.delta(config(value=None), config())
    assert not delta.configs
    assert log.delta(config(value=None)).configured_topics == ["t"]


def test_transaction_counts_when_it_ends_and_not_when_it_is_aborted() -> None:
    log = Log(*topic())
    assert not log.delta(BeginTransactionRecord(), *topic("u", OTHER)).topics
    assert log.delta(EndTransactionRecord()).topics == {"u": [0]}
    change = PartitionChangeRecord(partition_id=0, topic_id=ONE, leader=-1)
    assert not log.delta(BeginTransactionRecord(), change).topics
    assert not log.delta(AbortTransactionRecord()).topics


def test_behind_a_snapshot_everything_is_compared() -> None:
    log = Log(*topic(), *topic("u", OTHER), config())
    loader = MetadataLoader()
    loader.take_batch([*topic(partitions=2)], 50, 1)
    log.loader.begin_with(loader.image)
    delta = log.loader.take_delta()
    assert (delta.deleted, delta.topics) == ({OTHER: "u"}, {"t": [0, 1]})
    assert delta.configured_topics == ["t"]
    assert log.delta(*topic("u", OTHER)).topics == {"u": [0]}, "and counted again from there"


def test_settings_of_a_node_are_its_own_and_those_of_all() -> None:
    image = replace(EMPTY_IMAGE, configs={(4, "2"): {"a": "b"}})
    delta = MetadataDelta.between(EMPTY_IMAGE, image)
    assert delta.changes_settings_of(2)
    assert not delta.changes_settings_of(1)
    of_all = MetadataDelta.between(EMPTY_IMAGE, replace(image, configs={(4, ""): {"a": "b"}}))
    assert of_all.changes_settings_of(1)


@pytest.mark.parametrize("seed", range(30))
def test_deltas_of_a_random_history_are_those_of_a_whole_comparison(seed: int) -> None:
    history, random = History(seed), Random(seed)
    history.grow(400)
    log = Log()
    records = [each.record for each in history.records]
    while records:
        size = random.randrange(1, 9)
        log.append(*records[:size])
        records = records[size:]
        if random.random() < 0.5:
            log.delta()
    log.delta()
    assert log.loader.image.topics_by_name == history.image.topics_by_name


def test_deltas_of_a_real_clusters_log_are_those_of_a_whole_comparison() -> None:
    loader = MetadataLoader()
    for observed in observed_records("metadata_log.jsonl"):
        loader.take_batch([observed.record], observed.offset, 8)
        check(loader.take_delta())
