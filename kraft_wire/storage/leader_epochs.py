"""The leader epoch cache of a log: the start of each epoch (KIP-101, KIP-279, KIP-595).

`leader-epoch-checkpoint` has one line per epoch with its start offset. It is the only source of
`end_offset_for_epoch`, and so of the offset at which a diverging replica truncates. Epochs and
offsets grow strictly. Left out: snapshots; raft handles "below the earliest snapshot" of the
metadata log.
"""

from bisect import bisect_right

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.storage.directory.checkpoint_text import (
    CorruptCheckpoint,
    number,
    read_entries,
    write_entries,
)
from kraft_wire.storage.files import FileSystem

__all__ = ["LeaderEpochs"]

FILE_NAME = "leader-epoch-checkpoint"
_START = Offset(0)


class LeaderEpochs:
    """Epochs in growing order with their start offsets."""

    __slots__ = ("_epochs", "_fs", "_offsets", "is_unsaved", "path")

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self.path = f"{directory}/{FILE_NAME}"
        self._epochs: list[LeaderEpoch] = []
        self._offsets: list[Offset] = []
        self.is_unsaved = False
        """Whether an announced epoch is not in the checkpoint yet."""

    def load(self) -> None:
        """Read the checkpoint; CorruptCheckpoint if it is damaged, no epochs if it is missing."""
        epochs: list[LeaderEpoch] = []
        offsets: list[Offset] = []
        for words in read_entries(self._fs, self.path, 2) or []:
            epoch, offset = number(self.path, words[0]), number(self.path, words[1])
            if epoch < 0 or offset < 0 or epoch > (1 << 31) - 1:
                raise CorruptCheckpoint(self.path, f"impossible entry {epoch} {offset}")
            if epochs and (epoch <= epochs[-1] or offset <= offsets[-1]):
                raise CorruptCheckpoint(self.path, f"entry {epoch} {offset} does not grow")
            epochs.append(LeaderEpoch(epoch))
            offsets.append(Offset(offset))
        self._epochs, self._offsets = epochs, offsets
        assert len(self._epochs) == len(self._offsets)

    @property
    def entries(self) -> list[tuple[LeaderEpoch, Offset]]:
        """Return (epoch, start offset) pairs, oldest first."""
        assert len(self._epochs) == len(self._offsets), self.path
        return list(zip(self._epochs, self._offsets, strict=True))

    @property
    def latest(self) -> LeaderEpoch | None:
        """Return the newest epoch, or None without epochs."""
        return self._epochs[-1] if self._epochs else None

    @property
    def latest_start_offset(self) -> Offset | None:
        """Return the start of the newest epoch, or None."""
        assert len(self._epochs) == len(self._offsets), self.path
        return self._offsets[-1] if self._offsets else None

    def assign(self, epoch: LeaderEpoch, start_offset: Offset, *, durable: bool = True) -> bool:
        """Note that `epoch` begins at `start_offset`; return whether anything changed.

        An entry that the new one contradicts (a later start, or a higher epoch) was never
        committed and is dropped, as Kafka does.
        """
        if epoch < 0 or (self._epochs and epoch == self._epochs[-1]):
            return False
        before = self._epochs[:], self._offsets[:]
        self._begin(epoch, start_offset)
        try:
            self.save(durable=durable)
        except StorageError:
            self._epochs, self._offsets = before
            raise
        assert self._epochs[-1] == epoch, (epoch, self.path)
        return True

    def announce(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Note an epoch without records; it is saved before its first record is appended.

        A crash may lose it without harm: the next epoch begins at the same offset.
        """
        assert epoch > (-1 if self.latest is None else self.latest), (epoch, self.path)
        self._begin(epoch, start_offset)
        self.is_unsaved = True

    def _begin(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        assert start_offset >= 0, start_offset
        while self._epochs and (self._epochs[-1] >= epoch or self._offsets[-1] >= start_offset):
            self._epochs.pop()
            self._offsets.pop()
        self._epochs.append(epoch)
        self._offsets.append(start_offset)

    def restore(self, entries: list[tuple[LeaderEpoch, Offset]]) -> None:
        """Restore previous entries, because no record followed; the next append saves them."""
        assert entries == sorted(entries), entries
        self._epochs = [epoch for epoch, _ in entries]
        self._offsets = [offset for _, offset in entries]
        self.is_unsaved = True

    def epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        """Return the epoch of the record at `offset`, or None below the first entry."""
        assert offset >= 0, offset
        found = bisect_right(self._offsets, offset) - 1
        return self._epochs[found] if found >= 0 else None

    def end_offset_for_epoch(
        self, epoch: LeaderEpoch, log_end_offset: Offset, log_start_offset: Offset = _START
    ) -> OffsetAndEpoch:
        """Return the largest known epoch that is at most `epoch`, with its end (exclusive).

        KIP-101 and KRaft's variant (KIP-595). Newest: the log's end. Above newest: (end, newest).
        Below all known: the start of the first one, with the given epoch. None known: the log's end
        with the given epoch. OffsetForLeaderEpoch on a data log answers "unknown" above the newest;
        its handler does so.

        Epochs that ended at or below the log's start are not known any more, and the next one
        begins there, as in Kafka; in the file they stay as long as a crash may restore them.
        """
        assert not self._offsets or self._offsets[-1] <= log_end_offset, log_end_offset
        assert 0 <= log_start_offset <= log_end_offset, (log_start_offset, log_end_offset)
        if not self._epochs:
            return OffsetAndEpoch(log_end_offset, epoch)
        first = max(0, bisect_right(self._offsets, log_start_offset) - 1)
        found = bisect_right(self._epochs, epoch) - 1
        if found < first:
            return OffsetAndEpoch(max(self._offsets[first], log_start_offset), epoch)
        if found == len(self._epochs) - 1:
            return OffsetAndEpoch(log_end_offset, self._epochs[found])
        return OffsetAndEpoch(self._offsets[found + 1], self._epochs[found])

    def truncate_from_end(self, end_offset: Offset) -> None:
        """Drop epochs that began at or after `end_offset`, durably."""
        assert end_offset >= 0, end_offset
        if self._offsets and self._offsets[-1] >= end_offset:
            while self._offsets and self._offsets[-1] >= end_offset:
                self._offsets.pop()
                self._epochs.pop()
            self.is_unsaved = True  # on a full disk the next append saves them
            self.save()

    def truncate_from_start(self, start_offset: Offset) -> None:
        """Drop epochs that ended at or before `start_offset`; the epoch at it then begins there."""
        assert start_offset >= 0, start_offset
        keep = bisect_right(self._offsets, start_offset) - 1
        if keep > 0 or (keep == 0 and self._offsets[0] < start_offset):
            del self._offsets[:keep], self._epochs[:keep]
            self._offsets[0] = start_offset
            self.save(durable=False)

    def clear(self) -> None:
        """Drop everything, durably."""
        if self._epochs:
            self._epochs, self._offsets = [], []
            self.is_unsaved = True  # as above
            self.save()
        assert self.latest is None

    def save(self, *, durable: bool = True) -> None:
        """Replace the checkpoint."""
        assert self._offsets == sorted(self._offsets), self._offsets
        assert self._epochs == sorted(self._epochs), self._epochs
        write_entries(self._fs, self.path, self.entries, durable=durable)
        self.is_unsaved = False
