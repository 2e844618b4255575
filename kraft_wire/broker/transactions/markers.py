"""Sends transaction markers to the leaders of partitions: WriteTxnMarkers (KIP-98).

One request is in flight for each broker, with all markers that wait for it. A marker is sent until
its partition has it or is deleted from the metadata: to the leader of the newest image, after a
pause that doubles. A partition without a leader waits; 4.3.1 treats it like a deleted one, which
loses committed data. The answer of a partition counts for that partition alone.

Partitions were in the metadata when they were added, except those of `__consumer_offsets`, which a
client adds by a group's id. A marker for that topic waits until the metadata have it: they may lag
behind those of the group coordinator, which has stored offsets there. The sender asks the
controller to create the topic, so that the wait also ends if no client ever looked for a group
coordinator.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.deadlines import Deadlines
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.frozen import slotted
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import NO_REPLICA, ReportEvent, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["MarkerSender", "TransactionMarkers"]

_RETRY_MS: Final = 20
_RETRY_MAX_MS: Final = 1_000
_DONE: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
)
"""After these errors the partition needs no marker of this transaction, or cannot have one."""
_EXPECTED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Errors that pass; worth no log line."""


@slotted(eq=False)
class TransactionMarkers:
    """The markers of one transaction that is decided."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int
    unmarked: dict[TopicPartition, None]
    """Partitions that have no marker yet; the coordinator shows them."""
    completed: Callable[[ClockReading], None]
    """Called once, when no partition is left."""
    is_dropped: Callable[[], bool]
    """Whether another coordinator sends them now."""


@slotted(eq=False)
class _Marker:
    """The marker of one partition."""

    markers: TransactionMarkers
    partition: TopicPartition
    pause_ms: int = _RETRY_MS
    """Of its next rest; doubles with each."""


@slotted(eq=False)
class _Destination:
    """`BrokerRequests`: the markers for one broker."""

    sender: "MarkerSender"
    queue: list[_Marker] = field(default_factory=list)
    in_flight: list[_Marker] | None = None

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return a request with all markers that wait for this broker."""
        if self.in_flight is not None:
            return None
        batch = [each for each in self.queue if not each.markers.is_dropped()]
        self.queue = []
        if not batch:
            return None
        self.in_flight = batch
        return _request(batch)

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Process the results, partition by partition."""
        assert isinstance(response, WriteTxnMarkersResponse), response
        results = {
            (marker.producer_id, TopicPartition(topic.name, each.partition_index)): each.error_code
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        batch, self.in_flight = self.in_flight, None
        assert batch is not None, "asked for"
        at = ClockReading(now_ms, wall_ms)
        for marker in batch:
            error = results.get((marker.markers.producer_id, marker.partition))
            self.sender.answered(marker, error, at)

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Send the markers again after a pause, to the leaders of that time."""
        batch, self.in_flight = self.in_flight or [], None
        for marker in batch:
            self.sender.retry(marker, now_ms)

    def deadline_ms(self) -> int | None:
        """Return None: queued markers are sent at once."""
        return None

    def take_moved(self, leads: Callable[[TopicPartition], bool]) -> list[_Marker]:
        """Give up the markers in flight that another broker has to write now.

        This broker may be paused, and the request timeout far away. Its response still counts for
        the other markers of the request.
        """
        moved = [each for each in self.in_flight or () if not leads(each.partition)]
        if moved:
            self.in_flight = [each for each in self.in_flight or () if each not in moved]
        return moved


class MarkerSender:
    """All markers of a broker's coordinator, by the broker that is to write them."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        create_offsets_topic: Callable[[int], None],
        report: ReportEvent,
    ) -> None:
        """`image` returns the newest metadata; `create_offsets_topic` takes the time."""
        self._image = image
        self._create_offsets_topic = create_offsets_topic
        self._report = report
        self._has_known_offsets_topic = False
        """Whether the metadata had the topic: a partition that is missing now was deleted."""
        self._destinations: dict[int, _Destination] = {}
        self._resting: Deadlines[_Marker] = Deadlines(lambda marker: True)
        """Markers that are sent again, and when."""

    @property
    def destinations(self) -> Mapping[int, _Destination]:
        """The requests by broker id."""
        return self._destinations

    @property
    def is_waiting(self) -> bool:
        """Whether a marker waits for a leader, for its pause to end, or for a response."""
        destinations = self._destinations.values()
        return bool(self._resting) or any(each.queue or each.in_flight for each in destinations)

    @property
    def resting_count(self) -> int:
        """Markers that wait for a leader, or for the end of a pause."""
        return len(self._resting)

    def send(self, markers: TransactionMarkers, at: ClockReading) -> None:
        """Send the markers of a transaction; without partitions it is complete at once."""
        for partition in list(markers.unmarked):
            self._route(_Marker(markers, partition), at)
        if not markers.unmarked:
            markers.completed(at)

    def metadata_changed(self, at: ClockReading) -> None:
        """Look for the leaders of all markers that wait, because the metadata have changed."""
        self._has_known_offsets_topic |= self._image().topic(OFFSETS_TOPIC) is not None
        waiting = self._resting.take_all()
        for broker_id, destination in self._destinations.items():
            waiting += destination.queue
            destination.queue = []
            waiting += destination.take_moved(partial(self._leads, broker_id))
        self._route_all(waiting, at)

    def tick(self, at: ClockReading) -> None:
        """Send again the markers whose pause is over."""
        self._route_all(list(self._resting.due(at.now_ms)), at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        return self._resting.next_ms()

    def answered(self, marker: _Marker, error: int | None, at: ClockReading) -> None:
        """Take the result of one partition, None if the response has none."""
        if error not in _DONE:
            if error not in _EXPECTED:
                self._tell("transaction_marker_refused", marker, error)
            self.retry(marker, at.now_ms)
            return
        if error != ErrorCode.NONE:
            self._tell("transaction_marker_given_up", marker, error)
        self._done(marker, at)

    def retry(self, marker: _Marker, now_ms: int) -> None:
        """Have a marker rest, the longer the more often it was sent."""
        self._resting.add(now_ms + marker.pause_ms, marker, len(self._resting) + 1)
        marker.pause_ms = min(2 * marker.pause_ms, _RETRY_MAX_MS)

    def _route_all(self, waiting: list[_Marker], at: ClockReading) -> None:
        for marker in waiting:
            if not marker.markers.is_dropped():
                self._route(marker, at)
                if not marker.markers.unmarked:
                    marker.markers.completed(at)

    def _route(self, marker: _Marker, at: ClockReading) -> None:
        """Queue a marker for the leader of its partition; a deleted one needs none."""
        name = marker.partition.topic
        topic = self._image().topic(name)
        view = None if topic is None else topic.partitions.get(marker.partition.partition)
        if topic is None and name == OFFSETS_TOPIC and not self._has_known_offsets_topic:
            self._await_offsets_topic(marker, at)
        elif view is None:
            marker.markers.unmarked.pop(marker.partition, None)
        elif view.leader == NO_REPLICA:
            self.retry(marker, at.now_ms)
        else:
            destination = self._destinations.get(view.leader)
            if destination is None:
                destination = self._destinations[view.leader] = _Destination(self)
            destination.queue.append(marker)

    def _await_offsets_topic(self, marker: _Marker, at: ClockReading) -> None:
        """Have a marker wait for the topic, and the topic created."""
        if marker.pause_ms == _RETRY_MS:
            self._tell("transaction_marker_awaits_topic", marker, None)
        self._create_offsets_topic(at.now_ms)
        self.retry(marker, at.now_ms)

    def _leads(self, broker_id: int, partition: TopicPartition) -> bool:
        topic = self._image().topic(partition.topic)
        view = None if topic is None else topic.partitions.get(partition.partition)
        return view is not None and view.leader in (broker_id, NO_REPLICA)

    def _done(self, marker: _Marker, at: ClockReading) -> None:
        """Take a partition off its transaction, which is complete with the last one."""
        markers = marker.markers
        markers.unmarked.pop(marker.partition, None)
        if not markers.unmarked and not markers.is_dropped():
            markers.completed(at)

    def _tell(self, event: str, marker: _Marker, error: int | None) -> None:
        self._report(
            event,
            transactional_id=marker.markers.transactional_id,
            partition=marker.partition,
            error="-" if error is None else error,
        )


def _request(batch: list[_Marker]) -> WriteTxnMarkersRequest:
    """Return a request with one marker for each transaction."""
    by_transaction: dict[TransactionMarkers, list[TopicPartition]] = {}
    for each in batch:
        by_transaction.setdefault(each.markers, []).append(each.partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                transaction_result=markers.is_commit,
                topics=_topics(partitions),
                coordinator_epoch=markers.coordinator_epoch,
                transaction_version=markers.transaction_version,
            )
            for markers, partitions in by_transaction.items()
        ]
    )


def _topics(partitions: list[TopicPartition]) -> list[WritableTxnMarkerTopic]:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for name, partition in partitions:
        topic = topics.setdefault(name, WritableTxnMarkerTopic(name=name))
        topic.partition_indexes.append(partition)
    return list(topics.values())
