"""Log lines of a node's log directories: loading, cut tails, new segments, dropped copies."""

from __future__ import annotations

import pytest

from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.node.disks.log_store import NodeLogStore
from kraft_wire.node.disks.replica_copies import NodeReplicaCopies
from kraft_wire.node.event_log import Line
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.future_logs import create_future
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.segment import CorruptLog
from tests.storage.making import TOPIC_ID, append, batch_bytes, fill, flip

A, B = "disk/a", "disk/b"
NAME = TopicPartition("t", 0)
OTHERS = [TopicPartition("t", 1), TopicPartition("u", 0)]
LOG = f"{0:020d}.log"
SIZE = len(batch_bytes(0))
CONFIG = LogConfig(segment_bytes=3 * SIZE)


class Stored:
    """The log directories A and B of a node, and the lines about them."""

    def __init__(self, fs: SimFileSystem) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.directories = [LogDirectory.open(fs, path) for path in (A, B)]
        self.store = NodeLogStore(
            fs, self.directories, NodeSettings({}), self._report, lambda directory: None
        )
        self.copies = NodeReplicaCopies(fs, self.store, lambda name, error: None, self._report)

    def _report(self, name: str, **fields: object) -> None:
        shown = {
            key: value.text if isinstance(value, Line) else value for key, value in fields.items()
        }
        self.lines.append((name, shown))

    def load(self) -> list[tuple[str, dict[str, object]]]:
        """Open all logs; return the lines of that."""
        self.store.load({}, 1)
        return self.lines

    def with_copy(self) -> Stored:
        """Create a log in A, and its copy in B."""
        for directory in self.directories:
            directory.load_logs(lambda _: CONFIG, 1)
        self.directories[0].create_log(NAME, TOPIC_ID, CONFIG, 1)
        create_future(self.directories[1], NAME, TOPIC_ID, CONFIG, 1)
        return self


def filled(*names: TopicPartition) -> SimFileSystem:
    """Return a disk with logs of two batches in A; B is empty and was closed."""
    fs = SimFileSystem()
    first, second = (LogDirectory.open(fs, path) for path in (A, B))
    second.load_logs(lambda _: CONFIG, 1)
    second.close()
    for name in names:
        fill(first.create_log(name, TOPIC_ID, CONFIG, 1), 2)
    first.release()
    return fs


def test_each_directory_that_is_loaded_is_two_lines() -> None:
    """Only B was closed; one log of A is damaged."""
    fs = filled(NAME, *OTHERS)
    flip(fs, f"{A}/t-0/{LOG}", 70)
    *first, refused, loading, loaded = Stored(fs).load()
    assert first == [
        ("log_directory_loading", {"directory": A, "was_clean": False}),
        ("log_directory_loaded", {"directory": A, "logs": 2, "refused": 1}),
    ]
    assert (refused[0], refused[1]["partition"]) == ("log_refused", NAME)
    assert loading == ("log_directory_loading", {"directory": B, "was_clean": True})
    assert loaded == ("log_directory_loaded", {"directory": B, "logs": 0, "refused": 0})


def test_log_whose_end_was_cut_is_logged_with_the_bytes_that_it_lost() -> None:
    """The other log is whole, and there is no line about it."""
    fs = filled(NAME, OTHERS[0])
    fs.open(f"{A}/t-0/{LOG}").truncate(2 * SIZE - 9)
    lines = [each for each in Stored(fs).load() if not each[0].startswith("log_directory_")]
    fields = {"partition": NAME, "log_end_offset": 1, "bytes": SIZE - 9}
    assert lines == [("torn_tail_cut", fields)]


def test_new_segment_is_logged_with_the_size_of_the_one_before() -> None:
    """An empty segment is kept. The third roll comes after the first segment is removed."""
    stored = Stored(SimFileSystem())
    directory = stored.directories[0]
    directory.load_logs(lambda _: CONFIG, 1)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, 1)
    fill(log, 3)
    assert stored.lines == []
    fill(log, 1)
    log.roll(1)
    log.roll(1)
    append(log, batch_bytes(log.log_end_offset))
    log.remove_first_segments(1)
    log.roll(1)
    common = {"partition": NAME}
    found = [
        {"base_offset": 3, "segments": 2, "sealed_bytes": 3 * SIZE},
        {"base_offset": 4, "segments": 3, "sealed_bytes": SIZE},
        {"base_offset": 5, "segments": 3, "sealed_bytes": SIZE},
    ]
    assert stored.lines == [("segment_rolled", common | each) for each in found]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (CorruptLog(f"{B}/{LOG}", 7, "invalid CRC"), "position 7: invalid CRC"),
        (CorruptCheckpoint(f"{B}/x", "invalid entry"), "invalid entry"),
    ],
)
def test_damaged_copy_is_removed_and_logged_with_the_damage(
    error: StorageError, reason: str
) -> None:
    stored = Stored(SimFileSystem()).with_copy()
    stored.copies.failed(NAME, error)
    assert stored.lines == [("replica_copy_dropped", {"partition": NAME, "reason": reason})]
    assert stored.directories[1].futures == {}
    assert NAME in stored.directories[0].logs
    stored.copies.failed(NAME, error)
    assert len(stored.lines) == 1, "there is no copy any more"


def test_copy_on_a_failed_disk_is_not_logged_as_removed() -> None:
    """The next start continues the move, if the disk works then."""
    stored = Stored(SimFileSystem()).with_copy()
    stored.copies.failed(NAME, StorageError("write", f"{B}/{LOG}", "input/output error"))
    assert [name for name, _ in stored.lines] == ["log_directory_offline"]
    assert NAME in stored.directories[1].futures
