"""What compaction writes is durable, indexes too, before it takes the place of what was there."""

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.log_config import LogConfig
from tests.storage.making import DIRECTORY, append, batch_bytes, open_at


class Recording(SimFileSystem):
    """Remembers what was called, and of which file."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    def enter(self, operation: str, path: str) -> DiskFault | None:
        self.calls.append((operation, path.removeprefix(f"{DIRECTORY}/")))
        return super().enter(operation, path)


def test_every_cleaned_file_is_flushed_before_it_is_renamed() -> None:
    fs = Recording()
    log = open_at(fs, LogConfig(index_interval_bytes=100, cleanup_policy=("compact",)))
    for at in range(12):
        append(log, batch_bytes(at, key=b"%d" % (at % 8)))
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)
    fs.calls.clear()
    compact(fs, log, Offset(0), 5_000)
    renames = [at for at, (operation, _) in enumerate(fs.calls) if operation == "rename"]
    assert renames
    before = fs.calls[: renames[0]]
    flushed = {path for operation, path in before if operation == "fsync"}
    written = {path for operation, path in before if operation != "fsync" and "cleaned" in path}
    assert f"{0:020d}.log.cleaned" in flushed
    assert {path for path in written if path.endswith(".cleaned")} <= flushed
    assert {path.split(".")[1] for path in flushed if "cleaned" in path} >= {"index", "timeindex"}
    last_write = max(at for at, (operation, _) in enumerate(before) if operation == "write")
    directories = [at for at, call in enumerate(before) if call == ("fsync", DIRECTORY)]
    assert directories
    assert directories[-1] > last_write
