"""KIP-630 "Kafka Raft Snapshot": what the core alone can show.

Ids are those of docs/KIPS.md; files, bytes and settings are in `test_kip_630_files`. Where shipped
Kafka differs, the test asserts what is shipped.
"""

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId
from kraft_wire.raft.divergence import SnapshotRefusal, snapshot_refusal
from kraft_wire.raft.effects import (
    AppendSnapshotChunk,
    HighWatermarkAdvanced,
    InstallSnapshot,
    ReplyWithSnapshotSlice,
    SendRequest,
)
from kraft_wire.raft.events import ResponseReceived, SnapshotRefused, SnapshotTaken
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Follower
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest, SnapshotId
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from tests.raft.cluster import Cluster, Setup
from tests.raft.memory import Snapshot
from tests.raft.rpc.test_requests import kept_snapshot, snapshot_request
from tests.raft.rpc.test_responses import answered, chunk, fetch_response, fetching, transferring
from tests.raft.small import Small, fetch_request


def at(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def leader_with_snapshot(snapshot: OffsetAndEpoch, *, trimmed: bool = True) -> Small:
    """The leader of epoch 3 over epoch 1 to 5 and epoch 2 to 8."""
    small = Small((1, 5), (2, 3)).leader()
    kept_snapshot(small, snapshot)
    if trimmed:
        small.disk.log.forget_below(snapshot)
    return small


# ---- what may be a snapshot ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "refusal"),
    [
        (at(5, 1), None),
        (at(8, 2), None),
        (at(9, 2), SnapshotRefusal.BEYOND_HIGH_WATERMARK),
        (at(4, 1), SnapshotRefusal.INSIDE_BATCH),
        (at(5, 2), SnapshotRefusal.UNKNOWN_TO_LOG),
        (at(8, 1), SnapshotRefusal.UNKNOWN_TO_LOG),
    ],
)
def test_snapshot_ends_at_a_committed_batch_border(
    snapshot: OffsetAndEpoch, refusal: SnapshotRefusal | None
) -> None:
    """630-GEN-04, 630-WHEN-08: the id is (end offset, epoch of the record before it)."""
    small = Small((1, 5), (2, 3))
    log, kept = small.disk.log, small.disk.snapshots
    assert snapshot_refusal(snapshot, Offset(8), log, kept) is refusal
    kept.kept[at(5, 1)] = Snapshot(at(5, 1), 0, (), b"x")
    assert snapshot_refusal(at(5, 1), Offset(8), log, kept) is SnapshotRefusal.EXISTS


# ---- Fetch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "epoch"), [(3, 1), (0, 0), (5, 0), (4, 1)])
def test_fetch_from_below_the_start_is_sent_to_the_newest_snapshot(offset: int, epoch: int) -> None:
    """630-CATCH-01, 630-FETCH-02, 630-FETCH-04: also offset 0 and other epochs at the start."""
    small = leader_with_snapshot(at(5, 1))
    answer = small.reply(fetch_request(3, offset, epoch)).responses[0].partitions[0]
    assert (answer.error_code, answer.records) == (0, b"")
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == (5, 1)


def test_fetch_of_what_the_log_holds_needs_no_snapshot() -> None:
    """630-FETCH-01."""
    small = leader_with_snapshot(at(5, 1))
    answer = small.reply(fetch_request(3, 8, 2)).responses[0].partitions[0]
    assert answer.snapshot_id is None


def test_follower_turns_to_the_snapshot_it_is_told() -> None:
    """630-CATCH-02, 630-FETCH-05, 630-FETCH-06: fetching the log pauses."""
    small = fetching()
    answered(small, fetch_response(snapshot_id=SnapshotId(end_offset=20, epoch=2)))
    assert not small.sent(FetchRequest)
    asked = small.sent(FetchSnapshotRequest)[0].request.topics[0].partitions[0]  # type: ignore[attr-defined]  # its request
    assert (asked.snapshot_id.end_offset, asked.snapshot_id.epoch, asked.position) == (20, 2, 0)


# ---- FetchSnapshot, leader -------------------------------------------------------------------


def test_leader_answers_a_slice_with_the_size() -> None:
    """630-FS-08, 630-FS-09, 630-FS-10, 630-FS-11."""
    small = leader_with_snapshot(at(5, 1))
    request = snapshot_request(3, (5, 1), position=4)
    request.max_bytes = 2
    slices = [e for e in small.ask(request) if isinstance(e, ReplyWithSnapshotSlice)]
    answer = slices[0].response.topics[0].partitions[0]
    assert (slices[0].position, slices[0].bytes_max) == (4, 2)
    assert (answer.size, answer.position) == (10, 4)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (snapshot_request(3, (6, 1)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (snapshot_request(3, (0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (snapshot_request(3, (5, 1), -1), ErrorCode.POSITION_OUT_OF_RANGE),
        (snapshot_request(3, (5, 1), 10), ErrorCode.POSITION_OUT_OF_RANGE),
        (snapshot_request(2, (5, 1)), ErrorCode.FENCED_LEADER_EPOCH),
        (snapshot_request(-1, (5, 1)), ErrorCode.FENCED_LEADER_EPOCH),
        (snapshot_request(4, (5, 1)), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_leader_refuses_what_it_cannot_give(
    request_: FetchSnapshotRequest, code: ErrorCode
) -> None:
    """630-FS-03, 630-FS-14, 630-FS-15, 630-FS-16, 630-FS-17."""
    small = leader_with_snapshot(at(5, 1))
    assert small.reply(request_).topics[0].partitions[0].error_code == code


def test_follower_refuses_and_names_the_leader() -> None:
    """630-FS-16, 630-FS-17."""
    small = Small((1, 5)).follower(3, 2)
    answer = small.reply(snapshot_request(3)).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 2
    other = snapshot_request(3)
    other.cluster_id = "other"
    assert small.reply(other).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


# ---- FetchSnapshot, follower -----------------------------------------------------------------


def test_chunks_follow_each_other_until_all_is_there() -> None:
    """630-CATCH-03, 630-CATCH-04, 630-FS-07, 630-FSR-01, 630-FSR-02, 630-FSR-03."""
    small = transferring()
    for position, data in ((0, b"abc"), (3, b"defg"), (7, b"hij")):
        sent = small.sent(FetchSnapshotRequest)[-1]
        assert sent.request.topics[0].partitions[0].position == position  # type: ignore[attr-defined]  # its request
        small.answer(sent, chunk(position, data))
        written = [e for e in small.effects if isinstance(e, AppendSnapshotChunk)]
        assert [(e.position, e.data) for e in written] == [(position, data)]
    assert [e.snapshot_id for e in small.effects if isinstance(e, InstallSnapshot)] == [at(20, 2)]


def test_snapshot_that_is_gone_leads_back_to_fetch() -> None:
    """630-FSR-08: 98 drops the partial file, 99 keeps it."""
    for code, kept in ((98, False), (99, True)):
        small = transferring()
        small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"", error_code=code))
        assert isinstance(small.role, Follower)
        assert (small.role.transfer is not None) is kept


# ---- a whole quorum --------------------------------------------------------------------------


def test_late_node_goes_on_from_the_end_of_the_snapshot() -> None:
    """630-GEN-07, 630-CATCH-07, 630-CATCH-08, 630-CATCH-09, 630-FETCH-07, 630-ELECT-01."""
    cluster = Cluster(3, Setup())
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    leader = cluster.leader()
    assert leader is not None
    late = next(host for host in cluster.hosts.values() if host is not leader)
    late.crash()
    cluster.append(leader.id, 7)
    cluster.run(1_500)
    taken = leader.take_snapshot()
    leader.trim()
    late.start()
    assert cluster.run_until(cluster.is_settled)
    assert late.disk.log.start == taken
    assert late.disk.log.log_end_offset == leader.disk.log.log_end_offset
    assert late.disk.log.last_epoch == leader.disk.log.last_epoch
    assert late.state == leader.state


def test_power_lost_within_an_installation_leaves_the_snapshot_in_force() -> None:
    """630-ELECT-02, 630-ELECT-03: asked for its vote, it counts the snapshot, not its old log."""
    cluster = Cluster(3, Setup())
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    leader = cluster.leader()
    assert leader is not None
    late = next(host for host in cluster.hosts.values() if host is not leader)
    late.crash()
    cluster.append(leader.id, 7)
    cluster.run(1_500)
    taken = leader.take_snapshot()
    leader.trim()
    late.start()
    assert taken is not None
    late.dies_within_installation = True
    assert cluster.run_until(lambda: late.replica is None)
    assert late.disk.log.log_end_offset < taken.offset
    assert late.disk.snapshots.latest_id == taken
    late.start()
    assert (late.disk.log.log_end_offset, late.disk.log.last_epoch) == (taken.offset, taken.epoch)


# ---- limits, and who is told -----------------------------------------------------------------


def test_leaders_log_start_moves_nobody_elses() -> None:
    """630-START-05, 630-START-06: each replica cleans by itself."""
    small = fetching()
    effects = small.answer(
        small.sent(FetchRequest)[-1], fetch_response(log_start_offset=6, high_watermark=8)
    )
    assert {type(effect) for effect in effects} <= {HighWatermarkAdvanced, SendRequest}
    assert small.disk.log.log_start_offset == 0


def test_state_machine_tells_of_its_snapshot_and_older_voter_sets_are_forgotten() -> None:
    """630-SM-02: with end offset and epoch; what is in force stays in force."""
    small = Small((1, 5), (2, 3), is_dynamic=True)
    history = small.quorum.voters
    members = history.latest
    history.appended_voters(Offset(6), members.with_updated(members.nodes[ReplicaId(2)]))
    kept_snapshot(small, at(8, 2))
    small.step(SnapshotTaken(at(8, 2)))
    assert history.latest == members
    assert history.latest_offset == 6
    assert not history.is_bootstrap


def test_chunks_are_of_one_partition() -> None:
    """630-FS-12, 630-FS-13: two are refused, so nothing is divided between them."""
    small = leader_with_snapshot(at(5, 1))
    request = snapshot_request(3, (5, 1))
    request.topics[0].partitions *= 2
    assert small.reply(request).error_code == ErrorCode.INVALID_REQUEST
    request.topics = [snapshot_request(3, (5, 1)).topics[0]] * 2
    assert small.reply(request).error_code == ErrorCode.INVALID_REQUEST


def test_snapshot_that_is_refused_is_fetched_anew() -> None:
    """630-FSR-04, 630-FSR-08: from its first byte, after a rest."""
    small = transferring()
    sent = small.sent(FetchSnapshotRequest)[-1]
    effects = small.replica.step(
        ResponseReceived(sent.request_id, chunk(0, b"0123456789")), small.now_ms
    )
    assert [e.snapshot_id for e in effects if isinstance(e, InstallSnapshot)] == [at(20, 2)]
    assert not small.step(SnapshotRefused(at(20, 2)))
    assert small.quorum.ignored[Ignored.SNAPSHOT_REFUSED] == 1
    small.pass_ms(20)
    answered(small, fetch_response(snapshot_id=SnapshotId(end_offset=20, epoch=2)))
    again = small.sent(FetchSnapshotRequest)[-1].request.topics[0].partitions[0]  # type: ignore[attr-defined]  # its request
    assert again.position == 0


def test_snapshot_that_cannot_be_written_ends_the_transfer() -> None:
    """630-FSR-08: the disk refused a chunk; nothing of it is left to go on from."""
    small = transferring()
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"abc"))
    small.step(SnapshotRefused(at(20, 2)))
    assert isinstance(small.role, Follower)
    assert small.role.transfer is None
