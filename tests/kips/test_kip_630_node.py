"""KIP-630 in whole nodes: when snapshots are taken, and what becomes of one that is loaded.

Three controllers over simulated disks and links, as in `tests/node`. Where shipped Kafka differs,
the test asserts what is shipped.
"""

from itertools import pairwise

import pytest

from kraft_wire.model import OffsetAndEpoch
from kraft_wire.node.quorum.committed import CommittedMetadata
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.quorum import NodeQuorum
from tests.node.test_disk_errors import created
from tests.node.test_three_controllers import committed, config_of, configs

BYTES = "metadata.log.max.record.bytes.between.snapshots"
INTERVAL = "metadata.log.max.snapshot.interval.ms"
NEVER = {BYTES: "100000000", INTERVAL: "0"}
OFTEN = {BYTES: "2000", "metadata.max.retention.bytes": "100"}


def fill(quorum: NodeQuorum, count: int = 30) -> None:
    for value in range(count):
        committed(quorum, value)
        quorum.advance(10)
    quorum.level()


def ids_of(quorum: NodeQuorum, node_id: int) -> list[OffsetAndEpoch]:
    return quorum.members[node_id].running.raft.quorum_log.snapshots.ids


@pytest.mark.parametrize(
    ("settings", "is_taken"),
    [
        (NEVER, False),
        ({**NEVER, BYTES: "2000"}, True),
        ({**NEVER, INTERVAL: "500"}, True),
    ],
)
def test_snapshot_is_taken_by_bytes_or_by_time(settings: dict[str, str], is_taken: bool) -> None:
    """630-WHEN-01, 630-WHEN-09: either is enough; by the leader and by its followers."""
    quorum = NodeQuorum(settings=settings)
    fill(quorum)
    quorum.advance(2_000)
    assert [bool(ids_of(quorum, node_id)) for node_id in quorum.voters] == [is_taken] * 3


def test_broker_and_controller_in_one_take_them_too() -> None:
    """630-WHEN-09: the metadata that a broker keeps is what its snapshots are made of."""
    fs = SimFileSystem()
    door = NodeDoor(fs, metadata_log_max_snapshot_interval_ms="1000")
    assert created(door, "t") == 0
    door.advance(5_000)
    assert list_snapshots(fs, f"{DIRECTORY}/__cluster_metadata-0")


def test_bytes_count_from_the_last_snapshot_on() -> None:
    """630-WHEN-05: what was committed and replayed since, in bytes of the log."""
    quorum = NodeQuorum(settings={**NEVER, BYTES: "3000"})
    fill(quorum, 90)
    node = quorum.members[quorum.elect()].running
    log = node.raft.log
    taken = [known.offset for known in ids_of(quorum, quorum.elect())]
    assert len(taken) > 1
    positions = [log.segments[0].locate(offset) for offset in taken]
    sizes = [frame.position for frame in positions if frame is not None]
    between = [later - earlier for earlier, later in pairwise(sizes)]
    assert all(3_000 <= each < 3_500 for each in between), between
    committed(quorum, 1)
    assert node.raft.committed.bytes_since_snapshot < 3_000


def test_node_begins_with_its_newest_snapshot_at_a_start() -> None:
    """630-LOAD-01: before anybody has told it what is committed."""
    quorum = NodeQuorum(settings=OFTEN)
    fill(quorum)
    quorum.advance(61_000)
    quorum.level()
    follower = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    newest = ids_of(quorum, follower)[-1]
    assert quorum.members[follower].running.raft.log.log_start_offset > 0
    quorum.kill(follower)
    quorum.cut.add(follower)
    quorum.start(follower)
    begun = quorum.members[follower].running.raft.committed
    assert begun.next_offset == newest.offset
    assert config_of(begun.image) is not None


def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[CommittedMetadata, OffsetAndEpoch]]:
    """What is loaded from now on, and by whom."""
    seen: list[tuple[CommittedMetadata, OffsetAndEpoch]] = []
    load = CommittedMetadata._load

    def noted(committed: CommittedMetadata, snapshot_id: OffsetAndEpoch) -> None:
        seen.append((committed, snapshot_id))
        load(committed, snapshot_id)

    monkeypatch.setattr(CommittedMetadata, "_load", noted)
    return seen


@pytest.mark.parametrize("chunk", ["1048576", "100"])
def test_node_loads_the_snapshot_that_it_has_fetched_and_then_the_log_behind_it(
    chunk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """630-SM-01, 630-LOAD-02, 630-LOAD-03, 630-LOAD-04, 630-FSR-06, 630-FSR-07.

    Only the node that fetched it loads it, never the leader. Records from the snapshot's end on are
    applied, the one at its end included: offsets are exclusive ends.
    """
    quorum = NodeQuorum(settings={**OFTEN, "controller.quorum.fetch.snapshot.max.bytes": chunk})
    fill(quorum)
    quorum.advance(61_000)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.wipe(victim)
    committed(quorum, 77)
    newest = ids_of(quorum, quorum.elect())[-1]
    seen = loads(monkeypatch)
    quorum.start(victim)
    assert configs(quorum) == ["77"] * 3
    begun = quorum.members[victim].running.raft
    assert [(by is begun.committed, known) for by, known in seen] == [(True, newest)]
    assert begun.log.log_start_offset == newest.offset
    assert begun.committed.next_offset > newest.offset
    images = quorum.images()
    assert all(image.configs == images[0].configs for image in images)


def test_leader_loads_nothing_while_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """630-LOAD-02: it has everything that any snapshot of its epoch may contain."""
    quorum = NodeQuorum(settings=OFTEN)
    seen = loads(monkeypatch)
    fill(quorum)
    quorum.advance(61_000)
    assert seen == []
