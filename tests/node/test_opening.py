"""Starts of an embedded node, which makes its own directory at the first."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.node import Node
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.files import replace_file
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.groups.harness import CountingChance


def test_directory_that_a_first_start_makes_survives_power_loss_with_its_parents() -> None:
    fs = SimFileSystem()
    config = load_config(None, {}, [("log.dirs", Setting("/new/deep/data", "test"))])
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    node = Node(config, fs, CountingChance(), now_ms=1, wall_ms=1)
    crashed = fs.crashed(())
    assert crashed.exists("/new/deep/data/meta.properties")
    again = Node(config, crashed, CountingChance(), now_ms=1, wall_ms=1)
    assert again.cluster_id == node.cluster_id


def test_first_checkpoint_has_the_time_of_day() -> None:
    """A clock that counts from the start of the machine says nothing to who reads the record."""
    fs = SimFileSystem()
    config = load_config(None, {}, [("log.dirs", Setting("/data", "test"))])
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    Node(config, fs, CountingChance(), now_ms=7, wall_ms=1_700_000_000_000)
    checkpoint = fs.read("/data/bootstrap.checkpoint")
    times = {
        record.timestamp
        for batch in parse_batches(memoryview(checkpoint))
        for record in batch.iter_records()
    }
    assert times == {1_700_000_000_000}


def opened(
    fs: SimFileSystem, *directories: str, cluster_id: str | None = None, **more: str
) -> Node:
    chosen = [("log.dirs", Setting(",".join(directories), "test"))]
    chosen += [(name.replace("_", "."), Setting(value, "test")) for name, value in more.items()]
    config = load_config(None, {}, chosen)
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    chance = CountingChance()
    chance.drawn = 1_000_000 * sum(map(ord, directories[-1]))  # ids of its own
    return Node(config, fs, chance, cluster_id=cluster_id, now_ms=1, wall_ms=1)


def refused(fs: SimFileSystem, *directories: str, **more: Any) -> str:
    """Return why a node does not start; its directories are not locked afterwards."""
    with pytest.raises(StartError) as error:
        opened(fs, *directories, **more)
    for directory in directories:
        fs.lock(f"{directory}/.lock").release()
    return str(error.value)


def test_a_node_starts_on_its_own_directories_alone() -> None:
    """MetaPropertiesEnsemble.verify of 4.3.1: node and cluster are those of all directories."""
    fs = SimFileSystem()
    mine = opened(fs, "/a", "/b").cluster_id
    fs = fs.crashed(())
    assert refused(fs, "/a", "/b", node_id="7").startswith("log directory /a belongs to node ")
    words = f"log directory /a belongs to cluster {mine}, expected AAAAAAAAQACAAAAAAAAAAQ"
    assert refused(fs, "/a", "/b", cluster_id="AAAAAAAAQACAAAAAAAAAAQ") == words
    opened(fs, "/c")
    theirs = fs.read("/c/meta.properties")
    fs = fs.crashed(())
    assert refused(fs, "/a", "/c").startswith("log directory /c belongs to cluster ")
    assert bytes(theirs) == bytes(fs.read("/c/meta.properties"))
    fresh = refused(fs, "/a", "/new")
    assert fresh.startswith("log directory /new is not formatted: run `kraft-wire format -t ")
    assert not fs.exists("/new/meta.properties")
    assert opened(fs, "/a", "/b").cluster_id == mine


def test_directories_have_ids_of_their_own() -> None:
    """MetaPropertiesEnsemble.verify of 4.3.1: "Duplicate directory ID ... found"."""
    fs = SimFileSystem()
    opened(fs, "/a", "/b")
    fs = fs.crashed(())
    first = bytes(fs.read("/a/meta.properties"))
    replace_file(fs, "/b/meta.properties", first)
    assert refused(fs, "/a", "/b") == "log directories /a and /b have the same directory.id"
    lines = [each for each in first.splitlines(True) if not each.startswith(b"directory.id")]
    reserved = [*lines, b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"]
    replace_file(fs, "/b/meta.properties", b"".join(reserved))
    assert "reserved directory.id, AAAAAAAAAAAAAAAAAAAAAQ" in refused(fs, "/a", "/b")


def test_a_directory_of_an_older_release_gets_an_id() -> None:
    """KafkaRaftServer.initializeLogDirs of 4.3.1 draws one, and rewrites meta.properties."""
    fs = SimFileSystem()
    opened(fs, "/a", "/b")
    fs = fs.crashed(())
    lines = [
        each
        for each in bytes(fs.read("/b/meta.properties")).splitlines(True)
        if not each.startswith(b"directory.id")
    ]
    replace_file(fs, "/b/meta.properties", b"".join([*lines, b"further=1\n"]))
    opened(fs, "/a", "/b")
    fs = fs.crashed(())
    given = read_meta_properties(fs, "/b")
    assert given is not None
    assert given.directory_id is not None
    assert given.others == {"further": "1"}
    opened(fs, "/a", "/b")
    assert read_meta_properties(fs, "/b") == given


def test_a_metadata_log_outside_the_first_directory_stops_the_start() -> None:
    """KafkaRaftServer.initializeLogDirs of 4.3.1: else a new cluster begins, without any log."""
    fs = SimFileSystem()
    opened(fs, "/a", "/b")
    fs = fs.crashed(())
    told = refused(fs, "/b", "/a")
    assert told.startswith("Found unexpected metadata location in data directory `/a/__cluster_")
    assert told.endswith("(the configured metadata directory is /b).")
    assert not fs.exists("/b/__cluster_metadata-0")
    opened(fs, "/a", "/b")


@pytest.mark.parametrize(
    ("place", "elsewhere"), [("/m", ("/a", "/b")), ("/b", ("/a",)), ("/b/", ("/a",))]
)
def test_metadata_log_is_in_the_directory_that_is_named(
    place: str, elsewhere: Sequence[str]
) -> None:
    """`metadata.log.dir` of KIP-631; brokers register the directories of their logs alone."""
    fs = SimFileSystem()
    node = opened(fs, "/a", "/b", metadata_log_dir=place)
    place = place.rstrip("/")
    assert fs.exists(f"{place}/__cluster_metadata-0/quorum-state")
    assert not any(fs.exists(f"{path}/__cluster_metadata-0") for path in elsewhere)
    metas = {path: read_meta_properties(fs, path) for path in ("/a", "/b", place)}
    ids = {path: meta.directory_id for path, meta in metas.items() if meta is not None}
    assert node.raft.replica.quorum.config.key.directory_id == ids[place]
    assert set(node.raft.committed.image.brokers[1].log_dirs) == {ids["/a"], ids["/b"]}
    node.stop(2, 2)
    is_apart = place == "/m"
    for name in (".kafka_cleanshutdown", "replication-offset-checkpoint"):
        assert fs.exists(f"{place}/{name}") is not is_apart, name
    again = opened(fs.crashed(()), "/a", "/b", metadata_log_dir=place)
    assert again.cluster_id == node.cluster_id


def test_directory_of_the_metadata_log_is_checked_like_the_others() -> None:
    fs = SimFileSystem()
    opened(fs, "/a", metadata_log_dir="/m")
    fs = fs.crashed(())
    assert "/n is not formatted" in refused(fs, "/a", metadata_log_dir="/n")
    opened(fs, "/c")
    fs = fs.crashed(())
    assert "/c belongs to cluster" in refused(fs, "/a", metadata_log_dir="/c")
    told = refused(fs, "/a", "/m", metadata_log_dir="/a")
    assert told.startswith("Found unexpected metadata location in data directory `/m/__cluster_")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _: None, "is missing, and the metadata log is empty"),
        (lambda whole: whole[:-1], "is damaged: "),
        (lambda whole: whole.replace(b"metadata.version", b"metadata_version"), "checksum"),
        (lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]), "checksum"),
    ],
)
def test_a_cluster_does_not_begin_without_its_first_records(
    spoil: Callable[[bytes], bytes | None], words: str
) -> None:
    """A bootstrap.checkpoint has the levels that were chosen, and users."""
    made, fs = SimFileSystem(), SimFileSystem()
    opened(made, "/a")
    fs.make_directory("/a")
    replace_file(fs, "/a/meta.properties", made.read("/a/meta.properties"))
    spoiled = spoil(made.read("/a/bootstrap.checkpoint"))
    if spoiled is not None:
        replace_file(fs, "/a/bootstrap.checkpoint", spoiled)
    told = refused(fs, "/a")
    assert "/a/bootstrap.checkpoint" in told
    assert words in told


def test_a_directory_that_another_node_uses_is_not_opened() -> None:
    """LogManager.lockLogDirs of 4.3.1: "Failed to acquire lock on file .lock in ..."."""
    fs = SimFileSystem()
    opened(fs, "/a", "/b")
    with pytest.raises(StartError) as error:
        opened(fs, "/a", "/b")
    assert str(error.value) == "log directory /a is locked: another node is using it"


MEBIBYTE = 1 << 20
BALLAST = 4 * MEBIBYTE
NEEDED = BALLAST + MEBIBYTE
"""The ballast, and what is kept for metadata: docs/OPERATING.md."""


def start(fs: SimFileSystem, ballast_bytes: int = BALLAST) -> Node:
    chosen = [
        ("log.dirs", Setting("/data", "test")),
        ("storage.ballast.bytes", Setting(str(ballast_bytes), "test")),
    ]
    config = load_config(None, {}, chosen)
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    return Node(config, fs, CountingChance(), now_ms=1, wall_ms=1)


def test_a_directory_with_logs_is_in_use_without_its_lock_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The power may be lost before the name of the lock file is on the disk."""
    fs = SimFileSystem()
    start(fs)
    fs = fs.crashed([])
    assert not fs.exists("/data/.lock")
    assert fs.exists("/data/__cluster_metadata-0")
    monkeypatch.setattr(fs, "free_bytes", lambda _: 0)
    monkeypatch.setattr(fs, "total_bytes", lambda _: 10 * NEEDED)
    start(fs, BALLAST)


@pytest.mark.parametrize(
    ("is_new", "capacity_bytes", "free_bytes", "ballast_bytes", "starts"),
    [
        (True, NEEDED, NEEDED, BALLAST, True),
        (True, NEEDED - 1, NEEDED - 1, BALLAST, False),
        (True, 10 * NEEDED, NEEDED, BALLAST, True),
        (True, 10 * NEEDED, NEEDED - 1, BALLAST, False),
        (True, MEBIBYTE, MEBIBYTE, 0, True),
        (False, 10 * NEEDED, 0, BALLAST, True),
        (False, NEEDED - 1, 0, BALLAST, False),
        (True, 0, 0, BALLAST, True),
    ],
)
def test_a_new_directory_needs_free_room_and_a_used_one_a_disk_that_is_large_enough(
    monkeypatch: pytest.MonkeyPatch,
    is_new: bool,
    capacity_bytes: int,
    free_bytes: int,
    ballast_bytes: int,
    starts: bool,
) -> None:
    """A full disk must not keep a node from starting; a size of 0 is one that is not known."""
    fs = SimFileSystem()
    if not is_new:
        start(fs)
        fs = fs.crashed([each.number for each in fs.pending_atoms()])
        fs.open("/data/.lock", create=True).close()
    monkeypatch.setattr(fs, "free_bytes", lambda _: free_bytes)
    monkeypatch.setattr(fs, "total_bytes", lambda _: capacity_bytes)
    if starts:
        start(fs, ballast_bytes)
        return
    with pytest.raises(StartError, match="the disk is too small"):
        start(fs, ballast_bytes)
    assert fs.exists("/data") is not is_new, "nothing is made on it"
