"""One life of a broker, as its controller sees it: registered, fenced, running, stopping (KIP-631).

A broker registers, then says repeatedly by heartbeats that it is alive, how much metadata it has,
and which of its log directories failed (KIP-858). It stays fenced until it has its own registration
and its logs are open; it runs from the first answer on that says it is not fenced. A graceful stop
asks the controller to take away what the broker leads, and waits until it may go. One communication
at a time, as in release 4.3.1; only a broker gives up that never could register, or cannot tell of
a failed directory in time.

Four things are this node's own. It does not wait for permission to stop where nobody has answered
for a whole session, because it is fenced by then. Beside an active controller nothing has to be
said between two changes. What failed is said again sooner, after a pause that doubles up to the
interval of heartbeats, which 4.3.1 waits at once, or half a second while the session of its former
life lasts: a session must not end over a pause. And a broker that finds another life registered in
its place registers again, where 4.3.1 is refused until it is restarted: what a former life said
last may arrive late, and no session protects a broker before its first heartbeat.

Not here: to whom it is said (`quorum_node`), what the messages hold besides (`registration`).
"""

from enum import Enum
from typing import Final, TypeAlias

from kraft_wire.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource, ReportEvent, Uuid, sooner
from kraft_wire.node.registration.incarnation import Registration
from kraft_wire.node.registration.offline_directories import OfflineDirectories
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["BrokerLifecycle", "BrokerState", "LifecycleRequest"]

LifecycleRequest: TypeAlias = BrokerRegistrationRequest | BrokerHeartbeatRequest

_UNKNOWN: Final = -1
_CATCHING_UP_MS: Final = 10
_FIRST_PERMISSION_MS: Final = 50
"""Pause before the second question whether the broker may stop; the next ones take longer."""
_BACKOFF_MS: Final = 100
_FORMER_LIFE_MS_MAX: Final = 500
"""Longest pause while the controller assumes that the former life continues."""
_JITTER_PERCENT: Final = 2
_DOUBLINGS_MAX: Final = 30
_STOP_MS_MAX: Final = 300_000
"""How long Kafka's broker waits for the permission to stop."""
_NOBODY_REGISTERED: Final = (
    "no controller registered this broker in time (initial.broker.registration.timeout.ms)"
)
_FAILURE_NOT_REPORTED: Final = (
    "a failed log directory could not be reported to a controller in time "
    "(log.dir.failure.timeout.ms)"
)


class BrokerState(Enum):
    """What a broker is, in Kafka's words and numbers (its metric `BrokerState`)."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class BrokerLifecycle:
    """The life of one incarnation; see the module. Times are those of the node's calls."""

    def __init__(
        self,
        node_id: int,
        registration: Registration,
        settings: NodeSettings,
        random_source: RandomSource,
        report: ReportEvent,
    ) -> None:
        """`start` must follow."""
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = _UNKNOWN
        """The epoch of the registration, -1 before there is one."""
        self.given_up: str | None = None
        """Why the process must stop: what had to be done in time was not; None if it need not."""
        self._node_id = node_id
        self._registration = registration
        self._random_source = random_source
        self._report = report
        self._heartbeat_interval_ms = settings.integer("broker.heartbeat.interval.ms")
        self._session_ms = settings.integer("broker.session.timeout.ms")
        self._patience_ms = settings.integer("initial.broker.registration.timeout.ms")
        self._gives_up_at_ms: int | None = None
        self._offline = OfflineDirectories(settings.integer("log.dir.failure.timeout.ms"))
        self._is_registered = False
        self._is_in_flight = False
        self._is_urgent = False
        """Whether something has to be said as soon as what is in flight is answered."""
        self._is_open = False
        """Whether the logs are open, so that the broker may lead."""
        self._sees_own_registration = False
        """Whether it follows metadata that have its registration."""
        self._has_asked_to_stop = False
        self._failures = 0
        self._next_ms: int | None = None
        self._answered_ms = 0
        self._stops_at_ms = 0

    # -- what the node does ----------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin to register."""
        assert self.state is BrokerState.NOT_RUNNING, self.state
        self.state = BrokerState.STARTING
        self._next_ms = self._answered_ms = now_ms
        self._gives_up_at_ms = now_ms + self._patience_ms

    def logs_opened(self, now_ms: int) -> None:
        """The broker may lead: its logs are open, or will be before anybody is served."""
        if not self._is_open:
            self._is_open = True
            self.hurry(now_ms)

    def published(self, image: MetadataImage, now_ms: int) -> None:
        """The broker follows an image that has its registration.

        One from before directories had ids is renewed once the level allows them.
        """
        self._sees_own_registration = True
        own = image.brokers.get(self._node_id)
        if image.metadata_version >= DIRECTORIES_FROM and own is not None and not own.log_dirs:
            self._is_registered = False
            self.hurry(now_ms)

    def directory_failed(self, directory_id: Uuid, now_ms: int) -> None:
        """Tell the controller of a log directory that failed, with every heartbeat from now on."""
        self._offline.failed(directory_id, now_ms)
        if self._is_registered:
            self.hurry(now_ms)

    def hurry(self, now_ms: int) -> None:
        """Say the next thing now, or as soon as what is in flight is answered."""
        self._is_urgent = self._is_in_flight
        self._next_ms = now_ms

    def begin_stop(self, now_ms: int) -> None:
        """Ask for the permission to stop; who does not run needs none."""
        if self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._answered_ms = now_ms
            self._stops_at_ms = now_ms + _STOP_MS_MAX
            self.hurry(now_ms)
        elif self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.state = BrokerState.SHUTTING_DOWN

    # -- communication ---------------------------------------------------------------------------

    def is_due(self, now_ms: int) -> bool:
        """Tell whether something is to be said now."""
        if self._is_silent or self._is_in_flight:
            return False
        return self._next_ms is not None and self._next_ms <= now_ms

    def request(self, metadata_offset: int, image: MetadataImage, now_ms: int) -> LifecycleRequest:
        """Return what is due; one answer must follow, or `unsent`.

        `metadata_offset` is that of the last record that this node has applied, which made `image`.
        """
        assert self.is_due(now_ms), self.state
        self._is_in_flight, self._is_urgent = True, False
        self._look_for_another_life(image)
        if not self._is_registered:
            return self._registration.broker_request()
        knows_cordoned = image.metadata_version >= CORDONED_FROM
        return BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=metadata_offset,
            want_fence=not self._is_open,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._offline.take_report(),
            cordoned_log_dirs=[] if knows_cordoned and self._sees_own_registration else None,
        )

    def _look_for_another_life(self, image: MetadataImage) -> None:
        """Give the registration up that another one has replaced; whoever stops needs none."""
        is_stopping = self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
        if not self._is_registered or is_stopping:
            return
        other_epoch = self._registration.replaced_at(image, self.broker_epoch)
        if other_epoch is not None:
            self._is_registered = False
            self._report(
                "broker_registration_replaced",
                broker_epoch=self.broker_epoch,
                by_broker_epoch=other_epoch,
            )

    def answered(self, response: Message, now_ms: int, *, is_beside: bool = False) -> None:
        """Take the answer; `is_beside`: of this node's controller, which needs no signs of life."""
        assert self._is_in_flight, response
        self._is_in_flight = False
        if self._is_silent:
            return
        assert isinstance(response, BrokerRegistrationResponse | BrokerHeartbeatResponse), response
        if response.error_code != ErrorCode.NONE:
            self._failed(response, now_ms)
            return
        self._failures, self._answered_ms = 0, now_ms
        if isinstance(response, BrokerRegistrationResponse):
            self.broker_epoch = response.broker_epoch
            self._is_registered = True
            self._gives_up_at_ms = None
            pause_ms = 0
        else:
            self._offline.on_reported()
            pause_ms = self._lives_on(response, is_beside=is_beside)
        is_done = is_beside and self.state is BrokerState.RUNNING
        self._next_ms = None if is_done else now_ms + pause_ms
        if self._is_urgent:
            self._next_ms = now_ms

    def unsent(self, now_ms: int) -> None:
        """What was in flight was asked of nobody: it may be asked of somebody else now."""
        assert self._is_in_flight, self.state
        self._is_in_flight = False
        self._next_ms = now_ms

    def _failed(self, response: Message, now_ms: int) -> None:
        """Try again after a pause, however urgent it was."""
        error = getattr(response, "error_code")  # noqa: B009  # both kinds have it
        self._report(
            "broker_heartbeat_failed" if self._is_registered else "broker_registration_failed",
            error=error_name(error),
            failures=self._failures + 1,
        )
        is_early = error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        pause_max_ms = self._heartbeat_interval_ms
        if is_early:
            pause_max_ms = min(pause_max_ms, _FORMER_LIFE_MS_MAX)
        pause_ms = min(_BACKOFF_MS << min(self._failures, _DOUBLINGS_MAX), pause_max_ms)
        spread_ms = pause_ms * _JITTER_PERCENT // 100
        self._failures += 1
        self._next_ms = now_ms + pause_ms - spread_ms + self._random_source.below(2 * spread_ms + 1)

    def _lives_on(self, response: BrokerHeartbeatResponse, *, is_beside: bool) -> int:
        """Draw the consequence of a heartbeat's answer; return the pause before the next one."""
        if self.state is BrokerState.STARTING:
            if response.is_caught_up:
                self.state = BrokerState.RECOVERY
            if response.is_fenced:
                return 0 if self._is_open and response.is_caught_up else _CATCHING_UP_MS
        if self.state is BrokerState.RECOVERY and not response.is_fenced:
            self.state = BrokerState.RUNNING
        if self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return self._heartbeat_interval_ms
        if response.should_shut_down:
            self.state = BrokerState.SHUTTING_DOWN
            return 0
        is_first, self._has_asked_to_stop = not self._has_asked_to_stop, True
        if is_first:
            return 0 if is_beside else _FIRST_PERMISSION_MS
        return self._heartbeat_interval_ms

    # -- state and time --------------------------------------------------------------------------

    @property
    def has_run(self) -> bool:
        """Whether clients may be served: the broker was unfenced, and has not been told to go."""
        return self.state in (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)

    @property
    def is_over(self) -> bool:
        """Whether the node may stop, or never had a broker that runs."""
        return self.state is BrokerState.SHUTTING_DOWN

    @property
    def _is_silent(self) -> bool:
        return self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN)

    def tick(self, now_ms: int) -> None:
        """Give up what takes too long: to be registered, to tell of a disk, to be let go."""
        if self._gives_up_at_ms is not None and self._gives_up_at_ms <= now_ms:
            self._gives_up_at_ms = None
            self._give_up(_NOBODY_REGISTERED)
        if self._offline.overdue(now_ms):
            self._give_up(_FAILURE_NOT_REPORTED)
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN and self._end_ms <= now_ms:
            self._report("controlled_shutdown_given_up", answered_ms_ago=now_ms - self._answered_ms)
            self.state = BrokerState.SHUTTING_DOWN

    def _give_up(self, reason: str) -> None:
        """Have the process stop, unless it does already."""
        if not self._is_silent:
            self.given_up = reason
        self.state = BrokerState.SHUTTING_DOWN

    @property
    def _end_ms(self) -> int:
        """When a stop continues without permission."""
        return min(self._stops_at_ms, self._answered_ms + self._session_ms)

    def deadline_ms(self) -> int | None:
        """Return when `request` or `tick` has something to do."""
        if self._is_silent:
            return None
        ends_ms = sooner(self._gives_up_at_ms, self._offline.deadline_ms())
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            ends_ms = sooner(ends_ms, self._end_ms)
        return ends_ms if self._is_in_flight else sooner(ends_ms, self._next_ms)
