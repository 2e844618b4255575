"""Leader epochs: KIP-101's cache, and its file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.leader_epochs import LeaderEpochs


def cache(*entries: tuple[int, int]) -> LeaderEpochs:
    fs = SimFileSystem()
    fs.make_directory("d")
    epochs = LeaderEpochs(fs, "d")
    for epoch, offset in entries:
        epochs.assign(LeaderEpoch(epoch), Offset(offset))
    return epochs


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        (2, OffsetAndEpoch(Offset(0), LeaderEpoch(2))),  # below all known
        (3, OffsetAndEpoch(Offset(10), LeaderEpoch(3))),
        (5, OffsetAndEpoch(Offset(10), LeaderEpoch(3))),  # the largest one below
        (6, OffsetAndEpoch(Offset(25), LeaderEpoch(6))),
        (8, OffsetAndEpoch(Offset(40), LeaderEpoch(8))),  # the newest ends with the log
        (9, OffsetAndEpoch(Offset(40), LeaderEpoch(8))),
    ],
)
def test_end_offset_for_epoch(asked: int, end: OffsetAndEpoch) -> None:
    epochs = cache((3, 0), (6, 10), (8, 25))
    assert epochs.end_offset_for_epoch(LeaderEpoch(asked), Offset(40)) == end


@pytest.mark.parametrize(
    ("start", "asked", "end"),
    [
        (9, 3, OffsetAndEpoch(Offset(10), LeaderEpoch(3))),  # a record of it is left
        (10, 3, OffsetAndEpoch(Offset(10), LeaderEpoch(3))),
        (11, 3, OffsetAndEpoch(Offset(11), LeaderEpoch(3))),  # as if it had never been
        (11, 5, OffsetAndEpoch(Offset(11), LeaderEpoch(5))),
        (11, 6, OffsetAndEpoch(Offset(25), LeaderEpoch(6))),
        (40, 6, OffsetAndEpoch(Offset(40), LeaderEpoch(6))),
        (40, 8, OffsetAndEpoch(Offset(40), LeaderEpoch(8))),
    ],
)
def test_epochs_below_the_logs_start_are_unknown(
    start: int, asked: int, end: OffsetAndEpoch
) -> None:
    """UnifiedLog.maybeIncrementLogStartOffset of 4.3.1 removes them from its cache at once."""
    epochs = cache((3, 0), (6, 10), (8, 25))
    found = epochs.end_offset_for_epoch(LeaderEpoch(asked), Offset(40), Offset(start))
    assert found == end
    assert epochs.entries[0] == (3, 0)
    epochs.truncate_from_start(Offset(start))
    assert epochs.end_offset_for_epoch(LeaderEpoch(asked), Offset(40)) == end


def test_end_offset_without_epochs_is_the_logs_end() -> None:
    end = cache().end_offset_for_epoch(LeaderEpoch(4), Offset(7))
    assert end == OffsetAndEpoch(Offset(7), LeaderEpoch(4))


def test_file_is_kafkas_and_reads_back() -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    epochs = LeaderEpochs(fs, "d")
    assert epochs.assign(LeaderEpoch(1), Offset(0))
    assert not epochs.assign(LeaderEpoch(1), Offset(5))
    assert not epochs.assign(LeaderEpoch(-1), Offset(5))
    assert epochs.assign(LeaderEpoch(4), Offset(9))
    assert fs.read("d/leader-epoch-checkpoint") == b"0\n2\n1 0\n4 9\n"
    again = LeaderEpochs(fs, "d")
    again.load()
    assert again.entries == [(1, 0), (4, 9)]
    assert (again.latest, again.latest_start_offset) == (4, 9)


def test_contradicted_entries_are_dropped() -> None:
    epochs = cache((1, 0), (4, 9), (5, 20))
    epochs.assign(LeaderEpoch(6), Offset(9))
    assert epochs.entries == [(1, 0), (6, 9)]


def test_truncation_from_both_ends() -> None:
    epochs = cache((1, 0), (4, 9), (5, 20))
    epochs.truncate_from_end(Offset(20))
    epochs.truncate_from_end(Offset(30))
    assert epochs.entries == [(1, 0), (4, 9)]
    epochs.truncate_from_start(Offset(0))
    assert epochs.entries == [(1, 0), (4, 9)]
    epochs.truncate_from_start(Offset(12))
    assert epochs.entries == [(4, 12)]
    assert epochs.epoch_at(Offset(11)) is None
    assert epochs.epoch_at(Offset(12)) == 4
    epochs.clear()
    epochs.clear()
    assert epochs.latest is None
    assert epochs.latest_start_offset is None
    epochs.truncate_from_start(Offset(3))


@pytest.mark.parametrize(
    "entries", [b"1 x", b"-1 0", b"2147483648 0", b"1 -1", b"1 5\n1 6", b"2 5\n3 5"]
)
def test_damaged_file_is_refused(entries: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    count = entries.count(b"\n") + 1
    replace_file(fs, "d/leader-epoch-checkpoint", b"0\n%d\n%s\n" % (count, entries))
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs(fs, "d").load()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=12), st.integers(0, 8))
def test_end_offset_agrees_with_a_list_of_epochs(steps: list[tuple[int, int]], asked: int) -> None:
    """The twin keeps the epoch of every record and nothing else."""
    epochs, twin = cache(), []
    for epoch, count in sorted(steps):
        if count:
            epochs.assign(LeaderEpoch(epoch), Offset(len(twin)))
            twin += [epoch] * count
    found = epochs.end_offset_for_epoch(LeaderEpoch(asked), Offset(len(twin)))
    below = [epoch for epoch in twin if epoch <= asked]
    if twin and below:
        assert found == OffsetAndEpoch(Offset(len(below)), LeaderEpoch(below[-1]))


def test_announced_epoch_is_known_at_once_and_saved_with_the_next() -> None:
    fs = SimFileSystem()
    fs.make_directory("/log")
    epochs = LeaderEpochs(fs, "/log")
    epochs.announce(LeaderEpoch(3), Offset(7))
    assert epochs.latest == 3
    assert epochs.is_unsaved
    assert not fs.exists(epochs.path)
    epochs.save()
    assert not epochs.is_unsaved
    again = LeaderEpochs(fs, "/log")
    again.load()
    assert again.entries == [(3, 7)]


def test_a_disk_that_refuses_an_epoch_leaves_those_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a later start, and of an entry that the new one contradicts."""
    fs = SimFileSystem()
    fs.make_directory("/log")
    epochs = LeaderEpochs(fs, "/log")
    epochs.assign(LeaderEpoch(2), Offset(0))
    epochs.assign(LeaderEpoch(3), Offset(7))
    before = epochs.entries

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("write", epochs.path, "input/output error")

    for start in (5, 7, 9):
        with monkeypatch.context() as broken:
            broken.setattr(LeaderEpochs, "save", refuse)
            with pytest.raises(StorageError):
                epochs.assign(LeaderEpoch(4), Offset(start))
        assert epochs.entries == before
    assert epochs.assign(LeaderEpoch(4), Offset(9))


EPOCHS_OF_RECORDS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=5
)
"""Of each leadership: how far its epoch is above the last one, and how many records it wrote."""


@given(EPOCHS_OF_RECORDS, st.integers(0, 3))
def test_cutting_the_front_leaves_the_epochs_of_what_is_left(
    leaderships: list[tuple[int, int]], begin: int
) -> None:
    """The twin keeps the epoch of every record; every place of the cut is tried."""
    twin: list[int] = []
    for step, count in leaderships:
        twin += [(twin[-1] if twin else 0) + step] * count
    end = begin + len(twin)
    for start in range(begin, end):
        epochs = cache(
            *((epoch, begin + at) for at, epoch in enumerate(twin) if epoch not in twin[:at])
        )
        epochs.truncate_from_start(Offset(start))
        left = twin[start - begin :]
        expected = [(epoch, start + at) for at, epoch in enumerate(left) if epoch not in left[:at]]
        assert epochs.entries == expected
        assert [epochs.epoch_at(Offset(at)) for at in range(start, end)] == left
        again = LeaderEpochs(epochs._fs, "d")
        again.load()
        assert again.entries == expected, "the next start reads what was written"
