"""Entries of an offset index: as storage wrote them, without the zeros of a preallocated file."""

from pathlib import Path

from kraft_wire.columnar import index_entries
from kraft_wire.storage.os_files import OsFileSystem


def entries_of(path: Path, data: bytes, log_bytes: int) -> list[tuple[int, int]]:
    """What is read from an index with this content."""
    path.with_suffix(".index").write_bytes(data)
    found = index_entries(OsFileSystem(), str(path), log_bytes)
    return list(zip(found.relative_offsets.tolist(), found.positions.tolist(), strict=True))


def entry(offset: int, position: int) -> bytes:
    """Eight bytes of the file."""
    return offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def test_entries_before_the_zeros_of_a_preallocated_file_are_all(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000007.log"
    written = [(3 * at, 100 * at) for at in range(1, 20_000)]
    data = b"".join(entry(*each) for each in written)
    assert entries_of(log, data, 10**9) == written
    assert entries_of(log, data + bytes(10 << 20), 10**9) == written
    assert entries_of(log, data + b"\x01\x02\x03", 10**9) == written


def test_entry_that_points_out_of_the_log_is_none(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    data = entry(5, 100) + entry(6, 200) + entry(7, 0x7FFFFFFF)
    assert entries_of(log, data, 200) == [(5, 100)]


def test_log_without_an_index_has_no_entries(tmp_path: Path) -> None:
    found = index_entries(OsFileSystem(), str(tmp_path / "00000000000000000000.log"), 100)
    assert len(found.positions) == len(found.relative_offsets) == 0
