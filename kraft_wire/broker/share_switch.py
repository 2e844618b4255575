"""Whether a cluster has share groups: clients' requests about them are refused otherwise."""

from kraft_wire.metadata.features import SHARE_VERSION
from kraft_wire.metadata.image import MetadataImage

__all__ = ["serves_share_groups"]


def serves_share_groups(image: MetadataImage) -> bool:
    """Whether `share.version` is finalised (KIP-932).

    `group.coordinator.rebalance.protocols` does not matter.
    """
    return image.finalized_features.get(SHARE_VERSION, 0) > 0
