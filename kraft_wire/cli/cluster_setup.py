"""Makes the nodes of a cluster of processes: ports, directories, formats, commands.

Every node is formatted by us, Apache's too: the format is Kafka's, and needs no Java. The quorum is
dynamic (KIP-853), so voters can be added and removed. Jars of Apache Kafka are looked for where the
user says; nothing is ever fetched.
"""

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kraft_wire.cli.chance import SystemChance
from kraft_wire.cli.cluster_files import (
    APACHE,
    OURS,
    CannotRun,
    ClusterFiles,
    ClusterState,
    NodeState,
)
from kraft_wire.model import Uuid, random_uuid, uuid_to_text
from kraft_wire.node.checkpoint_files import FormattedVoter, quorum_checkpoint_bytes
from kraft_wire.node.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.server.clock import wall_ms
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots import SnapshotWriter
from kraft_wire.storage.snapshots_store import FORMATTED_ID

__all__ = [
    "JARS_VARIABLE",
    "apache_jars",
    "command_of",
    "environment_of",
    "make_cluster",
    "reformat",
]

JARS_VARIABLE: Final = "KRAFT_WIRE_APACHE_JARS"
_LISTENER: Final = "CONTROLLER"
_APACHE_FLAGS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.apache.logging.log4j.level=WARN",
)


def apache_jars(named: str | None) -> Path:
    """Return the folder of Apache Kafka's jars. Errors: CannotRun with what is missing."""
    if shutil.which("java") is None:
        raise CannotRun("--apache needs Java: there is no java on the PATH")
    text = named or os.environ.get(JARS_VARIABLE)
    if not text:
        raise CannotRun(
            f"--apache needs Apache Kafka's jars: name their folder with --apache-jars or "
            f"{JARS_VARIABLE} (the libs folder of its distribution)"
        )
    folder = Path(text).absolute()
    if not any(folder.glob("kafka_2.*.jar")):
        raise CannotRun(f"--apache: there is no kafka_2.*.jar in {folder}")
    return folder


def make_cluster(
    files: ClusterFiles, controllers: int, apache: int, overrides: Mapping[str, str]
) -> ClusterState:
    """Format the directories of a new cluster; the last `apache` of its nodes are Apache's."""
    files.directory.mkdir(parents=True, exist_ok=True)
    ports = _free_ports(controllers)
    makes = [OURS] * (controllers - apache) + [APACHE] * apache
    nodes = {
        node_id: NodeState(node_id, make, port)
        for node_id, (make, port) in enumerate(zip(makes, ports, strict=True), start=1)
    }
    state = ClusterState(uuid_to_text(random_uuid(SystemChance())), dict(overrides), nodes)
    voters = [
        FormattedVoter(each.node_id, "127.0.0.1", each.port, random_uuid(SystemChance()))
        for each in nodes.values()
    ]
    for voter in voters:
        _write_properties(files, state, nodes[voter.node_id])
        _format(files, state, voter.node_id, voter.directory_id, voters)
    files.save(state)
    return state


def reformat(files: ClusterFiles, state: ClusterState, node_id: int) -> Uuid:
    """Give a node an empty disk, of which the quorum knows nothing; return the disk's id."""
    shutil.rmtree(files.data(node_id), ignore_errors=True)
    directory_id = random_uuid(SystemChance())
    _format(files, state, node_id, directory_id, [])
    return directory_id


def command_of(files: ClusterFiles, node: NodeState, jars: Path | None) -> list[str]:
    """Return the command that runs a node."""
    properties = str(files.properties(node.node_id))
    if node.make == OURS:
        return [sys.executable, "-m", "kraft_wire.cli.main", "server", properties]
    assert jars is not None, "looked for before"
    return ["java", *_APACHE_FLAGS, "-cp", f"{jars}/*", "kafka.Kafka", properties]


def environment_of() -> dict[str, str]:
    """Return the environment of the nodes: without KAFKA_…, which would be settings of all."""
    return {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}


def _write_properties(files: ClusterFiles, state: ClusterState, node: NodeState) -> None:
    properties = {
        "process.roles": "controller",
        "node.id": str(node.node_id),
        "listeners": f"{_LISTENER}://{node.address}",
        "controller.listener.names": _LISTENER,
        "controller.quorum.bootstrap.servers": state.bootstrap,
        "log.dirs": str(files.data(node.node_id)),
        **state.overrides,
    }
    lines = [f"{key}={value}\n" for key, value in properties.items()]
    files.properties(node.node_id).write_text("".join(lines), encoding="utf-8")


def _format(
    files: ClusterFiles,
    state: ClusterState,
    node_id: int,
    directory_id: Uuid,
    voters: list[FormattedVoter],
) -> None:
    """Format a directory; with voters it begins a quorum, without it finds one."""
    fs, path = OsFileSystem(), str(files.data(node_id))
    if voters:
        metadata = f"{path}/{METADATA_TOPIC}-0"
        fs.make_directory(path)
        fs.make_directory(metadata)
        writer = SnapshotWriter(fs, metadata, FORMATTED_ID, attempt=0)
        writer.append(quorum_checkpoint_bytes(voters, _LISTENER, wall_ms()))
        writer.freeze()
    format_directory(
        fs,
        path,
        cluster_id=state.cluster_id,
        node_id=node_id,
        directory_id=directory_id,
        levels=DEFAULT_LEVELS,
        wall_ms=wall_ms(),
    )


def _free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that are free now; all are held until all are chosen."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
