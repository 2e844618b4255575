"""Random topologies and topics: most fit, and every failure comes up."""

from __future__ import annotations

import random
from typing import Any

from kraft_wire.wire.generated.streams_group_topology_value import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from kraft_wire.wire.json_form import message_to_json

Question = dict[str, Any]


def configure_question(chance: random.Random) -> Question:
    """Return a topology in the form of Apache's JSON, and the topics that exist."""
    draft = _Draft(chance)
    topology = draft.topology()
    return {
        "kind": "configure",
        "topology": message_to_json(topology, 0),
        "topics": draft.existing(topology),
    }


class _Draft:
    """One topology while it is drawn.

    A broken one has more of what Kafka refuses; in a deep one counts come from other subtopologies.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._is_broken = chance.random() < 0.2
        self._is_deep = not self._is_broken and chance.random() < 0.3
        size = 8 if self._is_deep else chance.choice((1, 2, 4, 12))
        self._sources = [self._name("in", number) for number in range(size + 2)]
        self._repartitions = [self._name("repartition", number) for number in range(size)]
        self._partitions = chance.choice(((3,), (3,), (3, 3, 3, 5), (1, 2, 3, 4)))
        if self._is_deep:
            self._partitions = (1, 2, 3, 4, 5)
        self._size = size
        self._shared_share = chance.choice((0, 0, 0, 0.4))

    def topology(self) -> StreamsGroupTopologyValue:
        ids = [str(number) for number in range(self._size)]
        if self._is_deep or self._chance.random() < 0.3:
            ids = [f"{self._chance.getrandbits(40):x}" for _ in ids]
        if self._is_broken and self._chance.random() < 0.1:
            ids[-1] = ids[0]
        made = [self._subtopology(each, number) for number, each in enumerate(ids)]
        if not self._is_broken:
            self._write_what_is_read(made)
        self._chance.shuffle(made)
        return StreamsGroupTopologyValue(epoch=self._chance.randint(0, 3), subtopologies=made)

    def existing(self, topology: StreamsGroupTopologyValue) -> dict[str, int]:
        """Return the partitions of the topics that exist: nearly all sources, some others."""
        missing_share = self._chance.choice((0, 0, 0, 0, 0.1, 0.5))
        internal_share = self._chance.choice((0, 0.2, 1, 1))
        topics = {
            name: self._chance.choice(self._partitions)
            for name in self._sources
            if self._chance.random() >= missing_share
        }
        for subtopology in topology.subtopologies:
            for topic in (*subtopology.repartition_source_topics, *_changelogs(subtopology)):
                if self._chance.random() < internal_share:
                    wanted = topic.partitions or self._chance.choice(self._partitions)
                    topics[topic.name] = max(1, wanted)
        return topics

    def _name(self, kind: str, number: int) -> str:
        return f"{kind}-{self._chance.getrandbits(16):x}-{number}"

    def _subtopology(self, subtopology_id: str, number: int) -> Subtopology:
        chance = self._chance
        # One that is written by an earlier subtopology cannot be part of a loop.
        names = self._repartitions if self._is_broken else self._repartitions[:number]
        reads_min = min(2, len(names)) if self._is_deep else 0
        read = chance.sample(names, chance.randint(reads_min, min(2, len(names))))
        inputs = chance.randint(1, 3)
        if self._is_deep or self._is_broken:
            inputs = 0 if read and chance.random() < 0.8 else chance.randint(1, 2)
        sources = chance.sample(self._sources, min(inputs, len(self._sources)))
        written = self._repartitions[number:]
        sinks = chance.sample(written, chance.randint(0, min(2, len(written))))
        repartitions = [
            self._topic(name, 0 if self._is_deep else chance.choice((0, 0, 0, 3, 3, 4)))
            for name in read
        ]
        changelogs = [
            self._topic(f"{subtopology_id}-store-{each}-changelog", 0)
            for each in range(chance.choice((0, 0, 1, 3)))
        ]
        if chance.random() < self._shared_share:
            changelogs.append(self._topic("shared-changelog", 0))
        return Subtopology(
            subtopology_id=subtopology_id,
            source_topics=sources,
            state_changelog_topics=changelogs,
            repartition_sink_topics=sinks,
            repartition_source_topics=repartitions,
            copartition_groups=self._copartition_groups(len(sources), len(repartitions)),
        )

    def _topic(self, name: str, partitions: int) -> TopicInfo:
        chance = self._chance
        if self._is_broken:
            partitions = chance.choice((partitions, partitions, partitions, -1))
            name = chance.choice((name,) * 20 + ("a/b",))
        keys = chance.sample(("cleanup.policy", "retention.ms", "segment.bytes", "x"), 2)
        if self._is_broken and chance.random() < 0.03:
            keys[1] = keys[0]
        return TopicInfo(
            name=name,
            partitions=partitions,
            replication_factor=chance.choice((0, 1, 3)),
            topic_configs=[TopicConfig(key=key, value=key.upper()) for key in keys],
        )

    def _copartition_groups(self, sources: int, repartitions: int) -> list[CopartitionGroup]:
        chance = self._chance
        extra = self._is_broken and chance.random() < 0.05
        return [
            CopartitionGroup(
                source_topics=chance.sample(range(sources), chance.randint(0, sources)),
                repartition_source_topics=chance.sample(
                    range(repartitions), chance.randint(0, repartitions)
                )
                + [chance.choice((-1, repartitions))] * extra,
            )
            for _ in range(0 if self._is_deep else chance.choice((0, 0, 1, 2)))
        ]

    def _write_what_is_read(self, made: list[Subtopology]) -> None:
        written = {sink for each in made for sink in each.repartition_sink_topics}
        for reader in made:
            for topic in reader.repartition_source_topics:
                if topic.name not in written:
                    number = self._repartitions.index(topic.name)
                    made[number].repartition_sink_topics.append(topic.name)
                    written.add(topic.name)


def _changelogs(subtopology: Subtopology) -> list[TopicInfo]:
    return subtopology.state_changelog_topics
