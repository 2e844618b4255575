"""Metadata transactions (KIP-868): images, restarts and snapshots have all of one, or nothing.

Batches with random transactions are appended as an Apache Kafka controller appends them: in one
batch, over several batches, aborted, or left open. A few lines below replay the same records.
"""

from random import Random

import pytest

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.node.quorum.raft_disk import PendingAppend
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.message import Message
from tests.broker.groups.node_door import DIRECTORY, NodeDoor

LOG = f"{DIRECTORY}/__cluster_metadata-0"
BATCHES = 14
ALWAYS = {"metadata_log_max_record_bytes_between_snapshots": "1"}


class Twin:
    """Replays settings and markers; `visible` is what a reader may see."""

    def __init__(self) -> None:
        self.visible: dict[str, str] = {}
        self.hidden: dict[str, str] | None = None
        """Of an open transaction: everything visible and what it has set so far."""
        self.inside: dict[int, bool] = {}
        """Ends of log that lie inside a transaction."""

    def replay(self, records: list[Message], base_offset: int) -> None:
        for end, record in enumerate(records, base_offset + 1):
            match record:
                case BeginTransactionRecord():
                    self.hidden = dict(self.visible)
                case EndTransactionRecord():
                    assert self.hidden is not None
                    self.visible, self.hidden = self.hidden, None
                case AbortTransactionRecord():
                    self.hidden = None
                case ConfigRecord():
                    assert record.value is not None
                    target = self.visible if self.hidden is None else self.hidden
                    target[record.name] = record.value
            self.inside[end] = self.hidden is not None


def drawn_batch(random: Random, number: int, is_open: bool) -> list[Message]:
    """Return one to five records; markers come in an order that is allowed."""
    records: list[Message] = []
    for at in range(random.randrange(1, 6)):
        kind = random.choice(("set", "set", "mark"))
        if kind == "set":
            name = random.choice(("log.retention.ms", "log.retention.bytes"))
            value = str(number * 10 + at)
            records.append(
                ConfigRecord(
                    resource_type=BROKER_RESOURCE, resource_name="", name=name, value=value
                )
            )
        elif is_open:
            records.append(random.choice((EndTransactionRecord, AbortTransactionRecord))())
            is_open = False
        else:
            records.append(BeginTransactionRecord(name="test"))
            is_open = True
    return records


def append(door: NodeDoor, records: list[Message]) -> int:
    """Append one batch as the leader and have it committed; return its base offset."""
    raft = door.node.raft
    values = tuple(encode_record(VersionedRecord(record)) for record in records)
    write = PendingAppend(values, records)
    raft.write(write, raft.replica.quorum.epoch, door.now_ms, door.wall_ms)
    assert write.next_offset is not None
    door.node.tick(door.now_ms, door.wall_ms)
    door._drain()
    door.settle()
    assert raft.committed.next_offset == write.next_offset
    return write.next_offset - len(records)


def settings_of(door: NodeDoor) -> dict[str, str]:
    shown = door.node.raft.committed.image.config(BROKER_RESOURCE, "")
    return {name: value for name, value in shown.items() if name.startswith("log.retention")}


@pytest.mark.parametrize("seed", range(6))
def test_image_snapshot_and_restart_show_a_transaction_whole_or_not_at_all(seed: int) -> None:
    random, twin = Random(seed), Twin()
    fs = SimFileSystem()
    door = NodeDoor(fs, **ALWAYS)
    for number in range(BATCHES):
        batch = drawn_batch(random, number, twin.hidden is not None)
        twin.replay(batch, append(door, batch))
        assert settings_of(door) == twin.visible
        taken = [each.offset for each in list_snapshots(fs, LOG)]
        assert [offset for offset in taken if twin.inside.get(offset)] == []
        is_open = twin.hidden is not None
        assert (door.node.raft.committed.next_offset in taken) is not is_open
        restarted = NodeDoor(fs.crashed(()), door.now_ms, **ALWAYS)
        assert settings_of(restarted) == twin.visible
        assert not restarted.node.raft.committed.in_transaction
    assert any(twin.inside.values())


def test_snapshot_by_time_waits_for_the_end_of_the_transaction() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms="1000")
    door.advance(3_000)
    before = list_snapshots(fs, LOG)
    append(door, [BeginTransactionRecord(name="test")])
    door.advance(5_000)
    assert list_snapshots(fs, LOG) == before
    append(door, [EndTransactionRecord()])
    door.settle()
    end = door.node.raft.committed.next_offset
    assert list_snapshots(fs, LOG)[-1].offset == end
