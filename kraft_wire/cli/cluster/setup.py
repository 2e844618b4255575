"""Makes the nodes of a cluster of processes: ports, directories, formats, commands.

Every node is formatted by us, Apache's too: the format is Kafka's, and needs no Java. The quorum is
dynamic (KIP-853), so voters can be added and removed. Jars of Apache Kafka are taken from the
folder that the user gives; nothing is ever fetched.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.network import free_network, host_in
from kraft_wire.cli.cluster.ports import free_ports
from kraft_wire.cli.cluster.securing import (
    CLIENTS,
    Accounts,
    secure_files,
    secure_records,
    secured_keys,
)
from kraft_wire.cli.cluster.state import (
    APACHE,
    BROKER,
    COMBINED,
    CONTROLLER,
    OURS,
    ClusterState,
    NodeState,
)
from kraft_wire.cli.properties_file import property_line
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid, random_uuid, uuid_to_text
from kraft_wire.node.disks.checkpoint_files import FormattedVoter, quorum_checkpoint_bytes
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.server.clock import wall_ms
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.storage.snapshots.store import FORMATTED_ID

__all__ = [
    "JARS_VARIABLE",
    "ClusterPlan",
    "apache_jars",
    "command_of",
    "environment_of",
    "make_cluster",
    "reformat",
]

JARS_VARIABLE: Final = "KRAFT_WIRE_APACHE_JARS"
_CONTROLLER_LISTENER: Final = "CONTROLLER"
_OPEN: Final = "PLAINTEXT"
"""The listener of brokers without security."""
_READABLE: Final = 0o666
_OWNER_ONLY: Final = 0o600
"""Modes of a new file, before the process's mask: properties of a secured node have passwords."""
_COPIES_MAX: Final = 3
"""Replicas of a partition, if there are as many brokers; one of them may be missing."""
_COPIED_TOPICS: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
_APACHE_FLAGS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.apache.logging.log4j.level=WARN",
)


def apache_jars(named: str | None) -> Path:
    """Return the folder of Apache Kafka's jars. Errors: CannotRun with what is missing."""
    if shutil.which("java") is None:
        raise CannotRun("--apache needs Java: java is not on the PATH")
    text = named or os.environ.get(JARS_VARIABLE)
    if not text:
        raise CannotRun(
            "--apache needs Apache Kafka's jars: give their folder with --apache-jars or "
            f"{JARS_VARIABLE} (the libs folder of its distribution)"
        )
    folder = Path(text).absolute()
    if not any(folder.glob("kafka_2.*.jar")):
        raise CannotRun(f"--apache: {folder} has no kafka_2.*.jar")
    return folder


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The setup of a new cluster; the last nodes of either kind are Apache's."""

    controllers: int = 3
    apache_controllers: int = 0
    brokers: int = 0
    apache_brokers: int = 0
    combined: int = 0
    """Nodes that are both, of ours."""
    base_port: int | None = None
    """The first port; None: free ones."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=lambda: DEFAULT_LEVELS)
    has_network: bool = False
    """Whether each node gets its own network."""
    is_secured: bool = False

    @property
    def listeners_count(self) -> int:
        """How many ports the nodes need."""
        return self.controllers + self.brokers + 2 * self.combined


def make_cluster(files: ClusterFiles, plan: ClusterPlan) -> ClusterState:
    """Format the directories of a new cluster."""
    files.directory.mkdir(parents=True, exist_ok=True)
    cluster_id = uuid_to_text(random_uuid(SystemRandomSource()))
    network = free_network(cluster_id) if plan.has_network else None
    nodes = _nodes(plan, network)
    state = ClusterState(
        cluster_id,
        dict(plan.overrides),
        dict(plan.levels),
        network,
        nodes,
        is_secured=plan.is_secured,
    )
    accounts = Accounts() if plan.is_secured else None
    if accounts is not None:
        secure_files(files, state, accounts, wall_ms() / 1000)
    records = [] if accounts is None else secure_records(accounts)
    voters = [
        FormattedVoter(
            each.node_id,
            each.host,
            each.controller_port or each.port,
            random_uuid(SystemRandomSource()),
        )
        for each in state.controllers
    ]
    own_ids = {voter.node_id: voter.directory_id for voter in voters}
    for node in nodes.values():
        secured = {} if accounts is None else secured_keys(files, node.node_id, accounts)
        _write_properties(files, state, node, secured)
        own_id = own_ids.get(node.node_id) or random_uuid(SystemRandomSource())
        first = (voters, records) if node.is_controller else ([], [])
        _format(files, state, node, own_id, *first)
    files.save(state)
    return state


def _nodes(plan: ClusterPlan, network: int | None) -> dict[int, NodeState]:
    """Return the nodes, with ids from 1 on, controllers first; the first ports are brokers'."""
    kinds = [
        *[(COMBINED, OURS)] * plan.combined,
        *[(CONTROLLER, OURS)] * (plan.controllers - plan.apache_controllers),
        *[(CONTROLLER, APACHE)] * plan.apache_controllers,
        *[(BROKER, OURS)] * (plan.brokers - plan.apache_brokers),
        *[(BROKER, APACHE)] * plan.apache_brokers,
    ]
    assert len(kinds) == plan.combined + plan.controllers + plan.brokers, plan
    nodes = {
        node_id: NodeState(node_id, make, 0, role)
        for node_id, (role, make) in enumerate(kinds, start=1)
    }
    ports = iter(_ports(plan))
    for node in nodes.values():
        if network is not None:
            node.host = host_in(network, node.node_id)
        if node.is_broker:
            node.port = next(ports)
    for node in nodes.values():
        if node.role == CONTROLLER:
            node.port = next(ports)
        elif node.role == COMBINED:
            node.controller_port = next(ports)
    return nodes


def _ports(plan: ClusterPlan) -> Iterable[int]:
    if plan.base_port is None:
        return free_ports(plan.listeners_count)
    return range(plan.base_port, plan.base_port + plan.listeners_count)


def reformat(files: ClusterFiles, state: ClusterState, node_id: int) -> Uuid:
    """Give a node an empty disk that is unknown to the quorum; return the disk's id."""
    shutil.rmtree(files.data(node_id), ignore_errors=True)
    directory_id = random_uuid(SystemRandomSource())
    _format(files, state, state.nodes[node_id], directory_id, [], [])
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


def _write_properties(
    files: ClusterFiles, state: ClusterState, node: NodeState, secured: Mapping[str, str]
) -> None:
    properties = {
        "process.roles": node.role,
        "node.id": str(node.node_id),
        "listeners": _listeners(node, CLIENTS if secured else _OPEN),
        "controller.listener.names": _CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": state.bootstrap,
        "log.dirs": str(files.data(node.node_id)),
        **_replication(len(state.brokers)),
        **secured,
        **state.overrides,
    }
    lines = [property_line(key, value) for key, value in properties.items()]
    path = files.properties(node.node_id)
    path.touch(mode=_OWNER_ONLY if secured else _READABLE)
    path.write_text("".join(lines), encoding="utf-8")


def _listeners(node: NodeState, clients: str) -> str:
    addresses = {
        BROKER: f"{clients}://{node.address}",
        CONTROLLER: f"{_CONTROLLER_LISTENER}://{node.controller_address}",
    }
    return ",".join(addresses[each] for each in node.role.split(","))


def _replication(brokers: int) -> dict[str, str]:
    """Return settings with which one of three brokers may fail without an effect on clients.

    Kafka's defaults are one replica for topics, and three for internal topics, which fewer brokers
    could not have. Controllers use these settings too.
    """
    if not brokers:
        return {}
    copies = min(brokers, _COPIES_MAX)
    needed = str(max(copies - 1, 1))
    counts = {f"{topic}.replication.factor": str(copies) for topic in _COPIED_TOPICS}
    least = {f"{topic}.min.isr": needed for topic in _COPIED_TOPICS[1:]}
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": needed,
        **counts,
        **least,
    }


def _format(
    files: ClusterFiles,
    state: ClusterState,
    node: NodeState,
    directory_id: Uuid,
    voters: list[FormattedVoter],
    records: Sequence[VersionedRecord],
) -> None:
    """Format a directory; with voters it begins a quorum, without it finds one.

    `records` are written to a new cluster's metadata behind its feature levels.
    """
    fs, path = OsFileSystem(), str(files.data(node.node_id))
    if voters:
        metadata = f"{path}/{METADATA_TOPIC}-0"
        fs.make_directory(path)
        fs.make_directory(metadata)
        writer = SnapshotWriter(fs, metadata, FORMATTED_ID, attempt=0)
        checkpoint = quorum_checkpoint_bytes(voters, _CONTROLLER_LISTENER, wall_ms())
        writer.append(checkpoint)
        writer.freeze()
    format_directory(
        fs,
        path,
        cluster_id=state.cluster_id,
        node_id=node.node_id,
        directory_id=directory_id,
        levels=state.levels,
        wall_ms=wall_ms(),
        records=records,
    )
