"""The endpoints of a streams application with their partitions, as its members are told.

Members are told when the epoch of this information is not the one that they know. As in Kafka it is
kept in memory only, and what was computed for a member stays until the member or the configured
topology changes.
"""

from collections.abc import Iterable

from kraft_wire.broker.groups.streams.endpoint_partitions import endpoint_partitions
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredTopology
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.streams_group_heartbeat import EndpointToPartitions, ResponseEndpoint

__all__ = ["EndpointAnswers"]


class EndpointAnswers:
    """The answers of one group."""

    __slots__ = ("_known", "epoch")

    def __init__(self) -> None:
        self.epoch = 0
        """Counts the changes of tasks that have an endpoint."""
        self._known: dict[str, EndpointToPartitions] = {}

    def forget(self, member_id: str) -> None:
        """Drop what was computed for a member."""
        self._known.pop(member_id, None)

    def forget_all(self) -> None:
        """Drop what was computed for all members."""
        self._known.clear()

    def of(
        self,
        members: Iterable[StreamsMember],
        configured: ConfiguredTopology,
        image: MetadataImage,
    ) -> list[EndpointToPartitions]:
        """Return the partitions of each endpoint; members without one are left out.

        TopologyRefused (UNKNOWN_SERVER_ERROR): topics of the tasks do not exist.
        """
        answers = []
        for member in members:
            if member.user_endpoint is None:
                continue
            known = self._known.get(member.member_id)
            if known is None:
                known = _computed(member, configured, image)
                self._known[member.member_id] = known
            answers.append(known)
        return answers


def _computed(
    member: StreamsMember, configured: ConfiguredTopology, image: MetadataImage
) -> EndpointToPartitions:
    endpoint = member.user_endpoint
    assert endpoint is not None, member.member_id
    tasks = member.assigned.without_epochs
    return endpoint_partitions(
        ResponseEndpoint(host=endpoint.host, port=endpoint.port),
        tasks.active,
        tasks.standby,
        configured.subtopologies,
        image,
    )
