"""Hosts the controller over the quorum: what it decides is appended, and answered once committed.

The controller is active from the time its replica leads and has replayed everything before its own
epoch, until the leadership ends; a leader first ends what its predecessor left open, writes a new
cluster's first records (KIP-868, KIP-631), and registers this controller. Records are appended one
batch after the other without waiting for the disk, so that many share one flush; the controller
decides by an image that has them already, and nothing of it is shown to anybody before it is
committed.
An answer leaves when everything that it could depend on is committed *and* replayed; where the
leadership ends before, it says NOT_CONTROLLER (the outcome is then unknown, as in Kafka).

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
from kraft_wire.controller.requests import decide, refuse
from kraft_wire.frozen import slotted
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import DiskFull, LeaderEpoch, Offset, ReportEvent, sooner
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
"""A client's request, or the tag of one of this node's own."""

_NOT_ACTIVE: Final = "No controller appears to be active on this node."
_BEGINNING: Final = Offset(0)
_AGAIN_AFTER_MS: Final = 1_000
"""Pause after a step of ours for which the disk had no room. Non-obvious 31: never due at once."""


class OwnContext(NamedTuple):
    """A request of this node's own, as the controller's context."""

    api_version: int
    now_ms: int
    wall_ms: int


class _Waiting(NamedTuple):
    """An answer that is due once the log is committed up to an offset."""

    next_offset: Offset
    to: AnswerTo
    response: Message


@slotted
class _Steps:
    """Batches of this node's own that follow one another, each after the last is committed."""

    batches: Iterator[list[VersionedRecord]]
    done: Callable[[int, int], None]
    """Called with `now_ms` and `wall_ms`."""
    next_offset: Offset = _BEGINNING
    refused: list[VersionedRecord] | None = None
    """A batch for which the disk had no room, to be tried again."""


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
        """`bootstrap` reads a new cluster's records; `disk_full` is told of a disk without room.

        `registration` yields what this controller says of itself, batch by batch.
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
        """End of what was appended while deciding, steps of this node's own included."""
        self._again_at_ms: int | None = None
        self._fence_from_ms = 0
        """No broker is fenced for its silence before, because the disk had no room."""
        self._idle_from_ms = 0
        """No NoOp is appended before, for the same reason."""

    # -- requests --------------------------------------------------------------------------------

    def handle(
        self, context: ControllerContext, request: Message, to: AnswerTo
    ) -> Message | Parked:
        """Decide a request of an API of the controller; PARKED: the answer is in `answers` later.

        Where the controller is not active the answer is NOT_CONTROLLER.
        """
        if not self.is_active:
            return refuse(request, ErrorCode.NOT_CONTROLLER, _NOT_ACTIVE)
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
        """Register the broker beside this active controller; answers are as those of `handle`.

        It is not checked: it may lack a feature that Apache Kafka had finalised in this log.
        """
        from kraft_wire.controller.handlers.broker_registration import register

        assert self.is_active, "a remote controller needs a link"
        self.controller.next_offset = self._raft.log.log_end_offset
        result = register(self.controller, request, request.previous_broker_epoch)
        return self._write(result, to, now_ms, wall_ms)

    def _read(self, response: Message, to: AnswerTo) -> Message | Parked:
        """Answer without records; later where what was decided by may not be committed yet."""
        end = self._decided_end
        if end > self._raft.committed.next_offset:
            self._waiting.append(_Waiting(end, to, response))
            return PARKED
        return response

    def _upgrade_quorum(self, upgrade: QuorumUpgrade, now_ms: int, wall_ms: int) -> ErrorCode:
        """Raise kraft.version, which is the quorum's to do; its record is answered for here."""
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
        """Append what one batch may not hold in several; what is atomic fits into one."""
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
        """The committed image has grown: answer who waited for it, and continue."""
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
        """The replica leads; the controller follows once it has replayed what was before."""
        self._established = established
        self.committed(now_ms, wall_ms)

    def leadership_ended(self) -> None:
        """Another controller may be active from now on: drop what was not committed."""
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
        """Append the next batch of our own, or be done with them."""
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
        """Try again what found no room, fence who was not heard of, elect, show who lags."""
        if self._again_at_ms is not None and self._again_at_ms <= now_ms:
            self._again_at_ms = None
            self._go_on(now_ms, wall_ms)
        session_ends_ms = self._session_deadline_ms()
        if session_ends_ms is not None and session_ends_ms <= now_ms:
            self._fence_stale_brokers(now_ms, wall_ms)
        elections_at_ms = self._elections_deadline_ms()
        if elections_at_ms is not None and elections_at_ms <= now_ms:
            self._hold_elections(now_ms, wall_ms)
        idle_at_ms = self._idle_deadline_ms()
        if idle_at_ms is not None and idle_at_ms <= now_ms:
            self._append_idle_record(now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        if not self.is_active:
            return self._again_at_ms
        soonest_ms = sooner(self._again_at_ms, self._idle_deadline_ms())
        soonest_ms = sooner(soonest_ms, self._elections_deadline_ms())
        return sooner(soonest_ms, self._session_deadline_ms())

    def _session_deadline_ms(self) -> int | None:
        """Return when the next broker has to be fenced that was not heard of."""
        if not self.is_active:
            return None
        ends_ms = self.controller.session_deadline_ms()
        return ends_ms if ends_ms is None else max(ends_ms, self._fence_from_ms)

    def _fence_stale_brokers(self, now_ms: int, wall_ms: int) -> None:
        """Fence one broker after the other, each by what the one before left; later if no room."""
        while records := self.controller.stale_broker_records(now_ms):
            self._report_expired(records, now_ms)
            write = self._append_all(records, now_ms, wall_ms)
            if write.disk_full is not None:
                self._disk_full(write.disk_full)
                self._fence_from_ms = now_ms + _AGAIN_AFTER_MS
            if write.next_offset is None:
                return

    def _report_expired(self, records: Sequence[VersionedRecord], now_ms: int) -> None:
        """Log why a broker is fenced; its registration is the last of its records."""
        change, controller = records[-1].record, self.controller
        assert isinstance(change, BrokerRegistrationChangeRecord), change
        contact_ms = controller.sessions[change.broker_id].contact_ms
        self._report(
            "broker_session_expired",
            broker=change.broker_id,
            broker_epoch=change.broker_epoch,
            silent_ms="-" if contact_ms is None else now_ms - contact_ms,
            session_timeout_ms=controller.session_timeout_ms,
        )

    def _elections_deadline_ms(self) -> int | None:
        """Return when leaders are to be elected that nobody asks for."""
        return self.controller.election_deadline_ms() if self.is_active else None

    def _hold_elections(self, now_ms: int, wall_ms: int) -> None:
        """Elect by time. What finds no room on the disk is found again by the next look."""
        records = self.controller.election_records(now_ms)
        if records:
            write = self._append_all(records, now_ms, wall_ms)
            if write.disk_full is not None:
                self._disk_full(write.disk_full)

    def _append_idle_record(self, now_ms: int, wall_ms: int) -> None:
        """Append a NoOp; where the disk has no room for it, try again after a pause."""
        write = self._append(self.controller.idle_records(now_ms), now_ms, wall_ms)
        if write.disk_full is not None:
            self._disk_full(write.disk_full)
            self._idle_from_ms = now_ms + _AGAIN_AFTER_MS

    def _idle_deadline_ms(self) -> int | None:
        """Return when the next NoOp is due: none where nobody follows who could lag."""
        if not self.is_active or not _has_followers(self._raft.replica.quorum):
            return None
        due_ms = self.controller.idle_deadline_ms()
        return due_ms if due_ms is None else max(due_ms, self._idle_from_ms)


def _batch_sizes(values: Sequence[bytes]) -> Iterator[int]:
    """Yield how many records each batch takes, in order."""
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
    """Tell whether anybody else follows the log, or ought to."""
    follows = isinstance(quorum.role, Leader) and bool(quorum.role.progress)
    return follows or not quorum.is_only_voter
