"""The cluster's metadata as the broker reads it: topics, partitions, brokers, settings.

Read-only views of `metadata.image`, which satisfies them without either side importing the other.
An image is immutable: news of the cluster is a new object.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kraft_wire.model import Uuid
from kraft_wire.settings.acl_rules import AclFields

__all__ = [
    "BrokerView",
    "EndpointView",
    "FeatureRangeView",
    "MetadataView",
    "PartitionView",
    "ScramView",
    "TopicView",
]


class PartitionView(Protocol):
    """One partition as the metadata log describes it."""

    @property
    def partition(self) -> int:
        """Number of the partition within its topic."""
        ...

    @property
    def replicas(self) -> Sequence[int]:
        """Node ids in the order of preference for leadership."""
        ...

    @property
    def isr(self) -> Sequence[int]:
        """Replicas that hold everything that is committed."""
        ...

    @property
    def adding_replicas(self) -> Sequence[int]:
        """Replicas that a reassignment adds (KIP-455); `replicas` has them already."""
        ...

    @property
    def directories(self) -> Sequence[Uuid]:
        """Log directory of each replica, in the order of `replicas`; empty from before KIP-858."""
        ...

    @property
    def eligible_leader_replicas(self) -> Sequence[int]:
        """Replicas outside the ISR that hold everything committed (KIP-966)."""
        ...

    @property
    def last_known_elr(self) -> Sequence[int]:
        """Members that the ELR had when it was last complete (KIP-966)."""
        ...

    @property
    def leader(self) -> int:
        """Node id of the leader, -1 for none."""
        ...

    @property
    def leader_epoch(self) -> int:
        """Rises with each change of leader; stamped into every batch."""
        ...

    @property
    def partition_epoch(self) -> int:
        """Rises with every change of this partition."""
        ...


class TopicView(Protocol):
    """One topic with its partitions, numbered without gaps from 0."""

    @property
    def name(self) -> str:
        """Name of the topic."""
        ...

    @property
    def topic_id(self) -> Uuid:
        """Id of this incarnation of the topic (KIP-516)."""
        ...

    @property
    def partitions(self) -> Mapping[int, PartitionView]:
        """Partitions by number."""
        ...


class EndpointView(Protocol):
    """Where a broker listens: one entry per listener name."""

    @property
    def name(self) -> str:
        """Name of the listener."""
        ...

    @property
    def host(self) -> str:
        """Host that clients are told."""
        ...

    @property
    def port(self) -> int:
        """Port that clients are told."""
        ...


class FeatureRangeView(Protocol):
    """Levels of a feature that a node supports, inclusive."""

    @property
    def min_level(self) -> int:
        """Lowest level supported."""
        ...

    @property
    def max_level(self) -> int:
        """Highest level supported."""
        ...


class BrokerView(Protocol):
    """A registered broker."""

    @property
    def broker_id(self) -> int:
        """Node id."""
        ...

    @property
    def broker_epoch(self) -> int:
        """Offset of the registration record."""
        ...

    @property
    def rack(self) -> str | None:
        """`broker.rack`, None when unset."""
        ...

    @property
    def fenced(self) -> bool:
        """Whether the broker may not lead."""
        ...

    @property
    def in_controlled_shutdown(self) -> bool:
        """Whether the broker is about to stop."""
        ...

    @property
    def endpoints(self) -> Mapping[str, EndpointView]:
        """Where it listens, by listener name."""
        ...

    @property
    def features(self) -> Mapping[str, FeatureRangeView]:
        """Feature levels that it supports, by name."""
        ...


class MetadataView(Protocol):
    """The cluster's metadata at one offset of the metadata log (`metadata.image`)."""

    @property
    def offset(self) -> int:
        """Offset of the last metadata record that this image contains, -1 before the first."""
        ...

    @property
    def finalized_features(self) -> Mapping[str, int]:
        """Levels in force, by feature name."""
        ...

    @property
    def finalized_features_epoch(self) -> int:
        """Offset of the last image in which a feature changed."""
        ...

    @property
    def brokers(self) -> Mapping[int, BrokerView]:
        """Registered brokers by node id."""
        ...

    def topic(self, name: str) -> TopicView | None:
        """Return a topic by name, None when there is none."""
        ...

    def topic_by_id(self, topic_id: Uuid) -> TopicView | None:
        """Return a topic by id, None when there is none."""
        ...

    def topics(self) -> Iterable[TopicView]:
        """Every topic, in name order."""
        ...

    @property
    def configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]:
        """All explicitly set values, by resource type and name."""
        ...

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Explicitly set values; types as in ConfigRecord: 2 topic, 4 broker, 16, 32 group."""
        ...

    @property
    def client_quotas(self) -> Mapping[tuple[tuple[str, str | None], ...], Mapping[str, float]]:
        """Quotas by entity: pairs of type and name, sorted by type; a null name is the default."""
        ...

    @property
    def scram(self) -> Mapping[tuple[str, int], "ScramView"]:
        """SCRAM credentials by user and mechanism."""
        ...

    @property
    def acls(self) -> Mapping[Uuid, AclFields]:
        """Access-control entries by id."""
        ...


class ScramView(Protocol):
    """A SCRAM credential, as far as it may be told."""

    @property
    def iterations(self) -> int:
        """How often the password was hashed."""
        ...
