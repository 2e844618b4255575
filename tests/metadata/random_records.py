"""Random but consistent histories of a cluster: records that never contradict each other."""

from collections.abc import Callable
from random import Random

from kraft_wire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import (
    VersionedRecord,
    partition_record_version,
    register_broker_version,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.delegation_token_record import DelegationTokenRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.fence_broker_record import FenceBrokerRecord
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.wire.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.wire.generated.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.wire.message import Message

Made = VersionedRecord | None

SCRAM, TOKENS, CONTROLLERS, DIRECTORIES, ELR, CORDONED = 11, 14, 15, 17, 23, 30
"""metadata.version since which a log may contain these."""


class History:
    """Draws one record after the other, each possible in the image that the last one left."""

    def __init__(self, seed: int, level: int = 30) -> None:
        self.random = Random(seed)
        self.level = level
        """The finalised metadata.version; only what it can carry is drawn."""
        self.loader = MetadataLoader()
        self.records: list[VersionedRecord] = []
        self.add(FeatureLevelRecord(name="metadata.version", feature_level=level))

    @property
    def image(self) -> MetadataImage:
        """What the records so far amount to."""
        return self.loader.image

    def add(self, record: Message, version: int = 0) -> None:
        """Append a record."""
        self.records.append(VersionedRecord(record, version))
        self.loader.replay_batch([record], self.loader.last_offset + 1, 1)

    def grow(self, count: int) -> None:
        """Append that many records, some kinds more often than others."""
        while count:
            made = self.random.choice(_MAKERS)(self)
            if made is not None:
                self.add(*made)
                count -= 1

    # -- draws -----------------------------------------------------------------------------------

    def uuid(self) -> Uuid:
        return Uuid(bytes([1]) + self.random.randbytes(15))

    def uuids(self) -> list[Uuid]:
        return [self.uuid() for _ in range(self.random.randrange(4))]

    def numbers(self) -> list[int]:
        return self.random.sample(range(1, 7), self.random.randrange(1, 4))

    def maybe_numbers(self) -> list[int] | None:
        return self.numbers() if self.random.random() < 0.5 else None

    def topic(self) -> TopicImage | None:
        topics = list(self.image.topics())
        return self.random.choice(topics) if topics else None

    def partition(self) -> tuple[TopicImage, PartitionImage] | None:
        topic = self.topic()
        if topic is None or not topic.partitions:
            return None
        return topic, self.random.choice(list(topic.partitions.values()))

    def word(self, *words: str) -> str:
        return self.random.choice(words)


def _broker(h: History) -> Made:
    ends = [BrokerEndpoint(name=n, host=h.word("a", "b"), port=9) for n in ("X", "Y")]
    features = [BrokerFeature(name="metadata.version", max_supported_version=30)]
    record = RegisterBrokerRecord(
        broker_id=h.random.randrange(1, 5),
        incarnation_id=h.uuid(),
        broker_epoch=h.loader.last_offset + 1,
        end_points=ends[: h.random.randrange(1, 3)],
        features=features,
        rack=h.word("r1", "r2") if h.random.random() < 0.5 else None,
        fenced=h.random.random() < 0.5,
        in_controlled_shutdown=h.random.random() < 0.2,
        log_dirs=h.uuids() if h.level >= DIRECTORIES else [],
        cordoned_log_dirs=h.uuids() if h.level >= CORDONED and h.random.random() < 0.5 else None,
    )
    return VersionedRecord(record, register_broker_version(h.level))


def _broker_change(h: History) -> Made:
    if not h.image.brokers:
        return None
    broker = h.random.choice(list(h.image.brokers.values()))
    kind = h.random.randrange(4)
    own = {"broker_id": broker.broker_id, "broker_epoch": broker.broker_epoch}
    if kind == 0:
        return VersionedRecord(UnregisterBrokerRecord(**own))
    if kind == 1:
        legacy = h.random.choice((FenceBrokerRecord, UnfenceBrokerRecord))
        return VersionedRecord(legacy(id=broker.broker_id, epoch=broker.broker_epoch))
    change = BrokerRegistrationChangeRecord(
        fenced=h.random.randrange(-1, 2),
        in_controlled_shutdown=h.random.randrange(2),
        log_dirs=h.uuids() if h.level >= DIRECTORIES else [],
        cordoned_log_dirs=h.uuids() if h.level >= CORDONED and kind == 2 else None,
        **own,
    )
    return VersionedRecord(change, 1 + (h.level >= DIRECTORIES) + (h.level >= CORDONED))


def _controller(h: History) -> Made:
    if h.level < CONTROLLERS:
        return None
    record = RegisterControllerRecord(
        controller_id=h.random.randrange(1, 4),
        incarnation_id=h.uuid(),
        zk_migration_ready=False,
        end_points=[ControllerEndpoint(name="C", host="h", port=h.random.randrange(1, 99))],
        features=[ControllerFeature(name="kraft.version", max_supported_version=1)],
    )
    return VersionedRecord(record)


def _topic(h: History) -> Made:
    name = f"t{h.random.randrange(12)}"
    if h.image.topic(name) is not None:
        return None
    return VersionedRecord(TopicRecord(name=name, topic_id=h.uuid()))


def _remove_topic(h: History) -> Made:
    topic = h.topic()
    if topic is None or h.random.random() < 0.6:
        return None
    return VersionedRecord(RemoveTopicRecord(topic_id=topic.topic_id))


def _partition(h: History) -> Made:
    topic = h.topic()
    if topic is None:
        return None
    replicas = h.numbers()
    record = PartitionRecord(
        topic_id=topic.topic_id,
        partition_id=len(topic.partitions),
        replicas=replicas,
        isr=replicas[:1],
        removing_replicas=h.numbers() if h.random.random() < 0.2 else [],
        adding_replicas=h.numbers() if h.random.random() < 0.2 else [],
        leader=replicas[0],
        leader_recovery_state=h.random.randrange(2),
        leader_epoch=h.random.randrange(5),
        partition_epoch=h.random.randrange(5),
        directories=[h.uuid() for _ in replicas] if h.level >= DIRECTORIES else [],
        eligible_leader_replicas=h.maybe_numbers() if h.level >= ELR else None,
        last_known_elr=h.maybe_numbers() if h.level >= ELR else None,
    )
    return VersionedRecord(record, partition_record_version(h.level))


def _partition_change(h: History) -> Made:
    found = h.partition()
    if found is None:
        return None
    topic, partition = found
    replicas = h.maybe_numbers()
    count = len(partition.replicas if replicas is None else replicas)
    record = PartitionChangeRecord(
        topic_id=topic.topic_id,
        partition_id=partition.partition,
        replicas=replicas,
        directories=(
            None if replicas is None or h.level < DIRECTORIES else [h.uuid() for _ in range(count)]
        ),
        isr=h.maybe_numbers(),
        leader=h.random.choice((-2, -2, -1, 1, 2)),
        leader_recovery_state=h.random.choice((-1, 0, 1)),
        removing_replicas=h.maybe_numbers(),
        adding_replicas=h.maybe_numbers(),
        eligible_leader_replicas=h.maybe_numbers() if h.level >= ELR else None,
        last_known_elr=h.maybe_numbers() if h.level >= ELR else None,
    )
    return VersionedRecord(record, partition_record_version(h.level))


def _clear_elr(h: History) -> Made:
    topic = h.topic()
    if h.random.random() < 0.8 or topic is None or h.level < ELR:
        return None
    name = topic.name if h.random.random() < 0.7 else ""
    return VersionedRecord(ClearElrRecord(topic_name=name))


def _config(h: History) -> Made:
    kind = h.random.choice((2, 4, 16, 32))
    topic = h.topic()
    if kind == 2 and topic is None:
        return None
    name = topic.name if kind == 2 and topic is not None else h.word("1", "2", "x")
    value = h.word("1", "", "long") if h.random.random() < 0.7 else None
    record = ConfigRecord(
        resource_type=kind, resource_name=name, name=h.word("k", "l", "m"), value=value
    )
    return VersionedRecord(record)


def _feature(h: History) -> Made:
    name = h.word("group.version", "share.version", "transaction.version")
    return VersionedRecord(FeatureLevelRecord(name=name, feature_level=h.random.randrange(2)))


def _quota(h: History) -> Made:
    parts = [
        EntityData(entity_type=kind, entity_name=h.random.choice((None, "a", "b")))
        for kind in h.random.choices(("user", "client-id", "ip"), k=h.random.randrange(1, 4))
    ]
    key = h.word("producer_byte_rate", "consumer_byte_rate")
    entity = tuple(sorted({part.entity_type: part.entity_name for part in parts}.items()))
    remove = key in h.image.client_quotas.get(entity, {}) and h.random.random() < 0.5
    value = 0.0 if remove else h.random.random() * 1e6
    return VersionedRecord(ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove))


def _producer_ids(h: History) -> Made:
    start = h.image.next_producer_id + 1_000
    return VersionedRecord(ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=start))


def _acl(h: History) -> Made:
    if h.image.acls and h.random.random() < 0.4:
        acl_id = h.random.choice(list(h.image.acls))
        return VersionedRecord(RemoveAccessControlEntryRecord(id=acl_id))
    record = AccessControlEntryRecord(
        id=h.uuid(),
        resource_type=h.random.randrange(2, 5),
        resource_name=h.word("r", "s"),
        pattern_type=h.random.randrange(3, 5),
        principal=f"User:{h.word('a', 'b')}",
        host="*",
        operation=h.random.randrange(2, 8),
        permission_type=h.random.randrange(2, 4),
    )
    return VersionedRecord(record)


def _scram(h: History) -> Made:
    if h.level < SCRAM:
        return None
    if h.image.scram and h.random.random() < 0.4:
        name, mechanism = h.random.choice(list(h.image.scram))
        return VersionedRecord(RemoveUserScramCredentialRecord(name=name, mechanism=mechanism))
    record = UserScramCredentialRecord(
        name=h.word("al", "bo"),
        mechanism=h.random.randrange(1, 3),
        salt=h.random.randbytes(8),
        stored_key=h.random.randbytes(32),
        server_key=h.random.randbytes(32),
        iterations=h.random.randrange(4096, 9000),
    )
    return VersionedRecord(record)


def _token(h: History) -> Made:
    if h.level < TOKENS:
        return None
    if h.image.delegation_tokens and h.random.random() < 0.4:
        token_id = h.random.choice(list(h.image.delegation_tokens))
        return VersionedRecord(RemoveDelegationTokenRecord(token_id=token_id))
    record = DelegationTokenRecord(
        owner="User:a",
        requester="User:b",
        renewers=[f"User:{name}" for name in ("c", "d")[: h.random.randrange(3)]],
        issue_timestamp=1,
        max_timestamp=99,
        expiration_timestamp=h.random.randrange(2, 99),
        token_id=h.word("k1", "k2", "k3"),
    )
    return VersionedRecord(record)


def _no_op(h: History) -> Made:
    return VersionedRecord(NoOpRecord())


_MAKERS: list[Callable[[History], Made]] = [
    *[_broker, _broker_change, _controller, _topic, _topic, _remove_topic, _clear_elr, _config],
    *[_partition, _partition, _partition_change, _partition_change, _partition_change, _config],
    *[_feature, _quota, _quota, _producer_ids, _acl, _acl, _scram, _scram, _token, _token, _no_op],
]
