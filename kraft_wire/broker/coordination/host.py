"""The parts of a broker that coordinators are built from: what `Broker` is to them."""

from typing import Any, Protocol

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.producing.producer_ids import ProducerIds
from kraft_wire.broker.purgatory import DelayedOperationPurgatory
from kraft_wire.broker.replicas import Replicas
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource, ReportEvent
from kraft_wire.wire.message import Message

__all__ = ["CoordinatorHost"]


class CoordinatorHost(Protocol):
    """A broker, which documents the members."""

    node_id: int
    settings: BrokerSettings
    image: MetadataImage
    random_source: RandomSource
    report: ReportEvent
    producer_ids: ProducerIds
    produce_purgatory: DelayedOperationPurgatory
    replicas: Replicas
    inter_broker_clients: list[InterBrokerClient]
    followers: list[Any]

    @property
    def now_ms(self) -> int: ...

    @property
    def ask_controller(self) -> AskController: ...

    def partition(self, topic: str, partition: int, /) -> Partition | None: ...

    def complete(self, reply_to: ReplyTo, response: Message, /) -> None: ...
