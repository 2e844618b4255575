"""A whole node that coordinates transactions, driven by encoded requests of producers.

Partitions are played by `Markers`: it takes the place of the handler of WriteTxnMarkers, keeps what
was asked, and answers what a test wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kraft_wire.broker import dispatch
from kraft_wire.broker.context import PARKED
from kraft_wire.broker.transactions.records import read_key, read_value
from kraft_wire.broker.transactions.transactional_id import TransactionalId, TransactionMetadata
from kraft_wire.model import FileSlice, Offset, TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.end_txn import EndTxnRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.list_transactions import ListTransactionsRequest
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.groups.node_door import NodeDoor, NodeReply

STATE_TOPIC: Final = "__transaction_state"
TOPIC: Final = "t"
TIMEOUT_MS: Final = 60_000
WRITE_TXN_MARKERS: Final = WriteTxnMarkersRequest.API_KEY


class Markers:
    """The partitions of the node: markers that they were asked to write, and their answers."""

    def __init__(self) -> None:
        self.requests: list[list[WritableTxnMarker]] = []
        self.errors: list[dict[TopicPartition, E]] = []
        """Errors by partition for the next requests; a request without any is answered well."""
        self.left_out: list[TopicPartition] = []
        """Partitions that the next response does not mention."""
        self.keeps_back = False
        """Whether requests are parked, until `answer`."""
        self.broker: Any = None
        self._parked: list[tuple[Any, WriteTxnMarkersResponse]] = []

    def handle(self, broker: Any, context: Any, request: Any) -> Any:
        # What is asked goes over the wire where the coordinator is another broker.
        request, _ = WriteTxnMarkersRequest.decode(request.encode(2), 2)
        self.requests.append(request.markers)
        response = self._response(request.markers)
        if self.keeps_back:
            self.broker = broker
            self._parked.append((context.reply_to, response))
            return PARKED
        return response

    def answer(self) -> None:
        """Answer what was kept back."""
        parked, self._parked = self._parked, []
        for reply_to, response in parked:
            self.broker.complete(reply_to, response)

    @property
    def markers(self) -> list[WritableTxnMarker]:
        """Every marker of every request."""
        return [marker for request in self.requests for marker in request]

    def partitions(self) -> list[list[TopicPartition]]:
        """The partitions of each request."""
        return [
            [
                TopicPartition(topic.name, number)
                for marker in request
                for topic in marker.topics
                for number in topic.partition_indexes
            ]
            for request in self.requests
        ]

    def _response(self, markers: list[WritableTxnMarker]) -> WriteTxnMarkersResponse:
        errors = self.errors.pop(0) if self.errors else {}
        left_out, self.left_out = self.left_out, []
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=number,
                                    error_code=errors.get(
                                        TopicPartition(topic.name, number), E.NONE
                                    ),
                                )
                                for number in topic.partition_indexes
                                if TopicPartition(topic.name, number) not in left_out
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in markers
            ]
        )


@contextmanager
def played_partitions() -> Iterator[Markers]:
    """Let `Markers` take the place of the handler of WriteTxnMarkers."""
    markers, handlers = Markers(), dispatch.handler.__self__  # type: ignore[attr-defined]  # the table behind it
    before = dict(handlers)
    handlers[WRITE_TXN_MARKERS] = markers.handle
    try:
        yield markers
    finally:
        handlers.clear()
        handlers.update(before)


def find_coordinator(door: NodeDoor, name: str, version: int = 6) -> Any:
    """Ask for the coordinator of a transactional id."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    if version < 4:
        request = FindCoordinatorRequest(key_type=1, key=name)
    response = door.send(request, version).response
    return response.coordinators[0] if version >= 4 else response


class Coordinating(NodeDoor):
    """One node with a topic of four partitions, where the coordinator is loaded."""

    def __init__(
        self, fs: SimFileSystem | None = None, version: int = 2, now_ms: int = 1_000, **more: str
    ) -> None:
        self.store = fs or SimFileSystem()
        more = {"transaction.state.log.num.partitions": "2"} | more
        more = {
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        } | more
        super().__init__(self.store, now_ms, **more)
        if self.node.broker.image.topic(TOPIC) is None:
            self.prepare(TOPIC, 4)
        if version != self.transaction_version:
            self.finalize(version)
        for _ in range(3):
            find_coordinator(self, "any")
            self.settle()
        assert find_coordinator(self, "any").error_code == 0
        # The first producer of a node waits for a block of ids.
        self.send(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5)

    @property
    def transaction_version(self) -> int:
        return self.node.broker.image.finalized_features.get("transaction.version", 0)

    def finalize(self, version: int) -> None:
        """Change the level of `transaction.version`."""
        kind = 2 if version < self.transaction_version else 1
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=version, upgrade_type=kind
        )
        answer = self.send(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=1), 1)
        assert answer.response.error_code == 0, answer.response
        assert self.transaction_version == version

    def entry(self, name: str) -> TransactionalId:
        shard = self.node.broker.transactions.shard_of(name)
        assert not isinstance(shard, E), shard
        return shard.ids[name]

    def describe(self, name: str) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[name])
        (state,) = self.send(request, 0, connection=9).response.transaction_states
        return state

    def listed(self, version: int = 2, **filters: Any) -> Any:
        return self.send(ListTransactionsRequest(**filters), version, connection=9).response

    def batches(self) -> Iterator[RecordBatch]:
        """Every batch of the state topic."""
        for (topic, _), partition in sorted(self.node.broker.partitions.items()):
            if topic != STATE_TOPIC or not partition.log_end_offset:
                continue
            end = partition.log_end_offset
            read = partition.read(Offset(0), 1 << 24, upper_bound=end, min_one_batch=True).records
            yield from parse_batches(read.read() if isinstance(read, FileSlice) else read)

    def raw_records(self, name: str) -> list[tuple[bytes, bytes | None]]:
        """Key and value of the records of a transactional id."""
        return [
            (bytes(record.key), None if record.value is None else bytes(record.value))
            for batch in self.batches()
            if not batch.is_control
            for record in batch.records()
            if record.key is not None and read_key(record.key) == name
        ]

    def records(self, name: str) -> list[TransactionMetadata | None]:
        """What the log says of a transactional id, in order; None for a tombstone."""
        read = [None if value is None else read_value(value) for _, value in self.raw_records(name)]
        assert not any(isinstance(each, int) for each in read)
        return read  # type: ignore[return-value]  # just asserted

    def states(self, name: str) -> list[str]:
        """The states that the log says a transactional id had."""
        return ["-" if each is None else each.state.value for each in self.records(name)]

    def restarted(self) -> Coordinating:
        """The node again, over what its disk has."""
        self.stop()
        return Coordinating(self.store, now_ms=self.now_ms)

    def producer(self, name: str = "tid", **more: Any) -> Producer:
        return Producer(self, name, **more)


class Producer:
    """A producer's view: its id and epoch, and requests in the versions that it uses."""

    def __init__(self, door: Coordinating, name: str, connection: int = 1) -> None:
        self.door = door
        self.name = name
        self.connection = connection
        self.id, self.epoch = -1, -1

    def _send(self, request: Any, version: int) -> NodeReply:
        return self.door.send(request, version, connection=self.connection)

    def init(
        self,
        expected: tuple[int, int] = (-1, -1),
        *,
        version: int = 5,
        timeout_ms: int = TIMEOUT_MS,
    ) -> E:
        """Initialize; the identity is taken over where it is given."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        response = self._send(request, version).response
        if response.error_code == E.NONE:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        else:
            assert (response.producer_id, response.producer_epoch) == (-1, -1)
        return E(response.error_code)

    def add_request(self, *partitions: int, topic: str = TOPIC) -> AddPartitionsToTxnRequest:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics if partitions else [],
        )

    def add(self, *partitions: int, version: int = 3, topic: str = TOPIC) -> list[E]:
        """Add partitions as a client; the errors by partition."""
        response = self._send(self.add_request(*partitions, topic=topic), version).response
        return [
            E(each.partition_error_code)
            for result in response.results_by_topic_v3_and_below
            for each in result.results_by_partition
        ]

    def transaction(
        self, *partitions: int, topic: str = TOPIC, verify_only: bool = False
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def implicit(
        self, *partitions: int, topic: str = TOPIC, verify_only: bool = False, version: int = 5
    ) -> list[E]:
        """Add or verify partitions as a leader; the errors by partition."""
        transaction = self.transaction(*partitions, topic=topic, verify_only=verify_only)
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        response = self._send(request, version).response
        assert response.error_code == E.NONE
        (result,) = response.results_by_transaction
        return [
            E(each.partition_error_code)
            for topic_result in result.topic_results
            for each in topic_result.results_by_partition
        ]

    def add_offsets(self, group: str, version: int = 4) -> E:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return E(self._send(request, version).response.error_code)

    def end(
        self,
        *,
        commit: bool = True,
        version: int = 5,
        identity: tuple[int, int] | None = None,
    ) -> E:
        """End the transaction; from version 5 on the identity for the next one is taken over."""
        producer_id, epoch = identity or (self.id, self.epoch)
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        response = self._send(request, version).response
        if version >= 5 and response.error_code == E.NONE:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        elif version >= 5:
            assert (response.producer_id, response.producer_epoch) == (-1, -1)
        return E(response.error_code)

    def commit(self, version: int = 5) -> E:
        return self.end(commit=True, version=version)

    def abort(self, version: int = 5) -> E:
        return self.end(commit=False, version=version)
