"""A controller beside which no broker runs, and brokers that register with it and stay in touch."""

from collections.abc import Mapping, Sequence

from kraft_wire.metadata.features import SUPPORTED_FEATURES
from kraft_wire.metadata.image import PartitionImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.message import Message
from tests.controller.cluster import OneNodeCluster

ELR = "eligible.leader.replicas.version"
LEVELS = {name: (low, high) for name, (low, high) in SUPPORTED_FEATURES.items()}


class BrokerCluster(OneNodeCluster):
    """The controller's id is 1; brokers have other ones. Time is in `now_ms`."""

    def __init__(
        self,
        brokers: Sequence[int] = (),
        *,
        properties: Mapping[str, str] | None = None,
        keeps_elr: bool = False,
    ) -> None:
        super().__init__(properties, brokers=0)
        self.now_ms = 0
        self.epochs: dict[int, int] = {}
        if keeps_elr:
            self.commit([VersionedRecord(FeatureLevelRecord(name=ELR, feature_level=1))])
        for broker_id in brokers:
            assert self.register(broker_id).error_code == ErrorCode.NONE
            assert not self.heartbeat(broker_id).is_fenced

    def request(self, request: Message, version: int | None = None) -> Message:
        """Ask now, in the newest version."""
        return self.ask(request, request.MAX_VERSION if version is None else version, self.now_ms)

    def register(
        self,
        broker_id: int,
        incarnation: int = 1,
        *,
        version: int = 4,
        previous_epoch: int = -1,
        **fields: object,
    ) -> BrokerRegistrationResponse:
        """Register a broker; a success is remembered as its epoch."""
        request = registration(broker_id, incarnation, previous_epoch, **fields)
        answer = self.request(request, version)
        assert isinstance(answer, BrokerRegistrationResponse)
        if answer.error_code == ErrorCode.NONE:
            self.epochs[broker_id] = answer.broker_epoch
        return answer

    def heartbeat(
        self, broker_id: int, *, offset: int | None = None, **fields: object
    ) -> BrokerHeartbeatResponse:
        """Let a broker that follows the log say that it lives."""
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.epochs[broker_id],
            current_metadata_offset=self.loader.last_offset if offset is None else offset,
            **fields,  # type: ignore[arg-type]  # names are the fields' names
        )
        answer = self.request(request)
        assert isinstance(answer, BrokerHeartbeatResponse)
        return answer

    def create(self, name: str, *replicas: Sequence[int]) -> None:
        """Create a topic with chosen replicas."""
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(each))
            for number, each in enumerate(replicas)
        ]
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        answer = self.request(CreateTopicsRequest(topics=[topic]))
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer

    def configure(self, topic: str, name: str, value: str) -> None:
        """Set one of a topic's keys."""
        record = ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)
        self.commit([VersionedRecord(record)])

    def partition(self, name: str = "t", number: int = 0) -> PartitionImage:
        """Return a partition as it is now."""
        return self.loader.image.topics_by_name[name].partitions[number]

    def pass_time(self, by_ms: int, alive: Sequence[int] = ()) -> None:
        """Let time pass, in which only some brokers are heard of, and fence the others."""
        until_ms = self.now_ms + by_ms
        while self.now_ms < until_ms:
            self.now_ms = min(self.now_ms + 1_000, until_ms)
            for broker_id in alive:
                self.heartbeat(broker_id)
            while records := self.controller.stale_broker_records(self.now_ms):
                self.commit(records)

    def written(self, since: int) -> list[Message]:
        """Return the records that were written since so many were."""
        return [each.record for each in self.committed[since:]]


def registration(
    broker_id: int, incarnation: int = 1, previous_epoch: int = -1, **fields: object
) -> BrokerRegistrationRequest:
    """Return a registration that nothing is wrong with, but for what is given."""
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="",
        incarnation_id=Uuid(incarnation.to_bytes(16)),
        listeners=[Listener(name="PLAINTEXT", host="here", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in LEVELS.items()
        ],
        log_dirs=[directory(broker_id)],
        previous_broker_epoch=previous_epoch,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def directory(broker_id: int, number: int = 0) -> Uuid:
    """Return the id of a broker's log directory."""
    return Uuid((1_000 * (broker_id + 1) + number).to_bytes(16))
