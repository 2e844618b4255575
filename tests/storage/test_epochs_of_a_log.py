"""The leader epochs of a log whose start moves: they are those of its records, at any restart."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import DIRECTORY, append, batch_bytes, open_at

CONFIG = LogConfig(segment_bytes=1 << 20, cleanup_policy=())


@dataclass
class Life:
    """A log, and the epoch of each record that was ever written to it."""

    fs: SimFileSystem = field(default_factory=SimFileSystem)
    epochs: list[int] = field(default_factory=list)
    saved_start: int = 0
    """The log start in the checkpoint, which a crash leaves as it was."""

    def __post_init__(self) -> None:
        self.log: Log = open_at(self.fs, CONFIG)
        self.fs.sync_directory("disk")
        self.fs.sync_directory("")

    def write(self, step: int, count: int) -> None:
        """Append a batch, mostly in a new epoch."""
        epoch = (self.epochs[-1] if self.epochs else 1) + step % 3
        append(self.log, batch_bytes(self.log.log_end_offset, count=count, epoch=epoch))
        self.epochs += [epoch] * count
        self.log.update_high_watermark(self.log.log_end_offset)

    def roll(self, step: int, count: int) -> None:
        self.log.roll(1)

    def delete_records(self, start: int, count: int) -> None:
        self.log.advance_log_start_offset(Offset(min(start, self.log.log_end_offset)))

    def retain(self, step: int, count: int) -> None:
        apply_retention(self.log, 1)

    def restart(self, how: int, count: int) -> None:
        """Stop cleanly, or die with all or nothing written of what was not synced."""
        if how == 0:
            self.saved_start = self.log.log_start_offset
            self.log.close()
        else:
            self.log.flush()
            atoms = [atom.number for atom in self.fs.pending_atoms()]
            self.fs = self.fs.crashed(atoms if how == 1 else [])
        self.log = open_at(self.fs, CONFIG, is_clean=how == 0, log_start_offset=self.saved_start)
        self.log.update_high_watermark(self.log.log_end_offset)

    def judge(self) -> None:
        """Compare the entries with the epoch of each record that can be read."""
        log = self.log
        assert log.log_end_offset == len(self.epochs)
        found = log.epochs.entries
        assert [*found] == sorted(found)
        assert len({start for _, start in found}) == len(found), "two epochs at one offset"
        readable = range(log.log_start_offset, log.log_end_offset)
        assert [log.epochs.epoch_at(Offset(at)) for at in readable] == [
            self.epochs[at] for at in readable
        ]
        if readable:
            assert log.latest_epoch == self.epochs[-1]

    def judge_the_front(self) -> None:
        """No epoch has an entry whose records are all gone with their segments."""
        files = [name for name in self.fs.names(DIRECTORY) if name.endswith(".log")]
        left = self.epochs[int(min(files)[:20]) :]
        assert [epoch for epoch, _ in self.log.epochs.entries] == sorted(set(left)) or not left


STEP = st.tuples(
    st.sampled_from([Life.write, Life.write, Life.roll, Life.delete_records, Life.retain]),
    st.integers(0, 12),
    st.integers(1, 3),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(STEP, max_size=8), st.integers(0, 2)), min_size=1, max_size=4))
def test_epochs_are_those_of_the_records_that_are_left(
    lives: list[tuple[list[tuple[object, int, int]], int]],
) -> None:
    life = Life()
    for steps, end in lives:
        for act, first, second in steps:
            assert callable(act)
            act(life, first, second)
            life.judge()
        life.log.flush()
        life.retain(0, 0)
        life.judge_the_front()
        life.restart(end, 0)
        life.judge()
        life.judge_the_front()


@pytest.mark.parametrize("how", [0, 1, 2])
def test_a_log_start_at_the_end_of_an_epoch_removes_its_entry(how: int) -> None:
    """Also if the power fails before the entries that are left are on the disk."""
    life = Life()
    for _ in range(3):
        life.write(1, 2)
        life.roll(0, 0)
    life.log.flush()
    life.log.advance_log_start_offset(Offset(2))
    life.retain(0, 0)
    assert life.log.epochs.entries == [(3, 2), (4, 4)]
    life.restart(how, 0)
    assert life.log.epochs.entries == [(3, 2), (4, 4)]


def test_epochs_that_began_in_a_gap_are_noted_before_the_batch_behind_it() -> None:
    """As a leader has them whose compaction removed their first batches; a restart keeps them."""
    fs = SimFileSystem()
    config = LogConfig(segment_bytes=1 << 20, cleanup_policy=("compact",))
    log = open_at(fs, config)
    fs.sync_directory("disk")
    fs.sync_directory("")
    append(log, batch_bytes(0, count=3, epoch=1))
    data = batch_bytes(9, count=2, epoch=5)
    begins = [OffsetAndEpoch(Offset(4), LeaderEpoch(2)), OffsetAndEpoch(Offset(7), LeaderEpoch(5))]
    log.append(data, list(parse_batches(bytearray(data))), 0, 0, begins)
    assert log.epochs.entries == [(1, 0), (2, 4), (5, 7)]
    log.flush()
    again = open_at(fs.crashed([]), config)
    assert again.epochs.entries == [(1, 0), (2, 4), (5, 7)]
    assert again.log_end_offset == 11
