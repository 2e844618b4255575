"""The setup of a simulated cluster: its voters, its configuration, the first content of its disks.

A node gets a `server.properties` as an operator would write it, and a directory formatted by the
production code. Everything is in a `Setup`, which a plan file keeps as JSON. Numbers are small, so
that rare paths are common: snapshots after a few records, chunks of a few bytes, short time limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from kraft_wire.metadata.features import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.node.config.node_config import NodeConfig, load_config, settings_of_file
from kraft_wire.node.disks.checkpoint_files import FormattedVoter, quorum_checkpoint_bytes
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.sim.upkeep_topics import settings_for_upkeep
from kraft_wire.sim.workload import Workload
from kraft_wire.storage.files import FileSystem, replace_file

__all__ = [
    "BROKER_PORT",
    "CLUSTER_ID",
    "CONTROLLER_PORT",
    "METADATA_DIRECTORY",
    "ROOT",
    "Setup",
    "directory_id",
    "format_disk",
    "host_of",
    "node_config",
]

CLUSTER_ID = uuid_to_text(Uuid(b"simulated quorum"))
CONTROLLER_PORT = 9093
BROKER_PORT = 9092
LISTENER = "CONTROLLER"
ROOT = "data"
METADATA_DIRECTORY = f"{ROOT}/{METADATA_TOPIC}-0"
_FOR_EVER_MS = 2**31 - 1
"""A simulated cluster may lack a majority for as long as it pleases."""
_ADMINISTERED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.session.timeout.ms": 1_500,
    "leader.imbalance.check.interval.seconds": 1,
}
_FORMATTED_CHECKPOINT = f"{METADATA_DIRECTORY}/{0:020d}-{0:010d}.checkpoint"

_NOT_DRAWN = dict.fromkeys((ELR_VERSION, GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION), 0)
"""Most seeds do not draw these features, and stay what they were without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The shape of a cluster and its habits; times in milliseconds."""

    voters: tuple[int, ...] = (1, 2, 3)
    observers: tuple[int, ...] = ()
    """Controllers outside of the voter set at the start."""
    combined: tuple[int, ...] = ()
    """Nodes that are brokers as well."""
    is_dynamic: bool = False
    """Whether the voter set can change (KIP-853)."""
    joins_by_itself: bool = False
    election_timeout_ms: int = 300
    fetch_timeout_ms: int = 1_000
    """Above the 500 ms that a leader may hold a fetch, which no setting changes."""
    election_backoff_max_ms: int = 100
    request_timeout_ms: int = 1_000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1_048_576
    snapshot_max_bytes: int = 1_048_576
    """Of one chunk."""
    snapshot_every_bytes: int = 20_971_520
    snapshot_every_ms: int = 3_600_000
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000
    idle_interval_ms: int = 500
    """Period of the leader's NoOp records."""
    segment_bytes: int = 1_073_741_824
    metadata_version: int = 0
    """Level that the cluster is formatted with; 0: the newest."""
    keeps_elr: bool = False
    """Whether the controllers keep eligible leader replicas (KIP-966)."""
    administrators: int = 0
    """Clients that change topics, settings, entries and credentials."""
    paper_brokers: int = 0
    """Brokers that only talk to the controllers."""
    clients: int = 2
    registers: int = 3
    """Settings that the clients write."""
    brokers: tuple[int, ...] = ()
    """Nodes that are brokers and nothing else; without any there are no partitions to judge."""
    data: Workload = field(default_factory=Workload)

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes, in order."""
        return tuple(sorted({*self.controllers, *self.brokers}))

    @property
    def controllers(self) -> tuple[int, ...]:
        """The nodes with the controller role, in order."""
        return tuple(sorted({*self.voters, *self.observers, *self.combined}))

    def log_directories(self, node_id: int) -> tuple[str, ...]:
        """Return the log directories of a node, the one of its metadata log first."""
        return self.data.log_directories(ROOT) if node_id in self.brokers else (ROOT,)

    def properties(self, node_id: int) -> str:
        """Return the node's `server.properties`."""
        roles = self._roles(node_id)
        listeners = []
        if "controller" in roles:
            listeners.append(f"{LISTENER}://{host_of(node_id)}:{CONTROLLER_PORT}")
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://{host_of(node_id)}:{BROKER_PORT}")
        own = {
            "process.roles": ",".join(roles),
            "node.id": node_id,
            "listeners": ",".join(listeners),
            "controller.listener.names": LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": ",".join(self.log_directories(node_id)),
            "storage.ballast.bytes": 0,
            "initial.broker.registration.timeout.ms": _FOR_EVER_MS,
        }
        shared: dict[str, object] = {}
        if self.brokers:
            shared = {**self.data.settings(len(self.brokers)), **settings_for_upkeep(self.data)}
        if self.administrators or self.paper_brokers:
            shared = {**shared, **_ADMINISTERED}
        everything = {**own, **self._quorum(), **shared}
        return "".join(f"{key}={value}\n" for key, value in everything.items())

    def _roles(self, node_id: int) -> tuple[str, ...]:
        if node_id in self.brokers:
            return ("broker",)
        return ("broker", "controller") if node_id in self.combined else ("controller",)

    def _quorum(self) -> dict[str, object]:
        if self.is_dynamic:
            servers = ",".join(f"{host_of(node)}:{CONTROLLER_PORT}" for node in self.controllers)
            quorum: dict[str, object] = {"controller.quorum.bootstrap.servers": servers}
        else:
            voters = ",".join(f"{n}@{host_of(n)}:{CONTROLLER_PORT}" for n in self.voters)
            quorum = {"controller.quorum.voters": voters}
        return {
            **quorum,
            "controller.quorum.auto.join.enable": str(self.joins_by_itself).lower(),
            "controller.quorum.election.timeout.ms": self.election_timeout_ms,
            "controller.quorum.fetch.timeout.ms": self.fetch_timeout_ms,
            "controller.quorum.election.backoff.max.ms": self.election_backoff_max_ms,
            "controller.quorum.request.timeout.ms": self.request_timeout_ms,
            "controller.quorum.retry.backoff.ms": self.retry_backoff_ms,
            "controller.quorum.fetch.max.bytes": self.fetch_max_bytes,
            "controller.quorum.fetch.snapshot.max.bytes": self.snapshot_max_bytes,
            "metadata.log.max.record.bytes.between.snapshots": self.snapshot_every_bytes,
            "metadata.log.max.snapshot.interval.ms": self.snapshot_every_ms,
            "metadata.max.retention.bytes": self.retention_bytes,
            "metadata.max.retention.ms": self.retention_ms,
            "metadata.max.idle.interval.ms": self.idle_interval_ms,
            "internal.metadata.log.segment.bytes": self.segment_bytes,
        }


def host_of(node_id: int) -> str:
    """Return a node's name on the simulated network."""
    return f"node{node_id}"


@lru_cache(maxsize=64)
def directory_id(node_id: int, generation: int = 0, number: int = 0) -> Uuid:
    """Return the id of a node's log directory; a new one after each loss of its disk.

    `number` is its place in `Setup.log_directories`; 0 has the metadata log.
    """
    return Uuid(bytes([0xD0, generation, number]) + bytes(11) + bytes([0x1D, node_id]))


@lru_cache(maxsize=256)
def node_config(setup: Setup, node_id: int) -> NodeConfig:
    """Return a node's checked configuration."""
    return load_config(settings_of_file(setup.properties(node_id), "server.properties"), {})


def format_disk(fs: FileSystem, setup: Setup, node_id: int, generation: int, wall_ms: int) -> None:
    """Format a disk as `kraft-wire format` does; a disk that replaces a lost one has no voters."""
    levels = {METADATA_VERSION: setup.metadata_version} if setup.metadata_version else {}
    if setup.keeps_elr:
        levels[ELR_VERSION] = 1
    if setup.data.transactors:
        levels[TRANSACTION_VERSION] = setup.data.transaction_version
    if setup.data.consumer_members:
        levels[GROUP_VERSION] = 1
    if setup.data.streams_members:
        levels[STREAMS_VERSION] = 1
    if setup.data.share_members:
        levels[SHARE_VERSION] = 1
    fs.make_directory(ROOT)
    if setup.is_dynamic and node_id in setup.voters and generation == 0:
        fs.make_directory(METADATA_DIRECTORY)
        replace_file(fs, _FORMATTED_CHECKPOINT, _voters_checkpoint(setup, wall_ms))
    for number, path in enumerate(setup.log_directories(node_id)):
        fs.make_directory(path)
        format_directory(
            fs,
            path,
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            directory_id=directory_id(node_id, generation, number),
            levels={**DEFAULT_LEVELS, **_NOT_DRAWN, **levels},
            wall_ms=wall_ms,
        )
        fs.sync_directory(path)
    fs.sync_directory("")


def _voters_checkpoint(setup: Setup, wall_ms: int) -> bytes:
    voters = [
        FormattedVoter(node, host_of(node), CONTROLLER_PORT, directory_id(node))
        for node in setup.voters
    ]
    return quorum_checkpoint_bytes(voters, LISTENER, wall_ms)
