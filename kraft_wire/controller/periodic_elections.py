"""Elections that nobody asks for: leaders move back to first replicas, and the leaderless get one.

While a controller is active it looks through all partitions every
`leader.imbalance.check.interval.seconds` (unless `auto.leader.rebalance.enable` is off) for those
that another replica than the first leads, and every `unclean.leader.election.interval.ms` for those
that nobody leads although their topic allows an unclean election (KIP-460, KIP-966). As in release
4.3.1 it does not matter how unevenly leadership is spread.

A look is taken in steps, because a hundred thousand partitions must not hold up heartbeats: each is
decided by the image of its time. Not here: what an election leads to (`partition_changes`).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from kraft_wire.controller.partition_changes import Election, Elections, PartitionChange
from kraft_wire.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import sooner
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["PeriodicElections"]

_PARTITIONS_PER_STEP: Final = 1_000
_STEPS_APART_MS: Final = 10


class _Look:
    """One kind of look through all partitions, repeatedly."""

    def __init__(
        self, interval_ms: int, concerns: Callable[[PartitionImage], bool], election: Election
    ) -> None:
        assert interval_ms > 0, interval_ms
        self.at_ms = 0
        """When the next step is due."""
        self._interval_ms = interval_ms
        self._concerns = concerns
        self._election = election
        self._topics_left: deque[str] = deque()
        """Names of the topics that this look is not done with."""
        self._partitions_done = 0
        """Of the first of them."""

    def begin(self, now_ms: int) -> None:
        """The first look is a whole interval away: a new leader has brokers to hear of first."""
        assert now_ms >= 0, now_ms
        self.at_ms = now_ms + self._interval_ms
        self._topics_left.clear()
        self._partitions_done = 0

    def step(
        self, image: MetadataImage, settings: NodeSettings, now_ms: int
    ) -> list[VersionedRecord]:
        """Return the elections of the next partitions, and say when to continue."""
        assert now_ms >= self.at_ms, (now_ms, self.at_ms)
        left, room = self._topics_left, _PARTITIONS_PER_STEP
        if not left:
            left.extend(topic.name for topic in image.topics())
        records: list[VersionedRecord] = []
        while left and room:
            topic = image.topics_by_name.get(left[0])
            partitions = [] if topic is None else self._next_of(topic, room)
            room -= len(partitions)
            found = [each for each in partitions if self._concerns(each)]
            if topic is not None and found:
                records += self._elected(Elections.of(image, topic, settings), found)
            if topic is None or self._partitions_done >= len(topic.partitions):
                left.popleft()  # a topic may have been deleted since the look began
                self._partitions_done = 0
        assert len(records) <= _PARTITIONS_PER_STEP, len(records)
        self.at_ms = now_ms + (_STEPS_APART_MS if left else self._interval_ms)
        return records

    def _next_of(self, topic: TopicImage, room: int) -> list[PartitionImage]:
        """Return at most `room` further partitions of a topic."""
        first = self._partitions_done
        assert room > 0, "the step is over"
        self._partitions_done = min(first + room, len(topic.partitions))
        return [topic.partitions[number] for number in range(first, self._partitions_done)]

    def _elected(
        self, elections: Elections, partitions: list[PartitionImage]
    ) -> list[VersionedRecord]:
        """Return what changes in partitions of one topic."""
        if self._election is Election.UNCLEAN and not elections.is_unclean_allowed:
            return []
        changes = [PartitionChange(elections, each, election=self._election) for each in partitions]
        made = [record for change in changes if (record := change.record()) is not None]
        assert len(made) <= len(partitions)
        return made


class PeriodicElections:
    """The looks of one controller; idle but between `begin` and `end`."""

    def __init__(self, settings: NodeSettings) -> None:
        """`settings` are the file's: none of these keys changes while a node runs."""
        unclean_ms = settings.integer("unclean.leader.election.interval.ms")
        self._looks = [_Look(unclean_ms, _is_leaderless, Election.UNCLEAN)]
        if settings.boolean("auto.leader.rebalance.enable"):
            interval_ms = settings.integer("leader.imbalance.check.interval.seconds") * 1_000
            self._looks.append(_Look(interval_ms, _is_led_by_another, Election.PREFERRED))
        self._is_active = False

    def begin(self, now_ms: int) -> None:
        """The controller is active."""
        assert not self._is_active, "one term at a time"
        self._is_active = True
        for look in self._looks:
            look.begin(now_ms)

    def end(self) -> None:
        """The controller is not active any more."""
        self._is_active = False

    def deadline_ms(self, image: MetadataImage) -> int | None:
        """Return when `records` may have some, None where there is no broker to elect."""
        soonest_ms = None
        if self._is_active and image.brokers:
            for look in self._looks:
                soonest_ms = sooner(soonest_ms, look.at_ms)
        return soonest_ms

    def records(
        self, image: MetadataImage, settings: NodeSettings, now_ms: int
    ) -> list[VersionedRecord]:
        """Return the elections of one look that is due; again until nothing is due any more."""
        assert self._is_active, "only the active controller elects"
        for look in self._looks:
            if look.at_ms <= now_ms:
                return look.step(image, settings, now_ms)
        return []


def _is_leaderless(partition: PartitionImage) -> bool:
    return partition.leader == NO_LEADER


def _is_led_by_another(partition: PartitionImage) -> bool:
    return partition.leader != partition.replicas[0]
