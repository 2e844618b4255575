"""Periodic elections: preferred replicas become leaders again, leaderless partitions get a leader.

An active controller checks all partitions. Every `leader.imbalance.check.interval.seconds` (unless
`auto.leader.rebalance.enable` is off) it looks for those that another replica than the first leads.
Every `unclean.leader.election.interval.ms` it looks for those without a leader whose topic allows
an unclean election (KIP-460, KIP-966). As in release 4.3.1 the imbalance of leaders has no effect.

A check runs in steps, so that 100,000 partitions do not delay heartbeats; each step uses the image
of its time. Not here: what an election changes (`partition_changes`).
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
    """One kind of periodic check of all partitions."""

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
        """Names of the topics that this check has yet to finish."""
        self._partitions_done = 0
        """Next partition of the first of these topics."""

    def begin(self, now_ms: int) -> None:
        """The first check is a whole interval away: brokers must first contact a new leader."""
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
                left.popleft()  # a topic may have been deleted meanwhile
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
        """Return the records of elections in some partitions of one topic."""
        if self._election is Election.UNCLEAN and not elections.is_unclean_allowed:
            return []
        changes = [PartitionChange(elections, each, election=self._election) for each in partitions]
        made = [record for change in changes if (record := change.record()) is not None]
        assert len(made) <= len(partitions)
        return made


class PeriodicElections:
    """The periodic checks of one controller; idle except between `begin` and `end`."""

    def __init__(self, settings: NodeSettings) -> None:
        """`settings` are the file's: none of these keys changes while a node runs."""
        unclean_ms = settings.integer("unclean.leader.election.interval.ms")
        self._looks = [_Look(unclean_ms, _is_leaderless, Election.UNCLEAN)]
        if settings.boolean("auto.leader.rebalance.enable"):
            interval_ms = settings.integer("leader.imbalance.check.interval.seconds") * 1_000
            self._looks.append(_Look(interval_ms, _is_led_by_another, Election.PREFERRED))
        self._is_active = False

    def begin(self, now_ms: int) -> None:
        """Start the checks of an active controller."""
        assert not self._is_active, "one term at a time"
        self._is_active = True
        for look in self._looks:
            look.begin(now_ms)

    def end(self) -> None:
        """Stop the checks: the controller is no longer active."""
        self._is_active = False

    def deadline_ms(self, image: MetadataImage) -> int | None:
        """Return when `records` may have records, None without a broker to elect."""
        soonest_ms = None
        if self._is_active and image.brokers:
            for look in self._looks:
                soonest_ms = sooner(soonest_ms, look.at_ms)
        return soonest_ms

    def records(
        self, image: MetadataImage, settings: NodeSettings, now_ms: int
    ) -> list[VersionedRecord]:
        """Return the elections of one check that is due; call again until none is due."""
        assert self._is_active, "only the active controller elects"
        for look in self._looks:
            if look.at_ms <= now_ms:
                return look.step(image, settings, now_ms)
        return []


def _is_leaderless(partition: PartitionImage) -> bool:
    return partition.leader == NO_LEADER


def _is_led_by_another(partition: PartitionImage) -> bool:
    return partition.leader != partition.replicas[0]
