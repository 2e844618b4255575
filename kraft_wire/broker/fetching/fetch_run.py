"""Reads one fetch: from its context's partitions to an answer, again each time it is woken.

A follower reads to the log's end. The offsets of its first reading tell the leader where the
follower's log ends. A consumer reads committed records, and may be sent to a replica in its rack
(KIP-392). A reader whose log diverges from ours gets the diverging epoch (KIP-595). Byte limits are
spent in the order in which the session lists its partitions (KIP-227).

Not here: sessions (`fetch_contexts`), the request as a whole and waiting (`handlers/fetch`).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kraft_wire.broker.context import ReplyTo, RequestContext
from kraft_wire.broker.fetching.fetch_contexts import FetchContext, ReadResult
from kraft_wire.broker.fetching.fetch_session import (
    PartitionKey,
    WantedPartition,
    records_size_bytes,
)
from kraft_wire.broker.metadata.metadata_cache import current_leader, no_replica_error
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import LogReadView
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import ZERO_UUID, FileSlice, Offset, OffsetAndEpoch, StorageError
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraft_wire.wire.message import Message, UnencodableMessage
from kraft_wire.wire.runtime import new

if TYPE_CHECKING:
    from kraft_wire.broker.fetching.fetch_quota import FetchQuota
    from kraft_wire.broker.replicas import Replicas
    from kraft_wire.broker.replication.throttle import ReplicationThrottle

__all__ = ["FetchRun"]

_UNKNOWN: Final = -1
_READ_COMMITTED: Final = 1
_NO_RECORDS: Final = b""
_NO_ERROR: Final = ErrorCode.NONE
_FIRST_LEADER_VERSION: Final = 16
_FIRST_READING_FROM_FOLLOWERS_VERSION: Final = 11
# Non-obvious 11: sessions keep this order.
_UNKNOWN_ERRORS: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Listed after all partitions that were read; for a consumer ids before partitions, as in Kafka."""
_LENGTH_BYTES: Final = 4
_STORAGE_ERROR: Final = ErrorCode.KAFKA_STORAGE_ERROR
_FIRST_STORAGE_ERROR_VERSION: Final = 6
_FUTURE_REPLICA: Final = -3
"""The copy of a moving replica: neither a consumer, whose isolation counts, nor a follower."""
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class FetchedBroker(Protocol):
    """The parts of a broker that a fetch reads, and the way back for its answer."""

    settings: BrokerSettings
    image: MetadataImage
    replicas: "Replicas"
    bytes_out: int
    replica_bytes_out: int
    fetch_quota: "FetchQuota | None"
    leader_throttle: "ReplicationThrottle | None"

    @property
    def partitions(self) -> Mapping[tuple[str, int], Partition]:
        """Those that have a log here."""
        ...

    def complete(self, reply_to: ReplyTo, response: Message) -> None:
        """Answer a request that was parked."""
        ...


class FetchRun:
    """One fetch, as often as it is read."""

    __slots__ = (
        "broker",
        "context",
        "fetch",
        "is_committed_only",
        "is_first",
        "is_follower",
        "max_bytes",
        "min_bytes",
        "must_answer",
        "nowhere",
        "quota",
        "rack",
        "read_bytes",
        "read_from",
        "replica_epoch",
        "replica_id",
        "unfit_bytes",
    )

    def __init__(
        self,
        broker: FetchedBroker,
        context: RequestContext,
        request: FetchRequest,
        fetch: FetchContext,
        replica_id: int,
        replica_epoch: int,
    ) -> None:
        """`replica_id` is below 0 for a consumer."""
        self.broker = broker
        self.context = context
        self.fetch = fetch
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.is_follower = is_follower = replica_id >= 0
        self.is_committed_only = (
            request.isolation_level == _READ_COMMITTED
            and not is_follower
            and replica_id != _FUTURE_REPLICA
        )
        allowed_bytes = broker.settings.fetch_max_bytes
        max_bytes = request.max_bytes if request.max_bytes < allowed_bytes else allowed_bytes
        self.quota = quota = None if is_follower else broker.fetch_quota
        if quota is not None:
            max_bytes = quota.fetch_bytes_max(context, max_bytes)
        self.max_bytes = max_bytes
        self.min_bytes = request.min_bytes if request.min_bytes < max_bytes else max_bytes
        """The bytes that satisfy the fetch: at most the answer's maximum, as in Kafka."""
        # Non-obvious 25: a parked fetch that is read again has an old position.
        self.is_first = True
        """Whether this is the first reading, whose offsets are the ends of a follower's log."""
        self.rack = ""
        """The consumer's, where the leader may send it to a follower in it."""
        self.read_bytes = 0
        self.read_from = 0
        """The offset at which the batch begins that has the fetch offset of the last reading."""
        self.unfit_bytes = 0
        """Room that was left for batches that are there and larger."""
        self.nowhere: dict[PartitionKey, ReadResult] = {}
        """Places that did not exist at the first reading, or that were refused; as in Kafka they
        are not read again."""
        self.must_answer = False
        """Whether a partition's answer has no records, or its segment cannot grow any more."""

    def refuse(self, may_read: Callable[[str | None], bool]) -> None:
        """Refuse the topics that may not be read, once for the request, as in Kafka.

        Like places that do not exist, these come after all others and the fetch does not wait for
        them.
        """
        for wanted in self.fetch.to_read(lambda _: False):
            if not may_read(wanted.topic):
                data = self._error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                data.aborted_transactions = []
                self.nowhere[wanted.key] = wanted, data
                self.is_follower = False  # its offsets do not count as ends of its log

    def run_again(self, now_ms: int, expired: bool) -> bool:
        """Read from the top; complete the answer when it is due."""
        results = self.read()
        if not (expired or self.is_satisfied()):
            return False
        self.broker.complete(self.context.reply_to, self.response(results, now_ms))
        return True

    def is_satisfied(self) -> bool:
        """Whether the answer need not wait."""
        return self.must_answer or self.read_bytes + self.unfit_bytes >= self.min_bytes

    def watched(self) -> list[Partition]:
        """Return the partitions whose growth matters."""
        partitions = self.broker.partitions
        found = [
            partitions.get((wanted.topic, wanted.partition))
            for wanted in self.fetch.partitions()
            if wanted.topic is not None and wanted.key not in self.nowhere
        ]
        return [partition for partition in found if partition is not None]

    def read(self) -> list[ReadResult]:
        """Read the partitions in order, spending the byte limit of the request.

        Without those that are nowhere, which `response` adds.
        """
        left = self.max_bytes
        self.read_bytes = self.unfit_bytes = 0
        self.must_answer = False
        results: list[ReadResult] = []
        nowhere = self.nowhere
        is_settled = self._is_settled_follower if self.is_follower else WantedPartition.is_settled
        for wanted in self.fetch.to_read(is_settled):
            if nowhere and wanted.key in nowhere:
                continue
            data = self._read_partition(wanted, left)
            if self.is_first and data.error_code in _UNKNOWN_ERRORS:
                nowhere[wanted.key] = wanted, data
                continue
            results.append((wanted, data))
            if data.records is not _NO_RECORDS:
                size = records_size_bytes(data)
                self.read_bytes += size
                left = left - size if size < left else 0
            elif left < 0:
                left = 0  # as in Kafka: a negative maximum is one of the first partition only
        self.is_first = False
        return results

    def _read_partition(self, wanted: WantedPartition, left: int) -> PartitionData:
        params = wanted.params
        if wanted.topic is None:
            return self._error(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self.broker.partitions.get((wanted.topic, params.partition))
        if partition is None:
            missing = no_replica_error(self.broker.image, wanted.topic, params.partition)
            return self._error(wanted, missing)
        if partition.offline:
            return self._error(wanted, _STORAGE_ERROR)
        if wanted.topic_id not in (ZERO_UUID, partition.topic_id):
            # A session keeps the name of a topic that was deleted and created again meanwhile.
            # Non-obvious 2: the name may be that of a topic that was created again.
            return self._error(wanted, ErrorCode.INCONSISTENT_TOPIC_ID)
        error = self._access_error(partition, params.current_leader_epoch)
        if error is not _NO_ERROR:
            return self._error(wanted, error)
        is_plain = not self.rack and params.last_fetched_epoch < 0
        data = None if is_plain else self._instead_of_records(wanted, partition)
        if data is not None:
            return data
        offset, log = params.fetch_offset, partition.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return self._error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        wanted.note_source(partition)
        if self.is_follower:
            return self._records_for_follower(wanted, partition, left)
        return self._records(wanted, partition, left, log.high_watermark)

    def _is_settled_follower(self, wanted: WantedPartition) -> bool:
        """Skip partitions that a follower has to the end, but record that it is still caught up."""
        follower, log = wanted.follower, wanted.log
        if follower is None or log is None or not wanted.is_settled():
            return False
        if log.log_end_offset != wanted.params.fetch_offset:
            return False
        if not self.is_first:
            return True
        return follower.still_has_everything(self.replica_epoch, self.context.now_ms)

    def _records_for_follower(
        self, wanted: WantedPartition, partition: Partition, left: int
    ) -> PartitionData:
        """Read to the log's end; then take note of how far the follower has come.

        As in Kafka, the answer's high watermark is the one from before this fetch counted.
        """
        end_offset = upper_bound = partition.log.log_end_offset
        throttle = self.broker.leader_throttle
        if throttle is not None and self._must_wait(throttle, partition):
            # Nothing is read, so an old segment is no reason either to answer before the deadline.
            upper_bound = Offset(wanted.params.fetch_offset)
        self.read_from = wanted.params.fetch_offset
        data = self._records(wanted, partition, left, upper_bound)
        if self.is_first and data.error_code == _NO_ERROR:
            leading = self.broker.replicas.leading
            assert leading is not None, "a broker with followers leads them"
            error = leading.fetched(
                partition,
                wanted,
                # A follower that asks from inside a batch does not have that batch.
                min(wanted.params.fetch_offset, self.read_from),
                self.replica_id,
                self.replica_epoch,
                end_offset,
                self.context.now_ms,
            )
            if error is not _NO_ERROR:
                return self._error(wanted, error)
        return data

    def _must_wait(self, throttle: "ReplicationThrottle", partition: Partition) -> bool:
        """Return whether a throttled follower gets no records now; one in the ISR always does."""
        leadership = partition.leadership
        if leadership is None or self.replica_id in leadership.isr:
            return False
        return throttle.is_throttled(partition.topic, partition.partition) and throttle.is_exceeded(
            self.context.now_ms
        )

    def _instead_of_records(
        self, wanted: WantedPartition, partition: Partition
    ) -> PartitionData | None:
        """Send a reader to another replica, or let it truncate its log if that has diverged."""
        if self.rack and partition.leadership is not None:
            elsewhere = self._elsewhere(wanted, partition)
            if elsewhere is not None:
                return elsewhere
        params, log = wanted.params, partition.log
        if params.last_fetched_epoch < 0 or params.fetch_offset < log.log_start_offset:
            return None
        if params.last_fetched_epoch > (log.epochs.latest or 0):
            return self._error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        diverging = partition.diverging_point(
            Offset(params.fetch_offset), params.last_fetched_epoch
        )
        return None if diverging is None else self._diverging(wanted, partition, diverging)

    def _elsewhere(self, wanted: WantedPartition, partition: Partition) -> PartitionData | None:
        """Send a consumer to its preferred follower, without records."""
        from kraft_wire.broker.replication.read_replicas import preferred_read_replica

        offset, listener = wanted.params.fetch_offset, self.context.listener
        preferred = preferred_read_replica(
            self.broker.image, partition, offset, self.rack, listener
        )
        if preferred is None:
            return None
        self.must_answer = True
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.log.high_watermark,
            last_stable_offset=partition.log.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            preferred_read_replica=preferred,
            aborted_transactions=None,
            records=_NO_RECORDS,
        )

    def _diverging(
        self, wanted: WantedPartition, partition: Partition, point: OffsetAndEpoch
    ) -> PartitionData:
        """Return where the client's log diverges from ours (KIP-595), without records."""
        self.must_answer = True
        log = partition.log
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=EpochEndOffset(epoch=point.epoch, end_offset=point.offset),
            aborted_transactions=None,
            records=_NO_RECORDS,
        )

    def _access_error(self, partition: Partition, current_leader_epoch: int) -> ErrorCode:
        if current_leader_epoch >= 0:
            fenced = partition.check_leader_epoch(current_leader_epoch)
            if fenced is not _NO_ERROR:
                return fenced
        if self.is_follower:
            return self._follower_error(partition, current_leader_epoch)
        if partition.is_leader or (
            self.context.api_version >= _FIRST_READING_FROM_FOLLOWERS_VERSION
        ):
            return _NO_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _follower_error(self, partition: Partition, current_leader_epoch: int) -> ErrorCode:
        """Refuse a follower that is not a replica of the partition led here.

        It may be a new replica that this leader does not know yet; it asks again.
        """
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        leadership = partition.leadership
        if leadership is not None and self.replica_id in leadership.followers:
            return _NO_ERROR
        if current_leader_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _records(
        self, wanted: WantedPartition, partition: Partition, left: int, upper_bound: Offset
    ) -> PartitionData:
        params, log = wanted.params, partition.log
        high_watermark = log.high_watermark
        last_stable_offset = log.last_stable_offset
        records: FileSlice | bytes = _NO_RECORDS
        aborted: list[AbortedTransaction] | None = None
        if self.is_committed_only:
            upper_bound, aborted = last_stable_offset, []
        if params.fetch_offset < upper_bound:
            max_bytes = params.partition_max_bytes if params.partition_max_bytes < left else left
            if max_bytes < 0:
                return self._error(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
            try:
                read = log.read(
                    Offset(params.fetch_offset),
                    max_bytes,
                    upper_bound=upper_bound,
                    min_one_batch=self.read_bytes == 0,
                )
                records, self.read_from = read.records, read.first_offset
                self.must_answer |= read.is_older
                if read.first_batch_is_larger and max_bytes:
                    self.unfit_bytes += max_bytes
                    aborted = None
                elif self.is_committed_only:
                    aborted = _aborted(partition, params, read)
            except StorageError as error:
                partition.failed(error)
                return self._error(wanted, _STORAGE_ERROR)
        data = new(PartitionData)  # its constructor takes three times as long by keywords
        data.partition_index, data.error_code = params.partition, _NO_ERROR
        data.high_watermark, data.last_stable_offset = high_watermark, last_stable_offset
        data.log_start_offset = log.log_start_offset
        data.diverging_epoch = data.current_leader = data.snapshot_id = None
        data.aborted_transactions, data.records = aborted, records
        data.preferred_read_replica = _UNKNOWN
        data.unknown_tagged_fields = None
        return data

    def _error(self, wanted: WantedPartition, error: ErrorCode) -> PartitionData:
        # As in Kafka, a place that did not exist at the first reading does not end the wait; one
        # that was deleted meanwhile does.
        is_nowhere = self.is_first and error in _UNKNOWN_ERRORS
        self.must_answer |= not is_nowhere
        version = self.context.api_version
        if error is _STORAGE_ERROR and version < _FIRST_STORAGE_ERROR_VERSION:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER  # older clients do not retry the other
        return PartitionData(
            partition_index=wanted.partition,
            error_code=error,
            high_watermark=_UNKNOWN,
            last_stable_offset=_UNKNOWN,
            log_start_offset=_UNKNOWN,
            aborted_transactions=[] if is_nowhere else None,
            records=_NO_RECORDS,
        )

    def response(self, results: list[ReadResult], now_ms: int) -> FetchResponse:
        """Make the answer, with the leaders that a client in the wrong place needs."""
        if self.nowhere:
            nowhere = self.nowhere.values()
            results = results + (
                list(nowhere) if self.is_follower else sorted(nowhere, key=_is_named)
            )
        quota = self.quota
        throttle_ms = 0 if quota is None else self._throttle_ms(quota, results, now_ms)
        if throttle_ms > 0:
            response = self.fetch.throttled()
            response.throttle_time_ms = throttle_ms
        else:
            if self.is_follower:
                self.broker.replica_bytes_out += self.read_bytes
            else:
                self.broker.bytes_out += self.read_bytes
            response = self.fetch.finish(results, now_ms)
            throttle = self.broker.leader_throttle
            if self.is_follower and throttle is not None:
                throttle.record(self._throttled_bytes(throttle, response), now_ms)
        if self.must_answer and self.context.api_version >= _FIRST_LEADER_VERSION:
            self._name_leaders(response, results)
        return response

    def _throttle_ms(self, quota: "FetchQuota", results: list[ReadResult], now_ms: int) -> int:
        """Measure the answer by its size, without changing the session."""
        size_bytes = _size_bytes(self.fetch.unsent(results), self.context.api_version)
        return quota.fetched(self.context, size_bytes, now_ms)

    def _throttled_bytes(self, throttle: "ReplicationThrottle", response: FetchResponse) -> int:
        """Return the size of an answer with nothing but its throttled partitions."""
        measured = FetchResponse()
        for topic in response.responses:
            partitions = [
                each
                for each in topic.partitions
                if throttle.is_throttled(topic.topic, each.partition_index)
            ]
            if partitions:
                measured.responses.append(
                    FetchableTopicResponse(
                        topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
                    )
                )
        return _size_bytes(measured, self.context.api_version)

    def _name_leaders(self, response: FetchResponse, results: list[ReadResult]) -> None:
        """KIP-951: name the leader if this broker does not lead, or not in that epoch."""
        leaders: dict[int, NodeEndpoint] = {}
        for wanted, data in results:
            if data.error_code not in _LEADER_ERRORS or wanted.topic is None:
                continue
            leader = current_leader(
                self.broker.image, wanted.topic, wanted.partition, self.context.listener
            )
            data.current_leader = LeaderIdAndEpoch(
                leader_id=leader.broker_id, leader_epoch=leader.leader_epoch
            )
            if leader.host is not None and not self.is_follower:
                leaders[leader.broker_id] = NodeEndpoint(
                    node_id=leader.broker_id, host=leader.host, port=leader.port, rack=leader.rack
                )
        response.node_endpoints = list(leaders.values())


def _size_bytes(response: FetchResponse, version: int) -> int:
    """Return the size of an answer; 0 if it cannot be encoded, which closes the connection.

    A name of invalid UTF-8 may become longer than a name can be.
    """
    try:
        parts = response.encode_parts(version)
    except UnencodableMessage:
        return 0
    sizes = (part.size_bytes if isinstance(part, FileSlice) else len(part) for part in parts)
    return _LENGTH_BYTES + sum(sizes)


def _is_named(result: ReadResult) -> bool:
    return result[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID


def _aborted(
    partition: Partition, params: FetchPartition, read: LogReadView
) -> list[AbortedTransaction]:
    """Return the aborted transactions whose records a read_committed consumer skips.

    Only about those in the returned range: a log may have more than any answer can hold.
    """
    found = partition.log.aborted_transactions(Offset(params.fetch_offset), read.offset_behind)
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in found
    ]
