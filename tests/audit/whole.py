"""What a damaged log still holds: told by the bytes that were written, and by no reader of ours.

Every batch is known, from the clean files and from what a fault planted. It is whole where its
length stands and all from its magic on, which is what decides about its checksum; where that is, a
search for bytes says. Offset and leader epoch are under no checksum: a batch whose offset was hit
is whole, and its records have other offsets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kraft_wire.wire.records.memory_records import iter_batches
from tests.audit.faults import LOG_STARTS, Damage, Replicas, checkpointed
from tests.columnar.by_wire import Row, rows_of

LENGTH = slice(8, 12)
MAGIC_AT = 16


class Gap(NamedTuple):
    """Bytes of a segment file that are no whole batch, half-open."""

    file: str
    start: int
    end: int


@dataclass
class WholeLog:
    """One replica after the fault."""

    rows: list[Row] = field(default_factory=list)
    """The records from the log start on, in the order of the files."""
    leader_epoch: int = -1
    """The latest of `leader-epoch-checkpoint`."""
    end_offset: int = 0
    gaps: list[Gap] = field(default_factory=list)
    """Damage that a reader meets, in the order of the files."""
    tail: Gap | None = None
    """What follows the last whole batch of the log: what a crash may leave is no damage."""


def whole_log(directory: Path, damage: Damage) -> WholeLog:
    """What is whole in one partition directory, whether it is the damaged one or not."""
    log = WholeLog(leader_epoch=_latest_epoch(directory))
    segments = sorted(directory.glob("*.log"))
    topic, _, partition = directory.name.rpartition("-")
    starts = checkpointed(directory.parent / LOG_STARTS)
    start = max(starts.get((topic, int(partition)), 0), int(segments[0].stem))
    known = _split(damage.planted)
    for segment in segments:
        known += _split(damage.before(segment) or b"")
    for segment in segments:
        data = segment.read_bytes()
        is_changed = damage.before(segment) is not None
        places = _places(data, known if is_changed else _split(data))
        log.end_offset = int(segment.stem)
        for position, size in sorted(places.items()):
            (batch,) = iter_batches(data[position : position + size])
            log.rows += [row for row in rows_of(batch) if row[0] >= start]
            log.end_offset = batch.next_offset
        log.gaps += _gaps(segment.name, places, len(data))
    last = segments[-1]
    if log.gaps and log.gaps[-1].file == last.name and log.gaps[-1].end == last.stat().st_size:
        log.tail = log.gaps.pop()
    return log


def chosen_rows(replicas: Replicas, damage: Damage) -> list[Row]:
    """The records of the replica that an election would choose: its epoch, then its log's end."""
    place = f"{damage.topic}-{damage.partition}"
    logs = [
        whole_log(directory / place, damage)
        for _, directory in sorted(replicas.nodes.items())
        if (directory / place).is_dir()
    ]
    return max(logs, key=lambda log: (log.leader_epoch, log.end_offset)).rows


def _split(data: bytes) -> list[bytes]:
    """Clean bytes as batches."""
    found, position = [], 0
    for batch in iter_batches(data):
        found.append(data[position : position + batch.size_bytes])
        position += batch.size_bytes
    assert position == len(data), "clean files hold whole batches and nothing else"
    return found


def _places(data: bytes, known: list[bytes]) -> dict[int, int]:
    """Where known batches stand whole, with their sizes."""
    places: dict[int, int] = {}
    following = 0
    for batch in known:
        at = following if _stands(data, batch, following) else _find(data, batch)
        if at is not None:
            places[at] = len(batch)
            following = at + len(batch)
    return places


def _find(data: bytes, batch: bytes) -> int | None:
    found = data.find(batch[MAGIC_AT:])
    while found >= 0:
        if found >= MAGIC_AT and _stands(data, batch, found - MAGIC_AT):
            return found - MAGIC_AT
        found = data.find(batch[MAGIC_AT:], found + 1)
    return None


def _stands(data: bytes, batch: bytes, at: int) -> bool:
    there = data[at : at + len(batch)]
    return there[LENGTH] == batch[LENGTH] and there[MAGIC_AT:] == batch[MAGIC_AT:]


def _gaps(file: str, places: dict[int, int], size: int) -> list[Gap]:
    found, position = [], 0
    for start, length in sorted(places.items()):
        if start > position:
            found.append(Gap(file, position, start))
        position = start + length
    return [*found, Gap(file, position, size)] if position < size else found


def _latest_epoch(directory: Path) -> int:
    checkpoint = directory / "leader-epoch-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return int(lines[-1].split()[0]) if lines else -1
