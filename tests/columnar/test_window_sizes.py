"""Batches larger than a window: what is held in memory, whatever a window and a batch may take."""

import pytest

from kraft_wire.columnar.log_windows import MemoryFile, Status, read_windows, window_of
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


def batch(offset: int, size: int) -> bytes:
    return bytes(build_batch([Record(None, b"v" * size, offset, 5)], base_offset=offset))


SMALL, LARGE = batch(0, 10), batch(1, 500)
DATA = SMALL + LARGE + batch(2, 10)


@pytest.mark.parametrize(
    ("room", "held"), [(-1, 100), (0, len(LARGE)), (1, len(LARGE)), (1000, len(LARGE))]
)
def test_a_batch_up_to_the_limit_is_held_whole_and_a_larger_one_is_judged_only(
    room: int, held: int
) -> None:
    found = list(
        read_windows(
            MemoryFile(LARGE), len(LARGE), window_bytes=100, batch_bytes_max=len(LARGE) + room
        )
    )
    (window,) = found
    assert (window.size_bytes, window.held_bytes) == (len(LARGE), held)
    assert window.status.tolist() == [Status.OK]


@pytest.mark.parametrize("window_bytes", [1, 60, len(SMALL), len(SMALL) + 1, len(DATA), 5000])
def test_windows_cover_the_file_whatever_their_size(window_bytes: int) -> None:
    found = list(read_windows(MemoryFile(DATA), len(DATA), window_bytes=window_bytes))
    sizes = [size for window in found for size in window.sizes.tolist()]
    assert sizes == [len(SMALL), len(LARGE), len(SMALL)]
    assert [status for window in found for status in window.status.tolist()] == [Status.OK] * 3
    starts = [window.position for window in found]
    assert starts == [sum(each.size_bytes for each in found[:at]) for at in range(len(found))]


def test_nothing_has_one_window_without_rows() -> None:
    assert list(read_windows(MemoryFile(b""), 0)) == []
    assert list(read_windows(MemoryFile(DATA), len(DATA), len(DATA))) == []
    assert len(window_of(b"").starts) == 0
    (window,) = read_windows(MemoryFile(DATA), len(DATA), len(SMALL))
    assert window.sizes.tolist() == [len(LARGE), len(SMALL)]


def test_a_file_that_became_shorter_ends_where_it_ends() -> None:
    found = list(read_windows(MemoryFile(DATA[: len(SMALL)]), len(DATA)))
    assert [window.sizes.tolist() for window in found] == [[len(SMALL)]]
    assert list(read_windows(MemoryFile(b""), len(DATA))) == []
