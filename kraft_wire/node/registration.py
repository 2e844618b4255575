"""What a node says of itself when its own controller becomes active, and when it stops.

KIP-631 and KIP-919: the controller registers itself; the broker registers and is unfenced by the
handlers that answer brokers elsewhere, asked here without a wire. Where its former incarnation
still leads, others do or nobody does; then this one leads, under a new leader epoch, because after
a crash the same offsets may be written again with other records (KIP-101, KIP-320). At a graceful
stop it gives up what it leads and is fenced. A controller that becomes active again finds its
broker registered, and unfences it where another controller had fenced it.

Not here: registering with a controller elsewhere; when heartbeats go to it (`quorum_part`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kraft_wire.controller.broker_registration import register
from kraft_wire.controller.controller import Controller
from kraft_wire.controller.features import CONTROLLERS_FROM, SUPPORTED_FEATURES
from kraft_wire.controller.image import BrokerImage, ControllerImage, EndpointImage
from kraft_wire.controller.node_records import controller_record
from kraft_wire.controller.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.node.config import NodeConfig
from kraft_wire.node.listeners import Listener
from kraft_wire.wire.generated import broker_registration
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationRequest
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Registration"]

_UNKNOWN: Final = -1
_PLAINTEXT: Final = 0
_RECORDS_PER_BATCH: Final = 1_000


class _Moment(NamedTuple):
    """A request of this node's own, as the controller's context."""

    api_version: int


class Registration:
    """What one incarnation of a node says of itself."""

    def __init__(
        self,
        config: NodeConfig,
        cluster_id: str,
        incarnation_id: Uuid,
        log_dirs: Sequence[Uuid],
        *,
        is_broker: bool,
        previous_broker_epoch: int,
    ) -> None:
        """`previous_broker_epoch` is that of a former life that ended cleanly, else -1."""
        self.broker_epoch = _UNKNOWN
        """The epoch of the broker's registration, -1 before it has one."""
        self._config = config
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._log_dirs = sorted(log_dirs)
        self._is_broker = is_broker
        self._previous_broker_epoch = previous_broker_epoch

    def arrival(self, controller: Controller, now_ms: int) -> Iterator[list[VersionedRecord]]:
        """Yield the batches of an arrival, each by the image that has the ones before it."""
        image, node_id = controller.image, self._config.node_id
        known = image.controllers.get(node_id)
        is_known = known is not None and known.incarnation_id == self._incarnation_id
        if not is_known and image.metadata_version >= CONTROLLERS_FROM:
            yield [self.controller_record()]
        if not self._is_broker:
            return
        if self._own_broker(controller) is None:
            registered = register(controller, self._request(), self._previous_broker_epoch)
            yield from _batches(registered.records)
        broker = self._own_broker(controller)
        if broker is not None and broker.fenced:
            wish = self.heartbeat(controller.image.offset)
            yield from _decided(controller, wish, now_ms)

    def farewell(self, controller: Controller, now_ms: int) -> Iterator[list[VersionedRecord]]:
        """Yield the batches of a graceful stop, which Kafka's broker asks its controller for."""
        for want_fence in (False, True):
            broker = self._own_broker(controller)
            if broker is None or broker.fenced:
                return
            wish = self.heartbeat(controller.image.offset)
            wish.want_shut_down, wish.want_fence = True, want_fence
            yield from _decided(controller, wish, now_ms)

    def heartbeat(self, metadata_offset: int) -> BrokerHeartbeatRequest:
        """Return what a broker that serves says again and again."""
        assert self.broker_epoch >= 0, "a broker that registered"
        return BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=metadata_offset,
        )

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

    def _own_broker(self, controller: Controller) -> BrokerImage | None:
        """Return this very incarnation of the broker, None where it has not registered."""
        broker = controller.image.brokers.get(self._config.node_id)
        if broker is None or broker.incarnation_id != self._incarnation_id:
            return None
        self.broker_epoch = broker.broker_epoch
        return broker

    def _request(self) -> BrokerRegistrationRequest:
        """Return the broker's registration."""
        return BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                broker_registration.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in _endpoints(self._config.listeners).values()
            ],
            features=[
                broker_registration.Feature(
                    name=name,
                    min_supported_version=levels.min_level,
                    max_supported_version=levels.max_level,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=self._config.settings.text("broker.rack"),
            log_dirs=self._log_dirs,
            previous_broker_epoch=self._previous_broker_epoch,
        )


def _decided(
    controller: Controller, wish: BrokerHeartbeatRequest, now_ms: int
) -> Iterator[list[VersionedRecord]]:
    """Yield what the controller decides as if the heartbeat had come from elsewhere."""
    result = controller.handle(_Moment(wish.MAX_VERSION), wish, now_ms, 0)
    assert isinstance(result.response, BrokerHeartbeatResponse), result
    assert result.response.error_code == ErrorCode.NONE, result.response
    yield from _batches(result.records)


def _endpoints(listeners: Iterable[Listener]) -> dict[str, EndpointImage]:
    return {
        each.name: EndpointImage(each.name, each.advertised_host, each.advertised_port, _PLAINTEXT)
        for each in listeners
    }


def _batches(records: Iterable[VersionedRecord]) -> Iterator[list[VersionedRecord]]:
    batch: list[VersionedRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _RECORDS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
