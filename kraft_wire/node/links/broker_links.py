"""Links to other brokers: requests of one inter-broker client, and their responses.

A broker's address is that of its listener `inter.broker.listener.name` in the image. If the broker
has none, is not registered or cannot be reached, the request fails, and its sender pauses. Nothing
is sent before this broker has an epoch, by which leaders distinguish its incarnations (KIP-903). A
request to this broker itself needs no link (`local_requests`).

Not here: the requests (`broker/inter_broker` and its users), versions and time limits
(`peer_channels`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.inter_broker import BrokerRequests, InterBrokerClient
from kraft_wire.model import ReportEvent, sooner
from kraft_wire.node.links.local_requests import LocalRequests
from kraft_wire.node.links.peer_channels import ChannelEvent, ChannelLimits, PeerChannels
from kraft_wire.node.outputs import Output
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.voters import Address
from kraft_wire.wire.message import Buffer, DecodeLimits, Message

__all__ = ["BrokerLinks"]

_BROKERS_MAX: Final = 4_096
"""Bound on the number of brokers, above that of any cluster."""


class BrokerLinks:
    """The links of one inter-broker client of a broker."""

    def __init__(
        self,
        broker: Broker,
        client: InterBrokerClient,
        listener: str,
        broker_epoch: Callable[[], int],
        link_ids: Iterator[int],
        decode_limits: DecodeLimits,
        report: ReportEvent,
    ) -> None:
        """`broker_epoch` is -1 while the broker is not registered."""
        self._broker = broker
        self._client = client
        self._listener = listener
        self._broker_epoch = broker_epoch
        limits = ChannelLimits(request_timeout_ms=client.request_timeout_ms, peers_max=_BROKERS_MAX)
        self._channels = PeerChannels(
            client.client_id, link_ids, report, limits, decode_limits, listener
        )
        self._local = LocalRequests(broker, client.client_id, listener)
        self._in_flight: dict[int, BrokerRequests] = {}
        """By request id: one for each destination, and those of removed destinations."""
        self._next_request_id = 1

    def pump(self, now_ms: int, wall_ms: int) -> None:
        """Send the requests that are due; at the end of each call of the node."""
        broker_epoch = self._broker_epoch()
        if self._broker.is_stopping:
            self._channels.close_all()
            self._in_flight = {}
        elif broker_epoch >= 0:
            for broker_id, requests in list(self._client.destinations().items()):
                self._send_next(broker_id, requests, broker_epoch, now_ms, wall_ms)

    def local_completed(
        self, reply_to: ReplyTo, response: Message, now_ms: int, wall_ms: int
    ) -> bool:
        """Deliver the response of a request to this broker; return False if it is another's."""
        return self._local.completed(reply_to, response, now_ms, wall_ms)

    def _send_next(
        self,
        broker_id: int,
        requests: BrokerRequests,
        broker_epoch: int,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        request = requests.request(broker_epoch, now_ms)
        if request is None:
            return
        if broker_id == self._broker.node_id:
            self._local.send(request, requests, now_ms, wall_ms)
            return
        address = self._address_of(broker_id)
        if address is None:
            requests.failed(now_ms, wall_ms)
            return
        request_id, self._next_request_id = self._next_request_id, self._next_request_id + 1
        self._in_flight[request_id] = requests
        order = SendRequest(request_id, broker_id, address, request)
        self._take(self._channels.send(order, now_ms), now_ms, wall_ms)

    def _address_of(self, broker_id: int) -> Address | None:
        broker = self._broker.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoints.get(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _take(self, events: Sequence[ChannelEvent], now_ms: int, wall_ms: int) -> None:
        for event in events:
            requests = self._in_flight.pop(event.request_id, None)
            if requests is None:
                continue  # the broker is stopping
            if isinstance(event, ResponseReceived):
                requests.answered(event.response, now_ms, wall_ms)
            else:
                requests.failed(now_ms, wall_ms)

    # -- the node's calls ------------------------------------------------------------------------

    def owns(self, link_id: int) -> bool:
        """Return whether a link belongs to a destination of this client."""
        return self._channels.owns(link_id)

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a connected link."""
        self._take(self._channels.link_up(link_id, now_ms), now_ms, wall_ms)

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int, wall_ms: int) -> None:
        """Handle a frame of a broker."""
        self._take(self._channels.link_frame(link_id, frame, now_ms), now_ms, wall_ms)

    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a link that was refused, closed or broken."""
        self._take(self._channels.link_down(link_id, now_ms), now_ms, wall_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Give up late answers; `pump` sends the requests that are due."""
        self._take(self._channels.tick(now_ms), now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` and `pump` are needed next."""
        soonest_ms = self._channels.deadline_ms()
        if self._broker_epoch() >= 0 and not self._broker.is_stopping:
            for requests in self._client.destinations().values():
                soonest_ms = sooner(soonest_ms, requests.deadline_ms())
        return soonest_ms

    def take_outputs(self) -> list[Output]:
        """Return what the host must do for the links."""
        outputs, self._channels.outputs = self._channels.outputs, []
        return outputs
