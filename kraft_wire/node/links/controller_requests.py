"""The broker's requests to the controller, queued for the node (`broker.ControllerChannel`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.node.links.peer_versions import PeerVersions

__all__ = ["ControllerRequests"]


class ControllerRequests:
    """A queue of requests, by tag, and the ways to the controller."""

    def __init__(
        self,
        queue: list[tuple[str, Message]],
        ask_now: Callable[[int, int], None],
        versions: "Callable[[], PeerVersions | None]",
    ) -> None:
        """`ask_now` sends the queued requests, at both clocks; see the methods."""
        self._queue = queue
        self.ask_now = ask_now
        """Sends the queued requests."""
        self.controller_versions = versions
        """Returns the API versions of the active controller on another node."""

    def send(self, tag: str, request: Message) -> None:
        """Queue a request; nothing is answered before this returns."""
        self._queue.append((tag, request))
