"""Value types that every layer shares; names are the KIPs' names.

The types separate units that must not mix, and have the text forms that Kafka prints (22-character
ids, `topic-partition`). `RandomSource` is the only port in this file: the only source of random
numbers below the hosts.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType, Protocol

from kraft_wire.frozen import frozen, slotted

__all__ = [
    "ANONYMOUS",
    "NO_PARTITION_LEADER_EPOCH",
    "NO_REPLICA",
    "ONE_UUID",
    "ZERO_UUID",
    "DiskFull",
    "ElectionState",
    "FileSlice",
    "FsyncFailed",
    "LeaderEpoch",
    "Offset",
    "OffsetAndEpoch",
    "Principal",
    "RandomSource",
    "ReadableFile",
    "ReplicaId",
    "ReplicaKey",
    "ReportEvent",
    "StorageError",
    "TopicPartition",
    "Uuid",
    "random_uuid",
    "sooner",
    "uuid_from_text",
    "uuid_to_text",
]

Offset = NewType("Offset", int)
"""Position of a record in a partition's log; ranges of offsets are half-open."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Generation of a partition's leadership (KIP-101, KIP-595)."""

ReplicaId = NewType("ReplicaId", int)
"""A node's `node.id`."""

Uuid = NewType("Uuid", bytes)
"""A topic, directory, incarnation or member id: 16 raw bytes, all zero meaning "none"."""

ZERO_UUID = Uuid(bytes(16))
ONE_UUID = Uuid(bytes(15) + b"\x01")
NO_PARTITION_LEADER_EPOCH = LeaderEpoch(-1)
NO_REPLICA = ReplicaId(-1)


class OffsetAndEpoch(NamedTuple):
    """An offset with the leader epoch of the record before it: snapshot ids, divergence points."""

    offset: Offset
    epoch: LeaderEpoch


class Principal(NamedTuple):
    """The identity of a client, for authorization (`KafkaPrincipal`)."""

    type: str
    name: str
    token_authenticated: bool = False
    """Whether it authenticated by a delegation token."""

    def __str__(self) -> str:
        """Return the principal as `Type:Name`, as entries and log lines have it."""
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""The principal of all clients on a listener without authentication."""


class ReplicaKey(NamedTuple):
    """A voter or observer: node id and the id of its metadata log directory (KIP-853).

    A tuple, because it is the key of maps that every fetch reads, like the one above.
    """

    id: ReplicaId
    directory_id: Uuid


@frozen
class ElectionState:
    """Durable state of a replica in an epoch: the content of `quorum-state` (KIP-595).

    A vote is kept beside the leader of the same epoch, to prevent a second vote.
    """

    leader_epoch: LeaderEpoch
    leader_id: ReplicaId = NO_REPLICA
    voted_id: ReplicaId = NO_REPLICA
    voted_directory_id: Uuid = ZERO_UUID
    static_voters: tuple[ReplicaId, ...] = ()  # data version 0 only


class TopicPartition(NamedTuple):
    """One partition of a topic; `str()` is the name of its directory."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ReadableFile(Protocol):
    """An open file, as a reply uses it: positioned reads, and a descriptor."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read up to `size_bytes` at `position`; shorter only at the end of the file."""
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 without one (simulated files)."""
        ...


@slotted  # frozen it would cost as much as the rest of a log's look-up
class FileSlice:
    """Bytes of a log segment in a response, without a copy; never changed.

    The slice keeps the file open, also after its segment was deleted.
    """

    file: ReadableFile
    position: int
    size_bytes: int

    def read(self) -> bytes:
        """Return the bytes; asserts that the file has all of the slice."""
        data = self.file.pread(self.size_bytes, self.position)
        assert len(data) == self.size_bytes, (self.position, self.size_bytes, len(data))
        return data


class StorageError(Exception):
    """The operating system refused a file operation; the log directory is unusable until repaired.

    It has the values for a log line: the operation, the path, and the system's own message.
    """

    def __init__(self, operation: str, path: str, reason: str) -> None:
        super().__init__(f"{operation} {path}: {reason}")
        self.operation = operation
        self.path = path
        self.reason = reason


class DiskFull(StorageError):
    """No space is left, and nothing was written; the same call may succeed later."""


class FsyncFailed(Exception):
    """An fsync failed. The process must stop: another fsync would report success over lost data."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"fsync {path}: {reason}")
        self.path = path
        self.reason = reason


class ReportEvent(Protocol):
    """Takes the name and the fields of one log line."""

    def __call__(self, name: str, **fields: object) -> None:
        """Write the line."""
        ...


class RandomSource(Protocol):
    """The source of random integers: the only one below the hosts, seeded in simulations."""

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        ...


def sooner(first_ms: int | None, second_ms: int | None) -> int | None:
    """Return the earlier of two deadlines; None means no deadline."""
    if first_ms is None or (second_ms is not None and second_ms < first_ms):
        return second_ms
    return first_ms


def random_uuid(random_source: RandomSource) -> Uuid:
    """Draw a version-4 id as Kafka does: never one of the reserved ids, never a leading dash."""
    while True:
        raw = bytearray(random_source.below(1 << 128).to_bytes(16, "big"))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        drawn = Uuid(bytes(raw))
        if not uuid_to_text(drawn).startswith("-"):
            return drawn


def uuid_to_text(uuid: Uuid) -> str:
    """Return the 22-character form that Kafka prints: URL-safe base64 without padding."""
    assert len(uuid) == 16, uuid
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """Parse the 22-character form; ValueError for any other text."""
    if len(text) > 24:
        raise ValueError(f"{text!r} is too long for a 22-character id")
    try:
        raw = urlsafe_b64decode(text.rstrip("=") + "==")
    except ValueError as error:
        raise ValueError(f"{text!r} is not a 22-character id") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a 22-character id")
    return Uuid(raw)
