"""Whether a broker serves streams groups: a cluster's feature and the broker's own setting."""

from typing import Final

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.features import STREAMS_VERSION
from kraft_wire.metadata.image import MetadataImage

__all__ = ["serves_streams_groups"]

_PROTOCOL: Final = "streams"


def serves_streams_groups(image: MetadataImage, settings: BrokerSettings) -> bool:
    """Whether `streams.version` is finalised, and the broker's rebalance protocols name them.

    The setting is `group.coordinator.rebalance.protocols`; Kafka compares without regard to case.
    """
    protocols = settings.group_coordinator_rebalance_protocols
    is_finalized = image.finalized_features.get(STREAMS_VERSION, 0) > 0
    return is_finalized and _PROTOCOL in (each.lower() for each in protocols)
