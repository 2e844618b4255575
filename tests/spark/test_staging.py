"""A directory of results is on the disk before it has its name, and the old one until then."""

import errno
import os
from pathlib import Path

import pytest

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.verbs.staging import keep_only, staged


class Calls:
    """What the system was asked to do, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        real_sync, real_replace = os.fsync, os.replace

        def fsync(descriptor: int) -> None:
            self.made.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
            real_sync(descriptor)

        def replace(old: str | Path, new: str | Path) -> None:
            self.made.append(("rename", str(new)))
            real_replace(old, new)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "replace", replace)

    def synced_before(self, renamed: Path) -> set[str]:
        at = self.made.index(("rename", str(renamed)))
        return {path for call, path in self.made[:at] if call == "fsync"}


@pytest.mark.parametrize("is_there", [False, True])
def test_everything_is_synced_before_the_rename_and_the_rename_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """A loss of power would else leave files without content in a directory that looks whole."""
    target = tmp_path / "out"
    if is_there:
        target.mkdir()
        (target / "old.parquet").write_bytes(b"old")
    calls = Calls(monkeypatch)
    with staged(str(target), overwrite=True) as staging:
        (staging / "table").mkdir()
        (staging / "one.parquet").write_bytes(b"1")
        (staging / "table" / "two.parquet").write_bytes(b"2")
    inside = ("one.parquet", "table/two.parquet", "table", "")
    assert calls.synced_before(target) == {str(staging / name).rstrip("/") for name in inside}
    assert calls.made[-1] == ("fsync", str(tmp_path))
    assert sorted(path.name for path in target.iterdir()) == ["one.parquet", "table"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_no_attempt_which_succeeded_names_are_no_results(tmp_path: Path) -> None:
    """Spark runs a task again that failed, or that is slow; what the other one wrote stays."""
    target = tmp_path / "out"
    with staged(str(target)) as staging:
        (staging / "table").mkdir()
        for name in ("table/1-0.parquet", "table/1-1.parquet", "2-0.parquet"):
            (staging / name).write_bytes(b"rows")
        keep_only(staging, ["table/1-1.parquet"])
    left = [path.relative_to(target) for path in target.rglob("*") if path.is_file()]
    assert left == [Path("table/1-1.parquet")]


def test_a_file_in_the_place_of_the_results_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"a file")
    with staged(str(target), overwrite=True) as staging:
        (staging / "one.parquet").write_bytes(b"1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["one.parquet", "out"]


def test_disk_that_does_not_sync_is_one_line_and_leaves_the_old_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old.parquet").write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(PipelineError, match=f"^{target}: Input/output error$"),
        staged(str(target), overwrite=True) as staging,
    ):
        (staging / "one.parquet").write_bytes(b"1")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "old.parquet"]


def test_file_system_that_cannot_sync_directories_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsync(2) says EINVAL there; some network file systems do."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with staged(str(tmp_path / "out")) as staging:
        (staging / "one.parquet").write_bytes(b"1")
    assert (tmp_path / "out" / "one.parquet").read_bytes() == b"1"


def test_results_do_not_go_into_a_log_directory(tmp_path: Path) -> None:
    """Kafka takes what it finds there for a partition, and does not start."""
    node = tmp_path / "node"
    node.mkdir()
    for known in ([str(node)], []):
        with (
            pytest.raises(PipelineError, match=f"is inside the log directory {node}: give another"),
            staged(str(node / "results"), reading=known),
        ):
            pass
        (node / "meta.properties").write_text("version=1\n")
    assert [path.name for path in node.iterdir()] == ["meta.properties"]


def test_directory_may_be_read_by_whom_the_mask_allows(tmp_path: Path) -> None:
    """A directory for temporary things would be its owner's alone."""
    for mask, mode in ((0o022, 0o755), (0o077, 0o700), (0o002, 0o775)):
        before = os.umask(mask)
        try:
            with staged(str(tmp_path / f"out{mask}")) as staging:
                (staging / "rows").touch()
        finally:
            os.umask(before)
        assert (tmp_path / f"out{mask}").stat().st_mode & 0o777 == mode
