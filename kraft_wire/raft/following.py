"""A follower's handling of fetch answers: truncate, append, fetch a snapshot, install it.

KIP-595 (divergence, high watermark), KIP-630 (snapshots), KIP-853 (control records apply from their
append on). Answers that contradict the high watermark are refused: they would remove committed
records.
"""

from collections.abc import Sequence

from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.divergence import truncation_point
from kraft_wire.raft.effects import AppendFetched, FlushLog, SendRequest, TruncateLog
from kraft_wire.raft.events import ControlRecord
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import set_aside
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, SnapshotTransfer
from kraft_wire.raft.voters import VoterSet, VoterSetHistory
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message, Part

__all__ = [
    "append_fetched",
    "apply_control_records",
    "install_snapshot",
    "raise_to_leaders",
    "refuse_snapshot",
    "renew_fetch_timeout",
    "take_control_record",
    "truncate",
    "turn_to_snapshot",
]


def renew_fetch_timeout(quorum: Quorum, role: Follower, now_ms: int) -> None:
    """Restart a follower's fetch timeout, because its leader has answered.

    An answer that the leader sent before EndQuorumEpoch may arrive after it. It renews nothing:
    otherwise the wait that EndQuorumEpoch has set would become a whole fetch timeout.
    """
    assert quorum.role is role, quorum.role
    if not quorum.has_leader_resigned:
        role.fetch_deadline_ms = now_ms + quorum.config.timing.fetch_timeout_ms


def truncate(quorum: Quorum, sent: SendRequest, epoch: int, end_offset: int, now_ms: int) -> None:
    """Truncate the log to where it may agree with the leader's; this may take several rounds."""
    assert epoch >= 0, epoch
    if end_offset < 0:
        set_aside(quorum, sent, Ignored.BAD_SHAPE, now_ms)
        return
    cut = truncation_point(OffsetAndEpoch(Offset(end_offset), LeaderEpoch(epoch)), quorum.log)
    if cut < _floor(quorum):
        set_aside(quorum, sent, Ignored.TRUNCATION_BELOW_HIGH_WATERMARK, now_ms)
        return
    if cut == quorum.log.log_end_offset:
        set_aside(quorum, sent, Ignored.NOTHING_TO_TRUNCATE, now_ms)
        return
    assert _floor(quorum) <= cut < quorum.log.log_end_offset, cut
    quorum.effects.append(TruncateLog(cut))
    quorum.log_is_changing = True
    quorum.voters.truncated_to(cut)


def turn_to_snapshot(
    quorum: Quorum, sent: SendRequest, role: Follower, epoch: int, end_offset: int, now_ms: int
) -> None:
    """Pause fetching the log, and fetch the snapshot that the leader names instead.

    One at offset 0 contains nothing; Kafka's leaders name none.
    """
    if end_offset < 1 or epoch < 0:
        set_aside(quorum, sent, Ignored.MALFORMED_SNAPSHOT_ID, now_ms)
        return
    wanted = OffsetAndEpoch(Offset(end_offset), LeaderEpoch(epoch))
    if wanted.offset < _floor(quorum):
        set_aside(quorum, sent, Ignored.SNAPSHOT_BELOW_HIGH_WATERMARK, now_ms)
        return
    if wanted == OffsetAndEpoch(quorum.log.log_end_offset, quorum.log.last_epoch):
        set_aside(quorum, sent, Ignored.SNAPSHOT_NOT_NEEDED, now_ms)
        return
    assert quorum.role is role, quorum.role
    if role.transfer is None or role.transfer.snapshot_id != wanted:
        left, quorum.left_transfer = quorum.left_transfer, None
        if left is None or not left.is_of(wanted, quorum.leader_id, quorum.epoch):
            left = SnapshotTransfer(wanted, quorum.leader_id, quorum.epoch)
        role.transfer = left


def _floor(quorum: Quorum) -> Offset:
    """Return the lowest offset for a truncation: the high watermark, or the log's start."""
    floor = max(quorum.high_watermark or Offset(0), quorum.log.log_start_offset)
    assert floor >= 0, floor
    return floor


def append_fetched(
    quorum: Quorum, role: Follower, records: Part | None, high_watermark: int
) -> None:
    """Append fetched records. The logs agree, and the watermark holds, up to the fetch offset."""
    known = role.leader_high_watermark
    assert quorum.role is role, quorum.role
    if known is not None and 0 <= high_watermark < known:
        quorum.ignored.count(Ignored.HIGH_WATERMARK_FELL)
    elif high_watermark >= 0:
        role.leader_high_watermark = Offset(high_watermark)
    role.transfer = None  # the log continues: no snapshot is needed
    raise_to_leaders(quorum, role)
    if records is None or _size_bytes(records) == 0:
        return
    quorum.effects.append(AppendFetched(quorum.log.log_end_offset, quorum.epoch, records))
    quorum.fetched_from = quorum.log.log_end_offset
    quorum.log_is_changing = True
    if quorum.config.is_controller:
        quorum.effects.append(FlushLog())


def _size_bytes(records: Part) -> int:
    size = records.size_bytes if isinstance(records, FileSlice) else len(records)
    assert size >= 0, size
    return size


def raise_to_leaders(quorum: Quorum, role: Follower) -> None:
    """Raise the high watermark to the leader's, at most to the end of this log."""
    assert not quorum.log_is_changing, "the log's end is not what LogView says"
    if role.leader_high_watermark is not None:
        end = quorum.log.log_end_offset
        quorum.raise_high_watermark(min(role.leader_high_watermark, end))


def apply_control_records(quorum: Quorum, records: Sequence[ControlRecord], now_ms: int) -> None:
    """Apply appended voter sets and levels, committed or not."""
    assert all(record.offset >= 0 for record in records), records
    count = quorum.log.log_end_offset - quorum.fetched_from
    quorum.metrics.fetched_records.note(max(0, count), now_ms)
    for record in records:
        if not take_control_record(quorum.voters, record.offset, record.message):
            quorum.ignored.count(Ignored.BROKEN_VOTER_RECORD)
    quorum.apply_latest_voters(now_ms)


def take_control_record(voters: VoterSetHistory, offset: Offset, message: Message) -> bool:
    """Add one control record to the history; False if it cannot be applied."""
    assert offset >= -1, offset
    if isinstance(message, VotersRecord):
        ids = [voter.voter_id for voter in message.voters]
        if not ids or len(set(ids)) != len(ids) or min(ids) < 0:
            return False
        voters.appended_voters(offset, VoterSet.from_record(message))
    elif isinstance(message, KRaftVersionRecord):
        if message.kraft_version < voters.kraft_version:
            return False
        voters.appended_version(offset, message.kraft_version)
    return True


def install_snapshot(
    quorum: Quorum, snapshot_id: OffsetAndEpoch, messages: Sequence[Message], now_ms: int
) -> None:
    """Continue after an installed snapshot: it is the whole log now, and it is committed."""
    assert quorum.log.log_end_offset == snapshot_id.offset, (quorum.log, snapshot_id)
    quorum.voters.loaded_from_snapshot(snapshot_id.offset, None, 0)
    before = Offset(snapshot_id.offset - 1)
    for message in messages:
        if not take_control_record(quorum.voters, before, message):
            quorum.ignored.count(Ignored.BROKEN_VOTER_RECORD)
    quorum.raise_high_watermark(snapshot_id.offset)
    quorum.apply_latest_voters(now_ms)


def refuse_snapshot(quorum: Quorum, now_ms: int) -> None:
    """Fetch from the leader again after a backoff: it names a snapshot, perhaps a newer one."""
    quorum.ignored.count(Ignored.SNAPSHOT_REFUSED)
    quorum.left_transfer = None
    role = quorum.role
    if isinstance(role, Follower):
        role.transfer = None
        quorum.peers.rest(quorum.leader_id, now_ms)
    assert not quorum.log_is_changing, "nothing was installed"
