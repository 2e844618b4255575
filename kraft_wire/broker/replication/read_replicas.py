"""Chooses the replica that a consumer should read from: one in its own rack (KIP-392).

`replica.selector.class` names the rule; of Kafka's two, RackAwareReplicaSelector is supported.
Without a class all consumers read from the leader. Other classes cannot be loaded.
"""

from kraft_wire.broker.metadata.metadata_cache import endpoint_of
from kraft_wire.broker.partition import Partition
from kraft_wire.metadata.image import MetadataImage

__all__ = ["preferred_read_replica"]


def preferred_read_replica(
    image: MetadataImage, partition: Partition, fetch_offset: int, rack: str, listener: str
) -> int | None:
    """Return the follower that a leader sends a consumer to, None if the consumer reads here.

    It is in the consumer's rack (without the leader in it), in the ISR, and known to have the
    offset. Of several: the largest log end, then the latest caught-up time, then the largest id.
    """
    leadership = partition.leadership
    if leadership is None:
        return None
    own = image.brokers.get(leadership.node_id)
    if own is not None and own.rack == rack:
        return None
    found = [
        (follower.log_end_offset, follower.caught_up_ms, follower.broker_id)
        for follower in leadership.followers.values()
        if follower.is_in_isr
        and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        and _is_in_rack(image, follower.broker_id, rack, listener)
    ]
    return max(found)[2] if found else None


def _is_in_rack(image: MetadataImage, broker_id: int, rack: str, listener: str) -> bool:
    """Whether a broker is in a rack, and has the listener of the consumer's connection."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.rack == rack and endpoint_of(broker, listener) is not None
