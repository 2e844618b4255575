"""The partitions that this broker leads and others replicate: the effects of their fetches.

A follower's fetch offset is the end of its log. It may commit records (then waiting producers and
consumers are answered), add the follower to the ISR, or end a DeleteRecords. Every half of
`replica.lag.time.max.ms` lagging followers are removed from the ISR (KIP-16, KIP-497).

`tell` is level-triggered: it compares with the last reported state, so every path may end in it.
Read `leadership` first. Not here: reading records for followers (`fetch_run`).
"""

from collections.abc import Callable

from kraft_wire.broker.capped_report import CappedReport
from kraft_wire.broker.fetching.fetch_session import WantedPartition
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.purgatory import DelayedOperationPurgatory, FetchPurgatory
from kraft_wire.broker.replication.follower_state import NEVER_MS, FollowerState
from kraft_wire.broker.replication.isr_changes import IsrChanges
from kraft_wire.broker.replication.leadership import Leadership
from kraft_wire.broker.replication.registered_brokers import RegisteredBrokers
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import MetadataImage, PartitionImage
from kraft_wire.model import ReportEvent, TopicPartition, sooner
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["LeaderEnvironment", "LeaderSide"]


@frozen
class LeaderEnvironment:
    """The parts of a broker that its leaders use."""

    node_id: int
    image: Callable[[], MetadataImage]
    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    broker_epoch: Callable[[], int]
    """Epoch of this incarnation, -1 while it is not registered."""
    ask_controller: AskController
    order_flush: Callable[[Partition], None]
    """Has the partition's log flushed soon."""
    fetches: FetchPurgatory
    produces: DelayedOperationPurgatory
    deletions: DelayedOperationPurgatory
    report: ReportEvent = lambda name, **fields: None


class LeaderSide:
    """Leads the replicated partitions of one broker."""

    def __init__(self, env: LeaderEnvironment, now_ms: int) -> None:
        self.registered_brokers = RegisteredBrokers(env.image, env.settings, env.broker_epoch)
        self.isr_changes = IsrChanges(
            env.node_id,
            broker_epoch=env.broker_epoch,
            ask=env.ask_controller,
            changed=self._isr_changed,
        )
        self.shrinks_count = 0
        self.expands_count = 0
        """ISRs that the controller has changed as this broker wished."""
        self._env = env
        self._led: dict[TopicPartition, Partition] = {}
        self._next_check_ms = now_ms + self._check_interval_ms

    @property
    def _check_interval_ms(self) -> int:
        return max(1, self.registered_brokers.lag_max_ms // 2)

    # -- the metadata ----------------------------------------------------------------------------

    def lead(self, partition: Partition, view: PartitionImage, now_ms: int) -> None:
        """Lead a partition by the metadata; the log has its leader epoch already."""
        assert partition.is_leader, partition.topic_partition
        assert not partition.offline, partition.topic_partition
        leadership = partition.leadership
        if leadership is None:
            leadership = partition.leadership = Leadership(
                self._env.node_id, self.registered_brokers
            )
            self._led[partition.topic_partition] = partition
        before, change = leadership.isr, leadership.change
        if leadership.take(view, partition.log_end_offset, now_ms):
            if change is not None and set(leadership.isr) == set(change.isr):
                self._count(before, leadership.isr)  # the image came before the answer
            self._flush(partition)  # its records as a follower
            self.advance(partition, now_ms)
            self._env.deletions.check(partition)  # with fewer replicas, maybe

    def look_again(self, now_ms: int) -> None:
        """Check the waits that depend on changed brokers or settings, or on time.

        A follower that is about to join counts without being in the ISR. Neither the partition's
        metadata nor another follower's fetch shows that it has died.
        """
        for partition in self._led.values():
            if partition.offline:
                continue
            if partition.high_watermark < partition.log_end_offset:
                self._flush(partition)  # settings may promise more than at the append
                self.advance(partition, now_ms)
            self._env.deletions.check(partition)

    def resign(self, partition: Partition) -> None:
        """Stop leading a partition, or lead it without followers."""
        if partition.leadership is not None:
            partition.leadership.forget_members()
        partition.leadership = None
        self._led.pop(partition.topic_partition, None)

    # -- appends and fetches ---------------------------------------------------------------------

    def appended(self, partition: Partition) -> None:
        """Have an append flushed if that is promised, and let the followers fetch it."""
        self._flush(partition)
        self._env.fetches.wake_followers(partition)
        self.tell(partition)

    def _flush(self, partition: Partition) -> None:
        if partition.counted_end_offset < partition.log_end_offset:
            self._env.order_flush(partition)

    def advance(self, partition: Partition, now_ms: int) -> None:
        """Advance the high watermark, and wake waiting requests."""
        partition.advance_high_watermark(now_ms)
        self.tell(partition)

    def tell(self, partition: Partition) -> None:
        """Wake readers and producers of a partition if its high watermark has moved."""
        leadership, high_watermark = partition.leadership, partition.log.high_watermark
        assert leadership is not None, partition.topic_partition
        if high_watermark == leadership.known_high_watermark:
            return
        leadership.known_high_watermark = high_watermark
        self._env.fetches.wake_readers(partition)
        self._env.produces.check(partition)

    def fetched(
        self,
        partition: Partition,
        wanted: WantedPartition,
        fetch_offset: int,
        replica_id: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: int,
    ) -> ErrorCode:
        """Record a follower's fetch that was read without an error; its log ends at `fetch_offset`.

        NOT_LEADER_OR_FOLLOWER for a fetch that does not count for the broker's log: the broker is
        not registered, or the epoch is that of another incarnation (KIP-903).
        """
        leadership = partition.leadership
        assert leadership is not None, partition.topic_partition
        assert 0 <= fetch_offset <= wanted.params.fetch_offset, (fetch_offset, wanted.params)
        follower, params = leadership.followers[replica_id], wanted.params
        wanted.follower = follower
        if not self.registered_brokers.is_known_sender(replica_id, broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        before = (follower.log_end_offset, follower.log_start_offset)
        follower.fetched(
            fetch_offset, params.log_start_offset, leader_end_offset, broker_epoch, now_ms
        )
        change = leadership.wanted_expansion(follower, partition.log.high_watermark)
        if change is not None:
            self.isr_changes.submit(partition, change)
            self.isr_changes.send(now_ms)
        if fetch_offset != before[0]:
            self.advance(partition, now_ms)
        if params.log_start_offset != before[1]:
            self._env.deletions.check(partition)
        return ErrorCode.NONE

    # -- time and the controller -----------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Remove followers from the ISRs that lag for too long."""
        if self._led and self._next_check_ms <= now_ms:
            self._next_check_ms = now_ms + self._check_interval_ms
            report = CappedReport(self._env.report)
            for partition in self._led.values():
                self._shrink(partition, report, now_ms)
            report.end()
            self.look_again(now_ms)
        self.isr_changes.send(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        check_ms = self._next_check_ms if self._led else None
        return sooner(self.isr_changes.deadline_ms(), check_ms)

    def _shrink(self, partition: Partition, report: CappedReport, now_ms: int) -> None:
        leadership = partition.leadership
        assert leadership is not None, partition.topic_partition
        if partition.offline:
            return
        change = leadership.wanted_shrinking(partition.log_end_offset, now_ms)
        if change is None:
            return
        self.isr_changes.submit(partition, change)
        for broker_id in leadership.isr:
            if broker_id not in change.isr:
                follower = leadership.followers.get(broker_id)
                self._report_lag(partition, broker_id, follower, report, now_ms)

    def _report_lag(
        self,
        partition: Partition,
        broker_id: int,
        follower: FollowerState | None,
        report: CappedReport,
        now_ms: int,
    ) -> None:
        """Log why a follower must leave the ISR; None for a removed replica."""
        is_known = follower is not None and follower.caught_up_ms != NEVER_MS
        has_fetched = follower is not None and follower.log_end_offset >= 0
        report(
            "follower_out_of_sync",
            partition=partition.topic_partition,
            follower=broker_id,
            log_end_offset=follower.log_end_offset if follower and has_fetched else "-",
            leader_log_end_offset=partition.log_end_offset,
            high_watermark=partition.high_watermark,
            caught_up_ms_ago=now_ms - follower.caught_up_ms if follower and is_known else "-",
            lag_max_ms=self.registered_brokers.lag_max_ms,
        )

    def _isr_changed(self, partition: Partition, before: tuple[int, ...], now_ms: int) -> None:
        """Advance the high watermark by the new ISR of the controller's answer."""
        leadership = partition.leadership
        assert leadership is not None, partition.topic_partition
        self._count(before, leadership.isr)
        self.advance(partition, now_ms)
        self._env.fetches.run_woken(now_ms)

    def _count(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        self.shrinks_count += len(after) < len(before)
        self.expands_count += len(after) > len(before)
