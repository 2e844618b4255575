"""An image as the records of a snapshot, whose replay gives the same image.

KIP-630; sections in the order of release 4.3.1: features with metadata.version first, brokers,
controllers, topics each with its partitions, configurations, quotas, the next producer id,
access-control entries, SCRAM credentials, delegation tokens. Inside a section everything is in the
order of its keys, so that equal images give equal snapshots (Apache's order is a hash table's).
Each record has the version that the finalised metadata.version allows; a value without an allowed
version is refused by name, never left out.

Not here: header, footer and voters of the file, written by the quorum (`storage.snapshots`).
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.metadata.features import (
    CONTROLLERS_FROM,
    CORDONED_FROM,
    DIRECTORIES_FROM,
    METADATA_VERSION,
    SCRAM_FROM,
    TOKENS_FROM,
)
from kraft_wire.metadata.image import (
    AclImage,
    DelegationTokenImage,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    ScramImage,
    TopicImage,
)
from kraft_wire.metadata.node_records import broker_record, controller_record
from kraft_wire.metadata.records import (
    VersionedRecord,
    encode_record,
    partition_record_version,
)
from kraft_wire.metadata.sliced_order import SlicedOrder
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.delegation_token_record import DelegationTokenRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.wire.generated.zk_migration_state_record import ZkMigrationStateRecord

__all__ = [
    "ImageOrder",
    "UnwritableImage",
    "acl_record",
    "snapshot_values",
    "token_record",
]

_ELR_RECORD_VERSION: Final = 2
"""PartitionRecord's first version with eligible leader replicas."""


class UnwritableImage(Exception):
    """The image has a value without a record in the finalised metadata.version."""

    def __init__(self, what: str, metadata_version: int) -> None:
        super().__init__(f"metadata.version {metadata_version} cannot carry {what}")
        assert what, "it has a name"


class ImageOrder:
    """The order of an image's records, computed in short steps for any size of image."""

    def __init__(self, image: MetadataImage) -> None:
        self.topics = SlicedOrder(image.topics_by_name)
        self.configs = SlicedOrder(image.configs)
        self.quotas = SlicedOrder(image.client_quotas, _quota_rank)
        self.acls = SlicedOrder(image.acls)
        self.scram = SlicedOrder(image.scram)
        self.tokens = SlicedOrder(image.delegation_tokens)

    def steps(self) -> Iterator[None]:
        """Do one step of the work for each item."""
        sections = (self.topics, self.configs, self.quotas, self.acls, self.scram, self.tokens)
        for section in sections:
            while section.step():
                yield


def _quota_rank(entity: QuotaEntity) -> list[tuple[str, bool, str]]:
    """Sort default entities, whose name is None, before the named ones."""
    assert entity, "it has an entity name"
    return [(kind, name is not None, name or "") for kind, name in entity]


def snapshot_values(image: MetadataImage, order: ImageOrder | None = None) -> Iterator[bytes]:
    """Yield the records, as bytes, whose replay gives this image except its offset and epoch.

    Without an `order` of the image the first record waits for the sort.
    Errors: UnwritableImage for a value that the finalised metadata.version has no record for.
    """
    assert image.metadata_version >= 0, image.metadata_version
    return map(encode_record, _records(image, order))


def _records(image: MetadataImage, order: ImageOrder | None) -> Iterator[VersionedRecord]:
    """Yield the records; each is valid until the next one.

    There may be a million quotas and configurations, and a new object for each would cost more
    than its encoding.
    """
    level = image.metadata_version
    assert level >= 0, level
    if level == 0 and image.offset >= 0:
        raise UnwritableImage("any record", level)
    order = order or ImageOrder(image)
    yield from _features(image)
    yield from _nodes(image, level)
    for name in order.topics:
        yield from _topic(image.topics_by_name[name], level)
    yield from _configs(image, order)
    yield from _quotas(image, order)
    if image.next_producer_id > 0:
        yield VersionedRecord(
            ProducerIdsRecord(
                broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
            )
        )
    for acl_id in order.acls:
        yield acl_record(acl_id, image.acls[acl_id])
    yield from _scram(image, order, level)
    yield from _tokens(image, order, level)


def _features(image: MetadataImage) -> Iterator[VersionedRecord]:
    levels = image.finalized_features
    for name in sorted(levels, key=lambda each: (each != METADATA_VERSION, each)):
        assert levels[name] > 0, name
        yield VersionedRecord(FeatureLevelRecord(name=name, feature_level=levels[name]))
    if image.zk_migration_state:  # of a log that 3.x created; 4.x reads and ignores it
        state = ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)
        yield VersionedRecord(state)


def _nodes(image: MetadataImage, level: int) -> Iterator[VersionedRecord]:
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        if broker.log_dirs:
            _check_level(level, DIRECTORIES_FROM, "log directories of a broker")
        if broker.cordoned_log_dirs is not None:
            _check_level(level, CORDONED_FROM, "cordoned log directories of a broker")
        yield broker_record(broker, level)
    if image.controllers:
        _check_level(level, CONTROLLERS_FROM, "registrations of controllers")
    for controller_id in sorted(image.controllers):
        assert image.controllers[controller_id].controller_id == controller_id
        yield controller_record(image.controllers[controller_id])


def _topic(topic: TopicImage, level: int) -> Iterator[VersionedRecord]:
    yield VersionedRecord(TopicRecord(name=topic.name, topic_id=topic.topic_id))
    version = partition_record_version(level) if topic.partitions else 0
    for number, partition in topic.partitions.items():
        assert number == partition.partition, (topic.name, number)
        if not version and any(each != ZERO_UUID for each in partition.directories):
            raise UnwritableImage("directories of replicas", level)
        yield VersionedRecord(_partition(topic.topic_id, partition, version), version)


def _partition(topic_id: Uuid, partition: PartitionImage, version: int) -> PartitionRecord:
    """Return the record of one partition.

    Eligible leader replicas are left out below version 2, as by Apache: elections of such a
    metadata.version do not use them.
    """
    assert 0 <= version <= PartitionRecord.MAX_VERSION, version
    has_elr = version >= _ELR_RECORD_VERSION
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if version else [],
        eligible_leader_replicas=(list(partition.eligible_leader_replicas) or None)
        if has_elr
        else None,
        last_known_elr=(list(partition.last_known_elr) or None) if has_elr else None,
    )


def _configs(image: MetadataImage, order: ImageOrder) -> Iterator[VersionedRecord]:
    configs, record = image.configs, ConfigRecord()
    reused = VersionedRecord(record)
    for resource in order.configs:
        values = configs[resource]
        assert values, resource
        record.resource_type, record.resource_name = resource
        for record.name in sorted(values):
            record.value = values[record.name]
            yield reused


def _quotas(image: MetadataImage, order: ImageOrder) -> Iterator[VersionedRecord]:
    quotas, record = image.client_quotas, ClientQuotaRecord()
    reused, parts = VersionedRecord(record), record.entity
    for entity in order.quotas:
        values = quotas[entity]
        assert values, entity
        if len(parts) != len(entity):
            parts[:] = [EntityData() for _ in entity]
        for part, (kind, name) in zip(parts, entity, strict=True):
            part.entity_type, part.entity_name = kind, name
        for record.key in sorted(values):
            record.value = values[record.key]
            yield reused


def acl_record(acl_id: Uuid, acl: AclImage) -> VersionedRecord:
    """Return the record of one access-control entry."""
    assert acl.resource_name, acl
    record = AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
    return VersionedRecord(record)


def _scram(image: MetadataImage, order: ImageOrder, level: int) -> Iterator[VersionedRecord]:
    if image.scram:
        _check_level(level, SCRAM_FROM, "SCRAM credentials")
    for name, mechanism in order.scram:
        assert (name, mechanism) in image.scram, "the order is that of another image"
        credential: ScramImage = image.scram[name, mechanism]
        record = UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
        yield VersionedRecord(record)


def _tokens(image: MetadataImage, order: ImageOrder, level: int) -> Iterator[VersionedRecord]:
    if image.delegation_tokens:
        _check_level(level, TOKENS_FROM, "delegation tokens")
    for token_id in order.tokens:
        yield token_record(token_id, image.delegation_tokens[token_id])


def token_record(token_id: str, token: DelegationTokenImage) -> VersionedRecord:
    """Return the record of one delegation token."""
    assert isinstance(token.renewers, tuple), token
    record = DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=token.expiration_timestamp,
        token_id=token_id,
    )
    return VersionedRecord(record)


def _check_level(level: int, needed: int, what: str) -> None:
    assert needed > 0, needed
    if level < needed:
        raise UnwritableImage(what, level)
