"""Registrations of one incarnation of a node, as controller and as broker.

KIP-631 and KIP-919. The controller's registration is a record if this controller becomes active,
and a request to another one; the broker's is always a request. Not here: when it is sent, and to
which controller (`broker_lifecycle`, `quorum_node`).
"""

from collections.abc import Iterable, Iterator, Sequence

from kraft_wire.controller.controller import Controller
from kraft_wire.metadata.features import (
    CONTROLLERS_FROM,
    SUPPORTED_FEATURES,
)
from kraft_wire.metadata.image import ControllerImage, EndpointImage, MetadataImage
from kraft_wire.metadata.node_records import controller_record
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.node.config.listener_protocols import SECURITY_PROTOCOLS
from kraft_wire.node.config.listeners import Listener
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.wire.generated import broker_registration
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationRequest

__all__ = ["Registration"]


class Registration:
    """The registrations of one incarnation of a node."""

    def __init__(
        self,
        config: NodeConfig,
        cluster_id: str,
        incarnation_id: Uuid,
        log_dirs: Sequence[Uuid],
        previous_broker_epoch: int,
    ) -> None:
        """`previous_broker_epoch` is that of an incarnation that stopped cleanly, else -1."""
        self._config = config
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._log_dirs = sorted(log_dirs)
        self._previous_broker_epoch = previous_broker_epoch

    def arrival(self, controller: Controller) -> Iterator[list[VersionedRecord]]:
        """Yield the batch by which this controller registers itself when it becomes active."""
        image = controller.image
        if not self.is_known_in(image) and image.metadata_version >= CONTROLLERS_FROM:
            yield [self.controller_record()]

    def is_known_in(self, image: MetadataImage) -> bool:
        """Whether an image has the registration of this incarnation of the controller."""
        known = image.controllers.get(self._config.node_id)
        return known is not None and known.incarnation_id == self._incarnation_id

    def controller_record(self) -> VersionedRecord:
        """Return the controller's registration; without a listener it has no endpoint."""
        listener = self._config.controller_listener
        return controller_record(
            ControllerImage(
                controller_id=self._config.node_id,
                incarnation_id=self._incarnation_id,
                endpoints=_endpoints(() if listener is None else (listener,)),
                features=SUPPORTED_FEATURES,
                zk_migration_ready=False,
            )
        )

    def is_registered(self, image: MetadataImage) -> bool:
        """Return whether an image has this incarnation of the broker."""
        broker = image.brokers.get(self._config.node_id)
        return broker is not None and broker.incarnation_id == self._incarnation_id

    def replaced_at(self, image: MetadataImage, broker_epoch: int) -> int | None:
        """Return the epoch of another incarnation that was registered after `broker_epoch`.

        None without one: a broker that was only unregistered has not been replaced.
        """
        broker = image.brokers.get(self._config.node_id)
        if broker is None or broker.incarnation_id == self._incarnation_id:
            return None
        return broker.broker_epoch if broker.broker_epoch > broker_epoch else None

    def broker_request(self) -> BrokerRegistrationRequest:
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


def _endpoints(listeners: Iterable[Listener]) -> dict[str, EndpointImage]:
    return {
        each.name: EndpointImage(
            each.name,
            each.advertised_host,
            each.advertised_port,
            SECURITY_PROTOCOLS.index(each.protocol),
        )
        for each in listeners
    }
