"""The simulated disk: what a crash keeps, what it may lose, and how calls fail."""

from pathlib import Path

import pytest

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.files import File, FileSystem, LockHeld, MissingFile
from kraft_wire.storage.os_files import OsFileSystem


def made_durable() -> tuple[SimFileSystem, File]:
    fs = SimFileSystem()
    fs.make_directory("d")
    file = fs.open("d/f", create=True)
    for path in ("", "d"):
        fs.sync_directory(path)
    return fs, file


def numbers(fs: SimFileSystem) -> list[int]:
    return [atom.number for atom in fs.pending_atoms()]


def test_unsynced_bytes_are_lost_and_synced_ones_kept() -> None:
    fs, file = made_durable()
    file.pwrite(b"kept", 0)
    file.fsync()
    file.pwrite(b"lost", 4)
    assert fs.read("d/f") == b"keptlost"
    assert fs.image([]) == {"d": None, "d/f": b"kept"}
    assert fs.everything() == {"d": None, "d/f": b"keptlost"}
    assert fs.crashed(numbers(fs)).read("d/f") == b"keptlost"


def test_writes_tear_at_sectors_and_holes_read_as_zeros_or_garbage() -> None:
    fs, file = made_durable()
    file.pwrite(b"a" * 600 + b"b" * 600, 0)
    length, first, second, third = numbers(fs)
    assert fs.image([length])["d/f"] == bytes(1200)
    assert fs.image([second])["d/f"] == bytes(512) + b"a" * 88 + b"b" * 424
    assert fs.image([first])["d/f"] == b"a" * 512
    spoilt = fs.image([length, first, second, third], [first])["d/f"]
    assert spoilt is not None
    assert spoilt[:512] == bytes([ord("a") ^ 0xA5]) * 512
    assert spoilt[512:] == b"a" * 88 + b"b" * 600
    assert [atom.is_data for atom in fs.pending_atoms()] == [False, True, True, True]


def test_truncation_is_an_atom_too() -> None:
    fs, file = made_durable()
    file.pwrite(b"0123456789", 0)
    file.fsync()
    file.truncate(4)
    file.truncate(4)
    file.truncate(6)
    cut, grown = numbers(fs)
    assert [fs.image(chosen)["d/f"] for chosen in ([], [cut], [grown], [cut, grown])] == [
        b"0123456789",
        b"0123",
        b"012345",
        b"0123\0\0",
    ]


def test_names_are_lost_unless_the_directory_was_synced() -> None:
    fs, file = made_durable()
    file.pwrite(b"x", 0)
    file.fsync()
    fs.rename("d/f", "d/g")
    fs.open("d/new", create=True)
    renamed, created = numbers(fs)
    assert list(fs.image([])) == ["d", "d/f"]
    assert fs.image([renamed]) == {"d": None, "d/g": b"x"}
    assert sorted(fs.image([created])) == ["d", "d/f", "d/new"]
    fs.sync_directory("d")
    fs.unlink("d/g")
    fs.unlink("d/g")
    assert "d/g" in fs.image([])
    assert "d/g" not in fs.image(numbers(fs))


def test_rename_may_become_visible_before_the_content() -> None:
    fs, _ = made_durable()
    fresh = fs.open("d/f.tmp", create=True)
    fresh.pwrite(b"new", 0)
    fs.rename("d/f.tmp", "d/f")
    assert fs.image([numbers(fs)[-1]])["d/f"] == b""


def test_failed_fsync_marks_its_pages_clean() -> None:
    fs, file = made_durable()
    file.pwrite(b"x", 0)
    fs.fault = (fs.calls_count, DiskFault.EIO)
    with pytest.raises(FsyncFailed):
        file.fsync()
    with pytest.raises(FsyncFailed, match="failed before"):
        file.fsync()
    again = fs.open("d/f")
    again.fsync()
    assert fs.image([])["d/f"] == b""
    assert fs.image(numbers(fs))["d/f"] == b"x"


def test_forgotten_pages_show_what_a_failed_fsync_left_on_the_platter() -> None:
    for reached, expected in ((set(), b""), ({0, 1}, b"lost"), ({0}, bytes(4))):
        fs, file = made_durable()
        first = fs.next_atom
        fs.reached = {first + at for at in reached}.__contains__
        file.pwrite(b"lost", 0)
        fs.fault = (fs.calls_count, DiskFault.EIO)
        with pytest.raises(FsyncFailed):
            file.fsync()
        again = fs.open("d/f")
        again.fsync()
        assert again.pread(9, 0) == b"lost", "clean, and not on the disk"
        again.forget_clean_pages()
        assert again.pread(9, 0) == expected
        assert fs.image([])["d/f"] == expected
        again.pwrite(b"dirty", 0)
        again.forget_clean_pages()
        assert again.pread(9, 0) == b"dirty", "what waits to be written is kept"


@pytest.mark.parametrize("fault", list(DiskFault))
def test_kth_call_fails_in_its_way(fault: DiskFault) -> None:
    fs, file = made_durable()
    fs.fault = (fs.calls_count, fault)
    if fault is DiskFault.EINTR:
        file.pwrite(b"abcd", 0)
        assert fs.read("d/f") == b"abcd"
        return
    full = fault in (DiskFault.ENOSPC, DiskFault.EDQUOT)
    with pytest.raises(DiskFull if full else StorageError):
        file.pwrite(b"abcd", 0)
    assert fs.read("d/f") == (b"ab" if fault is DiskFault.SHORT_WRITE else b"")
    assert fs.failed_operation == "write"


@pytest.mark.parametrize("fault", [DiskFault.ENOSPC, DiskFault.EDQUOT])
def test_what_gives_room_back_is_not_refused_for_want_of_it(fault: DiskFault) -> None:
    """As at the real door: who meets DiskFull goes on."""
    fs, file = made_durable()
    file.pwrite(b"abcd", 0)
    fs.make_directory("d/e")
    for call in (
        lambda: fs.unlink("d/f"),
        lambda: fs.remove_directory("d/e"),
        lambda: file.truncate(3),
    ):
        fs.fault = (fs.calls_count, fault)
        with pytest.raises(StorageError) as met:
            call()
        assert not isinstance(met.value, DiskFull)
    fs.fault = (fs.calls_count, fault)
    with pytest.raises(DiskFull):
        file.truncate(5)


def test_disk_fills_up_with_a_part_written_and_is_freed() -> None:
    fs, file = made_durable()
    fs.capacity_bytes = 10
    assert fs.free_bytes("d") == 10
    with pytest.raises(DiskFull):
        file.pwrite(b"0123456789AB", 0)
    assert (fs.read("d/f"), fs.used_bytes()) == (b"0123456789", 10)
    with pytest.raises(DiskFull):
        file.reserve(11)
    file.reserve(10)
    file.pwrite(b"x", 0)
    fs.capacity_bytes = None
    file.reserve(20)
    assert fs.free_bytes("d") > 1 << 30


def test_sync_can_be_made_to_lie() -> None:
    fs, file = made_durable()
    fs.ignores_fsync = lambda path: path == "d/f"
    fs.ignores_directory_sync = True
    file.pwrite(b"x", 0)
    file.fsync()
    fs.open("d/g", create=True)
    fs.sync_directory("d")
    assert fs.image([]) == {"d": None, "d/f": b""}


def test_observer_hears_of_every_change_before_it_happens() -> None:
    fs, file = made_durable()
    seen: list[bytes] = []
    fs.before_change = lambda: seen.append(bytes(fs.everything()["d/f"] or b""))
    file.pwrite(b"a", 0)
    file.pread(1, 0)
    file.fsync()
    assert seen == [b"", b"a"]


@pytest.mark.parametrize("is_real", [False, True])
def test_mistakes_are_the_same_errors_as_on_the_real_disk(is_real: bool, tmp_path: Path) -> None:
    fs: FileSystem = OsFileSystem() if is_real else SimFileSystem()
    base = str(tmp_path) if is_real else "r"
    fs.make_directory(f"{base}/a/b")
    fs.open(f"{base}/f", create=True).close()
    cases = [
        (MissingFile, lambda: fs.open(f"{base}/none")),
        (MissingFile, lambda: fs.open_for_reading(f"{base}/none")),
        (MissingFile, lambda: fs.read(f"{base}/none")),
        (MissingFile, lambda: fs.names(f"{base}/none")),
        (MissingFile, lambda: fs.rename(f"{base}/none", f"{base}/x")),
        (MissingFile, lambda: fs.open(f"{base}/no/f", create=True)),
        (MissingFile, lambda: fs.sync_directory(f"{base}/none")),
        (StorageError, lambda: fs.open(f"{base}/a")),
        (StorageError, lambda: fs.read(f"{base}/a")),
        (StorageError, lambda: fs.unlink(f"{base}/a")),
        (StorageError, lambda: fs.remove_directory(f"{base}/a")),
        (StorageError, lambda: fs.make_directory(f"{base}/f")),
        (StorageError, lambda: fs.open(f"{base}/f/g")),
    ]
    for kind, call in cases:
        with pytest.raises(kind):
            call()
    fs.remove_directory(f"{base}/a/b")
    assert fs.names(base) == ["a", "f"]
    lock = fs.lock(f"{base}/.lock")
    with pytest.raises(LockHeld):
        fs.lock(f"{base}/.lock")
    lock.release()


def test_file_knows_when_it_was_last_written_by_the_clock_of_the_disk() -> None:
    fs, file = made_durable()
    fs.wall_ms = 7_000
    assert file.modified_ms() > 7_000, "by a clock that nobody set, nothing grows old"
    file.pwrite(b"x", 0)
    assert file.modified_ms() == 7_000
    file.set_modified_ms(5_000)
    file.fsync()
    assert fs.open("d/f").modified_ms() == 5_000
    assert fs.open("d/g", create=True).modified_ms() == 7_000


def test_read_only_file_cannot_be_opened_for_writing() -> None:
    fs, file = made_durable()
    file.pwrite(b"x", 0)
    fs.make_read_only("d/f")
    with pytest.raises(StorageError, match="permission"):
        fs.open("d/f")
    reader = fs.open_for_reading("d/f")
    assert (reader.pread(5, 0), reader.fileno(), reader.size_bytes()) == (b"x", -1, 1)


def test_failed_directory_sync_is_a_failed_fsync() -> None:
    fs, _ = made_durable()
    fs.fault = (fs.calls_count, DiskFault.EROFS)
    with pytest.raises(FsyncFailed):
        fs.sync_directory("d")
