"""Seeded damage to clean replicas, each with the findings that may name it.

A fault is drawn by a seed alone, works on the files of one node, and can be undone. It is one that
breaks a proposition: a cut above the high watermark loses nothing that was promised, and in a
compacted log, where offsets may jump, a wrong base offset that still grows cannot be seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch
from tests.audit.clean_set import values_in, write_snapshot

METADATA = "__cluster_metadata"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CHECKED_FROM = 21
"""The byte of a batch from which on its checksum covers it."""


class Place(NamedTuple):
    """One batch in a file."""

    position: int
    size: int
    base: int
    last: int
    epoch: int


class Nothing(Exception):
    """The drawn place has nothing that this fault could break: draw again."""


@dataclass
class Damage:
    """What was done to which files of which node, and how it may be called."""

    kind: str
    node: str = ""
    topic: str = ""
    partition: int = 0
    checks: tuple[str, ...] = ()
    detail: str = ""
    planted: bytes = b""
    """Batches that were not there before, one after the other."""
    _before: dict[Path, bytes | None] = field(default_factory=dict)

    def write(self, path: Path, data: bytes | bytearray | None) -> None:
        """Replace a file, or remove it."""
        if path not in self._before:
            self._before[path] = path.read_bytes() if path.exists() else None
        _put(path, data)

    def before(self, path: Path) -> bytes | None:
        """Return what a file held before, None where this damage left it alone or made it."""
        return self._before.get(path)

    def undo(self) -> None:
        """Have everything as it was."""
        for path, data in self._before.items():
            _put(path, data)


def _put(path: Path, data: bytes | bytearray | None) -> None:
    path.unlink(missing_ok=True)  # snapshots are read-only
    if data is not None:
        path.write_bytes(data)


def checkpointed(path: Path) -> dict[tuple[str, int], int]:
    """The offsets of a checkpoint file, by topic and partition."""
    lines = [line.split() for line in path.read_text().splitlines()[2:]]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in lines}


@dataclass(frozen=True)
class Replicas:
    """The directories that are damaged, with what is known of their partitions."""

    nodes: dict[str, Path]
    high_watermarks: dict[tuple[str, int], int]
    log_starts: dict[tuple[str, int], int]
    compacted: frozenset[str]

    @classmethod
    def of(cls, directories: Sequence[Path], compacted: frozenset[str]) -> Replicas:
        """Read the checkpoints of all nodes."""
        nodes: dict[str, Path] = {}
        watermarks: dict[tuple[str, int], int] = {}
        starts: dict[tuple[str, int], int] = {}
        for directory in directories:
            properties = (directory / "meta.properties").read_text().splitlines()
            (node,) = [line.split("=")[1] for line in properties if line.startswith("node.id=")]
            nodes[node] = directory
            for known, name in ((watermarks, HIGH_WATERMARKS), (starts, LOG_STARTS)):
                for key, offset in checkpointed(directory / name).items():
                    known[key] = max(known.get(key, 0), offset)
            for path in (directory / f"{METADATA}-0").glob("*.checkpoint"):
                known_end = int(path.stem.partition("-")[0])
                watermarks[METADATA, 0] = max(watermarks.get((METADATA, 0), 0), known_end)
        return cls(nodes, watermarks, starts, compacted)


class Target:
    """One partition on one node, drawn by chance."""

    def __init__(self, replicas: Replicas, random_source: random.Random, *, metadata: bool) -> None:
        self.node = random_source.choice(sorted(replicas.nodes))
        names = sorted(
            path.name
            for path in replicas.nodes[self.node].iterdir()
            if path.is_dir() and (metadata or not path.name.startswith(METADATA))
        )
        if not names:
            raise Nothing
        self.directory = replicas.nodes[self.node] / random_source.choice(names)
        self.topic, _, number = self.directory.name.rpartition("-")
        self.partition = int(number)
        self.key = (self.topic, self.partition)
        self.is_compacted = self.topic in replicas.compacted
        self.high_watermark = replicas.high_watermarks.get(self.key, 0)
        self.log_start = replicas.log_starts.get(self.key, 0)
        self.segments = sorted(self.directory.glob("*.log"))

    def batches(self, segment: Path) -> list[Place]:
        """The batches of a segment that consumers may read."""
        found, position = [], 0
        for batch in iter_batches(segment.read_bytes()):
            assert isinstance(batch, RecordBatch)
            last = batch.next_offset - 1
            place = Place(
                position,
                batch.size_bytes,
                batch.base_offset,
                last,
                batch.partition_leader_epoch,
            )
            if last >= self.log_start:
                found.append(place)
            position += batch.size_bytes
        return found

    def filled(self) -> list[Path]:
        """The segments with batches that consumers may read."""
        found = [segment for segment in self.segments if self.batches(segment)]
        if not found:
            raise Nothing
        return found


def flip_bit(replicas: Replicas, random_source: random.Random) -> Damage:
    """Turn one bit of a log file."""
    target = Target(replicas, random_source, metadata=True)
    segment = random_source.choice(target.filled())
    place = random_source.choice(target.batches(segment))
    at = random_source.randrange(place.size)
    if random_source.random() < 0.5:
        at = random_source.randrange(HEADER_BYTES)
    if target.is_compacted and at < 8:
        at += CHECKED_FROM
    data = bytearray(segment.read_bytes())
    bit = random_source.randrange(8)
    data[place.position + at] ^= 1 << bit
    damage = _damage("bit flip", target, ("crc", "gap", "epoch"), f"{segment.name} @{at}.{bit}")
    damage.write(segment, data)
    return damage


def truncate(replicas: Replicas, random_source: random.Random) -> Damage:
    """Cut a log file anywhere, so that records below the high watermark are gone."""
    target = Target(replicas, random_source, metadata=True)
    segment = random_source.choice(target.filled())
    size = segment.stat().st_size
    is_last = segment == target.segments[-1]
    places = [place for place in target.batches(segment)]
    if is_last:
        places = [place for place in places if place.base < target.high_watermark]
    elif target.is_compacted:
        raise Nothing  # a cut at the end of a batch is what compaction may leave
    if not places:
        raise Nothing
    first, last = places[0].position, places[-1].position + places[-1].size
    to = random_source.choice(
        [random_source.randrange(first, min(last, size)), random_source.choice(places).position]
    )
    checks = ("below-high-watermark", "crc") if is_last else ("gap", "crc")
    damage = _damage("truncation", target, checks, f"{segment.name} to {to}")
    damage.write(segment, segment.read_bytes()[:to])
    return damage


def lose_tail(replicas: Replicas, random_source: random.Random) -> Damage:
    """Remove whole batches or segments from the end of a log, below the high watermark."""
    target = Target(replicas, random_source, metadata=True)
    filled = target.filled()
    count = random_source.randrange(len(filled))
    segment = filled[-1 - count]
    places = [place for place in target.batches(segment) if place.base < target.high_watermark]
    if not places:
        raise Nothing
    damage = _damage("lost tail", target, ("below-high-watermark",), f"from {segment.name}")
    for later in target.segments[target.segments.index(segment) + 1 :]:
        for path in target.directory.glob(f"{later.stem}.*"):
            damage.write(path, None)
    damage.write(segment, segment.read_bytes()[: random_source.choice(places).position])
    return damage


def swap_segments(replicas: Replicas, random_source: random.Random) -> Damage:
    """Give two segments of a log each other's content."""
    target = Target(replicas, random_source, metadata=True)
    filled = target.filled()
    if len(filled) < 2:
        raise Nothing
    one, other = random_source.sample(filled, 2)
    damage = _damage("swapped segments", target, ("gap",), f"{one.name} {other.name}")
    first, second = one.read_bytes(), other.read_bytes()
    damage.write(one, second)
    damage.write(other, first)
    return damage


def miss_batches(replicas: Replicas, random_source: random.Random) -> Damage:
    """Remove batches out of the middle of a log."""
    target = Target(replicas, random_source, metadata=True)
    if target.is_compacted:
        raise Nothing
    segment = random_source.choice(target.filled())
    places = target.batches(segment)
    if segment == target.segments[-1]:
        places = places[:-1]  # the end of a log is a lost tail
    if target.log_start and segment == target.filled()[0]:
        places = places[1:]
    if not places:
        raise Nothing
    first = random_source.randrange(len(places))
    last = min(first + random_source.randrange(3), len(places) - 1)
    data = segment.read_bytes()
    cut = data[: places[first].position] + data[places[last].position + places[last].size :]
    damage = _damage("missing batches", target, ("gap",), f"{places[first]} in {segment.name}")
    damage.write(segment, cut)
    return damage


def diverge(replicas: Replicas, random_source: random.Random) -> Damage:
    """Replace the end of a log, from below the high watermark on, by other records."""
    target = Target(replicas, random_source, metadata=True)
    if target.is_compacted:
        raise Nothing
    segment = target.filled()[-1]
    places = target.batches(segment)
    below = [index for index, each in enumerate(places) if each.base < target.high_watermark]
    if not below:
        raise Nothing
    first = random_source.choice(below)
    raised = random_source.choice([0, 0, 1, 5])
    data = bytearray(segment.read_bytes()[: places[first].position])
    offset, end = places[first].base, places[-1].last + 1
    while offset < end:
        count = min(random_source.randrange(1, 12), end - offset)
        records = [
            Record(
                b"other", random_source.randbytes(20), offset + at, 1_700_000_000_000 + offset + at
            )
            for at in range(count)
        ]
        epoch = places[first].epoch + raised
        data += build_batch(records, base_offset=offset, partition_leader_epoch=epoch)
        offset += count
    checks = ("log-matching", "divergence")
    damage = _damage("divergent suffix", target, checks, f"from {places[first].base}")
    damage.planted = bytes(data[places[first].position :])
    damage.write(segment, data)
    if raised and random_source.random() < 0.5:
        checkpoint = target.directory / "leader-epoch-checkpoint"
        lines = checkpoint.read_text().splitlines()
        lines = [*lines[:1], str(len(lines) - 1), *lines[2:]]
        lines.append(f"{places[first].epoch + raised} {places[first].base}")
        kept = [line for line in lines[2:-1] if int(line.split()[1]) < places[first].base]
        text = "\n".join([lines[0], str(len(kept) + 1), *kept, lines[-1]]) + "\n"
        damage.write(checkpoint, text.encode())
    return damage


def forge_snapshot(replicas: Replicas, random_source: random.Random) -> Damage:
    """Change a node's metadata snapshot, with right checksums or without."""
    node = random_source.choice(sorted(replicas.nodes))
    directory = replicas.nodes[node] / f"{METADATA}-0"
    snapshots = sorted(directory.glob("*.checkpoint"))
    snapshots = [each for each in snapshots if not each.name.startswith("0" * 20)]
    if not snapshots:
        raise Nothing
    path = random_source.choice(snapshots)
    damage = Damage("forged snapshot", node, METADATA, 0, ("snapshot",), path.name)
    data = path.read_bytes()
    if random_source.random() < 0.3:
        turned = bytearray(data)
        turned[random_source.randrange(len(data))] ^= 1 << random_source.randrange(8)
        damage.write(path, turned)
        return damage
    values = values_in(path)
    values.pop(random_source.randrange(len(values)))
    offset, epoch = (int(part) for part in path.stem.split("-"))
    damage.write(path, None)
    write_snapshot(directory, OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch)), values)
    return damage


def stale_index(replicas: Replicas, random_source: random.Random) -> Damage:
    """Put an index of another segment, or of an older content, beside a log file."""
    target = Target(replicas, random_source, metadata=False)
    suffix, entry = random_source.choice([("index", 8), ("timeindex", 12)])
    indexes = [path for path in sorted(target.directory.glob(f"*.{suffix}")) if path.stat().st_size]
    indexes = [path for path in indexes if path.read_bytes().strip(b"\0")]
    if not indexes:
        raise Nothing
    path = random_source.choice(indexes)
    data = path.read_bytes()
    used = data[: -(-len(data.rstrip(b"\0")) // entry) * entry]
    others = [other.read_bytes() for other in indexes if other != path]
    others = [other[: -(-len(other.rstrip(b"\0")) // entry) * entry] for other in others]
    stale = random_source.choice([*others, _shifted(used, entry, random_source)])
    if used.startswith(stale) or not _is_stale(used, stale, entry):
        raise Nothing
    damage = _damage("stale index", target, ("index",), path.name)
    damage.write(path, stale)
    return damage


def _shifted(data: bytes, entry: int, random_source: random.Random) -> bytes:
    """The entries as they were before some bytes of the log went."""
    moved = bytearray(data)
    by = random_source.randrange(1, 60)
    for at in range(0, len(moved), entry):
        low = at if entry == 12 else at + 4
        size = 8 if entry == 12 else 4
        number = int.from_bytes(moved[low : low + size], "big") + by
        moved[low : low + size] = number.to_bytes(size, "big")
    return bytes(moved)


def _is_stale(used: bytes, stale: bytes, entry: int) -> bool:
    """Whether an entry says what the right index nowhere says."""
    right = {used[at : at + entry] for at in range(0, len(used), entry)}
    return any(stale[at : at + entry] not in right for at in range(0, len(stale), entry))


def _damage(kind: str, target: Target, checks: tuple[str, ...], detail: str) -> Damage:
    return Damage(kind, target.node, target.topic, target.partition, checks, detail)


DRAWS = 200
"""After so many a fault has nothing to break, unless it hides too well."""

Fault = Callable[[Replicas, random.Random], Damage]
FAULTS: tuple[Fault, ...] = (
    flip_bit,
    flip_bit,
    truncate,
    swap_segments,
    diverge,
    miss_batches,
    forge_snapshot,
    stale_index,
    lose_tail,
)


def damaged(replicas: Replicas, seed: int) -> Damage:
    """Draw and do the damage of a seed; a fault that finds nothing leaves its turn to the next."""
    random_source = random.Random(seed)
    turn = seed % len(FAULTS)
    for fault in dict.fromkeys([*FAULTS[turn:], *FAULTS[:turn]]):
        for _ in range(DRAWS):
            try:
                return fault(replicas, random_source)
            except Nothing:
                continue
    raise LookupError("nothing in these directories can be damaged")
