"""The setup of a cluster for tests: the roles of its nodes, and each node's configuration.

A single node that is broker and controller is the embedded one, which formats its own directory.
Several nodes form a dynamic quorum (KIP-853) of their controllers, formatted here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.model import RandomSource, Uuid, random_uuid, uuid_to_text
from kraft_wire.node.config.node_config import NodeConfig, Setting, load_config
from kraft_wire.node.disks.checkpoint_files import FormattedVoter, quorum_checkpoint_bytes
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.storage.snapshots.store import FORMATTED_ID

__all__ = [
    "CLIENTS",
    "CONTROLLERS",
    "ClusterPlan",
    "Identity",
    "Ports",
    "format_node",
    "node_config",
    "node_properties",
]

COMBINED: Final = "broker,controller"
CLIENTS: Final = "PLAINTEXT"
CONTROLLERS: Final = "CONTROLLER"
_ROLES: Final = ("broker", "controller", COMBINED)
_HOST: Final = "127.0.0.1"
_COPIES_MAX: Final = 3
_CONTROLLERS_KEY: Final = "controller.quorum.bootstrap.servers"
_COPIED_TOPICS: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
_FOR_TESTS: Final = {
    "storage.ballast.bytes": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.retry.backoff.ms": "10",
    "controlled.shutdown.enable": "false",
    "group.min.session.timeout.ms": "1",
    "max.connections.per.ip": "10000",
}
"""No file is reserved against a full disk, groups do not wait for more members, quorums are quick
to elect, and internal topics are small."""

Ports = Mapping[int, Mapping[str, int]]
"""The port of each listener, by node id."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The nodes of a cluster, with ids from 1 on."""

    roles: tuple[str, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    """Keys of server.properties, for every node."""

    @classmethod
    def of(
        cls, nodes: int, roles: Sequence[str] | None, configs: Mapping[str, object] | None
    ) -> "ClusterPlan":
        """Return a checked plan. Errors: ValueError."""
        chosen = tuple(roles) if roles is not None else (COMBINED,) * nodes
        wanted = [",".join(sorted(part.strip() for part in each.split(","))) for each in chosen]
        for role in wanted:
            if role not in _ROLES:
                raise ValueError(f"no node has the roles {role!r}: {', '.join(map(repr, _ROLES))}")
        if not any("controller" in role for role in wanted):
            raise ValueError("a cluster needs a controller")
        texts = {key: _text(value) for key, value in (configs or {}).items()}
        return cls(tuple(wanted), texts)

    @property
    def is_embedded(self) -> bool:
        """Whether it is one node that is everything."""
        return self.roles == (COMBINED,)

    @property
    def node_ids(self) -> range:
        """The ids of its nodes."""
        return range(1, len(self.roles) + 1)

    def listeners(self, node_id: int) -> list[str]:
        """Return the names of a node's listeners."""
        role = self.roles[node_id - 1]
        names = [CLIENTS] if "broker" in role else []
        return names + ([CONTROLLERS] if "controller" in role else [])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def node_properties(
    plan: ClusterPlan, node_id: int, directory: str, ports: Ports
) -> dict[str, str]:
    """Return the `server.properties` of a node."""
    bound = ports[node_id]
    properties = {
        "process.roles": plan.roles[node_id - 1],
        "node.id": str(node_id),
        "listeners": ",".join(f"{name}://{_HOST}:{port}" for name, port in bound.items()),
        "controller.listener.names": CONTROLLERS,
        "log.dirs": directory,
        **_FOR_TESTS,
        **_replication(sum("broker" in role for role in plan.roles)),
    }
    known = [f"{_HOST}:{each[CONTROLLERS]}" for each in ports.values() if CONTROLLERS in each]
    properties[_CONTROLLERS_KEY] = ",".join(known)
    return {**properties, **plan.configs}


def _replication(brokers: int) -> dict[str, str]:
    """Return the numbers of copies that so many brokers can have."""
    copies = str(max(1, min(brokers, _COPIES_MAX)))
    counts = {f"{topic}.replication.factor": copies for topic in _COPIED_TOPICS}
    least = {f"{topic}.min.isr": "1" for topic in _COPIED_TOPICS[1:]}
    return {"default.replication.factor": copies, **counts, **least}


def node_config(plan: ClusterPlan, node_id: int, directory: str, ports: Ports) -> NodeConfig:
    """Return the checked configuration of a node. Errors: ConfigError."""
    properties = node_properties(plan, node_id, directory, ports)
    if plan.is_embedded:
        del properties[_CONTROLLERS_KEY]  # it is its own quorum
    settings = {key: Setting(value, "the test") for key, value in properties.items()}
    if plan.is_embedded:
        return load_config(None, {}, list(settings.items()))
    return load_config(settings, {})


def format_node(
    fs: FileSystem,
    directory: str,
    plan: ClusterPlan,
    node_id: int,
    ports: Ports,
    identity: "Identity",
    wall_ms: int,
) -> None:
    """Format a node's directory; a controller's begins the quorum."""
    if "controller" in plan.roles[node_id - 1]:
        voters = [
            FormattedVoter(each, _HOST, ports[each][CONTROLLERS], identity.directory_ids[each])
            for each in plan.node_ids
            if "controller" in plan.roles[each - 1]
        ]
        metadata = f"{directory}/{METADATA_TOPIC}-0"
        fs.make_directory(directory)
        fs.make_directory(metadata)
        writer = SnapshotWriter(fs, metadata, FORMATTED_ID, attempt=0)
        writer.append(quorum_checkpoint_bytes(voters, CONTROLLERS, wall_ms))
        writer.freeze()
    format_directory(
        fs,
        directory,
        cluster_id=identity.cluster_id,
        node_id=node_id,
        directory_id=identity.directory_ids[node_id],
        levels=DEFAULT_LEVELS,
        wall_ms=wall_ms,
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """The ids that a cluster is formatted with."""

    cluster_id: str
    directory_ids: Mapping[int, Uuid]

    @classmethod
    def draw(cls, plan: ClusterPlan, random_source: RandomSource) -> "Identity":
        """Draw new ids."""
        cluster_id = uuid_to_text(random_uuid(random_source))
        return cls(cluster_id, {node_id: random_uuid(random_source) for node_id in plan.node_ids})
