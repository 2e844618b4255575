"""Fetches from one leader: the followed partitions, the next request, and pauses.

Sans-IO: `request` returns the next request, `answered` and `failed` take its result, `deadline_ms`
returns when to ask again. One request is in flight at a time, so that memory is bounded by one
answer and answers are in order. As in the fetcher of 4.3.1, a refused partition pauses for
`replica.fetch.backoff.ms` and is out of the session meanwhile; all partitions pause if the leader
cannot be reached. Records that must survive power loss reach the disk before the next request,
which counts them as safe.

Throttled partitions that are out of sync are out of the session while the throttle is exceeded
(KIP-73).

Not here: links and addresses (`node/replica_links`), the changes of a log (`following`), questions
that no fetch answers (`leader_questions`), and several fetchers for one leader
(`num.replica.fetchers`).
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

from kraft_wire.broker.fetching.fetch_session import records_size_bytes
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.fetch_session_handler import FetchSessionHandler, PartitionKey
from kraft_wire.broker.replication.following import FollowedPartition, Next
from kraft_wire.broker.replication.leader_questions import LeaderQuestions
from kraft_wire.broker.replication.throttle import ReplicationThrottle
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import ReportEvent
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from kraft_wire.wire.message import Message

__all__ = ["Fetcher"]

_LOOK_EVERY_MS: Final = 1_000
"""How often log starts that our own retention moved are reported to the leader."""
_BACKOFF_MS_MIN: Final = 20
"""Lower bound of the configured backoff, so that retries do not spin at one moment."""
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
)
_EXPECTED_ERRORS: Final = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OFFSET_OUT_OF_RANGE,
)
"""Errors of partitions while one side has newer metadata; they are not logged."""


class Fetcher:
    """The partitions of one leader that this broker follows."""

    def __init__(
        self,
        leader_id: int,
        replica_id: int,
        settings: Callable[[], BrokerSettings],
        report: ReportEvent,
        order_flush: Callable[[Partition], None],
    ) -> None:
        """`order_flush` has a partition's log brought to the disk, some time soon."""
        assert leader_id != replica_id, "a broker does not follow itself"
        self.leader_id = leader_id
        self.throttle: Callable[[], ReplicationThrottle | None] = lambda: None
        """Returns the throttle of this broker as a follower; None without throttled replicas."""
        self.followed: dict[PartitionKey, FollowedPartition] = {}
        self._replica_id = replica_id
        self._settings = settings
        self._report = report
        self._order_flush = order_flush
        self._session = FetchSessionHandler()
        self._asked: Message | None = None
        self._resting: dict[PartitionKey, int] = {}
        """Until when, the soonest first: all rest equally long."""
        self._throttled: dict[PartitionKey, None] = {}
        """Partitions that are left out while the throttle is exceeded."""
        self._look_at_throttle_ms = 0
        self._questions = LeaderQuestions(replica_id)
        self._unflushed: list[FollowedPartition] = []
        self._rests_until_ms = 0
        self._look_at_ms = 0
        self._refusals = 0
        """Answers in a row that were refused as a whole."""
        self._next_line_ms = 0

    # -- what is followed ------------------------------------------------------------------------

    def follow(self, followed: FollowedPartition, now_ms: int) -> None:
        """Fetch a partition from now on; this replaces its earlier state."""
        self.forget(followed.key)
        self.followed[followed.key] = followed
        self._go_on(followed, followed.begin(), now_ms)
        # A flush for the previous leader may still be in progress.
        self._have_flushed(followed)

    def forget(self, key: PartitionKey) -> None:
        """Stop fetching a partition; its part of an answer in flight will be ignored."""
        if self.followed.pop(key, None) is not None:
            self._session.drop(key)
            self._resting.pop(key, None)
            self._throttled.pop(key, None)
            self._questions.drop(key)

    # -- requests --------------------------------------------------------------------------------

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return the next request, None while one is in flight or there is nothing to fetch."""
        if self._asked is not None or now_ms < self._rests_until_ms or self._must_flush():
            return None
        self._wake(now_ms)
        if self._questions:
            self._asked = self._questions.request()
            return self._asked
        self._look_at_log_starts(now_ms)
        settings = self._settings()
        throttle = self.throttle()
        if throttle is not None or self._throttled:
            self._leave_out_throttled(throttle, now_ms)
            self._look_at_throttle_ms = now_ms + settings.replica_fetch_backoff_ms
        if self._session.is_idle:
            return None
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._replica_id, replica_epoch=broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
        )
        self._session.fill(request)
        self._asked = request
        return request

    def deadline_ms(self) -> int | None:
        """Return when `request` has something to send; None while an answer or a flush is due."""
        if self._asked is not None or self._unflushed:
            return None
        if self._questions or not self._session.is_idle:
            return self._rests_until_ms
        waits = list(islice(self._resting.values(), 1))
        if self._throttled:
            waits.append(self._look_at_throttle_ms)
        return max(min(waits), self._rests_until_ms) if waits else None

    def _leave_out_throttled(self, throttle: ReplicationThrottle | None, now_ms: int) -> None:
        """Leave throttled partitions out of the next request, or take them up again."""
        is_exceeded = throttle is not None and throttle.is_exceeded(now_ms)
        for key in list(self._throttled):
            followed = self.followed[key]
            if not (is_exceeded and _is_throttled(throttle, followed)):
                self._go_on(followed, Next.FETCH, now_ms)
        if not is_exceeded:
            return
        for key, followed in self.followed.items():
            may_wait = key not in self._resting and key not in self._questions
            if may_wait and not followed.is_in_sync and _is_throttled(throttle, followed):
                self._session.drop(key)
                self._throttled[key] = None

    def _have_flushed(self, followed: FollowedPartition) -> None:
        """Order a flush of records that the leader is not to count on before."""
        if followed.awaits_flush:
            self._unflushed.append(followed)
            self._order_flush(followed.partition)

    def _must_flush(self) -> bool:
        """Return whether records that must survive power loss are not on the disk yet."""
        # A partition that is not followed any more is not flushed: its log may be deleted.
        self._unflushed = [
            each
            for each in self._unflushed
            if self.followed.get(each.key) is each and each.awaits_flush
        ]
        return bool(self._unflushed)

    def _wake(self, now_ms: int) -> None:
        """Take up partitions that have rested."""
        due = []
        for key, until_ms in self._resting.items():
            if until_ms > now_ms:
                break
            due.append(key)
        for key in due:
            followed = self.followed.get(key)
            if followed is not None:  # not lost with the disk of an earlier partition
                self._go_on(followed, followed.begin(), now_ms)

    def _look_at_log_starts(self, now_ms: int) -> None:
        """Report log starts that retention moved to the leader."""
        if now_ms < self._look_at_ms:
            return
        self._look_at_ms = now_ms + _LOOK_EVERY_MS
        for key, sent in self._session.session_partitions.items():
            followed = self.followed.get(key)
            if followed is None or key in self._resting or key in self._questions:
                continue
            if followed.partition.log.log_start_offset != sent.log_start_offset:
                self._go_on(followed, Next.FETCH, now_ms)

    # -- answers ---------------------------------------------------------------------------------

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Take note that the request got no answer: everything rests, and the session is over."""
        self._asked = None
        self._session.start_over()
        self._rest(now_ms)

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Take the answer to the request that is in flight."""
        asked, self._asked = self._asked, None
        if isinstance(asked, FetchRequest):
            assert isinstance(response, FetchResponse), response
            self._take_fetch(response, now_ms, wall_ms)
            return
        assert asked is not None, "a response without a request"
        for followed, step in self._questions.take(response):
            self._go_on(followed, step, now_ms)

    def _take_fetch(self, response: FetchResponse, now_ms: int, wall_ms: int) -> None:
        problem = self._session.take(response)
        if problem is not None:
            self._refusals += 1
            # A session may be evicted at any time; a second failure would repeat endlessly.
            if response.error_code not in _SESSION_ERRORS or self._refusals > 1:
                self._rest(now_ms)
                self._tell(now_ms, "replica_fetch_refused", reason=problem)
            return
        self._refusals = 0
        for topic in response.responses:
            for data in topic.partitions:
                followed = self.followed.get((topic.topic_id, data.partition_index))
                if followed is not None:
                    self._take_partition(followed, data, now_ms, wall_ms)

    def _take_partition(
        self, followed: FollowedPartition, data: PartitionData, now_ms: int, wall_ms: int
    ) -> None:
        asked = self._session.session_partitions[followed.key]
        step = followed.fetched(asked, data, now_ms, wall_ms)
        if step is None:
            # Non-obvious 28: the leader assumes that we know this now, and would not send it again.
            self._session.start_over()
            return
        if data.error_code not in _EXPECTED_ERRORS and data.error_code != ErrorCode.NONE:
            self._tell(
                now_ms,
                "replica_partition_refused",
                partition=followed.partition.topic_partition,
                error=data.error_code,
            )
        self._have_flushed(followed)
        throttle = self.throttle()
        if throttle is not None and _is_throttled(throttle, followed):
            throttle.record(records_size_bytes(data), now_ms)
        self._go_on(followed, step, now_ms)

    def _go_on(self, followed: FollowedPartition, step: Next, now_ms: int) -> None:
        """Carry out a partition's next step, unless it is not followed any more."""
        key, settings = followed.key, self._settings()
        if self.followed.get(key) is not followed:
            return
        self._resting.pop(key, None)
        self._throttled.pop(key, None)
        self._questions.drop(key)
        if step is Next.FETCH:
            self._session.want(key, followed.position(settings.replica_fetch_max_bytes))
            return
        self._session.drop(key)
        if step is Next.REST:
            self._resting[key] = now_ms + settings.replica_fetch_backoff_ms
        elif step is Next.STOP:
            del self.followed[key]
        else:
            self._questions.ask(followed, step)

    def _rest(self, now_ms: int) -> None:
        backoff_ms = max(_BACKOFF_MS_MIN, self._settings().replica_fetch_backoff_ms)
        self._rests_until_ms = now_ms + backoff_ms

    def _tell(self, now_ms: int, name: str, **fields: object) -> None:
        """Write a line, one a second at most: one leader's mistakes fill no log."""
        if now_ms >= self._next_line_ms:
            self._next_line_ms = now_ms + _LOOK_EVERY_MS
            self._report(name, leader=self.leader_id, **fields)


def _is_throttled(throttle: ReplicationThrottle | None, followed: FollowedPartition) -> bool:
    partition = followed.partition
    return throttle is not None and throttle.is_throttled(partition.topic, partition.partition)
