"""When metadata snapshots are due: bytes and time count from the newest snapshot, every time.

`metadata.log.max.record.bytes.between.snapshots` and `metadata.log.max.snapshot.interval.ms`
(KIP-630).
"""

from itertools import pairwise

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.model import Offset
from kraft_wire.node.quorum.committed import CommittedMetadata
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.message import Message
from tests.broker.groups.node_door import NodeDoor
from tests.node.quorum import NodeQuorum
from tests.node.test_metadata_transactions import LOG, append
from tests.node.test_three_controllers import committed

INTERVAL_MS = 1_000


def setting(value: int) -> list[Message]:
    """Return a change that takes as many bytes of the log whatever the value of six digits."""
    return [
        ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="",
            name="log.retention.ms",
            value=str(value),
        )
    ]


def ends(fs: SimFileSystem) -> list[int]:
    return [each.offset for each in list_snapshots(fs, LOG)]


def test_every_interval_with_news_has_one_snapshot_and_begins_with_the_last_one() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms=str(INTERVAL_MS))
    taken: list[int] = []
    for value in range(100_000, 100_050):
        count = len(ends(fs))
        append(door, setting(value))
        door.advance(100)
        taken += [door.now_ms] * (len(ends(fs)) - count)
    assert [after - before for before, after in pairwise(taken)] == [1_000] * 4


def test_news_after_a_long_silence_is_due_at_once_and_the_next_one_an_interval_later() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms=str(INTERVAL_MS))
    door.advance(3_500)
    for value in range(100_000, 100_003):
        door.advance(3_700)
        count = len(ends(fs))
        append(door, setting(value))
        door.settle()
        assert len(ends(fs)) == count + 1
        append(door, setting(value + 10))
        door.advance(INTERVAL_MS - 1)
        assert len(ends(fs)) == count + 1
        door.advance(1)
        assert len(ends(fs)) == count + 2


def test_interval_of_zero_takes_no_snapshot_by_time() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms="0")
    append(door, setting(100_000))
    door.advance(100_000)
    assert ends(fs) == []


def test_bytes_count_from_the_end_of_the_last_snapshot_up_to_exactly_the_limit() -> None:
    door = NodeDoor(SimFileSystem())
    before = door.node.raft.log.size_bytes
    append(door, setting(100_000))
    limit = 3 * (door.node.raft.log.size_bytes - before)
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_record_bytes_between_snapshots=str(limit))
    (first,) = ends(fs)
    assert bytes_behind(door, 0) > limit, "what a new cluster begins with"
    for value in range(100_000, 100_009):
        append(door, setting(value))
    assert ends(fs) == [first, first + 3, first + 6, first + 9]


def test_new_process_counts_the_bytes_that_the_newest_snapshot_does_not_contain() -> None:
    fs, limit = SimFileSystem(), 2_000
    for value in range(100_000, 100_030):
        door = NodeDoor(
            fs, value * 1_000, metadata_log_max_record_bytes_between_snapshots=str(limit)
        )
        append(door, setting(value))
        assert bytes_behind(door, [0, *ends(fs)][-1]) < limit
        fs = fs.crashed(())
    taken = ends(fs)
    between = [
        bytes_behind(door, start) - bytes_behind(door, end) for start, end in pairwise(taken)
    ]
    assert min(between) >= limit
    assert len(between) > 3


def bytes_behind(door: NodeDoor, offset: int) -> int:
    """Return the bytes of the batches of the log from an offset on."""
    raft = door.node.raft
    batches = raft.quorum_log.batches(Offset(offset), raft.log.log_end_offset)
    return sum(batch.size_bytes for batch in batches)


def test_follower_that_loads_a_fetched_snapshot_counts_time_and_bytes_from_there() -> None:
    quorum = NodeQuorum(settings={"metadata.log.max.record.bytes.between.snapshots": "2000"})
    for value in range(30):
        committed(quorum, value)
    quorum.level()
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.wipe(victim)
    quorum.cut.add(victim)
    quorum.start(victim, metadata_log_max_snapshot_interval_ms=str(INTERVAL_MS))
    quorum.advance(5 * INTERVAL_MS)
    quorum.cut.clear()
    running = quorum.members[victim].running
    quorum.until(lambda: running.raft.committed.loads_count > 0)
    loaded = running.raft.quorum_log.snapshots.ids
    assert len(loaded) == 1, "the fetched one alone"
    begun = CommittedMetadata(running.raft.quorum_log)
    appended_ms = running.raft.quorum_log.snapshots.header_timestamp_ms(loaded[0])
    assert (begun.next_offset, begun.bytes_since_snapshot) == (loaded[0].offset, 0)
    assert begun.timestamp_ms == appended_ms > 0
    quorum.level()
    committed(quorum, 31)
    quorum.advance(INTERVAL_MS // 2)
    assert running.raft.quorum_log.snapshots.ids == loaded
    quorum.advance(INTERVAL_MS // 2)
    assert len(running.raft.quorum_log.snapshots.ids) == 2


def test_follower_that_lags_behind_the_log_counts_only_bytes_behind_the_fetched_snapshot() -> None:
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "100",
    }
    quorum = NodeQuorum(settings=settings)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.kill(victim)
    quorum.start(victim, metadata_log_max_record_bytes_between_snapshots="1000000")
    for value in range(3):
        committed(quorum, value)
    quorum.level()
    quorum.cut.add(victim)
    for value in range(30):
        committed(quorum, value)
    quorum.advance(61_000)
    quorum.cut.clear()
    raft = quorum.members[victim].running.raft
    quorum.until(lambda: raft.committed.loads_count > 0)
    quorum.level()
    newest = raft.quorum_log.snapshots.ids[-1]
    batches = raft.quorum_log.batches(newest.offset, raft.committed.next_offset)
    assert raft.committed.bytes_since_snapshot == sum(batch.size_bytes for batch in batches)
