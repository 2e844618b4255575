"""Links to the brokers that this one follows: each fetcher's request out, its answer back.

Where a leader listens is what the image says of its listener `inter.broker.listener.name`. A leader
that has none, is not registered or cannot be reached makes its fetcher rest. Nothing is sent before
the broker has an epoch, by which leaders tell its lives apart (KIP-903).

Not here: what is asked (`broker/replication/fetcher`), versions and time limits (`peer_channels`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.replication.fetcher import Fetcher
from kraft_wire.model import ReportEvent, sooner
from kraft_wire.node.links.peer_channels import ChannelEvent, ChannelLimits, PeerChannels
from kraft_wire.node.outputs import Output
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.voters import Address
from kraft_wire.wire.message import Buffer, DecodeLimits

__all__ = ["ReplicaLinks"]

_LEADERS_MAX: Final = 4_096
"""Brokers that are remembered; a cluster has no more."""


class ReplicaLinks:
    """The way from one broker's fetchers to their leaders."""

    def __init__(
        self,
        broker: Broker,
        listener: str,
        broker_epoch: Callable[[], int],
        link_ids: Iterator[int],
        decode_limits: DecodeLimits,
        report: ReportEvent,
    ) -> None:
        """`broker_epoch` is -1 while the broker is not registered."""
        self.wall_ms = 0
        """Set by the node before each call that may append."""
        self._broker = broker
        self._listener = listener
        self._broker_epoch = broker_epoch
        source = broker.settings.source
        limits = ChannelLimits(
            request_timeout_ms=source.integer("replica.socket.timeout.ms"),
            peers_max=_LEADERS_MAX,
        )
        client_id = f"broker-{broker.node_id}-fetcher-0"
        self._channels = PeerChannels(client_id, link_ids, report, limits, decode_limits)
        self._asked: dict[int, Fetcher] = {}
        """By request id; one for each fetcher, and those of fetchers that are gone."""
        self._next_request_id = 1

    def pump(self, now_ms: int) -> None:
        """Send what the fetchers have to ask; at the end of each call of the node."""
        fetchers, broker_epoch = self._broker.fetchers, self._broker_epoch()
        if self._broker.is_stopping:
            self._channels.close_all()
            self._asked = {}
        elif fetchers is not None and broker_epoch >= 0:
            for fetcher in fetchers.by_leader.values():
                self._ask(fetcher, broker_epoch, now_ms)

    def _ask(self, fetcher: Fetcher, broker_epoch: int, now_ms: int) -> None:
        request = fetcher.request(broker_epoch, now_ms)
        if request is None:
            return
        address = self._address_of(fetcher.leader_id)
        if address is None:
            fetcher.failed(now_ms)
            return
        request_id, self._next_request_id = self._next_request_id, self._next_request_id + 1
        self._asked[request_id] = fetcher
        order = SendRequest(request_id, fetcher.leader_id, address, request)
        self._take(self._channels.send(order, now_ms), now_ms)

    def _address_of(self, broker_id: int) -> Address | None:
        broker = self._broker.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoints.get(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _take(self, events: Sequence[ChannelEvent], now_ms: int) -> None:
        for event in events:
            fetcher = self._asked.pop(event.request_id, None)
            if fetcher is None:
                continue  # the broker is stopping
            if isinstance(event, ResponseReceived):
                fetcher.answered(event.response, now_ms, self.wall_ms)
            else:
                fetcher.failed(now_ms)

    # -- the node's calls ------------------------------------------------------------------------

    def owns(self, link_id: int) -> bool:
        """Tell whether a link leads to a broker that is followed."""
        return self._channels.owns(link_id)

    def link_up(self, link_id: int, now_ms: int) -> None:
        """A link is connected."""
        self._take(self._channels.link_up(link_id, now_ms), now_ms)

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int) -> None:
        """A leader answered."""
        self._take(self._channels.link_frame(link_id, frame, now_ms), now_ms)

    def link_down(self, link_id: int, now_ms: int) -> None:
        """A link was refused, closed or broken."""
        self._take(self._channels.link_down(link_id, now_ms), now_ms)

    def tick(self, now_ms: int) -> None:
        """Give up on answers that are late; `pump` asks whatever time has made due."""
        self._take(self._channels.tick(now_ms), now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` and `pump` are needed next."""
        soonest_ms = self._channels.deadline_ms()
        fetchers = self._broker.fetchers
        if fetchers is not None and self._broker_epoch() >= 0:
            for fetcher in fetchers.by_leader.values():
                soonest_ms = sooner(soonest_ms, fetcher.deadline_ms())
        return soonest_ms

    def take_outputs(self) -> list[Output]:
        """Return what the host must do for the links."""
        outputs, self._channels.outputs = self._channels.outputs, []
        return outputs
