"""One incarnation of a broker as its controller sees it: registered, fenced, running, stopping.

KIP-631. A broker registers. Then its heartbeats report that it is alive, its metadata offset, and
its failed (KIP-858) and cordoned (KIP-1066) log directories. It stays fenced until it has its own
registration and its logs are open; it runs from the first answer on that says it is not fenced. A
graceful stop asks the controller to move the broker's leaderships, and waits for its permission.
One request at a time, as in release 4.3.1. A broker gives up only if it never could register, or
cannot report a failed directory in time.

Four things differ from 4.3.1. A stop does not wait for permission after a whole session without an
answer, because the broker is fenced by then. Beside an active controller no heartbeats are sent
between two changes. A failed request is retried sooner: after a pause that doubles up to the
heartbeat interval, which 4.3.1 waits at once, or after half a second while the session of the
previous incarnation lasts; so a pause does not end a session. And a broker that finds another
incarnation registered registers again, where 4.3.1 is refused until it is restarted: the last
request of a previous incarnation may arrive late, and no session protects a broker before its
first heartbeat.

Not here: which controller is asked (`quorum_node`), the other fields of requests (`registration`).
"""

from enum import Enum
from typing import Final, TypeAlias

from kraft_wire.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource, ReportEvent, Uuid, sooner
from kraft_wire.node.registration.cordoned_directories import CordonedDirectories
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
"""Pause before the second request for permission to stop; later pauses are longer."""
_BACKOFF_MS: Final = 100
_FORMER_LIFE_MS_MAX: Final = 500
"""Longest pause while the session of the previous incarnation lasts."""
_JITTER_PERCENT: Final = 2
_DOUBLINGS_MAX: Final = 30
_STOP_MS_MAX: Final = 300_000
"""Time that Kafka's broker waits for the permission to stop."""
_NOBODY_REGISTERED: Final = (
    "no controller registered this broker in time (initial.broker.registration.timeout.ms)"
)
_FAILURE_NOT_REPORTED: Final = (
    "a failed log directory could not be reported to a controller in time "
    "(log.dir.failure.timeout.ms)"
)


class BrokerState(Enum):
    """The state of a broker, with Kafka's names and numbers (metric `BrokerState`)."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class BrokerLifecycle:
    """The lifecycle of one incarnation; see the module. Times are those of the node's calls."""

    def __init__(
        self,
        node_id: int,
        registration: Registration,
        settings: NodeSettings,
        cordoned: CordonedDirectories,
        random_source: RandomSource,
        report: ReportEvent,
    ) -> None:
        """`start` must follow."""
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = _UNKNOWN
        """The epoch of the registration, -1 before the first one."""
        self.given_up: str | None = None
        """Why the process must stop after a missed deadline; None if it need not."""
        self._node_id = node_id
        self._registration = registration
        self._random_source = random_source
        self._report = report
        self._heartbeat_interval_ms = settings.integer("broker.heartbeat.interval.ms")
        self._session_ms = settings.integer("broker.session.timeout.ms")
        self._patience_ms = settings.integer("initial.broker.registration.timeout.ms")
        self._gives_up_at_ms: int | None = None
        self._cordoned = cordoned
        self._offline = OfflineDirectories(settings.integer("log.dir.failure.timeout.ms"))
        self._is_registered = False
        self._is_in_flight = False
        self._is_urgent = False
        """Whether the next request is due as soon as the one in flight is answered."""
        self._is_open = False
        """Whether the logs are open, so that the broker may lead."""
        self._sees_own_registration = False
        """Whether its image has its registration."""
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
        """Note that the broker may lead: its logs are open, or will be before it serves clients."""
        if not self._is_open:
            self._is_open = True
            self.hurry(now_ms)

    def published(self, image: MetadataImage, now_ms: int) -> None:
        """Note that the broker follows an image that has its registration.

        A registration without directory ids is renewed once the level allows them. Changes of
        cordoned directories are reported at once.
        """
        self._sees_own_registration = True
        if self._cordoned.follow(image):
            self.hurry(now_ms)
        own = image.brokers.get(self._node_id)
        if image.metadata_version >= DIRECTORIES_FROM and own is not None and not own.log_dirs:
            self._is_registered = False
            self.hurry(now_ms)

    def directory_failed(self, directory_id: Uuid, now_ms: int) -> None:
        """Report a failed log directory, with every heartbeat from now on."""
        self._offline.failed(directory_id, now_ms)
        if self._is_registered:
            self.hurry(now_ms)

    def hurry(self, now_ms: int) -> None:
        """Make the next request due now, or as soon as the one in flight is answered."""
        self._is_urgent = self._is_in_flight
        self._next_ms = now_ms

    def begin_stop(self, now_ms: int) -> None:
        """Request the permission to stop; a broker that does not run needs none."""
        if self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._answered_ms = now_ms
            self._stops_at_ms = now_ms + _STOP_MS_MAX
            self.hurry(now_ms)
        elif self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.state = BrokerState.SHUTTING_DOWN

    # -- communication ---------------------------------------------------------------------------

    def is_due(self, now_ms: int) -> bool:
        """Return whether a request is due now."""
        if self._is_silent or self._is_in_flight:
            return False
        return self._next_ms is not None and self._next_ms <= now_ms

    def request(self, metadata_offset: int, image: MetadataImage, now_ms: int) -> LifecycleRequest:
        """Return the request that is due; one `answered` must follow, or `unsent`.

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
            cordoned_log_dirs=(
                [*self._cordoned.ids] if knows_cordoned and self._sees_own_registration else None
            ),
        )

    def _look_for_another_life(self, image: MetadataImage) -> None:
        """Give up a registration that another one replaced, unless this broker stops."""
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
        """Handle an answer; `is_beside`: from this node's controller, which needs no heartbeats."""
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
        """Note that the request in flight was not sent: another controller may get it now."""
        assert self._is_in_flight, self.state
        self._is_in_flight = False
        self._next_ms = now_ms

    def _failed(self, response: Message, now_ms: int) -> None:
        """Try again after a pause, even if the request was urgent."""
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
        """Apply a heartbeat's answer; return the pause before the next heartbeat."""
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
        """Whether clients may be served: the broker was unfenced, and may not stop yet."""
        return self.state in (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)

    @property
    def is_over(self) -> bool:
        """Whether the node may stop."""
        return self.state is BrokerState.SHUTTING_DOWN

    @property
    def _is_silent(self) -> bool:
        return self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN)

    def tick(self, now_ms: int) -> None:
        """Apply deadlines: of the registration, of a failed disk's report, of a graceful stop."""
        if self._gives_up_at_ms is not None and self._gives_up_at_ms <= now_ms:
            self._gives_up_at_ms = None
            self._give_up(_NOBODY_REGISTERED)
        if self._offline.overdue(now_ms):
            self._give_up(_FAILURE_NOT_REPORTED)
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN and self._end_ms <= now_ms:
            self._report("controlled_shutdown_given_up", answered_ms_ago=now_ms - self._answered_ms)
            self.state = BrokerState.SHUTTING_DOWN

    def _give_up(self, reason: str) -> None:
        """Stop the process, unless it stops already."""
        if not self._is_silent:
            self.given_up = reason
        self.state = BrokerState.SHUTTING_DOWN

    @property
    def _end_ms(self) -> int:
        """When a graceful stop continues without permission."""
        return min(self._stops_at_ms, self._answered_ms + self._session_ms)

    def deadline_ms(self) -> int | None:
        """Return when `request` or `tick` has something to do."""
        if self._is_silent:
            return None
        ends_ms = sooner(self._gives_up_at_ms, self._offline.deadline_ms())
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            ends_ms = sooner(ends_ms, self._end_ms)
        return ends_ms if self._is_in_flight else sooner(ends_ms, self._next_ms)
