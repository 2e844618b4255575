"""Moves of this broker's replicas between its log directories (KIP-113).

A copy in the other directory follows the replica's log (`replica_copy`). At equal ends the
controller must have the new directory before the copy replaces the log (KIP-858): otherwise it
would not know which replicas a failed disk takes away. States of a move, as
`ReplicaAlterLogDirsThread` of release 4.3.1 has them (its words in brackets):

    COPYING (None)       --the ends are equal-->                QUEUED
    QUEUED (Queued)      --the metadata has the directory-->    ACCEPTED
    ACCEPTED (Accepted)  --the ends are equal, log replaced-->  EFFECTIVE (Effective), the move ends

A tick copies at most one read of `replica.fetch.max.bytes`, because it blocks everything else. Not
here: files (`ReplicaCopies`), the report to the controller (`ReplicaPlaces`), requests
(`handlers.alter_replica_log_dirs`).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import ReplicaCopies, ReplicaPlaces
from kraft_wire.broker.replication.replica_copy import ReplicaCopy
from kraft_wire.broker.replication.throttle import ReplicationThrottle
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.frozen import frozen
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.model import ReportEvent, StorageError, TopicPartition, sooner

__all__ = ["MoveState", "MovesEnvironment", "ReplicaMoves"]

_PAUSE_MS: Final = 1
"""Between two reads: requests are served meanwhile."""
_THROTTLED_MS: Final = 100


class MoveState(Enum):
    """The state of a move; the module's docstring has the transitions."""

    COPYING = "copying"
    QUEUED = "queued"
    ACCEPTED = "accepted"
    EFFECTIVE = "effective"


_NEXT: Final[Mapping[MoveState, MoveState]] = {
    MoveState.COPYING: MoveState.QUEUED,
    MoveState.QUEUED: MoveState.ACCEPTED,
    MoveState.ACCEPTED: MoveState.EFFECTIVE,
}
"""The only transitions; any other end of a move cancels it."""


@frozen
class MovesEnvironment:
    """The parts of a broker that moves use."""

    partitions: Mapping[tuple[str, int], Partition]
    copies: ReplicaCopies
    places: ReplicaPlaces
    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    throttle: ReplicationThrottle
    """Bounds the copied bytes: `replica.alter.log.dirs.io.max.bytes.per.second`."""
    promoted: Callable[[Partition, int], None]
    """Note that a log is now on another disk, where all of it is flushed."""
    report: ReportEvent


class _Move:
    """One replica on its way."""

    __slots__ = ("due_ms", "path", "replica", "state")

    def __init__(self, replica: ReplicaCopy, path: str, now_ms: int) -> None:
        self.replica = replica
        self.path = path
        self.state = MoveState.COPYING
        self.due_ms: int | None = now_ms
        """When to continue; None: the answer of the controller is awaited."""

    @property
    def name(self) -> TopicPartition:
        """The replica's partition."""
        return self.replica.partition.topic_partition


class ReplicaMoves:
    """The moves of one broker; follows its metadata and time (`broker.MetadataFollower`)."""

    def __init__(self, env: MovesEnvironment, now_ms: int) -> None:
        """Continue the moves whose copies a start has found."""
        self.copies = env.copies
        self._env = env
        self._moves: dict[TopicPartition, _Move] = {}
        self._resume(now_ms)

    # -- requests --------------------------------------------------------------------------------

    def target_of(self, partition: TopicPartition) -> str | None:
        """Return the directory that a replica moves to, None if it does not move."""
        move = self._moves.get(partition)
        return None if move is None else move.path

    def state_of(self, partition: TopicPartition) -> MoveState | None:
        """Return the state of a replica's move, None if it does not move."""
        move = self._moves.get(partition)
        return None if move is None else move.state

    def begin(self, partition: Partition, path: str, now_ms: int, wall_ms: int) -> None:
        """Begin to move a replica. StorageError: its copy cannot be created."""
        name = partition.topic_partition
        assert name not in self._moves, name
        self._env.copies.create(name, path, wall_ms)
        self._start(partition, path, now_ms)
        self._env.report("replica_move_started", partition=name, directory=path)

    def cancel(self, partition: TopicPartition, now_ms: int) -> None:
        """End the move of a replica, if it moves; its log stays where it is."""
        move = self._moves.get(partition)
        if move is not None:
            self._env.copies.drop(partition)
            self._end(move, now_ms)
            self._env.report("replica_move_cancelled", partition=partition, directory=move.path)

    # -- the broker's calls ----------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """End moves of replicas that are gone, and continue those that the controller awaits."""
        for move in list(self._moves.values()):
            if not self._is_alive(move):
                self._end(move, now_ms)
            elif move.due_ms is None and self._is_assigned(move):
                move.due_ms = now_ms
        self._resume(now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Make one step of one move that is due; the others follow in turn."""
        for move in list(self._moves.values()):
            if not self._is_alive(move):
                self._end(move, now_ms)
            elif move.due_ms is not None and move.due_ms <= now_ms:
                self._moves[move.name] = self._moves.pop(move.name)  # the last one in turn
                self._step(move, now_ms, wall_ms)
                return

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        deadline_ms = None
        for move in self._moves.values():
            deadline_ms = sooner(deadline_ms, move.due_ms)
        return deadline_ms

    def stop(self) -> None:
        """Do nothing: the next start continues the moves."""

    # -- one move --------------------------------------------------------------------------------

    def _resume(self, now_ms: int) -> None:
        """Start a move for each copy that has none."""
        for name, path in self._env.copies.all().items():
            partition = self._env.partitions.get(name)
            if name not in self._moves and partition is not None and not partition.offline:
                self._start(partition, path, now_ms)
                self._env.report("replica_move_resumed", partition=name, directory=path)

    def _start(self, partition: Partition, path: str, now_ms: int) -> None:
        name = partition.topic_partition
        log = self._env.copies.get(name)
        assert log is not None, name
        copy = Partition(
            partition.topic, partition.topic_id, partition.partition, log, partition.leader_epoch
        )
        copy.failed = lambda error: self._env.copies.failed(name, error)
        self._moves[name] = _Move(ReplicaCopy(partition, copy), path, now_ms)

    def _is_alive(self, move: _Move) -> bool:
        """Whether the replica is still the same and served, and its copy is there."""
        partition = move.replica.partition
        if self._env.partitions.get(move.name) is not partition or partition.offline:
            return False
        return self._env.copies.get(move.name) is move.replica.copy.log

    def _end(self, move: _Move, now_ms: int) -> None:
        partition = move.replica.partition
        del self._moves[move.name]
        self._env.places.release(partition.topic_id, partition.partition, now_ms)

    def _step(self, move: _Move, now_ms: int, wall_ms: int) -> None:
        """Copy one read, or enter the next state."""
        move.due_ms = now_ms + _PAUSE_MS
        if not move.replica.has_equal_end:
            if self._env.throttle.is_exceeded(now_ms):
                move.due_ms = now_ms + _THROTTLED_MS
                return
            if not self._copy(move, now_ms, wall_ms):
                move.due_ms = now_ms + self._env.settings().replica_fetch_backoff_ms
                return
        if move.replica.has_equal_end:
            self._advance(move, now_ms, wall_ms)

    def _copy(self, move: _Move, now_ms: int, wall_ms: int) -> bool:
        """Let the copy follow one read of the replica's log; return whether to continue now."""
        replica, max_bytes = move.replica, self._env.settings().replica_fetch_max_bytes
        try:
            size_bytes = replica.follow(max_bytes, now_ms, wall_ms)
        except StorageError as error:
            replica.partition.failed(error)
            return False
        self._env.throttle.record(size_bytes or 0, now_ms)
        if size_bytes is None or not self._is_alive(move):
            return False
        try:
            replica.flush_at_times()
        except StorageError as error:
            replica.copy.failed(error)
            return False
        return True

    def _advance(self, move: _Move, now_ms: int, wall_ms: int) -> None:
        """Enter the next states, at equal ends."""
        if move.state is MoveState.COPYING:
            self._enter(move, MoveState.QUEUED)
            self._env.places.assign(move.name, move.path, now_ms)
        if move.state is MoveState.QUEUED:
            if not self._is_assigned(move):
                move.due_ms = None
                return
            self._enter(move, MoveState.ACCEPTED)
        if not self._env.copies.promote(move.name, wall_ms):
            move.due_ms = now_ms + self._env.settings().replica_fetch_backoff_ms
            return
        self._enter(move, MoveState.EFFECTIVE)
        self._end(move, now_ms)
        self._env.promoted(move.replica.partition, now_ms)
        self._env.report("replica_moved", partition=move.name, directory=move.path)

    def _enter(self, move: _Move, state: MoveState) -> None:
        assert _NEXT[move.state] is state, (move.state, state)
        move.state = state

    def _is_assigned(self, move: _Move) -> bool:
        return self._env.places.is_assigned(move.name, move.path)
