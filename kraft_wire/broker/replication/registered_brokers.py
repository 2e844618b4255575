"""A leader's view of other brokers: epochs, which may be in an ISR, how long they may lag.

KIP-841 and KIP-903: a broker that is fenced or about to stop joins no ISR, nor does one whose
fetches came from another incarnation than the registered one.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.replication.follower_state import NO_BROKER_EPOCH, FollowerState
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage

__all__ = ["RegisteredBrokers"]

_UNREGISTERED: Final = -1


class RegisteredBrokers:
    """The brokers of the newest image, under the newest settings."""

    __slots__ = ("_image", "_settings", "own_epoch")

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        settings: Callable[[], BrokerSettings],
        own_epoch: Callable[[], int],
    ) -> None:
        """Each returns the newest."""
        self.own_epoch = own_epoch
        """Returns the epoch of this broker's incarnation, -1 while it is not registered.

        Not the epoch of the image: a process that slept may be replaced there.
        """
        self._image = image
        self._settings = settings

    @property
    def lag_max_ms(self) -> int:
        """How long ago a member of an ISR may have had everything."""
        return self._settings().replica_lag_time_max_ms

    def epoch_of(self, broker_id: int) -> int:
        """Return the epoch of a broker's registration, -1 without one."""
        broker = self._image().brokers.get(broker_id)
        return _UNREGISTERED if broker is None else broker.broker_epoch

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self._image().brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def is_known_sender(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a fetch offset counts as the end of this broker's log.

        It does not for an unregistered broker, nor for a late fetch of an earlier incarnation.
        """
        registered = self.epoch_of(broker_id)
        if registered == _UNREGISTERED:
            return False
        return broker_epoch == NO_BROKER_EPOCH or broker_epoch >= registered

    def may_join(self, follower: FollowerState) -> bool:
        """Whether a follower that has fetched may be in an ISR."""
        broker = self._image().brokers.get(follower.broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return follower.broker_epoch in (NO_BROKER_EPOCH, broker.broker_epoch)
