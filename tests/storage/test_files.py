"""The file door on the real disk: kinds of errors, atomic replacement, no second fsync."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.storage.files import (
    File,
    LockHeld,
    MissingFile,
    remove_tree,
    replace_file,
)
from kraft_wire.storage.os_files import OsFileSystem

FS = OsFileSystem()


def failing(number: int) -> Callable[..., None]:
    """A function that fails as the system would."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_write_reads_back_and_truncate_extends_with_zeros(tmp_path: Path) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    file.pwrite(memoryview(b"hello"), 3)
    assert file.pread(100, 0) == b"\0\0\0hello"
    file.truncate(4)
    file.truncate(6)
    assert FS.read(f"{tmp_path}/f") == b"\0\0\0h\0\0"
    file.reserve(4096)
    assert file.size_bytes() == 4096
    assert file.fileno() > 0
    file.fsync()
    file.close()
    file.close()


def test_time_of_the_last_write_can_be_kept_over_a_rewrite(tmp_path: Path) -> None:
    old, new = FS.open(f"{tmp_path}/old", create=True), FS.open(f"{tmp_path}/new", create=True)
    os.utime(f"{tmp_path}/old", ns=(1, 1_700_000_000_123_456_789))
    new.pwrite(b"x", 0)
    assert new.modified_ms() > old.modified_ms() == 1_700_000_000_123
    new.set_modified_ms(old.modified_ms())
    assert os.stat(f"{tmp_path}/new").st_mtime_ns == 1_700_000_000_123_000_000


def test_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, memoryview(data)[:3], at))
    file.pwrite(b"0123456789", 0)
    assert FS.read(f"{tmp_path}/f") == b"0123456789"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_told_apart_as_it_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    monkeypatch.setattr(os, "pwrite", failing(number))
    with pytest.raises(DiskFull, match=f"write {tmp_path}/f"):
        file.pwrite(b"x", 0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_that_gives_nothing_back_does_not_heal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """File systems that copy on write need room to remove, too: btrfs, ZFS."""
    file = FS.open(f"{tmp_path}/f", create=True)
    file.pwrite(b"content", 0)
    for name in ("unlink", "rmdir", "ftruncate"):
        monkeypatch.setattr(os, name, failing(number))
    calls = [
        lambda: FS.unlink(f"{tmp_path}/f"),
        lambda: FS.remove_directory(str(tmp_path)),
        lambda: file.truncate(6),
    ]
    for call in calls:
        with pytest.raises(StorageError) as met:
            call()
        assert not isinstance(met.value, DiskFull)
    with pytest.raises(DiskFull):
        file.truncate(8)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("fstat", lambda file: file.size_bytes()),
        ("pread", lambda file: file.pread(1, 0)),
        ("pwrite", lambda file: file.pwrite(b"x", 0)),
        ("ftruncate", lambda file: file.truncate(1)),
        ("posix_fallocate", lambda file: file.reserve(1)),
        ("fstat", lambda file: file.modified_ms()),
        ("utime", lambda file: file.set_modified_ms(1)),
    ],
)
def test_error_of_an_open_file_names_operation_and_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: Callable[[File], object]
) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    monkeypatch.setattr(os, name, failing(errno.EIO))
    with pytest.raises(StorageError, match=f"{tmp_path}/f: Input/output error"):
        call(file)
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("open", lambda path: FS.open(path)),
        ("open", lambda path: FS.open_for_reading(path)),
        ("listdir", lambda path: FS.names(path)),
        ("makedirs", lambda path: FS.make_directory(path)),
        ("replace", lambda path: FS.rename(path, path + "x")),
        ("unlink", lambda path: FS.unlink(path)),
        ("rmdir", lambda path: FS.remove_directory(path)),
        ("open", lambda path: FS.sync_directory(path)),
        ("chmod", lambda path: FS.make_read_only(path)),
        ("open", lambda path: FS.lock(path)),
        ("statvfs", lambda path: FS.free_bytes(path)),
        ("statvfs", lambda path: FS.total_bytes(path)),
    ],
)
def test_error_by_path_names_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: Callable[[str], object]
) -> None:
    monkeypatch.setattr(os, name, failing(errno.EROFS))
    with pytest.raises(StorageError, match=f"{tmp_path}: Read-only file system"):
        call(str(tmp_path))


def test_missing_file_is_its_own_kind_and_unlinking_it_is_fine(tmp_path: Path) -> None:
    for call in (FS.read, FS.open, FS.open_for_reading):
        with pytest.raises(MissingFile):
            call(f"{tmp_path}/none")
    FS.unlink(f"{tmp_path}/none")
    assert not FS.exists(f"{tmp_path}/none")


def test_failed_fsync_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", failing(errno.EIO))
        with pytest.raises(FsyncFailed):
            file.fsync()
    with pytest.raises(FsyncFailed, match=r"^(?!.*Errno).*Input/output error"):
        file.fsync()


def test_forgotten_pages_are_read_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FS.open(f"{tmp_path}/f", create=True)
    file.pwrite(b"dirty" * 1000, 0)
    file.forget_clean_pages()
    file.fsync()
    file.forget_clean_pages()
    assert file.pread(10_000, 0) == b"dirty" * 1000
    monkeypatch.setattr(os, "posix_fadvise", failing(errno.EIO))
    with pytest.raises(StorageError, match="fadvise"):
        file.forget_clean_pages()


def test_failed_directory_sync_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(FsyncFailed):
        FS.sync_directory(str(tmp_path))


def test_replace_is_write_fsync_rename_directory_sync(tmp_path: Path) -> None:
    calls: list[str] = []

    class Recording(OsFileSystem):
        def rename(self, old: str, new: str) -> None:
            calls.append("rename")
            super().rename(old, new)

        def sync_directory(self, path: str) -> None:
            calls.append("sync directory")
            super().sync_directory(path)

    path = f"{tmp_path}/file"
    replace_file(Recording(), path, b"one")
    replace_file(Recording(), path, b"2", durable=False)
    assert FS.read(path) == b"2"
    assert calls == ["rename", "sync directory", "rename"]
    assert FS.names(str(tmp_path)) == ["file"]


def test_lock_refuses_a_second_holder_until_released(tmp_path: Path) -> None:
    held = FS.lock(f"{tmp_path}/.lock")
    with pytest.raises(LockHeld, match="another process holds it"):
        FS.lock(f"{tmp_path}/.lock")
    held.release()
    held.release()
    FS.lock(f"{tmp_path}/.lock").release()


def test_tree_is_removed_and_read_only_files_are_read(tmp_path: Path) -> None:
    FS.make_directory(f"{tmp_path}/a/b")
    replace_file(FS, f"{tmp_path}/a/b/f", b"x")
    FS.make_read_only(f"{tmp_path}/a/b/f")
    assert FS.open_for_reading(f"{tmp_path}/a/b/f").pread(9, 0) == b"x"
    assert FS.is_directory(f"{tmp_path}/a/b")
    assert FS.total_bytes(str(tmp_path)) >= FS.free_bytes(str(tmp_path)) > 0
    remove_tree(FS, f"{tmp_path}/a")
    remove_tree(FS, f"{tmp_path}/a")
    assert FS.names(str(tmp_path)) == []
