"""The answer to a ShareFetch: what was fetched and what became of its acknowledgements, together.

It leaves when both are there. A session's last request releases the member's records then.
"""

from typing import Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.metadata.metadata_cache import current_leader
from kraft_wire.broker.share_fetch.acknowledge_batches import AcknowledgeResults
from kraft_wire.broker.share_fetch.log_batches import size_of
from kraft_wire.broker.share_fetch.session import SessionPartition, ShareFetchContext
from kraft_wire.broker.share_fetch.share_fetch_run import Results
from kraft_wire.broker.share_fetch.share_partitions import SharePartitions
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

__all__ = ["ShareFetchAnswer"]

_LENGTH_BYTES: Final = 4
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_NO_RECORDS: Final = b""


class ShareFetchAnswer:
    """An answer whose two halves come at different times."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_deferred",
        "_fetch",
        "_request",
        "_results",
        "_shares",
    )

    def __init__(
        self,
        shares: SharePartitions,
        context: RequestContext,
        request: ShareFetchRequest,
        fetch: ShareFetchContext,
    ) -> None:
        self._shares = shares
        self._context = context
        self._request = request
        self._fetch = fetch
        self._results: Results | None = None
        self._acknowledged: AcknowledgeResults | None = None
        self._deferred = DeferredResponse[ShareFetchResponse](
            shares.broker.complete, context.reply_to
        )

    def fetched(self, results: Results, at: ClockReading) -> None:
        """Take what the fetch found."""
        self._results = results
        self._finish(at)

    def acknowledged(self, results: AcknowledgeResults, at: ClockReading) -> None:
        """Take what became of the acknowledgements."""
        self._acknowledged = results
        self._finish(at)

    def now_or_later(self) -> ShareFetchResponse | Parked:
        """Return the answer if it is complete; otherwise it will be sent when it is."""
        return self._deferred.result()

    def _finish(self, at: ClockReading) -> None:
        if self._results is None or self._acknowledged is None:
            return
        response = self._built(self._results, at)
        _merge(response, self._acknowledged)
        if self._fetch.is_final:
            group_id, member_id = self._fetch.session.key
            self._shares.close_session(group_id, member_id, at)
        self._deferred.send(response)

    def _built(self, results: Results, at: ClockReading) -> ShareFetchResponse:
        """Return the answer without acknowledgements; it is empty if a quota is exceeded."""
        fetch, is_outdated = self._fetch, self._fetch.is_outdated()
        endpoints = self._name_leaders(results)
        listed = [] if is_outdated else fetch.listed(results)
        throttle_ms = self._throttle_ms(listed, at)
        if throttle_ms > 0:
            listed = []
        elif not is_outdated:
            fetch.answered(listed)
        sent = (data.records for _, data in listed if data.records)
        self._shares.broker.bytes_out += sum(map(size_of, sent))
        return ShareFetchResponse(
            throttle_time_ms=throttle_ms,
            error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH if is_outdated else ErrorCode.NONE,
            acquisition_lock_timeout_ms=self._shares.settings.of(
                self._request.group_id or ""
            ).record_lock_duration_ms,
            responses=_by_topic(listed),
            node_endpoints=endpoints,
        )

    def _throttle_ms(self, listed: Results, at: ClockReading) -> int:
        quota = self._shares.broker.fetch_quota
        if quota is None:
            return 0
        measured = ShareFetchResponse(responses=_by_topic(listed))
        sizes = map(size_of, measured.encode_parts(self._context.api_version))
        return quota.fetched(self._context, _LENGTH_BYTES + sum(sizes), at.now_ms)

    def _name_leaders(self, results: Results) -> list[NodeEndpoint]:
        """KIP-951: name the leader of each partition that this broker does not lead."""
        endpoints: dict[int, NodeEndpoint] = {}
        image, listener = self._shares.broker.image, self._context.listener
        for partition, data in results:
            if data.error_code not in _LEADER_ERRORS or partition.topic is None:
                continue
            leader = current_leader(image, partition.topic, partition.partition, listener)
            data.current_leader = LeaderIdAndEpoch(
                leader_id=leader.broker_id, leader_epoch=leader.leader_epoch
            )
            if leader.host is not None:
                endpoints[leader.broker_id] = NodeEndpoint(
                    node_id=leader.broker_id, host=leader.host, port=leader.port, rack=leader.rack
                )
        return list(endpoints.values())


def _by_topic(
    results: "list[tuple[SessionPartition, PartitionData]]",
) -> list[ShareFetchableTopicResponse]:
    topics: dict[Uuid, ShareFetchableTopicResponse] = {}
    for partition, data in results:
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = ShareFetchableTopicResponse(
                topic_id=partition.topic_id
            )
        topic.partitions.append(data)
    return list(topics.values())


def _merge(response: ShareFetchResponse, acknowledged: AcknowledgeResults) -> None:
    """Put the results of acknowledgements beside the records of their partitions."""
    topics = {topic.topic_id: topic for topic in response.responses}
    for (topic_id, number), outcome in acknowledged.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id)
            response.responses.append(topic)
        data = next((each for each in topic.partitions if each.partition_index == number), None)
        if data is None:
            data = PartitionData(partition_index=number, records=_NO_RECORDS)
            topic.partitions.append(data)
        data.acknowledge_error_code = outcome.error
        data.acknowledge_error_message = outcome.message
