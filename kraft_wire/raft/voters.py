"""Voter sets and their history along the log (KIP-853).

A set applies from the moment its record is *appended*, not committed, and is undone by truncation:
the history keeps one set per offset. Sets follow one another by at most one addition or removal, so
that their majorities overlap. With kraft.version 0 the set is static: ids and addresses from the
configuration, directory ids unknown.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple, Self, TypeVar

from kraft_wire.frozen import frozen
from kraft_wire.model import ZERO_UUID, Offset, ReplicaId, ReplicaKey, Uuid
from kraft_wire.wire.generated.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)

__all__ = ["Address", "VersionRange", "VoterNode", "VoterSet", "VoterSetHistory"]

Entry = TypeVar("Entry")

BEFORE_LOG = Offset(-1)
"""Offset of the records of the formatted (0, 0) checkpoint: before the first offset."""


class Address(NamedTuple):
    """The address of a listener."""

    host: str
    port: int


@frozen
class VersionRange:
    """Supported levels of kraft.version, both ends included."""

    low: int = 0
    high: int = 1

    def includes(self, level: int) -> bool:
        """Tell whether a level is supported."""
        return self.low <= level <= self.high


@frozen
class VoterNode:
    """One voter: its key, its listeners by upper-case name, and what it supports."""

    key: ReplicaKey
    endpoints: Mapping[str, Address] = field(default_factory=dict)
    kraft_versions: VersionRange = field(default_factory=VersionRange)


@frozen
class VoterSet:
    """The voters by node id, in id order."""

    nodes: Mapping[ReplicaId, VoterNode]

    @classmethod
    def of(cls, nodes: Iterable[VoterNode]) -> Self:
        """Build a set; two nodes with one id are a bug."""
        by_id: dict[ReplicaId, VoterNode] = {}
        for node in sorted(nodes, key=lambda one: one.key.id):
            assert node.key.id not in by_id, node.key
            by_id[node.key.id] = node
        return cls(by_id)

    @classmethod
    def from_record(cls, record: VotersRecord) -> Self:
        """Read the set of a KRaftVoters control record."""
        return cls.of(_node_from_record(voter) for voter in record.voters)

    def to_record(self) -> VotersRecord:
        """Return the value of this set's control record."""
        return VotersRecord(version=0, voters=[_node_to_record(n) for n in self.nodes.values()])

    def __len__(self) -> int:
        return len(self.nodes)

    def majority(self) -> int:
        """Return the size of a majority."""
        assert self.nodes, "a quorum has voters"
        return len(self.nodes) // 2 + 1

    def is_voter(self, key: ReplicaKey) -> bool:
        """Tell whether a replica is one of the voters.

        The id must match; the directory id must match if the set has one.
        """
        node = self.nodes.get(key.id)
        assert node is None or node.key.id == key.id, key
        return node is not None and node.key.directory_id in (ZERO_UUID, key.directory_id)

    def address(self, voter_id: ReplicaId, listener: str) -> Address | None:
        """Return a voter's address on a listener, None if unknown."""
        node = self.nodes.get(voter_id)
        assert listener == listener.upper(), listener
        return node.endpoints.get(listener) if node is not None else None

    def with_added(self, node: VoterNode) -> "VoterSet":
        """Return the set with one more voter."""
        assert node.key.id not in self.nodes, node.key
        return VoterSet.of([*self.nodes.values(), node])

    def with_removed(self, key: ReplicaKey) -> "VoterSet":
        """Return the set without a voter; never empty."""
        assert self.is_voter(key), key
        assert len(self.nodes) > 1, key
        return VoterSet.of(n for n in self.nodes.values() if n.key.id != key.id)

    def with_updated(self, node: VoterNode) -> "VoterSet":
        """Return the set with a voter's endpoints, directory id and range replaced."""
        assert node.key.id in self.nodes, node.key
        return VoterSet.of([*(n for n in self.nodes.values() if n.key.id != node.key.id), node])

    def overlaps_majorities_of(self, other: "VoterSet") -> bool:
        """Tell whether the sets differ by at most one addition or one removal of a voter key."""
        ours = [node.key for node in self.nodes.values()]
        theirs = [node.key for node in other.nodes.values()]
        added = [key for key in ours if not other.is_voter(key)]
        removed = [key for key in theirs if not self.is_voter(key)]
        assert len(added) <= len(ours), (ours, theirs)
        assert len(removed) <= len(theirs), (ours, theirs)
        return len(added) + len(removed) <= 1


def _node_from_record(voter: Voter) -> VoterNode:
    feature = voter.kraft_version_feature
    assert voter.voter_id >= 0, voter
    return VoterNode(
        ReplicaKey(ReplicaId(voter.voter_id), Uuid(voter.voter_directory_id)),
        {one.name.upper(): Address(one.host, one.port) for one in voter.endpoints},
        VersionRange(feature.min_supported_version, feature.max_supported_version),
    )


def _node_to_record(node: VoterNode) -> Voter:
    assert node.kraft_versions.low <= node.kraft_versions.high, node
    return Voter(
        voter_id=node.key.id,
        voter_directory_id=node.key.directory_id,
        endpoints=[
            Endpoint(name=name, host=address.host, port=address.port)
            for name, address in node.endpoints.items()
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=node.kraft_versions.low,
            max_supported_version=node.kraft_versions.high,
        ),
    )


class VoterSetHistory:
    """The voter set and the kraft.version at each offset of the log and its newest snapshot."""

    def __init__(self, static: VoterSet | None) -> None:
        """`static` applies while neither log nor snapshot has a set."""
        self._static = static if static is not None else VoterSet({})
        self._sets: list[tuple[Offset, VoterSet]] = []
        self._versions: list[tuple[Offset, int]] = []

    @property
    def latest(self) -> VoterSet:
        """The set in force: of the last record, committed or not."""
        latest = self._sets[-1][1] if self._sets else self._static
        assert latest.nodes or not self._sets, self._sets
        return latest

    @property
    def is_bootstrap(self) -> bool:
        """Whether the set in force still comes from the formatted (0, 0) checkpoint."""
        assert not self._sets or self._sets[-1][0] >= BEFORE_LOG, self._sets[-1]
        return bool(self._sets) and self._sets[-1][0] == BEFORE_LOG

    @property
    def latest_offset(self) -> Offset | None:
        """Offset of the record that made the latest set, None for the static one."""
        offset = self._sets[-1][0] if self._sets else None
        assert offset is None or offset >= BEFORE_LOG, offset
        return offset

    @property
    def kraft_version(self) -> int:
        """The level in force, 0 unless a record raised it."""
        level = self._versions[-1][1] if self._versions else 0
        assert level >= 0, self._versions
        return level

    def set_at(self, end_offset: Offset) -> VoterSet:
        """Return the set that records below `end_offset` establish (for a snapshot's header)."""
        assert end_offset >= 0, end_offset
        position = bisect_left(self._sets, end_offset, key=lambda entry: entry[0])
        return self._sets[position - 1][1] if position else self._static

    def version_at(self, end_offset: Offset) -> int:
        """Return the kraft.version that records below `end_offset` establish."""
        assert end_offset >= 0, end_offset
        position = bisect_left(self._versions, end_offset, key=lambda entry: entry[0])
        return self._versions[position - 1][1] if position else 0

    def appended_voters(self, offset: Offset, voters: VoterSet) -> None:
        """Apply a set whose record was appended at `offset`."""
        assert not self._sets or offset > self._sets[-1][0], (offset, self._sets[-1][0])
        assert len(voters) > 0, offset
        assert offset >= BEFORE_LOG, offset
        self._sets.append((offset, voters))

    def appended_version(self, offset: Offset, level: int) -> None:
        """Apply a kraft.version whose record was appended at `offset`."""
        assert not self._versions or offset > self._versions[-1][0], offset
        assert level >= self.kraft_version, (level, self.kraft_version)
        assert offset >= BEFORE_LOG, offset
        self._versions.append((offset, level))

    def truncated_to(self, end_offset: Offset) -> None:
        """Remove entries at or above `end_offset`."""
        # Non-obvious 19: a voter set applies from its append, so a truncation undoes it.
        self._sets = [entry for entry in self._sets if entry[0] < end_offset]
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]
        assert self.latest_offset is None or self.latest_offset < end_offset, end_offset
        assert not self._versions or self._versions[-1][0] < end_offset, end_offset

    def loaded_from_snapshot(self, end_offset: Offset, voters: VoterSet | None, level: int) -> None:
        """Replace everything by the state of a snapshot that replaced the whole log."""
        assert end_offset > 0, "the formatted checkpoint replaces no log"
        before = Offset(end_offset - 1)
        self._sets = [(before, voters)] if voters is not None else []
        self._versions = [(before, level)] if level > 0 else []

    def forgotten_below(self, end_offset: Offset) -> None:
        """Drop entries that a snapshot at `end_offset` made unnecessary, keeping the newest one."""
        in_force = (self.latest, self.kraft_version)
        self._sets = _without_superseded(self._sets, end_offset)
        self._versions = _without_superseded(self._versions, end_offset)
        assert in_force == (self.latest, self.kraft_version), end_offset


def _without_superseded(
    entries: list[tuple[Offset, Entry]], end_offset: Offset
) -> list[tuple[Offset, Entry]]:
    """Drop all entries below `end_offset` but the last of them."""
    position = bisect_left(entries, end_offset, key=lambda entry: entry[0])
    kept = entries[max(0, position - 1) :]
    assert bool(kept) == bool(entries), end_offset
    return kept
