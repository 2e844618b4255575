"""The records by which a node registers itself when its own controller becomes active.

KIP-631 and KIP-919: the controller registers itself, the broker registers fenced and is unfenced;
then this broker leads its partitions, under a new leader epoch, because after a crash the same
offsets may be written again with other records (KIP-101, KIP-320). At a graceful stop it gives up
what it leads and is fenced. Once in a node's life: a controller that becomes active again finds it
done.

Not here: registering with a controller elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kraft_wire.controller.brokers import elections, shut_down_broker
from kraft_wire.controller.features import (
    CONTROLLERS_FROM,
    DIRECTORIES_FROM,
    SUPPORTED_FEATURES,
)
from kraft_wire.controller.image import BrokerImage, ControllerImage, EndpointImage, MetadataImage
from kraft_wire.controller.node_records import broker_record, controller_record
from kraft_wire.controller.records import VersionedRecord
from kraft_wire.model import Offset, Uuid
from kraft_wire.node.config import NodeConfig
from kraft_wire.node.listeners import Listener
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)

__all__ = ["Registration"]

_UNFENCED: Final = -1
_UNKNOWN: Final = -1
_PLAINTEXT: Final = 0
_RECORDS_PER_BATCH: Final = 1_000


class Registration:
    """What one incarnation of a node says of itself."""

    def __init__(
        self, config: NodeConfig, incarnation_id: Uuid, log_dirs: Sequence[Uuid], *, is_broker: bool
    ) -> None:
        self.broker_epoch = _UNKNOWN
        """Offset of the broker's registration, -1 before it has one."""
        self._config = config
        self._incarnation_id = incarnation_id
        self._log_dirs = tuple(sorted(log_dirs))
        self._is_broker = is_broker

    def arrival(
        self, image: Callable[[], MetadataImage], next_offset: Callable[[], Offset]
    ) -> Iterator[list[VersionedRecord]]:
        """Yield the batches of an arrival, each by the image that has the ones before it.

        `next_offset` is where a batch will stand that is appended as soon as it is yielded.
        """
        node_id = self._config.node_id
        controller = image().controllers.get(node_id)
        is_known = controller is not None and controller.incarnation_id == self._incarnation_id
        if not is_known and image().metadata_version >= CONTROLLERS_FROM:
            yield [self.controller_record()]
        broker = image().brokers.get(node_id)
        is_known = broker is not None and broker.incarnation_id == self._incarnation_id
        if not self._is_broker or is_known:
            return
        self.broker_epoch = next_offset()
        yield [self._broker_record(image(), self.broker_epoch)]
        yield [_unfence(node_id, self.broker_epoch)]
        yield from _batches(elections(image(), node_id))

    def farewell(self, image: MetadataImage) -> Iterator[list[VersionedRecord]]:
        """Yield the batches of a graceful stop, which Kafka's broker asks its controller for."""
        broker = image.brokers.get(self._config.node_id)
        if broker is None or broker.incarnation_id != self._incarnation_id or broker.fenced:
            return
        for records in shut_down_broker(image, self._config.node_id):
            yield from _batches(records)

    def controller_record(self) -> VersionedRecord:
        """Return the controller's registration; without a listener it names no endpoint."""
        listener = self._config.controller_listener
        return controller_record(
            ControllerImage(
                controller_id=self._config.node_id,
                incarnation_id=self._incarnation_id,
                endpoints=_endpoints(() if listener is None else (listener,)),
                features=SUPPORTED_FEATURES,
            )
        )

    def _broker_record(self, image: MetadataImage, broker_epoch: int) -> VersionedRecord:
        """Return the broker's registration, fenced; ids of directories where records have them."""
        level = image.metadata_version
        registered = BrokerImage(
            broker_id=self._config.node_id,
            broker_epoch=broker_epoch,
            incarnation_id=self._incarnation_id,
            endpoints=_endpoints(self._config.listeners),
            features=SUPPORTED_FEATURES,
            rack=self._config.settings.text("broker.rack"),
            fenced=True,
            log_dirs=self._log_dirs if level >= DIRECTORIES_FROM else (),
        )
        return broker_record(registered, level)


def _endpoints(listeners: Iterable[Listener]) -> dict[str, EndpointImage]:
    return {
        each.name: EndpointImage(each.name, each.advertised_host, each.advertised_port, _PLAINTEXT)
        for each in listeners
    }


def _unfence(node_id: int, broker_epoch: int) -> VersionedRecord:
    """Return the record that lets the broker lead."""
    return VersionedRecord(
        BrokerRegistrationChangeRecord(
            broker_id=node_id, broker_epoch=broker_epoch, fenced=_UNFENCED
        )
    )


def _batches(records: Iterable[VersionedRecord]) -> Iterator[list[VersionedRecord]]:
    batch: list[VersionedRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _RECORDS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
