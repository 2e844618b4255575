"""Metadata snapshots of whole nodes: taken by bytes and time, cleaned, fetched as bytes, loaded."""

from collections.abc import Sequence

import pytest

from kraft_wire.metadata.loader import MetadataLoader, SnapshotReplay
from kraft_wire.model import DiskFull
from kraft_wire.node.quorum.metadata_upkeep import MetadataUpkeep
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter, list_snapshots
from kraft_wire.wire.message import Message
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.quorum import NodeQuorum
from tests.node.test_disk_errors import Failing, created
from tests.node.test_three_controllers import committed, config_of, configs

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
DROPPED = {**OFTEN, "metadata.max.retention.bytes": "100"}


def fill(quorum: NodeQuorum, count: int = 30) -> None:
    for value in range(count):
        committed(quorum, value)
        quorum.advance(10)
    quorum.level()


def snapshots_of(quorum: NodeQuorum, node_id: int) -> int:
    return len(quorum.members[node_id].running.raft.quorum_log.snapshots.ids)


def test_every_node_takes_snapshots_by_bytes_and_restarts_from_them() -> None:
    quorum = NodeQuorum(settings=OFTEN)
    fill(quorum)
    assert all(snapshots_of(quorum, node_id) > 0 for node_id in quorum.voters)
    before = quorum.images()[0]
    for node_id in quorum.voters:
        quorum.kill(node_id)
    for node_id in quorum.voters:
        quorum.start(node_id)
    quorum.elect()
    assert configs(quorum) == [config_of(before)] * 3
    assert quorum.images()[0].topics_by_name == before.topics_by_name


def test_snapshots_by_time_need_something_new() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms="1000")
    assert created(door, "t") == 0
    directory = f"{DIRECTORY}/__cluster_metadata-0"
    door.advance(10_000)
    assert len(list_snapshots(fs, directory)) == 1
    assert created(door, "u") == 0
    door.advance(10_000)
    assert len(list_snapshots(fs, directory)) == 2


def test_full_disk_that_a_snapshot_meets_gives_its_reserve_back() -> None:
    """The metadata log must go on, and records are refused."""
    fs = Failing()
    door = NodeDoor(
        fs, metadata_log_max_snapshot_interval_ms="1000", storage_ballast_bytes="1000000"
    )
    assert created(door, "t") == 0
    space = door.node.raft.disk.directory.space
    assert not space.is_full
    fs.fails, fs.kind = ("write", ".checkpoint.part"), DiskFull
    refused: list[bool] = []
    door.node._quorum.upkeep._report = lambda name, **_: refused.append(space.is_full)
    door.advance(2_000)
    assert refused == [True]


def test_node_wants_to_be_woken_when_a_snapshot_is_due_by_time_and_not_before() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms="3000")
    directory = f"{DIRECTORY}/__cluster_metadata-0"
    assert created(door, "t") == 0
    door.settle()
    begun = door.now_ms
    while not list_snapshots(fs, directory):
        due = door.node.deadline_ms()
        assert due is not None
        assert door.now_ms < due <= begun + 3_000
        door.advance(due - door.now_ms)
        door.settle()
    assert door.now_ms == begun + 3_000


def test_a_lone_node_restarts_from_a_snapshot_and_the_log_behind_it() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_record_bytes_between_snapshots="1000")
    for number in range(20):
        assert created(door, f"t{number}") == 0
        door.settle()
    before = door.node.raft.committed.image
    restarted = NodeDoor(fs.crashed(()), door.now_ms)
    assert restarted.node.raft.committed.image.topics_by_name.keys() == before.topics_by_name.keys()
    assert len(restarted.node.raft.quorum_log.snapshots.ids) > 1


def test_old_snapshots_go_with_the_log_below_them_and_a_minute_later_from_the_disk() -> None:
    quorum = NodeQuorum(settings=DROPPED)
    fill(quorum)
    quorum.advance(130_000)
    quorum.level()
    for node_id in quorum.voters:
        raft = quorum.members[node_id].running.raft
        assert len(raft.quorum_log.snapshots.ids) <= 2
        assert raft.log.log_start_offset > 0
        names = quorum.members[node_id].fs.names(raft.log.directory)
        assert len([name for name in names if "checkpoint" in name]) < 10


def test_old_snapshots_go_although_the_disk_had_no_room_to_note_it() -> None:
    """The epochs begin later with the segments that go: their file is written anew."""
    quorum = NodeQuorum(
        settings={**DROPPED, "internal.metadata.log.segment.bytes": "1000"}, disk=Failing
    )
    fill(quorum)
    for member in quorum.members.values():
        assert isinstance(member.fs, Failing)
        member.fs.fails, member.fs.kind = ("write", "leader-epoch-checkpoint"), DiskFull
    quorum.advance(61_000)
    for member in quorum.members.values():
        assert isinstance(member.fs, Failing)
        assert member.running.raft.log.segments[0].base_offset > 0
        member.fs.fails = None
    committed(quorum, 77)
    quorum.advance(61_000)
    assert [snapshots_of(quorum, node_id) for node_id in quorum.voters] == [1] * 3
    for node_id in quorum.voters:
        quorum.kill(node_id)
        quorum.start(node_id)
    assert configs(quorum) == ["77"] * 3


@pytest.mark.parametrize("chunk", ["1048576", "100"])
def test_a_voter_whose_disk_is_lost_catches_up_with_a_snapshot(chunk: str) -> None:
    quorum = NodeQuorum(settings={**DROPPED, "controller.quorum.fetch.snapshot.max.bytes": chunk})
    fill(quorum)
    quorum.advance(61_000)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.wipe(victim)
    committed(quorum, 77)
    quorum.start(victim)
    assert configs(quorum) == ["77"] * 3
    raft = quorum.members[victim].running.raft
    assert raft.log.log_start_offset > 0
    images = quorum.images()
    assert all(image.configs == images[0].configs for image in images)
    quorum.kill(victim)
    quorum.start(victim)
    assert configs(quorum) == ["77"] * 3


def test_a_snapshot_of_much_is_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    batches_of_ticks: list[int] = []
    went_on, append = MetadataUpkeep._go_on, SnapshotWriter.append

    def counted(upkeep: MetadataUpkeep, now_ms: int, wall_ms: int) -> None:
        batches_of_ticks.append(0)
        went_on(upkeep, now_ms, wall_ms)

    def appended(writer: SnapshotWriter, data: bytes) -> None:
        batches_of_ticks[-1] += 1
        append(writer, data)

    monkeypatch.setattr(MetadataUpkeep, "_go_on", counted)
    monkeypatch.setattr(SnapshotWriter, "append", appended)
    door = NodeDoor(SimFileSystem(), metadata_log_max_record_bytes_between_snapshots="100000")
    for number in range(3):
        assert created(door, f"t{number}", 900) == 0
        door.settle()
    assert len(batches_of_ticks) > 2
    assert max(batches_of_ticks) <= 2
    assert len(door.node.raft.quorum_log.snapshots.ids) >= 1


def test_a_fetched_snapshot_is_replayed_chunk_by_chunk_and_not_when_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chunk = {"controller.quorum.fetch.snapshot.max.bytes": "150"}
    quorum = NodeQuorum(settings={**DROPPED, **chunk})
    fill(quorum)
    quorum.advance(61_000)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.wipe(victim)
    replayed: list[int] = []
    take = SnapshotReplay.take

    def counted(replay: SnapshotReplay, records: Sequence[Message]) -> None:
        replayed.append(len(records))
        take(replay, records)

    monkeypatch.setattr(SnapshotReplay, "take", counted)
    monkeypatch.setattr(MetadataLoader, "replay_snapshot", None)
    quorum.start(victim)
    assert configs(quorum) == ["29"] * 3
    assert len(replayed) > 2
    images = quorum.images()
    assert all(image.configs == images[0].configs for image in images)
