"""The disk in memory beside the operating system's: the same calls, results and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.storage.files import FileSystem, LockHeld, remove_tree, replace_file
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.testing.memory_files import MemoryFileSystem

FILES = ("f", "d/f", "d/g", "d/e/f")
PATHS = ("d", "d/e", *FILES)
"""No path leads through a file: which error that is, nobody asks."""


def memory() -> MemoryFileSystem:
    return MemoryFileSystem(lambda: 1_000)


def opened(fs: FileSystem, path: str, create: bool, data: bytes, position: int) -> object:
    """Write to a file, and return what is in it then."""
    file = fs.open(path, create=create)
    file.pwrite(data, position)
    file.fsync()
    seen = file.size_bytes(), file.pread(100, 2)
    file.close()
    return seen


def cut(fs: FileSystem, path: str, size_bytes: int) -> object:
    file = fs.open(path)
    file.truncate(size_bytes)
    file.close()
    return fs.read(path)


paths, files = st.sampled_from(PATHS), st.sampled_from(FILES)
calls = st.one_of(
    st.tuples(st.just("make_directory"), st.sampled_from(("d", "d/e"))),
    st.tuples(st.just("names"), paths),
    st.tuples(st.just("exists"), paths),
    st.tuples(st.just("is_directory"), paths),
    st.tuples(st.just("read"), paths),
    st.tuples(st.just("unlink"), paths),
    st.tuples(st.just("remove_directory"), paths),
    st.tuples(st.just(remove_tree), paths),
    st.tuples(st.just(opened), files, st.booleans(), st.binary(max_size=8), st.integers(0, 12)),
    st.tuples(st.just(cut), paths, st.integers(0, 12)),
    st.tuples(st.just(replace_file), files, st.binary(max_size=8)),
)


def outcome(fs: FileSystem, root: str, call: tuple) -> object:
    """What a call returns, or that it fails; a path in a result is told from the root."""
    name, path, *arguments = call
    function: Callable[..., object] = (
        getattr(fs, name) if isinstance(name, str) else lambda *rest: name(fs, *rest)
    )
    try:
        return function(f"{root}/{path}", *arguments)
    except StorageError:
        return StorageError


@given(st.lists(calls, max_size=25))
def test_random_calls_have_the_outcome_of_the_real_disk(sequence: list[tuple]) -> None:
    with TemporaryDirectory() as directory:
        real, other = OsFileSystem(), memory()
        other.make_directory("root")
        for call in sequence:
            assert outcome(real, directory, call) == outcome(other, "root", call), call


def test_directory_is_renamed_with_all_that_is_in_it(tmp_path: Path) -> None:
    for fs, root in ((OsFileSystem(), str(tmp_path)), (memory(), "root")):
        fs.make_directory(f"{root}/a/b")
        file = fs.open(f"{root}/a/b/f", create=True)
        file.pwrite(b"x", 0)
        fs.rename(f"{root}/a", f"{root}/c")
        assert fs.read(f"{root}/c/b/f") == b"x"
        assert fs.names(root) == ["c"]
        assert file.pread(1, 0) == b"x"
        file.close()


def test_file_outlives_its_name() -> None:
    fs = memory()
    fs.make_directory("d")
    file = fs.open("d/f", create=True)
    file.pwrite(b"x", 0)
    fs.unlink("d/f")
    assert file.pread(1, 0) == b"x"
    assert fs.names("d") == []


def test_lock_is_held_once() -> None:
    fs = memory()
    lock = fs.lock("d/.lock")
    with pytest.raises(LockHeld):
        fs.lock("d/.lock")
    lock.release()
    fs.lock("d/.lock").release()
    fs.lock("d/.lock")
    fs.release_locks()
    fs.lock("d/.lock")


def test_full_disk_refuses_growth_and_takes_the_rest() -> None:
    fs = memory()
    fs.make_directory("d")
    file = fs.open("d/f", create=True)
    file.pwrite(b"0123", 0)
    fs.is_full = True
    assert fs.free_bytes("d") == 0
    with pytest.raises(DiskFull):
        file.pwrite(b"x", 4)
    with pytest.raises(DiskFull):
        file.reserve(10)
    file.pwrite(b"9", 0)
    file.truncate(2)
    assert fs.read("d/f") == b"91"


def test_broken_disk_fails_what_changes_it() -> None:
    fs = memory()
    fs.make_directory("d")
    file = fs.open("d/f", create=True)
    fs.is_broken = True
    with pytest.raises(StorageError):
        file.pwrite(b"x", 0)
    with pytest.raises(FsyncFailed):
        file.fsync()
    with pytest.raises(FsyncFailed):
        fs.sync_directory("d")
    assert fs.read("d/f") == b""


def test_file_that_is_read_only_is_not_opened_for_writing() -> None:
    fs = memory()
    fs.make_directory("d")
    fs.open("d/f", create=True)
    fs.make_read_only("d/f")
    with pytest.raises(StorageError):
        fs.open("d/f")
    assert fs.open_for_reading("d/f").size_bytes() == 0
