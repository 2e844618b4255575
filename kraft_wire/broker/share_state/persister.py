"""The client of all share coordinators: finds them, repeats calls, hands back results (KIP-932).

The coordinator of a share partition leads the partition of `__share_group_state` that the
partition's key belongs to, as FindCoordinator answers; the newest image tells it. A topic that is
missing is created. A call to this broker itself goes to its coordinator directly, calls to other
brokers are queued per broker (`coordinator_queue`).

A call is made up to five times, with pauses of about 2, 4, 8 and 16 s; looking for a coordinator
counts on its own. A change of the metadata that names another coordinator ends the pause.

Calls about one share partition may overtake each other when one of them is repeated. Merging the
batches does not depend on the order, but an earlier start offset would replace a later one, below
which the states are dropped. So a write that is repeated takes over the start offset and the count
of a later write that has succeeded. 4.3.1 does not, and delivers acknowledged records again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.deadlines import Deadlines
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import SHARE_STATE_TOPIC
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterCallback,
    PersisterResult,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.calls import CallKind, StateCall, StateCallback
from kraft_wire.broker.share_state.coordinator_keys import state_partition
from kraft_wire.broker.share_state.coordinator_queue import CoordinatorQueue
from kraft_wire.broker.share_state.pending_call import PendingCall, PendingWrites
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import LeaderEpoch, RandomSource
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["CoordinatedPersister"]

_TRIES_MAX: Final = 5
_PAUSE_MS: Final = 1_000
"""Doubled for each try."""
_PAUSE_MAX_MS: Final = 30_000
_JITTER_PERCENT: Final = 20
_REQUEST_TIMEOUT_MS: Final = 30_000
_RETRIED: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NETWORK_EXCEPTION,
)
_NAMES: Final[Mapping[CallKind, str]] = {
    CallKind.INITIALIZE: "initialize state RPC",
    CallKind.READ: "read state RPC",
    CallKind.WRITE: "write state RPC",
    CallKind.DELETE: "delete state RPC",
    CallKind.SUMMARY: "read state summary RPC",
}


class CoordinatedPersister:
    """A `SharePersister` over the coordinators of the cluster; a `MetadataFollower`."""

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        random_source: RandomSource,
        call_here: Callable[[StateCall, ClockReading, StateCallback], None],
        create_topic: Callable[[int], None],
    ) -> None:
        """`call_here` asks this broker's own coordinator; `create_topic` takes the time."""
        self._node_id = node_id
        self._image = image
        self._random_source = random_source
        self._call_here = call_here
        self._create_topic = create_topic
        self._queues: dict[int, CoordinatorQueue] = {}
        self._writes = PendingWrites()
        self._resting: Deadlines[PendingCall] = Deadlines(lambda call: call.is_resting)
        self._resting_count = 0
        self._changed_ms: int | None = None
        """When the metadata changed, until resting calls have looked again."""

    def client(self) -> InterBrokerClient:
        """Return the client that sends the queued calls."""
        name = f"Persister-client-{self._node_id}"
        return InterBrokerClient(name, _REQUEST_TIMEOUT_MS, lambda: self._queues)

    # -- a `SharePersister` ----------------------------------------------------------------------

    def initialize(
        self,
        partitions: Mapping[SharePartitionKey, InitialShareState],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Begin the state of share partitions, or begin it again."""
        calls = [StateCall(CallKind.INITIALIZE, *each) for each in partitions.items()]
        self._begin(calls, at, then)

    def read(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Read the state for the leaders of topic partitions, whose epochs become known."""
        self._begin([StateCall(CallKind.READ, *each) for each in partitions.items()], at, then)

    def write(
        self,
        partitions: Mapping[SharePartitionKey, ShareStateWrite],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Add to the state of share partitions."""
        self._begin([StateCall(CallKind.WRITE, *each) for each in partitions.items()], at, then)

    def delete(
        self, partitions: Sequence[SharePartitionKey], at: ClockReading, then: PersisterCallback
    ) -> None:
        """Remove the state of share partitions; those without state are done already."""
        self._begin([StateCall(CallKind.DELETE, each, None) for each in partitions], at, then)

    def read_summary(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Read start offsets and counts, without batches; one without state gives -1."""
        self._begin([StateCall(CallKind.SUMMARY, *each) for each in partitions.items()], at, then)

    def _begin(self, calls: Iterable[StateCall], at: ClockReading, then: PersisterCallback) -> None:
        """Make calls; the callback runs with the last of their results."""
        results: dict[SharePartitionKey, PersisterResult] = {}
        pending = {call.key: call for call in calls}
        if not pending:
            then(results, at)
            return

        def answered(call: PendingCall, result: PersisterResult, later: ClockReading) -> None:
            results[call.call.key] = result
            if len(results) == len(pending):
                then(results, later)

        for call in list(pending.values()):
            made = PendingCall(call, answered)
            self._writes.begun(made)
            self._route(made, at)

    # -- a `MetadataFollower` --------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Have calls look for their coordinators again."""
        self._changed_ms = now_ms

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Repeat the calls whose pause is over, or whose coordinator is another one now."""
        at = ClockReading(now_ms, wall_ms)
        if self._changed_ms is not None:
            self._changed_ms = None
            self._look_again(at)
        for call in list(self._resting.due(now_ms)):
            self._wake(call, at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        is_waiting = self._resting_count or any(each.is_waiting for each in self._queues.values())
        if self._changed_ms is not None and is_waiting:
            return self._changed_ms
        return self._resting.next_ms()

    def stop(self) -> None:
        """Drop the calls: what waits for them ends with the broker."""

    def _look_again(self, at: ClockReading) -> None:
        """Move queued and resting calls to coordinators that are not the ones asked last."""
        for asked, queue in list(self._queues.items()):
            for call in queue.take_moved(partial(self._is_led_by, asked)):
                self._route(call, at)
        for call in self._resting.take_all():
            broker_id = self._find(call)
            if broker_id is not None and broker_id != call.asked:
                self._wake(call, at)
            else:
                self._resting.add(call.due_ms, call, self._resting_count)

    # -- one call --------------------------------------------------------------------------------

    def _find(self, call: PendingCall) -> int | None:
        """Return the live broker that coordinates a call's share partition."""
        image = self._image()
        topic = image.topic(SHARE_STATE_TOPIC)
        if topic is None or not topic.partitions:
            return None
        number = state_partition(call.call.key, len(topic.partitions))
        broker = image.brokers.get(topic.partitions[number].leader)
        return None if broker is None or broker.fenced else broker.broker_id

    def _is_led_by(self, broker_id: int, call: PendingCall) -> bool:
        return self._find(call) == broker_id

    def _route(self, call: PendingCall, at: ClockReading) -> None:
        """Make a call to its coordinator, or look for it again after a pause."""
        broker_id = call.asked = self._find(call)
        if broker_id is None:
            self._not_found(call, at)
        elif broker_id == self._node_id:
            call.lookups = 0
            self._call_here(
                call.call, at, lambda result, later: self._answered(call, result, later)
            )
        else:
            call.lookups = 0
            queue = self._queues.get(broker_id)
            if queue is None:
                queue = self._queues[broker_id] = CoordinatorQueue(self._answered)
            queue.add(call)

    def _not_found(self, call: PendingCall, at: ClockReading) -> None:
        if self._image().topic(SHARE_STATE_TOPIC) is None:
            self._create_topic(at.now_ms)
        call.lookups += 1
        if call.lookups < _TRIES_MAX:
            self._rest(call, call.lookups, at)
            return
        words = "Exhausted max retries to find coordinator without success."
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._finish(call, PersisterResult(error, f"Error in find coordinator. {words}"), at)

    def _answered(self, call: PendingCall, result: PersisterResult, at: ClockReading) -> None:
        """Hand back a result, or repeat the call after a pause."""
        error, words, _ = result
        name = _NAMES[call.call.kind]
        call.tries += 1
        if error is ErrorCode.NONE:
            self._finish(call, result, at)
        elif error not in _RETRIED:
            words = words or error.message
            self._finish(call, PersisterResult(error, f"Error in {name}. {words}"), at)
        elif call.tries < _TRIES_MAX:
            self._rest(call, call.tries, at)
        else:
            words = f"Exhausted max retries to complete {name} without success."
            self._finish(call, PersisterResult(error, f"Error in {name}. {words}"), at)

    def _finish(self, call: PendingCall, result: PersisterResult, at: ClockReading) -> None:
        self._writes.ended(call, is_written=result.error is ErrorCode.NONE)
        call.answered(call, result, at)

    def _rest(self, call: PendingCall, tries: int, at: ClockReading) -> None:
        pause_ms = _PAUSE_MS << tries
        spread_ms = pause_ms * _JITTER_PERCENT // 100
        pause_ms += self._random_source.below(2 * spread_ms + 1) - spread_ms
        call.due_ms = at.now_ms + min(pause_ms, _PAUSE_MAX_MS)
        call.is_resting = True
        self._resting_count += 1
        self._resting.add(call.due_ms, call, self._resting_count)

    def _wake(self, call: PendingCall, at: ClockReading) -> None:
        call.is_resting = False
        self._resting_count -= 1
        self._route(call, at)
