"""Our metadata snapshots and the log cut below them, under Apache Kafka 4.3.1 and its tools."""

import re
from pathlib import Path

import pytest

from kraft_wire.sim.disk.files import SimFileSystem
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.test_disk_errors import created
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPICS = [f"topic-{number}" for number in range(12)]


def export(fs: SimFileSystem, path: str, target: Path) -> None:
    """Write what a simulated disk holds to a real one."""
    target.mkdir(exist_ok=True)
    for name in fs.names(path):
        if fs.is_directory(f"{path}/{name}"):
            export(fs, f"{path}/{name}", target / name)
        else:
            (target / name).write_bytes(fs.read(f"{path}/{name}"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a node that has taken snapshots and dropped the log below the newest."""
    fs = SimFileSystem()
    door = NodeDoor(
        fs,
        metadata_log_max_record_bytes_between_snapshots="600",
        metadata_max_retention_bytes="1000",
    )
    for name in TOPICS[:-1]:
        assert created(door, name) == 0
        door.settle()
    door.advance(121_000)
    assert created(door, TOPICS[-1]) == 0
    raft = door.node.raft
    assert raft.log.log_start_offset > 0
    assert len(raft.quorum_log.snapshots.ids) <= 2
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door.stop()
    export(fs, DIRECTORY, tmp_path / "data")
    return tmp_path / "data"


def test_dump_log_decodes_snapshot_and_the_log_behind_it(data: Path) -> None:
    directory = data / "__cluster_metadata-0"
    files = [*sorted(directory.glob("*.checkpoint")), *sorted(directory.glob("*.log"))]
    arguments = ["--files", ",".join(map(str, files)), "--cluster-metadata-decoder"]
    done = run_tool("kafka-dump-log", arguments)
    assert done.exit_code == 0, done.text
    assert "SnapshotHeader" in done.stdout
    assert "SnapshotFooter" in done.stdout
    assert {f'"name":"{name}"' for name in TOPICS} <= set(
        re.findall(r'"name":"topic-\d+"', done.stdout)
    )


def test_apache_starts_from_our_snapshot_and_we_from_what_it_left(
    data: Path, tmp_path: Path
) -> None:
    apache = ApacheNode(tmp_path)  # the same `data` beneath
    lines = [f"{key}={value}\n" for key, value in apache.properties().items()]
    apache.properties_file.write_text("".join(lines))
    apache.start()
    try:
        with WireClient(apache.bootstrap) as client:
            ids = {name: client.topic(name).topic_id for name in TOPICS}
    finally:
        apache.stop()
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        assert {name: client.topic(name).topic_id for name in TOPICS} == ids
    assert data.is_dir()
