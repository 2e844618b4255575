"""Hosts the controller over the quorum: appends its records, and answers once they are committed.

The controller is active once its replica leads and has replayed everything before its own epoch,
until the leadership ends. A new leader first ends an open transaction of its predecessor, writes a
new cluster's first records (KIP-868, KIP-631), and registers this controller. Batches are appended
without waiting for the disk, so that many share one flush. The controller decides by an image that
already has them; readers see records only once they are committed.

An answer is sent when all records that it may depend on are committed *and* replayed. If the
leadership ends before, the answer is NOT_CONTROLLER (the result is then unknown, as in Kafka).

Not here: what requests mean (`controller`), elections and the log (`raft_io`), forwarding.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.broker.context import PARKED, Parked, ReplyTo
from kraft_wire.controller.controller import (
    Controller,
    ControllerContext,
    ControllerResult,
    QuorumUpgrade,
)
from kraft_wire.controller.refusal import BATCH_BYTES_MAX, BATCH_RECORDS_MAX
from kraft_wire.controller.requests import decide, names_nothing, nobody_active, refuse
from kraft_wire.frozen import slotted
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import (
    ANONYMOUS,
    DiskFull,
    LeaderEpoch,
    Offset,
    Principal,
    ReportEvent,
    sooner,
)
from kraft_wire.node.controller.uncommitted import not_controller, uncommitted
from kraft_wire.node.quorum.raft_disk import PendingAppend
from kraft_wire.node.quorum.raft_io import KraftVersionUpgrade, RaftIo
from kraft_wire.raft.effects import LeadershipEstablished
from kraft_wire.raft.events import VersionUpgradeRequested
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationRequest
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.update_features import UpdateFeaturesRequest
from kraft_wire.wire.message import Message

__all__ = ["AnswerTo", "ControllerHost", "OwnContext"]

AnswerTo: TypeAlias = ReplyTo | str
"""A client's request, or the tag of a request of this node."""

_BEGINNING: Final = Offset(0)
_AGAIN_AFTER_MS: Final = 1_000
"""Pause after a step that found the disk full. Non-obvious 31: never due at once."""


class OwnContext(NamedTuple):
    """The context of a request of this node itself."""

    api_version: int
    now_ms: int
    wall_ms: int
    principal: Principal = ANONYMOUS
    is_direct: bool = False


class _Waiting(NamedTuple):
    """An answer to send once the log is committed up to an offset."""

    next_offset: Offset
    to: AnswerTo
    response: Message


@slotted
class _Steps:
    """Batches of this node itself, each appended after the previous one is committed."""

    batches: Iterator[list[VersionedRecord]]
    done: Callable[[int, int], None]
    """Called with `now_ms` and `wall_ms`."""
    next_offset: Offset = _BEGINNING
    refused: list[VersionedRecord] | None = None
    """A batch that a full disk refused, to be tried again."""


class ControllerHost:
    """The controller of one node; see the module."""

    def __init__(
        self,
        controller: Controller,
        raft: RaftIo,
        *,
        bootstrap: Callable[[], list[VersionedRecord]],
        registration: Callable[[], Iterator[list[VersionedRecord]]],
        disk_full: Callable[[DiskFull], None],
        report: ReportEvent = lambda name, **fields: None,
    ) -> None:
        """`bootstrap` reads a new cluster's records; `disk_full` is called when the disk is full.

        `registration` yields this controller's own registration, batch by batch.
        """
        self.controller = controller
        self.answers: list[tuple[AnswerTo, Message]] = []
        """Late answers, for the node to take."""
        self.is_active = False
        """Whether requests are served."""
        self._raft = raft
        self._bootstrap = bootstrap
        self._registration = registration
        self._disk_full = disk_full
        self._report = report
        self._established: LeadershipEstablished | None = None
        self._leader_epoch: LeaderEpoch | None = None
        self._waiting: deque[_Waiting] = deque()
        self._steps: _Steps | None = None
        self._decided_end = _BEGINNING
        """End of the appended records of this leadership, this node's own steps included."""
        self._again_at_ms: int | None = None
        self._fence_from_ms = 0
        """Earliest time to fence a broker after a full disk."""
        self._idle_from_ms = 0
        """Earliest time for a NoOp after a full disk."""

    # -- requests --------------------------------------------------------------------------------

    def handle(
        self, context: ControllerContext, request: Message, to: AnswerTo
    ) -> Message | Parked:
        """Decide a request of an API of the controller; PARKED: the answer is in `answers` later.

        If the controller is not active the answer is NOT_CONTROLLER.
        """
        if not self.is_active and names_nothing(request):
            return decide(self.controller, context, request).response
        if not self.is_active:
            words = nobody_active(self._raft.replica.quorum.leader_id)
            return refuse(request, ErrorCode.NOT_CONTROLLER, words)
        voters = self._raft.replica.quorum.voters
        self.controller.kraft_version = voters.kraft_version
        self.controller.voter_ids = list(voters.latest.nodes)
        self.controller.next_offset = self._raft.log.log_end_offset
        result = decide(self.controller, context, request)
        if result.quorum_upgrade is not None:
            error = self._upgrade_quorum(result.quorum_upgrade, context.now_ms, context.wall_ms)
            if error is not ErrorCode.NONE:
                from kraft_wire.controller.handlers.update_features import quorum_refused

                assert isinstance(request, UpdateFeaturesRequest), request
                return quorum_refused(request, error)
        if result.records:
            return self._write(result, to, context.now_ms, context.wall_ms)
        return self._read(result.response, to)

    def register_own(
        self, request: BrokerRegistrationRequest, to: AnswerTo, now_ms: int, wall_ms: int
    ) -> Message | Parked:
        """Register the broker beside this active controller; answers are like those of `handle`.

        It is not checked: it may lack a feature that Apache Kafka had finalised in this log.
        """
        from kraft_wire.controller.handlers.broker_registration import register

        assert self.is_active, "a remote controller needs a link"
        self.controller.next_offset = self._raft.log.log_end_offset
        result = register(self.controller, request, request.previous_broker_epoch)
        return self._write(result, to, now_ms, wall_ms)

    def _read(self, response: Message, to: AnswerTo) -> Message | Parked:
        """Answer without records; later if the decision may depend on uncommitted records."""
        end = self._decided_end
        if end > self._raft.committed.next_offset:
            self._waiting.append(_Waiting(end, to, response))
            return PARKED
        return response

    def _upgrade_quorum(self, upgrade: QuorumUpgrade, now_ms: int, wall_ms: int) -> ErrorCode:
        """Have the quorum raise kraft.version; answer here once its record is committed."""
        assert self._leader_epoch is not None, "only the leader handles requests"
        ticket = KraftVersionUpgrade()
        asked = VersionUpgradeRequested(
            ticket, upgrade.level, self._leader_epoch, upgrade.validate_only
        )
        self._raft.take(asked, now_ms, wall_ms)
        if ticket.error_code is ErrorCode.NONE and not upgrade.validate_only:
            self._decided_end = self._raft.log.log_end_offset
        return ticket.error_code

    def _write(
        self, result: ControllerResult, to: AnswerTo, now_ms: int, wall_ms: int
    ) -> Message | Parked:
        write = self._append_all(result.records, now_ms, wall_ms, result.values)
        if write.disk_full is not None:
            self._disk_full(write.disk_full)
            return uncommitted(result.response)
        if write.next_offset is None:
            return not_controller(result.response)
        if result.appended is not None:
            result.appended(write.next_offset - 1)
        self._waiting.append(_Waiting(write.next_offset, to, result.response))
        return PARKED

    def _append_all(
        self,
        records: Sequence[VersionedRecord],
        now_ms: int,
        wall_ms: int,
        encoded: tuple[bytes, ...] = (),
    ) -> PendingAppend:
        """Append records in several batches if needed; atomic ones fit into one."""
        values, at = encoded or tuple(encode_record(record) for record in records), 0
        for size in _batch_sizes(values):
            part = slice(at, at + size)
            write = self._append(records[part], now_ms, wall_ms, values[part])
            at += size
            if write.next_offset is None:
                break
        assert at > 0, "there are records"
        return write

    def _append(
        self,
        records: Sequence[VersionedRecord],
        now_ms: int,
        wall_ms: int,
        encoded: tuple[bytes, ...] = (),
    ) -> PendingAppend:
        """Append a batch, and decide by an image with it from now on."""
        assert self._leader_epoch is not None, "only a leader writes"
        values = encoded or tuple(encode_record(record) for record in records)
        assert len(values) == len(records)
        write = PendingAppend(values, [record.record for record in records])
        self._raft.write(write, self._leader_epoch, now_ms, wall_ms)
        if write.next_offset is not None:
            self._decided_end = write.next_offset
            self.controller.appended(records, write.next_offset - len(values), now_ms)
        return write

    # -- what the quorum tells -------------------------------------------------------------------

    def committed(self, now_ms: int, wall_ms: int) -> None:
        """Handle a new committed image: release the answers that waited for it, and continue."""
        next_offset = self._raft.committed.next_offset
        self.controller.publish(self._raft.committed.image)
        waiting = self._waiting
        while waiting and waiting[0].next_offset <= next_offset:
            done = waiting.popleft()
            self.answers.append((done.to, done.response))
        if self._established is not None and next_offset >= self._established.from_offset:
            self._begin_leader_epoch(self._established.leader_epoch, now_ms, wall_ms)
        elif self._steps is not None and self._steps.next_offset <= next_offset:
            self._go_on(now_ms, wall_ms)

    def leadership_established(
        self, established: LeadershipEstablished, now_ms: int, wall_ms: int
    ) -> None:
        """Note that the replica leads; the controller is active once older records are replayed."""
        self._established = established
        self.committed(now_ms, wall_ms)

    def leadership_ended(self) -> None:
        """Become inactive and drop uncommitted records: another controller may be active."""
        waiting, self._waiting = self._waiting, deque()
        self.answers += [(each.to, not_controller(each.response)) for each in waiting]
        self._steps = None
        self._established = self._leader_epoch = self._again_at_ms = None
        self._decided_end = _BEGINNING
        self.is_active = False
        self.controller.renounce(self._raft.committed.image)

    def _begin_leader_epoch(self, leader_epoch: LeaderEpoch, now_ms: int, wall_ms: int) -> None:
        committed = self._raft.committed
        self._established = None
        self._leader_epoch = leader_epoch
        first = self.controller.become_active(
            committed.image,
            leader_epoch=leader_epoch,
            in_transaction=committed.in_transaction,
            bootstrap=self._bootstrap() if committed.image.metadata_version == 0 else (),
            now_ms=now_ms,
        )
        self._begin(iter([first] if first else []), self._serve, now_ms, wall_ms)

    def _serve(self, now_ms: int, wall_ms: int) -> None:
        self.is_active = True
        self._begin(self._registration(), lambda *at: None, now_ms, wall_ms)

    # -- steps of this node's own ----------------------------------------------------------------

    def _begin(
        self,
        batches: Iterator[list[VersionedRecord]],
        done: Callable[[int, int], None],
        now_ms: int,
        wall_ms: int,
    ) -> None:
        self._steps = _Steps(batches, done)
        self._go_on(now_ms, wall_ms)

    def _go_on(self, now_ms: int, wall_ms: int) -> None:
        """Append this node's next batch, or finish its steps."""
        steps = self._steps
        assert steps is not None, "nothing to continue"
        self._again_at_ms = None  # a commit may come before the time at which to try again
        self.controller.next_offset = self._raft.log.log_end_offset
        records = steps.refused or next(steps.batches, None)
        steps.refused = None
        if records is None:
            self._steps = None
            steps.done(now_ms, wall_ms)
            return
        write = self._append(records, now_ms, wall_ms)
        if write.disk_full is not None:
            if self._raft.disk.flushes_inline:
                raise write.disk_full
            self._disk_full(write.disk_full)
            steps.refused, self._again_at_ms = records, now_ms + _AGAIN_AFTER_MS
        if write.next_offset is not None:
            steps.next_offset = write.next_offset

    # -- time ------------------------------------------------------------------------------------

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do what is due: appends again, fencing, elections, removals of tokens, NoOps."""
        if self._again_at_ms is not None and self._again_at_ms <= now_ms:
            self._again_at_ms = None
            self._go_on(now_ms, wall_ms)
        session_ends_ms = self._session_deadline_ms()
        if session_ends_ms is not None and session_ends_ms <= now_ms:
            self._fence_stale_brokers(now_ms, wall_ms)
        elections_at_ms = self._elections_deadline_ms()
        if elections_at_ms is not None and elections_at_ms <= now_ms:
            self._hold_elections(now_ms, wall_ms)
        sweep_at_ms = self._sweep_deadline_ms()
        if sweep_at_ms is not None and sweep_at_ms <= now_ms:
            self._remove_expired_tokens(now_ms, wall_ms)
        idle_at_ms = self._idle_deadline_ms()
        if idle_at_ms is not None and idle_at_ms <= now_ms:
            self._append_idle_record(now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        if not self.is_active:
            return self._again_at_ms
        soonest_ms = sooner(self._again_at_ms, self._idle_deadline_ms())
        soonest_ms = sooner(soonest_ms, self._elections_deadline_ms())
        soonest_ms = sooner(soonest_ms, self._sweep_deadline_ms())
        return sooner(soonest_ms, self._session_deadline_ms())

    def _session_deadline_ms(self) -> int | None:
        """Return when the next broker must be fenced because its session ends."""
        if not self.is_active:
            return None
        ends_ms = self.controller.session_deadline_ms()
        return ends_ms if ends_ms is None else max(ends_ms, self._fence_from_ms)

    def _fence_stale_brokers(self, now_ms: int, wall_ms: int) -> None:
        """Fence brokers one by one, each by the image after the previous; later on a full disk."""
        while records := self.controller.stale_broker_records(now_ms):
            expired = self._expired(records, now_ms)
            write = self._append_all(records, now_ms, wall_ms)
            if write.disk_full is not None:
                self._disk_full(write.disk_full)
                self._fence_from_ms = now_ms + _AGAIN_AFTER_MS
            if write.next_offset is None:
                return
            self._report("broker_session_expired", **expired)

    def _expired(self, records: Sequence[VersionedRecord], now_ms: int) -> dict[str, object]:
        """Return the reason of a fencing; its last record is the change of the registration."""
        change, controller = records[-1].record, self.controller
        assert isinstance(change, BrokerRegistrationChangeRecord), change
        contact_ms = controller.sessions[change.broker_id].contact_ms
        return {
            "broker": change.broker_id,
            "broker_epoch": change.broker_epoch,
            "silent_ms": "-" if contact_ms is None else now_ms - contact_ms,
            "session_timeout_ms": controller.session_timeout_ms,
        }

    def _elections_deadline_ms(self) -> int | None:
        """Return when periodic elections are due."""
        return self.controller.election_deadline_ms() if self.is_active else None

    def _hold_elections(self, now_ms: int, wall_ms: int) -> None:
        """Run periodic elections. The next check repeats those that a full disk prevented."""
        records = self.controller.election_records(now_ms)
        if records:
            write = self._append_all(records, now_ms, wall_ms)
            if write.disk_full is not None:
                self._disk_full(write.disk_full)

    def _sweep_deadline_ms(self) -> int | None:
        """Return when expired delegation tokens are due to be removed."""
        if not self.is_active:
            return None
        return self.controller.token_sweep.deadline_ms(self.controller.image)

    def _remove_expired_tokens(self, now_ms: int, wall_ms: int) -> None:
        """Remove expired tokens. The next check repeats what a full disk prevented."""
        controller = self.controller
        records = controller.token_sweep.records(controller.image, now_ms, wall_ms)
        if records:
            write = self._append_all(records, now_ms, wall_ms)
            if write.disk_full is not None:
                self._disk_full(write.disk_full)

    def _append_idle_record(self, now_ms: int, wall_ms: int) -> None:
        """Append a NoOp; on a full disk try again after a pause."""
        write = self._append(self.controller.idle_records(now_ms), now_ms, wall_ms)
        if write.disk_full is not None:
            self._disk_full(write.disk_full)
            self._idle_from_ms = now_ms + _AGAIN_AFTER_MS

    def _idle_deadline_ms(self) -> int | None:
        """Return when the next NoOp is due; None without followers, which alone could lag."""
        if not self.is_active or not _has_followers(self._raft.replica.quorum):
            return None
        due_ms = self.controller.idle_deadline_ms()
        return due_ms if due_ms is None else max(due_ms, self._idle_from_ms)


def _batch_sizes(values: Sequence[bytes]) -> Iterator[int]:
    """Yield the number of records of each batch, in order."""
    size = size_bytes = 0
    for value in values:
        if size == BATCH_RECORDS_MAX or (size and size_bytes + len(value) > BATCH_BYTES_MAX):
            yield size
            size = size_bytes = 0
        size += 1
        size_bytes += len(value)
    if size:
        yield size


def _has_followers(quorum: Quorum) -> bool:
    """Return whether any other replica follows the log, or should."""
    follows = isinstance(quorum.role, Leader) and bool(quorum.role.progress)
    return follows or not quorum.is_only_voter
