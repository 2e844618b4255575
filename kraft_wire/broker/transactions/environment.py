"""The state that all shards of the transaction coordinator share."""

from collections.abc import Callable

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.transactions.markers import MarkerSender
from kraft_wire.frozen import frozen
from kraft_wire.model import ReportEvent

__all__ = ["TransactionEnvironment"]


@frozen
class TransactionEnvironment:
    """The neighbors of a shard, its log apart."""

    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    transaction_version: Callable[[], int]
    """Returns the finalized level of the feature, 0 without one."""
    take_producer_id: Callable[[int], int | None]
    """Takes a monotonic time; returns None until the controller has sent a block of ids."""
    coordinator_epoch: Callable[[int], int]
    """Returns the leader epoch of a partition of `__transaction_state`."""
    markers: MarkerSender
    report: ReportEvent
