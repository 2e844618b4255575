"""A node on a directory of an older release: whatever metadata.version is finalised, it serves.

Records of a level that 4.3.1 supports are written in the version that the level knows (KIP-584), or
brokers of that release stop on them.
"""

import pytest

from kraft_wire.metadata.features import METADATA_VERSION, RELEASE_LEVELS
from kraft_wire.node.disks.formatting import format_directory
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.quorum import CLUSTER_ID, directory_id
from tests.node.test_disk_errors import created, deleted, produced

LEVELS = sorted({*RELEASE_LEVELS.values()})
OFTEN = {"metadata_log_max_record_bytes_between_snapshots": "1000"}


def node_of(level: int) -> NodeDoor:
    """A node whose directory an older release formatted."""
    fs = SimFileSystem()
    fs.make_directory(DIRECTORY)
    fs.sync_directory("/")
    format_directory(
        fs,
        DIRECTORY,
        cluster_id=CLUSTER_ID,
        node_id=1,
        directory_id=directory_id(1),
        levels={METADATA_VERSION: level},
        wall_ms=WALL_MS,
    )
    return NodeDoor(fs, **OFTEN)


@pytest.mark.parametrize("level", LEVELS)
def test_node_serves_restarts_and_takes_snapshots_at_every_level(level: int) -> None:
    door = node_of(level)
    assert door.node.raft.committed.image.metadata_version == level
    for number in range(8):
        assert created(door, f"t{number}", 2) == ErrorCode.NONE
    assert created(door, "t") == ErrorCode.NONE
    assert produced(door) == ErrorCode.NONE
    assert deleted(door, "t0") == ErrorCode.NONE
    door.settle()
    before = door.node.raft.committed.image
    again = NodeDoor(door.fs.crashed(()), door.now_ms, **OFTEN)
    assert again.lines == []
    after = again.node.raft.committed.image
    assert after.topics_by_name.keys() == before.topics_by_name.keys()
    assert produced(again) == ErrorCode.NONE
    assert again.node.raft.quorum_log.snapshots.latest_id is not None


@pytest.mark.parametrize("level", [7, 13, 16])
def test_node_of_an_older_level_is_upgraded(level: int) -> None:
    door = node_of(level)
    update = FeatureUpdateKey(
        feature=METADATA_VERSION, max_version_level=LEVELS[-1], upgrade_type=1
    )
    assert created(door, "t") == ErrorCode.NONE
    reply = door.send(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 1)
    assert (reply.error, [each.error_code for each in reply.response.results]) == (0, [0])
    again = NodeDoor(door.fs.crashed(()), door.now_ms)
    assert again.node.raft.committed.image.metadata_version == LEVELS[-1]
    assert produced(again) == ErrorCode.NONE
