"""Full, failing and lying disks of one voter, and leaders that send garbage: the others go on."""

import pytest

from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.model import DiskFull, FileSlice, FsyncFailed, Offset, OffsetAndEpoch
from kraft_wire.node.quorum.quorum_log import QuorumLog
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION
from kraft_wire.storage.snapshots.store import MetadataSnapshots
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Part
from tests.node.quorum import NodeQuorum
from tests.node.test_disk_errors import Failing, fill
from tests.node.test_three_controllers import (
    committed,
    config_of,
    configs,
    error_of,
    lines_of,
    set_config,
    unfenced_broker,
)

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "100",
}


def follower_of(quorum: NodeQuorum) -> int:
    leader = quorum.elect()
    return next(node_id for node_id in quorum.voters if node_id != leader)


def lines(quorum: NodeQuorum, node_id: int) -> list[str]:
    return [name for name, _ in quorum.members[node_id].lines]


def test_a_follower_on_a_full_disk_holds_nobody_up_and_catches_up_when_there_is_room() -> None:
    quorum = NodeQuorum()
    victim = follower_of(quorum)
    quorum.level()
    fs = quorum.members[victim].fs
    fill(fs, 10)
    for value in range(5):
        committed(quorum, value)
    quorum.advance(3_000)
    behind = quorum.members[victim].running.raft.committed.next_offset
    assert behind < max(quorum.ends())
    assert 1 <= lines(quorum, victim).count("metadata_append_refused") <= 5
    fs.capacity_bytes = None
    assert configs(quorum) == ["4"] * 3


def test_a_voter_without_room_for_a_new_epoch_wins_no_election_by_it() -> None:
    """It would lead without what the others committed, and have them cut it."""
    quorum = NodeQuorum(disk=Failing)
    former = quorum.elect()
    quorum.level()
    successor, victim = (node_id for node_id in quorum.voters if node_id != former)
    quorum.cut = {victim}
    for value in range(5):
        committed(quorum, value)
    quorum.until(lambda: quorum.ends().count(max(quorum.ends())) == 2)
    fs = quorum.members[victim].fs
    assert isinstance(fs, Failing)
    fs.fails, fs.kind = ("write", ".log"), DiskFull
    quorum.cut = {former}
    quorum.until(lambda: "metadata_append_refused" in lines(quorum, victim))
    quorum.cut = {successor}
    fs.fails = None
    quorum.advance(10_000)
    assert quorum.elect() == former
    quorum.cut = set()
    assert configs(quorum) == ["4"] * 3


def test_a_leader_on_a_full_disk_refuses_changes_and_goes_on_when_there_is_room() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    quorum.level()
    quorum.advance(100)
    fs = quorum.members[leader].fs
    fill(fs, 10)
    answer = set_config(quorum, leader, 1)
    assert error_of(answer) == ErrorCode.KAFKA_STORAGE_ERROR
    assert config_of(quorum.members[leader].running.controller.image) is None
    fs.capacity_bytes = None
    committed(quorum, 2)
    assert configs(quorum) == ["2"] * 3


def test_a_metadata_log_whose_end_was_cut_is_logged_at_the_start() -> None:
    """A kill left the head of a batch; the logs of the others are whole."""
    quorum = NodeQuorum()
    committed(quorum, 1)
    quorum.level()
    victim = follower_of(quorum)
    log = quorum.members[victim].running.raft.log
    end, path = log.log_end_offset, log.active_segment.path
    quorum.kill(victim)
    file = quorum.members[victim].fs.open(path)
    file.pwrite(end.to_bytes(8, "big") + b"\0" * 9, file.size_bytes())
    quorum.start(victim)
    fields = {"partition": METADATA_PARTITION, "log_end_offset": end, "bytes": 17}
    assert lines_of(quorum, "torn_tail_cut") == [(victim, fields)]


def test_a_fencing_that_waits_for_room_is_one_line() -> None:
    quorum = NodeQuorum(settings={"broker.session.timeout.ms": "1000"})
    leader = quorum.elect()
    unfenced_broker(quorum, leader)
    fs = quorum.members[leader].fs
    fill(fs, 10)
    quorum.advance(5_000)
    assert quorum.elect() == leader
    assert lines_of(quorum, "broker_session_expired") == []
    fs.capacity_bytes = None
    quorum.advance(2_000)
    assert [node_id for node_id, _ in lines_of(quorum, "broker_session_expired")] == [leader]
    assert quorum.members[leader].running.controller.image.brokers[9].fenced


def without_a_disk(settings: dict[str, str]) -> tuple[NodeQuorum, int]:
    """A quorum whose log begins with a snapshot, and a voter that has lost its disk."""
    quorum = NodeQuorum(settings=settings)
    for value in range(20):
        committed(quorum, value)
        quorum.advance(10)
    quorum.advance(61_000)
    victim = follower_of(quorum)
    quorum.wipe(victim)
    return quorum, victim


def test_a_snapshot_for_which_there_is_no_room_is_fetched_once_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quorum, victim = without_a_disk({**OFTEN, "controller.quorum.fetch.snapshot.max.bytes": "200"})
    full = iter([True] * 30)
    whole = MetadataSnapshots.append_chunk

    def refused(
        snapshots: MetadataSnapshots, snapshot_id: OffsetAndEpoch, position: int, data: Part
    ) -> None:
        if position > 0 and next(full, False):
            snapshots.abandon_partial()
            raise DiskFull("write", "snapshot", "no space left on device")
        whole(snapshots, snapshot_id, position, data)

    monkeypatch.setattr(MetadataSnapshots, "append_chunk", refused)
    quorum.start(victim)
    quorum.advance(3_000)
    assert 1 <= lines(quorum, victim).count("metadata_snapshot_refused") <= 4
    assert configs(quorum) == ["19"] * 3


@pytest.mark.parametrize("byte", [5, 100, 300])
def test_a_snapshot_that_comes_damaged_is_refused_and_fetched_again(
    monkeypatch: pytest.MonkeyPatch, byte: int
) -> None:
    quorum, victim = without_a_disk(OFTEN)
    damages = iter([True, True])
    whole = MetadataSnapshots.append_chunk

    def damaged(
        snapshots: MetadataSnapshots, snapshot_id: OffsetAndEpoch, position: int, data: Part
    ) -> None:
        assert not isinstance(data, FileSlice), "it comes from the network"
        spoilt = bytearray(data)
        if next(damages, False):
            spoilt[byte] ^= 1
        whole(snapshots, snapshot_id, position, spoilt)

    monkeypatch.setattr(MetadataSnapshots, "append_chunk", damaged)
    quorum.start(victim)
    quorum.advance(2_000)
    assert configs(quorum) == ["19"] * 3
    assert "metadata_snapshot_refused" in lines(quorum, victim)


def test_batches_that_come_damaged_are_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = NodeQuorum()
    committed(quorum, 1)
    quorum.level()
    whole = QuorumLog.whole_batches
    damages = iter([True] * 3)

    def damaged(log: QuorumLog, *arguments: int) -> bytes:
        data = bytearray(whole(log, *arguments))  # type: ignore[arg-type]  # as the original
        if len(data) > 70 and next(damages, False):
            data[70] ^= 1
        return bytes(data)

    monkeypatch.setattr(QuorumLog, "whole_batches", damaged)
    committed(quorum, 2)
    assert configs(quorum) == ["2"] * 3
    refused = [each for each in quorum.voters if "metadata_batch_refused" in lines(quorum, each)]
    assert refused, "somebody was sent garbage"


def test_a_failed_fsync_of_the_vote_leaves_the_node_to_its_host() -> None:
    quorum = NodeQuorum(disk=Failing)
    first = quorum.elect()
    for node_id in quorum.voters:
        quorum.members[node_id].fs.fails = ("fsync", "quorum-state")  # type: ignore[attr-defined]  # a Failing disk
    quorum.kill(first)
    with pytest.raises(FsyncFailed):
        quorum.advance(10_000)


def test_committed_metadata_that_cannot_be_replayed_stop_the_process_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quorum = NodeQuorum()
    victim = follower_of(quorum)
    committed_metadata = quorum.members[victim].running.raft.committed

    def contradicts(high_watermark: Offset) -> bool:
        raise MetadataFault("topic t exists already")

    monkeypatch.setattr(committed_metadata, "advance", contradicts)
    with pytest.raises(AssertionError, match="topic t exists already"):  # the pump's own check
        quorum.advance(1_000)


def test_a_snapshot_of_which_half_has_come_goes_on_where_a_long_silence_broke_it_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {
        **OFTEN,
        "metadata.log.max.record.bytes.between.snapshots": "8000",  # none comes meanwhile
        "controller.quorum.fetch.snapshot.max.bytes": "100",
    }
    quorum, victim = without_a_disk(settings)
    leader, positions = quorum.elect(), []
    whole = MetadataSnapshots.append_chunk

    def cut_off(
        snapshots: MetadataSnapshots, snapshot_id: OffsetAndEpoch, position: int, data: Part
    ) -> None:
        whole(snapshots, snapshot_id, position, data)
        positions.append(position)
        if len(positions) == 4:
            quorum.cut = {victim}

    monkeypatch.setattr(MetadataSnapshots, "append_chunk", cut_off)
    quorum.start(victim)
    quorum.advance(4_500)
    assert positions == [0, 100, 200, 300]
    quorum.cut = set()
    assert configs(quorum) == ["19"] * 3
    assert quorum.elect() == leader
    assert positions == [100 * number for number in range(len(positions))]
