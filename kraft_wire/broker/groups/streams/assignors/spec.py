"""What a task assignor is given."""

from collections.abc import Mapping
from dataclasses import field

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.streams.tasks import Tasks
from kraft_wire.frozen import frozen

__all__ = ["NUM_STANDBY_REPLICAS", "StreamsGroupSpec", "StreamsMemberSpec", "TaskAssignorFailed"]

NUM_STANDBY_REPLICAS = "num.standby.replicas"
"""The only config of an assignment in 4.3."""


class TaskAssignorFailed(Exception):
    """Tasks cannot be assigned; the text is Kafka's."""


@frozen
class StreamsMemberSpec:
    """A member, as an assignor sees it."""

    instance_id: str | None
    rack_id: str | None
    process_id: str
    """Members of one process share its state stores' disk: they are loaded together."""
    client_tags: Mapping[str, str]
    active: Tasks
    """Tasks as they were last assigned."""
    standby: Tasks
    warmup: Tasks


@frozen
class StreamsGroupSpec:
    """A group, as an assignor sees it."""

    members: JavaHashMap[str, StreamsMemberSpec]
    """By member id. The order counts: Kafka puts all members in the order of its timeline map,
    then the updated ones."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """`num.standby.replicas`, or nothing."""
