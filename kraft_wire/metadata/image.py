"""The cluster's metadata as one immutable value: the state of the metadata log at one offset.

An image is never changed: `replay.py` makes the next one from it and a batch of records, and both
share every map that the batch did not change. The broker reads images, and the controller checks
requests against them.

Sources: KIP-500, KIP-631 (records), KIP-584 (features), KIP-966 (eligible leader replicas).
Not here: decoding of records, files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final, NamedTuple

from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid

__all__ = [
    "BROKER_RESOURCE",
    "CLIENT_METRICS_RESOURCE",
    "EMPTY_IMAGE",
    "GROUP_RESOURCE",
    "NO_LEADER",
    "TOPIC_RESOURCE",
    "AclImage",
    "BrokerImage",
    "ControllerImage",
    "DelegationTokenImage",
    "EndpointImage",
    "FeatureRange",
    "MetadataImage",
    "PartitionImage",
    "QuotaEntity",
    "ScramImage",
    "TopicImage",
]

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
"""ConfigRecord's resource types; a broker resource with an empty name is the cluster's default."""

NO_LEADER: Final = -1

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted by type; a null name is the default entity (KIP-546)."""


class FeatureRange(NamedTuple):
    """Levels of a feature that a node supports, inclusive."""

    min_level: int
    max_level: int


class PartitionImage(NamedTuple):
    """One partition: its replicas, its leader, and the two epochs that fence changes.

    A tuple, because a snapshot may have a million of them, and tuples take half the time to make.
    """

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    """Rises with every change of the partition, leader_epoch only with an election."""
    leader_recovery_state: int = 0
    """1 after an unclean election until the leader reports that it recovered (KIP-704)."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()
    """Per replica, in the order of `replicas` (KIP-858)."""
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@frozen
class TopicImage:
    """One topic and its partitions, numbered without gaps from 0."""

    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionImage]


@frozen
class EndpointImage:
    """One listener of a node."""

    name: str
    host: str
    port: int
    security_protocol: int = 0
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


@frozen
class BrokerImage:
    """A registered broker."""

    broker_id: int
    broker_epoch: int
    """Offset of the record that registered this incarnation."""
    incarnation_id: Uuid
    endpoints: Mapping[str, EndpointImage]
    features: Mapping[str, FeatureRange]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    """Ids of the online directories, sorted: their order has no meaning."""
    cordoned_log_dirs: tuple[Uuid, ...] | None = None

    @property
    def active(self) -> bool:
        """Whether the broker may be in an ISR and lead."""
        return not self.fenced and not self.in_controlled_shutdown


@frozen
class ControllerImage:
    """A registered controller (KIP-919)."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: Mapping[str, EndpointImage]
    features: Mapping[str, FeatureRange]
    zk_migration_ready: bool


@frozen
class ScramImage:
    """One user's credential for one SCRAM mechanism (KIP-554)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@frozen
class AclImage:
    """One access-control entry."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@frozen
class DelegationTokenImage:
    """One delegation token (KIP-48, KIP-900); the secret is derived, never stored."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


_NO_CONFIG: Final[Mapping[str, str]] = {}


@frozen
class MetadataImage:
    """The state of the metadata log up to and including one offset."""

    offset: int = -1
    """Offset of the last record contained, -1 before the first."""
    epoch: int = -1
    """Leader epoch of that record."""
    finalized_features: Mapping[str, int] = field(default_factory=dict)
    """Levels above 0; `kraft.version` is not here, it is in control records."""
    finalized_features_epoch: int = -1
    """Offset of the last image in which a feature changed, as ApiVersions reports it."""
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controllers: Mapping[int, ControllerImage] = field(default_factory=dict)
    topics_by_name: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[Uuid, str] = field(default_factory=dict)
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    scram: Mapping[tuple[str, int], ScramImage] = field(default_factory=dict)
    """By user name and mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    acls: Mapping[Uuid, AclImage] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationTokenImage] = field(default_factory=dict)
    next_producer_id: int = 0
    """First producer id that is not allocated yet."""
    zk_migration_state: int = 0

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic by name."""
        topic = self.topics_by_name.get(name)
        assert topic is None or topic.name == name, (topic, name)
        return topic

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """Return a topic by id."""
        name = self.topic_names.get(topic_id)
        if name is None:
            return None
        topic = self.topics_by_name[name]
        assert topic.topic_id == topic_id, (name, topic_id)
        return topic

    def topics(self) -> Iterator[TopicImage]:
        """Every topic, in name order."""
        assert len(self.topics_by_name) == len(self.topic_names)
        return (self.topics_by_name[name] for name in sorted(self.topics_by_name))

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Explicitly set values of one resource, as text; empty without any."""
        return self.configs.get((resource_type, name), _NO_CONFIG)

    @property
    def metadata_version(self) -> int:
        """The finalised metadata.version, 0 before the first record set it."""
        level = self.finalized_features.get("metadata.version", 0)
        assert level >= 0, level
        return level


EMPTY_IMAGE: Final = MetadataImage()
