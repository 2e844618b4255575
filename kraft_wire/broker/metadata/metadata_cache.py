"""The parts of the metadata image for clients: brokers, leaders, topics.

Pure functions over an image; nothing is kept. A client gets the endpoints of the listener that it
is connected to (KIP-103), and only brokers that are not fenced.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kraft_wire.apis.rights import AclOperation
from kraft_wire.metadata.directory_ids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from kraft_wire.metadata.image import (
    BrokerImage,
    EndpointImage,
    MetadataImage,
    PartitionImage,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "ADMIN_CLIENT",
    "CLUSTER_OPERATIONS",
    "NO_OPERATIONS",
    "OFFSETS_TOPIC",
    "SHARE_STATE_TOPIC",
    "TOPIC_OPERATIONS",
    "TRANSACTION_TOPIC",
    "AliveBroker",
    "CurrentLeader",
    "alive_brokers",
    "current_leader",
    "endpoint_of",
    "is_internal",
    "no_replica_error",
    "offline_replicas",
    "operation_bits",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
ADMIN_CLIENT: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""

NO_OPERATIONS: Final = -(1 << 31)
"""`authorized_operations` of an answer that was not asked for them (KIP-430)."""

_NOT_KNOWN_YET: Final = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)


def operation_bits(operations: Iterable[int]) -> int:
    """Return the bit field of KIP-430 for ACL operation codes."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = operation_bits(
    (
        *(AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE),
        *(AclOperation.ALTER, AclOperation.DESCRIBE),
        *(AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
    )
)
CLUSTER_OPERATIONS: Final = operation_bits(
    (
        *(
            AclOperation.CREATE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
        ),
        *(AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.IDEMPOTENT_WRITE),
    )
)
"""Without an authorizer every principal may do every operation of a resource."""


class AliveBroker(NamedTuple):
    """A broker that serves the listener asked for."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeader(NamedTuple):
    """The leader of a partition; host is None if that broker cannot be reached."""

    broker_id: int
    leader_epoch: int
    host: str | None = None
    port: int = -1
    rack: str | None = None


def is_internal(topic: str) -> bool:
    """Whether clients may not write to a topic."""
    return topic in INTERNAL_TOPICS


def endpoint_of(broker: BrokerImage, listener: str) -> EndpointImage | None:
    """Return a broker's endpoint of a listener, None if the broker is fenced or has none."""
    return None if broker.fenced else broker.endpoints.get(listener)


def alive_brokers(image: MetadataImage, listener: str) -> list[AliveBroker]:
    """Return the brokers that a client of a listener can reach, by id."""
    alive = []
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        endpoint = endpoint_of(broker, listener)
        if endpoint is not None:
            alive.append(AliveBroker(broker_id, endpoint.host, endpoint.port, broker.rack))
    return alive


def current_leader(
    image: MetadataImage, topic: str, partition: int, listener: str
) -> CurrentLeader:
    """Return the leader of a partition in the newest image, -1 for none."""
    found = image.topic(topic)
    view = None if found is None else found.partitions.get(partition)
    if view is None:
        return CurrentLeader(-1, -1)
    broker = image.brokers.get(view.leader)
    endpoint = None if broker is None else endpoint_of(broker, listener)
    if broker is None or endpoint is None:
        return CurrentLeader(view.leader, view.leader_epoch)
    return CurrentLeader(view.leader, view.leader_epoch, endpoint.host, endpoint.port, broker.rack)


def no_replica_error(image: MetadataImage, topic: str, partition: int) -> ErrorCode:
    """Return the error for a partition without a replica here, by whether others may have one."""
    found = image.topic(topic)
    if found is None or partition not in found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def offline_replicas(image: MetadataImage, view: PartitionImage, listener: str) -> list[int]:
    """Return the replicas that a client cannot reach, or whose directory has failed (KIP-112)."""
    offline = []
    for at, replica in enumerate(view.replicas):
        broker = image.brokers.get(replica)
        if (
            broker is None
            or endpoint_of(broker, listener) is None
            or (view.directories and _has_failed(broker, view.directories[at]))
        ):
            offline.append(replica)
    return offline


def _has_failed(broker: BrokerImage, directory: Uuid) -> bool:
    """Whether a replica's log directory is lost: the opposite of Kafka's `DirectoryId.isOnline`.

    A broker that never listed its directories may have all of them.
    """
    if directory == LOST_DIRECTORY:
        return True
    is_listed = directory in broker.log_dirs or directory in _NOT_KNOWN_YET
    return bool(broker.log_dirs) and not is_listed
