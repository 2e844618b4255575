"""Carries the requests of a node's broker lifecycle to the active controller.

This is the controller of this node, called directly, or one on another node, over separate links.
It may change with every election: then unsent requests go to the new one, and the broker sends a
heartbeat at once. If this node's controller is active, the broker is registered unchecked: its
previous incarnation has ended, because both run in this process.

Not here: which requests are sent, and when (`broker_lifecycle`), the quorum (`quorum_node`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import PARKED
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.node.controller.host import ControllerHost, OwnContext
from kraft_wire.node.outputs import Output, StopProcess
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.node.registration.broker_lifecycle import BrokerLifecycle, LifecycleRequest
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationRequest
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.node.controller.apis import ControllerApis
    from kraft_wire.node.links.forwarding import AskedBy

__all__ = ["LocalBroker"]

_TAG: Final = "broker lifecycle"


class LocalBroker:
    """The lifecycle of one node's broker, with its requests to controllers."""

    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        raft: RaftIo,
        host: ControllerHost,
        *,
        apis: Callable[[], "ControllerApis"],
        apply_quorum_events: Callable[[int, int], None],
        retired: Callable[[int, int], None],
        failed_directories: list[Uuid],
    ) -> None:
        """`apis` makes the forwarders; `apply_quorum_events` applies the quorum's new events.

        `failed_directories` lists failed log directories; `poll` removes them from it.
        `retired` is called once the broker of a leaving node need not serve any more.
        """
        self.lifecycle = lifecycle
        self.sees_own_registration = False
        """Whether the broker's image has its own registration."""
        self._raft = raft
        self._host = host
        self._make_apis = apis
        self._apis: ControllerApis | None = None
        self._apply_quorum_events = apply_quorum_events
        self._retired = retired
        self._failed_directories = failed_directories
        self._is_beside = False
        """Whether the controller of this node was active at the last check."""
        self._has_retired = False

    def published(self, image: MetadataImage, now_ms: int) -> None:
        """Note that the broker follows an image, and has its logs open."""
        self.sees_own_registration = True
        self.lifecycle.logs_opened(now_ms)
        self.lifecycle.published(image, now_ms)

    def poll(self, now_ms: int, wall_ms: int) -> list[Output]:
        """Send the lifecycle's due requests and take the answers that have arrived.

        Return outputs for the host: StopProcess if the broker gave up.
        """
        lifecycle = self.lifecycle
        for directory_id in self._failed_directories:
            lifecycle.directory_failed(directory_id, now_ms)
        self._failed_directories.clear()
        self.take_responses(now_ms)
        if self._is_beside != self._host.is_active:
            self._is_beside = self._host.is_active
            self._turn_to_another(now_ms)
        while lifecycle.is_due(now_ms):
            committed = self._raft.committed
            request = lifecycle.request(committed.next_offset - 1, committed.image, now_ms)
            self._send(request, now_ms, wall_ms)
            self._apply_quorum_events(now_ms, wall_ms)
            self.take_responses(now_ms)
        if not lifecycle.is_over or self._has_retired:
            return []
        self._has_retired = True
        if lifecycle.given_up is not None:
            return [StopProcess(lifecycle.given_up)]
        self._retired(now_ms, wall_ms)
        return []

    def _turn_to_another(self, now_ms: int) -> None:
        """Handle that this node's controller became active, or resigned: address the active one."""
        if self._is_beside and self._apis is not None and self._apis.heartbeats.take_waiting():
            self.lifecycle.unsent(now_ms)
        self.lifecycle.hurry(now_ms)

    def _send(self, request: LifecycleRequest, now_ms: int, wall_ms: int) -> None:
        """Send a request to the active controller."""
        if not self._host.is_active:
            self._apis = self._make_apis()
            self._apis.heartbeats.ask(_TAG, request, now_ms)
            return
        if isinstance(request, BrokerRegistrationRequest):
            answer = self._host.register_own(request, _TAG, now_ms, wall_ms)
        else:
            context = OwnContext(request.MAX_VERSION, now_ms, wall_ms)
            answer = self._host.handle(context, request, _TAG)
        if isinstance(answer, Message):
            self.lifecycle.answered(answer, now_ms, is_beside=True)
        else:
            assert answer is PARKED, answer

    def take_responses(self, now_ms: int) -> None:
        """Handle the answer to the broker's last request."""
        host = self._host
        beside = [answer for to, answer in host.answers if to == _TAG]
        if beside:
            host.answers = [each for each in host.answers if each[0] != _TAG]
        elsewhere: list[tuple[AskedBy, Message | None]] = []
        if self._apis is not None:
            elsewhere, self._apis.heartbeats.answers = self._apis.heartbeats.answers, elsewhere
        assert len(beside) + len(elsewhere) <= 1, "one communication at a time"
        for answer in beside:
            self.lifecycle.answered(answer, now_ms, is_beside=True)
        for _, response in elsewhere:
            assert response is not None, "only clients' connections are closed"
            self.lifecycle.answered(response, now_ms)
