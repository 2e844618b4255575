"""Takes metadata snapshots, and removes old ones with the log below them (KIP-630).

A snapshot is due when enough bytes were committed since the last one, or enough time has passed
with new records; only at the end of a batch and never inside a metadata transaction. It is sorted
and written in short steps, two per tick, so that a large one delays no request. Old snapshots are
removed by size and age once a minute, their files a minute later.

Not here: the content of a snapshot (`metadata.image_records`, `storage.snapshots_contents`).
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.frozen import slotted
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import DiskFull, OffsetAndEpoch, ReportEvent
from kraft_wire.node.event_log import Line
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.raft.divergence import snapshot_refusal
from kraft_wire.raft.events import SnapshotTaken
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.storage.snapshots.cleaning import SnapshotRetention, clean
from kraft_wire.storage.snapshots.contents import SnapshotHead
from kraft_wire.storage.snapshots.store import MetadataSnapshots
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.message import Message

__all__ = ["MetadataUpkeep"]

_CLEANING_INTERVAL_MS: Final = 60_000
_ERASING_DELAY_MS: Final = 60_000
_STEPS_A_TICK: Final = 2
"""Steps of about 3 ms each: few, so that requests are served between two ticks."""


@slotted
class _Writing:
    """A snapshot that is being written."""

    snapshot_id: OffsetAndEpoch
    steps: Iterator[int]


class MetadataUpkeep:
    """Snapshots of one node's metadata."""

    def __init__(
        self, raft: RaftIo, settings: NodeSettings, report: ReportEvent, now_ms: int
    ) -> None:
        number = settings.integer
        self._raft = raft
        self._report = report
        self._bytes_max = number("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = number("metadata.log.max.snapshot.interval.ms")
        self._retention = SnapshotRetention(
            number("metadata.max.retention.bytes"), number("metadata.max.retention.ms")
        )
        self._writing: _Writing | None = None
        self._taken_ms = now_ms
        self._clean_at_ms = now_ms + _CLEANING_INTERVAL_MS
        self._doomed: list[tuple[int, str]] = []
        self.generated_ms: int | None = None
        """When this node completed its newest snapshot, None without one."""
        self.generated_bytes = 0

    def deadline_ms(self) -> int:
        """Return when `tick` is needed next."""
        if self._writing is not None:
            return 0
        if not self._has_news:
            return self._clean_at_ms
        if self._is_large:
            return 0
        if self._interval_ms > 0:
            return min(self._clean_at_ms, self._taken_ms + self._interval_ms)
        return self._clean_at_ms

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do the next step of the work that is due."""
        if self._writing is not None:
            self._go_on(now_ms, wall_ms)
        elif self._is_large or self._is_old(now_ms):
            self._begin(now_ms, wall_ms)
        if self._clean_at_ms <= now_ms:
            self._clean_at_ms = now_ms + _CLEANING_INTERVAL_MS
            self._clean(now_ms, wall_ms)

    def snapshot_loaded(self, now_ms: int) -> None:
        """Restart the interval: a fetched snapshot replaced the newest one."""
        assert now_ms >= self._taken_ms, (now_ms, self._taken_ms)
        # Non-obvious 32: bytes also count from it, in `Committed`.
        self._taken_ms = now_ms

    # -- taking ----------------------------------------------------------------------------------

    @property
    def _has_news(self) -> bool:
        committed = self._raft.committed
        return committed.bytes_since_snapshot > 0 and not committed.in_transaction

    @property
    def _is_large(self) -> bool:
        return self._has_news and self._raft.committed.bytes_since_snapshot >= self._bytes_max

    def _is_old(self, now_ms: int) -> bool:
        is_late = self._interval_ms > 0 and now_ms - self._taken_ms >= self._interval_ms
        return is_late and self._has_news

    def _begin(self, now_ms: int, wall_ms: int) -> None:
        """Begin a snapshot of the committed image, unless the log refuses it."""
        committed, snapshots = self._raft.committed, self._raft.quorum_log.snapshots
        snapshot_id = committed.end
        committed.snapshot_began()
        self._taken_ms = now_ms
        high_watermark = self._raft.replica.quorum.high_watermark
        log = self._raft.quorum_log
        if snapshot_refusal(snapshot_id, high_watermark, log, snapshots) is not None:
            return
        head = SnapshotHead(committed.timestamp_ms, wall_ms, self._control_records(snapshot_id))
        steps = _steps(snapshots, snapshot_id, head, committed.image)
        self._writing = _Writing(snapshot_id, steps)

    def _control_records(self, snapshot_id: OffsetAndEpoch) -> tuple[Message, ...]:
        """Return level and voters at the snapshot's end; empty for a static voter set."""
        voters = self._raft.replica.quorum.voters
        level = voters.version_at(snapshot_id.offset)
        if level == 0:
            return ()
        voter_set = voters.set_at(snapshot_id.offset)
        return (KRaftVersionRecord(kraft_version=level), voter_set.to_record())

    def _go_on(self, now_ms: int, wall_ms: int) -> None:
        """Write the next batches; after the last one, complete the snapshot."""
        from kraft_wire.metadata.image_records import UnwritableImage

        writing = self._writing
        assert writing is not None, "nothing is being written"
        if writing.snapshot_id.offset < self._raft.log.log_start_offset:
            self._writing = None  # a newer snapshot was fetched: drop this one
            return
        try:
            for _ in range(_STEPS_A_TICK):
                if next(writing.steps, None) is None:
                    break
            else:
                return
        except UnwritableImage as error:
            self._report("metadata_snapshot_impossible", reason=Line(error))
        except DiskFull as error:
            self._raft.disk.directory.note_error(None, error)
            self._report("metadata_snapshot_impossible", reason=Line(error))
        else:
            self._taken(writing.snapshot_id, now_ms, wall_ms)
        self._writing = None

    def _taken(self, snapshot_id: OffsetAndEpoch, now_ms: int, wall_ms: int) -> None:
        """Report a complete snapshot to the replica."""
        size_bytes = self._raft.quorum_log.snapshots.size_bytes(snapshot_id)
        assert size_bytes is not None, snapshot_id
        self.generated_ms, self.generated_bytes = now_ms, size_bytes
        self._raft.take(SnapshotTaken(snapshot_id), now_ms, wall_ms)
        self._report(
            "metadata_snapshot",
            offset=snapshot_id.offset,
            epoch=snapshot_id.epoch,
            size_bytes=size_bytes,
        )

    # -- cleaning --------------------------------------------------------------------------------

    def _clean(self, now_ms: int, wall_ms: int) -> None:
        raft = self._raft
        retired, raft.disk.retired = raft.disk.retired, []
        try:
            retired += clean(raft.log, raft.quorum_log.snapshots, self._retention, wall_ms)
        except DiskFull as error:  # the rest is consistent, and the next run continues
            raft.disk.directory.note_error(None, error)
        due = [path for at_ms, path in self._doomed if at_ms <= now_ms]
        self._doomed = [each for each in self._doomed if each[0] > now_ms]
        self._doomed += [(now_ms + _ERASING_DELAY_MS, path) for path in retired]
        for path in due:
            raft.disk.fs.unlink(path)


def _steps(
    snapshots: MetadataSnapshots,
    snapshot_id: OffsetAndEpoch,
    head: SnapshotHead,
    image: MetadataImage,
) -> Iterator[int]:
    """Write a snapshot of an image in steps of some milliseconds: head, order, then batches."""
    from kraft_wire.metadata.image_records import ImageOrder, snapshot_values  # not for a start

    order = ImageOrder(image)
    for size_bytes in snapshots.writing(snapshot_id, head, snapshot_values(image, order)):
        yield size_bytes
        for _ in order.steps():  # all of them behind the head
            yield size_bytes
