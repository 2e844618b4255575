"""The states of the partitions of a metadata log: one row for each state, in the log's order.

A state lasts until the next row of its partition. So a replayed record only adds one row; the end
of each state and its elected leader are computed for all rows at once, from their neighbours. No
Spark here.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kraft_wire.metadata.image import PartitionImage
from kraft_wire.model import Uuid

__all__ = ["UNKNOWN", "OffsetAndTimestamp", "PartitionStates", "StateOrder", "TopicLife"]

_NONE: Final = -1


class OffsetAndTimestamp(NamedTuple):
    """A place in the log, and the time that its record bears."""

    offset: int
    timestamp_ms: int


UNKNOWN: Final = OffsetAndTimestamp(-1, -1)
"""The begin of a snapshot's states, which is before the remaining log."""


class TopicLife(NamedTuple):
    """A topic from its creation to its removal."""

    name: str
    topic_id: Uuid
    created: OffsetAndTimestamp


class StateOrder(NamedTuple):
    """The places of the rows of each partition."""

    by_partition: NDArray[np.int64]
    """All rows, by topic's name and life, partition, and place in the log."""
    before: NDArray[np.int64]
    """For each row the one before it of its partition, or -1."""
    after: NDArray[np.int64]
    """For each row the next one of its partition, or -1."""


@dataclass(slots=True)
class PartitionStates:
    """The rows, a column each, and the topics that they are about."""

    topics: list[TopicLife] = field(default_factory=list)
    topic_places: list[int] = field(default_factory=list)
    """Of each row's topic among `topics`."""
    states: list[PartitionImage] = field(default_factory=list)
    changed_at: list[OffsetAndTimestamp] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The rows that are the end of a partition, with its last state."""
    _places: dict[Uuid, int] = field(default_factory=dict)

    def create(self, name: str, topic_id: Uuid, at: OffsetAndTimestamp) -> None:
        """Begin a topic's life."""
        self._places[topic_id] = len(self.topics)
        self.topics.append(TopicLife(name, topic_id, at))

    def topic(self, topic_id: Uuid) -> TopicLife:
        """Return the life that a topic has, or had last."""
        return self.topics[self._places[topic_id]]

    def add(self, topic_id: Uuid, state: PartitionImage, at: OffsetAndTimestamp) -> None:
        """Add a state of a partition."""
        self.topic_places.append(self._places[topic_id])
        self.states.append(state)
        self.changed_at.append(at)

    def end(self, topic_id: Uuid, state: PartitionImage, at: OffsetAndTimestamp) -> None:
        """Add the end of a partition."""
        self.ends.append(len(self.states))
        self.add(topic_id, state, at)

    def in_order(self) -> StateOrder:
        """Find the neighbours of every row."""
        topics = self._ranks()[self.topic_places]
        partitions = np.array([each.partition for each in self.states], np.int64)
        order = np.lexsort((partitions, topics))  # stable: a partition's rows stay as logged
        earlier, later = order[:-1], order[1:]
        is_same = (topics[earlier] == topics[later]) & (partitions[earlier] == partitions[later])
        before, after = np.full((2, len(order)), _NONE, np.int64)
        before[later[is_same]] = earlier[is_same]
        after[earlier[is_same]] = later[is_same]
        return StateOrder(order, before, after)

    def _ranks(self) -> NDArray[np.int64]:
        """Return each topic's place by name, and of one name by age."""
        by_name = sorted(range(len(self.topics)), key=lambda place: self.topics[place].name)
        ranks = np.empty(len(by_name), np.int64)
        ranks[by_name] = np.arange(len(by_name))
        return ranks
