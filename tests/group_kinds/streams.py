"""Members of streams groups (KIP-1071) that have tasks and commit for them, without Kafka Streams.

Fifty processes of Kafka Streams do not fit on a test machine. A member here sends what one would:
it gives a task up at once and says so, and commits a number that only rises for each task it has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from kraft_wire.client.cluster import ClusterClient, ClusterSettings
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.group_offsets import commit_offsets, committed_offsets
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from tests.apache.streams_members import LEAVE_EPOCH, subtopology, tasks, topology

__all__ = ["StreamsGroups"]

SUBTOPOLOGY = "0"
BEAT_EVERY_S = 3.0
OUTDATED = frozenset({ErrorCode.STALE_MEMBER_EPOCH})
"""A commit with the epoch before the last heartbeat's: the task may have gone."""


@dataclass
class StreamsMember:
    """One member; it has the tasks that the coordinator gave it last."""

    name: str
    epoch: int = 0
    held: frozenset[int] = frozenset()
    said: frozenset[int] | None = None
    """What the coordinator was last told; None where that is not known."""


@dataclass
class StreamsGroup:
    """One group, whose rules are judged with each answer."""

    coordinator: GroupCoordinator
    topic: str
    members: dict[str, StreamsMember] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    """Confirmed commits by partition."""
    attempted: dict[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The id of the group."""
        return self.coordinator.group

    def beat(self, member: StreamsMember, shape: Topology) -> None:
        """Send a heartbeat: all facts in the first one, later only changed tasks."""
        is_new = member.epoch == 0
        is_news = is_new or member.said != member.held
        request = StreamsGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.name,
            member_epoch=member.epoch,
            rebalance_timeout_ms=60_000 if is_new else -1,
            topology=shape if is_new else None,
            process_id=member.name if is_new else None,
            active_tasks=tasks({SUBTOPOLOGY: sorted(member.held)} if member.held else {})
            if is_news
            else None,
            standby_tasks=[] if is_news else None,
            warmup_tasks=[] if is_news else None,
        )
        answer = self.coordinator.send(request, StreamsGroupHeartbeatResponse, _code)
        if answer.error_code:
            self.wrong.append(f"{self.name}: {member.name} at {member.epoch}: {answer}"[:400])
            return
        if answer.member_epoch < member.epoch:
            self.wrong.append(f"{self.name}: {member.name}: {answer.member_epoch} after {member}")
        member.epoch, member.said = answer.member_epoch, member.held
        if answer.active_tasks is not None:
            self._take(member, {p for each in answer.active_tasks for p in each.partitions})

    def leave(self, member: StreamsMember) -> None:
        """Leave the group."""
        request = StreamsGroupHeartbeatRequest(
            group_id=self.name, member_id=member.name, member_epoch=LEAVE_EPOCH
        )
        self.coordinator.send(request, StreamsGroupHeartbeatResponse, _code)
        del self.members[member.name]

    def commit(self, member: StreamsMember) -> None:
        """Commit one more for each task."""
        for partition in sorted(member.held):
            offset = self.attempted.get(partition, 0) + 1
            self.attempted[partition] = offset
            key = TopicPartition(self.topic, partition)
            code = commit_offsets(self.coordinator, {key: offset}, member.epoch, member.name)
            if not code:
                self.offsets[partition] = offset
            elif code not in OUTDATED:
                self.wrong.append(f"{self.name}-{partition}: {member}: commit refused: {code}")

    def _take(self, member: StreamsMember, wanted: set[int]) -> None:
        """Give up and take tasks; a taken task has no other owner, and all its commits."""
        others = {p for each in self.members.values() if each is not member for p in each.held}
        if wanted & others:
            self.wrong.append(f"{self.name}: {sorted(wanted & others)} is given to two members")
        new = wanted - member.held
        member.held = frozenset(wanted)
        keys = [TopicPartition(self.topic, each) for each in sorted(new)]
        found = committed_offsets(self.coordinator, keys) if keys else {}
        for key in keys:
            least, most = self.offsets.get(key.partition, -1), self.attempted.get(key.partition, -1)
            if not least <= found.get(key, -1) <= most:
                self.wrong.append(f"{self.name}-{key.partition}: {found}, not {least}..{most}")


class StreamsGroups:
    """Groups with members of one topology, in one thread from `start` to `stop`."""

    def __init__(
        self, settings: ClusterSettings, topic: str, names: Iterable[str], members: int
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._names = list(names)
        self._sizes = members
        self._serial = 0
        self._replacing: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.groups: list[StreamsGroup] = []
        self.turns = 0
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; members do not leave."""
        self._is_over.set()
        self._thread.join()

    def replaces(self, groups: Sequence[str]) -> None:
        """Let the oldest member of each of these leave, and another one join."""
        self._replacing += groups

    @property
    def wrong(self) -> list[str]:
        """What was wrong so far."""
        failure = [f"streams groups ended: {self._failure!r}"] if self._failure else []
        return failure + [each for group in self.groups for each in group.wrong]

    @property
    def are_whole(self) -> bool:
        """Whether the tasks of each group are all with its members, all of which said so."""
        return len(self.groups) == len(self._names) and all(
            sum(len(each.held) for each in list(group.members.values())) == len(group.offsets) > 0
            for group in self.groups
        )

    def confirmed(self) -> dict[tuple[str, int], int]:
        """Return the last confirmed commit of each task."""
        return {
            (group.name, partition): offset
            for group in self.groups
            for partition, offset in list(group.offsets.items())
        }

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                client = stack.enter_context(ClusterClient(self._settings))
                for name in self._names:
                    found = stack.enter_context(GroupCoordinator(client, name))
                    self.groups.append(StreamsGroup(found, self._topic))
                while not self._is_over.is_set():
                    began = time.monotonic()
                    self._turn()
                    self._is_over.wait(max(0.0, BEAT_EVERY_S - (time.monotonic() - began)))
        except BaseException as failure:
            self._failure = failure
            raise

    def _turn(self) -> None:
        shape = topology(subtopology(SUBTOPOLOGY, [self._topic]))
        for group in self.groups:
            if group.name in self._replacing:
                self._replacing.remove(group.name)
                group.leave(next(iter(group.members.values())))
            while len(group.members) < self._sizes:
                self._serial += 1
                name = f"{group.name}-{self._serial}"
                group.members[name] = StreamsMember(name)
            for member in list(group.members.values()):
                group.beat(member, shape)
                group.commit(member)
        self.turns += 1


def _code(answer: StreamsGroupHeartbeatResponse) -> int:
    return answer.error_code
