"""Reports the log directory of each of a broker's replicas to the controller (KIP-858).

A broker with several directories chooses one for a new replica. The controller must know it, so
that it can move leaderships when the directory fails. AssignReplicasToDirs corrects the published
metadata: at most 2,250 replicas in a request, one request at a time, a tenth of a second after the
first of them, as in release 4.3.1. A failed request is sent again after a pause that doubles.

A broker with one directory checks once: its controller knows the directory of later replicas, but
replicas from before directories had ids have none. A replica that moves to another directory is
reported there before it is served from there (`assign`). Not here: which directory (`log_store`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from kraft_wire.broker.ports import AskController
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.directory_ids import MIGRATING_DIRECTORY
from kraft_wire.metadata.features import DIRECTORIES_FROM, METADATA_VERSION
from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from kraft_wire.model import TopicPartition, Uuid, sooner
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.wire.generated.assign_replicas_to_dirs import AssignReplicasToDirsRequest

__all__ = ["ASSIGNMENTS_MAX", "DirectoryAssignments"]

ASSIGNMENTS_MAX: Final = 2_250
"""Replicas in one request."""
_TOGETHER_MS: Final = 100
_BACKOFF_MS: Final = 100
_BACKOFF_MS_MAX: Final = 10_000
_DOUBLINGS_MAX: Final = 7
_ANSWER_WITHIN_MS: Final = 120_000
"""Longer than the forwarder keeps a request; an answer may also never come."""

_Replica: TypeAlias = tuple[Uuid, int]
"""Topic id and partition."""


class DirectoryAssignments:
    """Assignments that the controller lacks; follows the broker (`broker.MetadataFollower`)."""

    def __init__(
        self,
        node_id: int,
        directories: Sequence[LogDirectory],
        broker_epoch: Callable[[], int],
        ask: AskController,
    ) -> None:
        """`ask` sends a request to the active controller."""
        self._node_id = node_id
        self._directories = directories
        meta = directories[0].meta
        assert meta is not None, "opened directories are formatted"
        self._sole_id = meta.directory_id if len(directories) == 1 else None
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._image: MetadataImage = EMPTY_IMAGE
        self._has_looked = False
        self._ready: dict[_Replica, Uuid] = {}
        """Directories to report, by replica."""
        self._in_flight: dict[_Replica, Uuid] = {}
        self._unplaced: dict[_Replica, None] = {}
        """Replicas without a log, because no disk accepted one; it may be created later."""
        self._moving: dict[_Replica, Uuid] = {}
        """Directories of replicas that are about to be served from there."""
        self._failures = 0
        self._asked = 0
        self._due_ms = 0
        """When to send the ready assignments."""
        self._until_ms = 0
        """When the request in flight is given up."""

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Compare changed replicas with their directories; all replicas the first time."""
        new = self._image = delta.after
        if not self._reports:
            return
        if self._has_looked and len(self._directories) == 1:
            return
        changed = delta if self._has_looked else MetadataDelta.between(EMPTY_IMAGE, new)
        self._has_looked = True
        for name, numbers in changed.topics.items():
            self._look_at_topic(new.topics_by_name[name], numbers, now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Check for new logs, and send the request that is due."""
        if self._unplaced:
            self._look_for_logs(now_ms)
        if self._in_flight and self._until_ms <= now_ms:
            self._failed(self._in_flight, now_ms)
        if self._ready and not self._in_flight and self._due_ms <= now_ms:
            self._send(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        until_ms = self._until_ms if self._in_flight else None
        return sooner(until_ms, self._due_ms if self._ready and not self._in_flight else None)

    def stop(self) -> None:
        """Do nothing: no client waits here."""

    # -- moves between directories (`broker.ports.ReplicaPlaces`) ----------------------------------

    def assign(self, partition: TopicPartition, path: str, now_ms: int) -> None:
        """Report a directory for a replica instead of its log's, until `release`."""
        topic = self._image.topic(partition.topic)
        assert topic is not None, partition
        self._moving[topic.topic_id, partition.partition] = self._id_at(path)
        if self._reports:
            self._look(topic, partition.partition, now_ms)

    def is_assigned(self, partition: TopicPartition, path: str) -> bool:
        """Return whether the metadata has this directory, or has no directories at all."""
        if not self._reports:
            return True
        topic = self._image.topic(partition.topic)
        if topic is None:
            return False
        replica, wanted = (topic.topic_id, partition.partition), self._id_at(path)
        # An older report in flight may still change it.
        is_settled = self._in_flight.get(replica, wanted) == wanted
        return is_settled and self._reported_directory(replica) == wanted

    def release(self, topic_id: Uuid, partition: int, now_ms: int) -> None:
        """Report the directory of a replica's log again."""
        moving = self._moving.pop((topic_id, partition), None)
        topic = self._image.topic_by_id(topic_id)
        if moving is None or topic is None or not self._reports:
            return
        if self._reported_directory((topic_id, partition)) is not None:
            self._ready.pop((topic_id, partition), None)
            self._look(topic, partition, now_ms)

    @property
    def _reports(self) -> bool:
        """Whether the metadata can have directories of replicas."""
        return self._image.finalized_features.get(METADATA_VERSION, 0) >= DIRECTORIES_FROM

    def _id_at(self, path: str) -> Uuid:
        meta = next(each.meta for each in self._directories if each.path == path)
        assert meta is not None, path
        assert meta.directory_id is not None, path
        return meta.directory_id

    # -- what lies where -------------------------------------------------------------------------

    def _look_at_topic(self, topic: TopicImage, numbers: Sequence[int], now_ms: int) -> None:
        for number in numbers:
            view = topic.partitions[number]
            if self._node_id not in view.replicas:
                continue
            if self._sole_id is None or self._sole_id != _told(view, self._node_id):
                self._look(topic, number, now_ms)

    def _look(self, topic: TopicImage, number: int, now_ms: int) -> None:
        """Add one replica's directory to the report, unless the metadata has it."""
        replica = topic.topic_id, number
        name = TopicPartition(topic.name, number)
        actual = self._moving.get(replica) or self._directory_of(name)
        if actual is None:
            self._unplaced[replica] = None
        elif actual == self._reported_directory(replica):
            self._ready.pop(replica, None)
        elif actual != self._in_flight.get(replica):
            self._wait({replica: actual}, now_ms + _TOGETHER_MS)
            self._ready[replica] = actual

    def _look_for_logs(self, now_ms: int) -> None:
        unplaced, self._unplaced = self._unplaced, {}
        for topic_id, number in unplaced:
            topic = self._image.topic_by_id(topic_id)
            if topic is not None and self._reported_directory((topic_id, number)) is not None:
                self._look(topic, number, now_ms)

    def _directory_of(self, name: TopicPartition) -> Uuid | None:
        """Return the directory of a log, served or damaged, also if the directory failed."""
        for directory in self._directories:
            if name in directory.logs or name in directory.damaged:
                assert directory.meta is not None, directory.path
                return directory.meta.directory_id
        return None

    def _reported_directory(self, replica: _Replica) -> Uuid | None:
        """Return the directory in the metadata, None if this broker does not have the replica."""
        topic = self._image.topic_by_id(replica[0])
        view = None if topic is None else topic.partitions.get(replica[1])
        if view is None or self._node_id not in view.replicas:
            return None
        return _told(view, self._node_id)

    # -- the controller --------------------------------------------------------------------------

    def _wait(self, assignments: Mapping[_Replica, Uuid], due_ms: int) -> None:
        """Add assignments without newer ones to the ready ones; send all no later than before."""
        self._due_ms = min(self._due_ms, due_ms) if self._ready else due_ms
        for replica, directory_id in assignments.items():
            self._ready.setdefault(replica, directory_id)

    def _send(self, now_ms: int) -> None:
        """Send the ready assignments that are still valid."""
        ready, self._ready = self._ready, {}
        for replica, directory_id in ready.items():
            told = self._reported_directory(replica)
            if told is None or told == directory_id:
                continue
            if self._moving.get(replica, directory_id) != directory_id:
                continue  # reported before its move, and refused
            target = self._in_flight if len(self._in_flight) < ASSIGNMENTS_MAX else self._ready
            target[replica] = directory_id
        self._due_ms = now_ms
        if not self._in_flight:
            return
        self._asked += 1
        number = self._asked
        self._until_ms = now_ms + _ANSWER_WITHIN_MS
        request = _request(self._node_id, self._broker_epoch(), self._in_flight)
        self._ask(request, lambda response, then: self._answered(number, response, then))

    def _answered(self, number: int, response: Message, now_ms: int) -> None:
        if number != self._asked or not self._in_flight:
            return  # given up meanwhile
        from kraft_wire.wire.generated.assign_replicas_to_dirs import AssignReplicasToDirsResponse

        assert isinstance(response, AssignReplicasToDirsResponse), response
        sent = self._in_flight
        if response.error_code != ErrorCode.NONE:
            self._failed(sent, now_ms)
            return
        self._in_flight, self._failures = {}, 0
        for directory in response.directories:
            for topic in directory.topics:
                for each in topic.partitions:
                    if each.error_code == ErrorCode.NONE:
                        sent.pop((topic.topic_id, each.partition_index), None)
        if sent:  # refused, or missing in the answer
            self._wait(sent, now_ms + _TOGETHER_MS)

    def _failed(self, sent: Mapping[_Replica, Uuid], now_ms: int) -> None:
        """Send undecided assignments again after a pause."""
        self._in_flight = {}
        pause_ms = min(_BACKOFF_MS << min(self._failures, _DOUBLINGS_MAX), _BACKOFF_MS_MAX)
        self._failures += 1
        self._wait(sent, now_ms + pause_ms)
        self._due_ms = now_ms + pause_ms


def _told(view: PartitionImage, node_id: int) -> Uuid:
    """Return the directory of a replica in the metadata."""
    if not view.directories:
        return MIGRATING_DIRECTORY
    return view.directories[view.replicas.index(node_id)]


def _request(
    node_id: int, broker_epoch: int, assignments: Mapping[_Replica, Uuid]
) -> "AssignReplicasToDirsRequest":
    """Put assignments into one request, directory by directory and topic by topic."""
    # Few brokers ever need it, and most of a start is imports.
    from kraft_wire.wire.generated.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        DirectoryData,
        PartitionData,
        TopicData,
    )

    directories: dict[Uuid, DirectoryData] = {}
    topics: dict[tuple[Uuid, Uuid], TopicData] = {}
    for (topic_id, number), directory_id in assignments.items():
        directory = directories.setdefault(directory_id, DirectoryData(id=directory_id))
        topic = topics.get((directory_id, topic_id))
        if topic is None:
            topic = topics[directory_id, topic_id] = TopicData(topic_id=topic_id)
            directory.topics.append(topic)
        topic.partitions.append(PartitionData(partition_index=number))
    return AssignReplicasToDirsRequest(
        broker_id=node_id, broker_epoch=broker_epoch, directories=list(directories.values())
    )
