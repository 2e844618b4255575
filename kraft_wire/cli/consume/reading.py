"""Records of some partitions until an end: the end of the logs, a number, a silence, or Ctrl-C."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kraft_wire.cli.consume.start import Start, start_offsets
from kraft_wire.client.cluster import LATEST_TIMESTAMP, ClusterClient, ClusterRefused
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.client.group_member import GroupMember
from kraft_wire.client.reading import PartitionsReader
from kraft_wire.model import TopicPartition
from kraft_wire.wire.records.record import Record

__all__ = ["Reading", "read_as_member", "read_partitions"]

Write = Callable[[TopicPartition, Record], None]

_COMMIT_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Reading:
    """The start and the end of a reading."""

    start: Start
    follows: bool
    count_max: int | None
    silence_ms: int | None
    read_committed: bool
    note: Callable[[str], None]


class _Progress:
    """The output so far, and whether it is enough."""

    def __init__(self, reading: Reading) -> None:
        self.written: dict[TopicPartition, int] = {}
        """The offset after the written records of each partition, which a group may commit."""
        self._reading = reading
        self._left = reading.count_max
        self._last_at = time.monotonic()

    def count(self, key: TopicPartition, record: Record) -> None:
        """Count a record that is written."""
        self.written[key] = record.offset + 1
        self._last_at = time.monotonic()
        if self._left is not None:
            self._left -= 1

    @property
    def is_enough(self) -> bool:
        """Whether no further record is wanted."""
        if self._left == 0:
            return True
        silence_ms = self._reading.silence_ms
        return silence_ms is not None and time.monotonic() - self._last_at >= silence_ms / 1000


def read_partitions(
    cluster: ClusterClient, keys: Sequence[TopicPartition], reading: Reading, write: Write
) -> None:
    """Write the records of partitions. Errors: ClusterRefused."""
    reader = _reader(cluster, reading)
    reader.positions = start_offsets(
        cluster, keys, reading.start, read_committed=reading.read_committed
    )
    ends = _ends(cluster, keys, reading)
    progress = _Progress(reading)
    while not progress.is_enough:
        wanted = _unread(reader, ends)
        if not wanted:
            return
        _write_round(reader, wanted, progress, ends, write)


def read_as_member(
    cluster: ClusterClient,
    coordinator: GroupCoordinator,
    topics: Sequence[str],
    reading: Reading,
    write: Write,
) -> None:
    """Write the records of a group member's partitions, and commit their offsets.

    Errors: ClusterRefused.
    """
    member = GroupMember(cluster, coordinator, topics)
    reader = _reader(cluster, reading)
    progress = _Progress(reading)
    try:
        while _read_generation(cluster, member, reader, reading, progress, write):
            pass
    except KeyboardInterrupt:
        coordinator.close()  # answers may be under way, on this connection and the others
        cluster.forget()
        raise
    finally:
        with suppress(ClusterRefused):
            sys.stdout.flush()
            member.commit(progress.written)
        with suppress(ClusterRefused):
            member.leave()


def _read_generation(
    cluster: ClusterClient,
    member: GroupMember,
    reader: PartitionsReader,
    reading: Reading,
    progress: _Progress,
    write: Write,
) -> bool:
    """Read between two rebalances; return whether another one is to follow."""
    progress.written = {}
    keys = member.join()
    committed = member.committed(keys) if keys else {}
    fresh = [key for key in keys if key not in committed]
    if fresh:
        committed |= start_offsets(
            cluster, fresh, reading.start, read_committed=reading.read_committed
        )
    reader.positions = committed
    ends = _ends(cluster, keys, reading)
    commit_at = time.monotonic() + _COMMIT_SECONDS
    while not progress.is_enough:
        wanted = _unread(reader, ends)
        if not wanted and not reading.follows:
            return False
        if wanted:
            _write_round(reader, wanted, progress, ends, write)
        else:
            time.sleep(_IDLE_SECONDS)
        is_due = time.monotonic() >= commit_at
        if is_due:
            commit_at = time.monotonic() + _COMMIT_SECONDS
            if not member.commit(progress.written):
                return True
        if not member.beat():
            member.commit(progress.written)
            return True
    return False


def _write_round(
    reader: PartitionsReader,
    wanted: Sequence[TopicPartition],
    progress: _Progress,
    ends: dict[TopicPartition, int] | None,
    write: Write,
) -> None:
    """Write the records of one round up to the ends, until enough are written."""
    for key, record in reader.round(wanted):
        if ends is None or record.offset < ends[key]:
            write(key, record)
            progress.count(key, record)
        if progress.is_enough:
            break
    else:
        progress.written.update(reader.positions)
    sys.stdout.flush()


def _reader(cluster: ClusterClient, reading: Reading) -> PartitionsReader:
    settings = FetchSettings(read_committed=reading.read_committed)
    if reading.silence_ms is not None:  # a broker that waits longer would lengthen the silence
        settings = replace(settings, wait_ms_max=min(settings.wait_ms_max, reading.silence_ms))
    return PartitionsReader(
        cluster,
        settings,
        resets_to_latest=reading.start.is_latest,
        note=reading.note,
    )


def _ends(
    cluster: ClusterClient, keys: Sequence[TopicPartition], reading: Reading
) -> dict[TopicPartition, int] | None:
    """Return where the logs end now; None if reading continues past that."""
    if reading.follows or not keys:
        return None if reading.follows else {}
    wanted = dict.fromkeys(keys, LATEST_TIMESTAMP)
    return cluster.offsets_at(wanted, read_committed=reading.read_committed)


def _unread(
    reader: PartitionsReader, ends: dict[TopicPartition, int] | None
) -> list[TopicPartition]:
    positions = reader.positions
    return [key for key, offset in positions.items() if ends is None or offset < ends[key]]
