"""The quotas of one node's clients: bytes produced and fetched, time of requests, topic changes.

KIP-13, KIP-55, KIP-124, KIP-219, KIP-599. A request is done first and measured afterwards. If a
rate is over its bound, the answer names the time until it is not, and the connection is not read
meanwhile (`throttled`). Of several throttle times the longest counts.

The host measures how long a request took, and reports it after the answer (`took`); so this time
counts from the client's next request on.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.response_cache import EncodedMessage
from kraft_wire.controller.controller import ControllerContext
from kraft_wire.metadata.image import QuotaEntity
from kraft_wire.node.outputs import Mute, Output
from kraft_wire.node.quotas.charge import Charge
from kraft_wire.node.quotas.exemptions import is_refused, judge
from kraft_wire.node.quotas.levels import CONSUMER, MUTATION, PRODUCER, REQUEST, Scope, levels_of
from kraft_wire.node.quotas.mutation_quota import MutationBudget, MutationQuota
from kraft_wire.node.quotas.rate_quota import RateQuota
from kraft_wire.node.quotas.throttled import ThrottledChannels
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message

__all__ = ["ClientQuotas"]

_PERCENT_PER_SECOND: Final = 100.0


class ClientQuotas:
    """Meters and throttled connections of one node."""

    def __init__(self, settings: NodeSettings, controller_listeners: Set[str]) -> None:
        """Read the windows; `follow` must come next."""
        windows = Windows.of(settings)
        self._controller_listeners = controller_listeners
        self._produced, self._fetched = RateQuota(windows), RateQuota(windows)
        self._time = RateQuota(windows, throttle_ms_max=windows.size_ms)
        self._changes = MutationQuota(Windows.of(settings, "controller."))
        self.throttled = ThrottledChannels()

    def follow(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Enforce the quotas of an image from now on, for open connections too."""
        levels = levels_of(quotas)
        self._produced.follow(levels[PRODUCER])
        self._fetched.follow(levels[CONSUMER])
        self._time.follow(levels[REQUEST])
        self._changes.follow(levels[MUTATION])

    def measured(
        self, number_max: int, now_ms: int
    ) -> Iterator[tuple[str, str, Mapping[Scope, float]]]:
        """Yield name, meaning and values of what is measured, at most `number_max` of a kind."""
        rates = (
            ("produce_byte_rate", "Bytes a second of Produce requests.", self._produced),
            ("fetch_byte_rate", "Bytes a second of Fetch answers.", self._fetched),
            ("request_request_time", "Time of the node's thread, in percent.", self._time),
        )
        for name, text, quota in rates:
            yield name, text, quota.rates(number_max, now_ms)
        tokens = self._changes.tokens(number_max, now_ms)
        yield "controllermutation_tokens", "Changes of topics that may be made at once.", tokens
        kinds = (
            ("produce", self._produced),
            ("fetch", self._fetched),
            ("request", self._time),
            ("controllermutation", self._changes),
        )
        for kind, each in kinds:
            averages = each.throttle_times.averages(number_max, now_ms)
            yield f"{kind}_throttle_time", "Average throttle time of a minute, in ms.", averages

    # -- requests --------------------------------------------------------------------------------

    def charge(
        self, context: RequestContext, header: RequestHeader, request: Message, size_bytes: int
    ) -> Charge:
        """Return who pays for a request; `size_bytes` is that of its frame without the length."""
        user, client_id = context.principal.name, context.client_id or ""
        charge = Charge(user, client_id, context.connection_id, header, self)
        of_controllers = context.listener in self._controller_listeners
        judge(charge, request, size_bytes, of_controllers=of_controllers)
        return charge

    def answered(
        self, charge: Charge, answer: Message, outputs: list[Output], now_ms: int
    ) -> Message:
        """Measure an answered request; return the answer with its throttle time.

        A throttled connection is muted before it gets the answer. A refused call between nodes is
        not exempt.
        """
        if charge.is_exempt:
            if not is_refused(answer):
                return answer
            charge.is_exempt = False
        named_ms: int = getattr(answer, "throttle_time_ms", 0)
        throttle_ms = 0 if charge.is_fetch else self._charge(charge, named_ms, now_ms)
        if throttle_ms > named_ms:
            answer = _telling(answer, charge.header, throttle_ms)
        self._throttle(charge, max(throttle_ms, named_ms), outputs, now_ms)
        return answer

    def _charge(self, charge: Charge, named_ms: int, now_ms: int) -> int:
        """Return the throttle time for time and produced bytes; that of a fetch is known."""
        user, client_id, bytes_ms = charge.user, charge.client_id, 0
        if charge.produced_bytes is not None:
            bytes_ms = self._produced.charge(user, client_id, charge.produced_bytes, now_ms)
        time_ms = self._time.charge(user, client_id, 0.0, now_ms)
        quota = self._produced if bytes_ms else self._changes
        own_ms = max(bytes_ms, named_ms)
        self._note_throttle(quota, own_ms, time_ms, (user, client_id), now_ms)
        return max(bytes_ms, time_ms)

    def silent(self, charge: Charge, outputs: list[Output], now_ms: int) -> None:
        """Measure a Produce request with acks 0, which pays for its bytes only."""
        assert charge.produced_bytes is not None, "only Produce is answered by silence"
        user, client_id, size_bytes = charge.user, charge.client_id, charge.produced_bytes
        throttle_ms = self._produced.charge(user, client_id, size_bytes, now_ms)
        self._note_throttle(self._produced, throttle_ms, 0, (user, client_id), now_ms)
        self._throttle(charge, throttle_ms, outputs, now_ms)

    def _note_throttle(
        self,
        quota: RateQuota | MutationQuota,
        own_ms: int,
        time_ms: int,
        client: tuple[str, str],
        now_ms: int,
    ) -> None:
        """Note a throttle time for the quota that asks for more; that of time if both are equal."""
        if own_ms > time_ms:
            quota.throttle_times.record(*client, own_ms, now_ms)
        elif time_ms:
            self._time.throttle_times.record(*client, time_ms, now_ms)

    def _throttle(
        self, charge: Charge, throttle_ms: int, outputs: list[Output], now_ms: int
    ) -> None:
        if throttle_ms > 0:
            self.throttled.add(charge.connection_id, throttle_ms, now_ms)
            outputs.append(Mute(charge.connection_id, is_muted=True))

    def tick(self, outputs: list[Output], now_ms: int) -> None:
        """Unmute the connections whose throttle time is over."""
        outputs += [Mute(each, is_muted=False) for each in self.throttled.ended(now_ms)]

    def took(self, charge: Charge, seconds: float, now_ms: int) -> None:
        """Count the time that the node's thread spent on a request."""
        if not charge.is_exempt:
            percent = seconds * _PERCENT_PER_SECOND
            self._time.note(charge.user, charge.client_id, percent, now_ms)

    # -- fetches (`broker.FetchQuota`) -----------------------------------------------------------

    def fetch_bytes_max(self, context: RequestContext, bytes_max: int) -> int:
        """Return how much a consumer may fetch at once, at most `bytes_max`."""
        user, client_id = context.principal.name, context.client_id or ""
        most = self._fetched.most(user, client_id, context.now_ms)
        return bytes_max if most is None else int(min(bytes_max, most))

    def fetched(self, context: RequestContext, size_bytes: int, now_ms: int) -> int:
        """Measure an answer; return its throttle time: above 0, the answer must be empty.

        Then its bytes do not count.
        """
        user, client_id = context.principal.name, context.client_id or ""
        time_ms = self._time.charge(user, client_id, 0.0, now_ms)
        bytes_ms = self._fetched.charge(user, client_id, size_bytes, now_ms)
        longest_ms = max(time_ms, bytes_ms)
        self._note_throttle(self._fetched, bytes_ms, time_ms, (user, client_id), now_ms)
        if longest_ms > 0:
            self._fetched.note(user, client_id, -size_bytes, now_ms)
        return longest_ms

    # -- changes of topics (`controller.TopicChangeQuota`) ----------------------------------------

    def budget(self, context: ControllerContext, strict_from: int) -> MutationBudget | None:
        """Return the quota of a request; None without one, and for requests of the node itself."""
        if not isinstance(context, RequestContext):
            return None
        return self._changes.budget(
            context.principal.name,
            context.client_id or "",
            is_strict=context.api_version >= strict_from,
            now_ms=context.now_ms,
        )


def _telling(answer: Message, header: RequestHeader, throttle_ms: int) -> Message:
    """Return an answer with a throttle time, if it has a field for one.

    A kept answer is bytes that other clients get too: it is read again.
    """
    if isinstance(answer, EncodedMessage):
        version = header.api_version
        answer, _ = response_class(header.api_key).decode(answer.encode(version), version)
    if "throttle_time_ms" in answer.field_names:
        answer.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]  # as just seen
    return answer
