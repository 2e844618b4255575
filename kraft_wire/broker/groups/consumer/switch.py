"""Whether a broker serves consumer groups: a cluster's feature and the broker's own setting."""

from typing import Final

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.features import GROUP_VERSION
from kraft_wire.metadata.image import MetadataImage

__all__ = ["serves_consumer_groups"]

_PROTOCOL: Final = "consumer"


def serves_consumer_groups(image: MetadataImage, settings: BrokerSettings) -> bool:
    """Whether `group.version` is finalised, and `group.coordinator.rebalance.protocols` names them.

    Kafka compares the protocols without regard to case.
    """
    protocols = settings.group_coordinator_rebalance_protocols
    is_finalized = image.finalized_features.get(GROUP_VERSION, 0) > 0
    return is_finalized and _PROTOCOL in (each.lower() for each in protocols)
