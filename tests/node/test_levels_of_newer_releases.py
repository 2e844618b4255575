"""A node on a log of a newer release: it names the level that it does not support, and stops.

4.3.1's nodes stop as well: `FeaturesDelta.replay` throws, and in controllers
`FeatureControlManager.replay`. From a level on, records may mean something that this release does
not know.
"""

import pytest

from kraft_wire.metadata.features import (
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
    unsupported_level,
)
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.node.disks.formatting import format_directory
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.quorum.raft_disk import PendingAppend
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.quorum import CLUSTER_ID, directory_id

NEWER = 33
"""4.4-IV2, with which 4.4.0 formats."""
WORDS = "metadata.version 33 is finalised, and this release supports 7 to 30"


def test_node_of_a_directory_that_a_newer_release_has_formatted_writes_nothing_and_says_why() -> (
    None
):
    fs = SimFileSystem()
    fs.make_directory(DIRECTORY)
    fs.sync_directory("/")
    levels = {METADATA_VERSION: NEWER, SHARE_VERSION: 2}
    format_directory(
        fs,
        DIRECTORY,
        cluster_id=CLUSTER_ID,
        node_id=1,
        directory_id=directory_id(1),
        levels=levels,
        wall_ms=WALL_MS,
    )
    for _ in range(2):
        with pytest.raises(StartError, match=WORDS):
            NodeDoor(fs)
        fs.release_locks()
    log = fs.read(f"{DIRECTORY}/__cluster_metadata-0/{0:020d}.log")
    assert METADATA_VERSION.encode() not in log


def test_node_that_replays_a_level_of_a_newer_release_stops_and_does_not_start_again() -> None:
    door = NodeDoor(SimFileSystem())
    raft = door.node.raft
    record = VersionedRecord(FeatureLevelRecord(name=METADATA_VERSION, feature_level=NEWER))
    write = PendingAppend((encode_record(record),), [record.record])
    raft.write(write, raft.replica.quorum.epoch, door.now_ms, door.wall_ms)
    door.node.tick(door.now_ms, door.wall_ms)
    door._drain()
    (stop,) = door.stops
    assert stop.reason is not None
    assert WORDS in stop.reason
    assert raft.committed.image.metadata_version == NEWER
    door.fs.release_locks()
    with pytest.raises(StartError, match=WORDS):
        NodeDoor(door.fs, door.now_ms)


@pytest.mark.parametrize(
    ("finalized", "of_a_broker", "of_a_controller"),
    [
        ({}, None, None),
        ({METADATA_VERSION: 30}, None, None),
        ({METADATA_VERSION: 7}, None, None),
        ({METADATA_VERSION: 31}, "metadata.version 31", "metadata.version 31"),
        ({METADATA_VERSION: 6}, "metadata.version 6", "metadata.version 6"),
        ({METADATA_VERSION: 30, SHARE_VERSION: 2}, None, "share.version 2"),
        ({METADATA_VERSION: 30, TRANSACTION_VERSION: 2, GROUP_VERSION: 1}, None, None),
        ({METADATA_VERSION: 30, "feature.of.tomorrow": 1}, None, "feature.of.tomorrow 1"),
    ],
)
def test_broker_checks_the_version_of_metadata_and_a_controller_every_level(
    finalized: dict[str, int], of_a_broker: str | None, of_a_controller: str | None
) -> None:
    for is_controller, wanted in ((False, of_a_broker), (True, of_a_controller)):
        why = unsupported_level(finalized, is_controller=is_controller)
        if wanted is None:
            assert why is None
        else:
            assert why is not None
            assert why.startswith(f"{wanted} is finalised, and this release supports ")
