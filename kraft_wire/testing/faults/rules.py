"""The rules of a cluster or proxy, applied to requests and responses as bytes: no sockets, no time.

Rules are applied in the order in which they were added. The first that decides about a request
(error, disconnection, black hole) ends the search; delays add up. An error or a corruption that is
limited to a topic or partition does not change the rest of a request: its partitions are removed,
and their refusals are added to the response. In a fetch session, where a request lists only
changes, such a rule uses the response instead.
"""

from itertools import count

from kraft_wire.testing.faults.error_answers import error_answer, set_errors
from kraft_wire.testing.faults.partitions import Place, TopicNames, places, without
from kraft_wire.testing.faults.rule import Effect, Fault, Rule, Selector, When, every_time
from kraft_wire.testing.faults.treatment import Fate, Outcome, Treatment
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.registry import REQUESTS, request_class, response_class
from kraft_wire.wire.header import (
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import Buffer, MalformedMessage, Message, Struct

__all__ = ["FaultRules"]

_ON_RESPONSES = (Effect.THROTTLE, Effect.TRUNCATE_RESPONSE)
_PARTIAL = (Effect.INJECT_ERROR, Effect.CORRUPT_RECORDS)


class FaultRules:
    """All rules in force; another thread may add and remove them."""

    def __init__(self, names: TopicNames) -> None:
        """`names` returns the name of a topic id, which newer requests carry in place of names."""
        self._names = names
        self._numbers = count(1)
        self._rules: tuple[Rule, ...] = ()

    @property
    def in_force(self) -> tuple[Rule, ...]:
        """The rules, in the order in which they are asked."""
        return self._rules

    def add(self, fault: Fault, selector: Selector, when: When | None = None) -> Rule:
        """Add a rule and return its handle."""
        rule = Rule(next(self._numbers), fault, selector, when or every_time(), lambda: None)
        rule.remove = lambda: self._remove(rule)
        self._rules += (rule,)
        return rule

    def _remove(self, rule: Rule) -> None:
        self._rules = tuple(each for each in self._rules if each is not rule)

    def clear(self) -> None:
        """Remove every rule."""
        self._rules = ()

    # -- requests --------------------------------------------------------------------------------

    def on_request(self, node_id: int, frame: bytes | bytearray | memoryview) -> Treatment | None:
        """Return the treatment of a request; None if no rule selects it."""
        if not self._rules:
            return None
        try:
            header, body_at = parse_request_header(frame)
        except MalformedMessage:
            return None
        rules = [rule for rule in self._rules if rule.selector.takes(node_id, header)]
        if not rules:
            return None
        treatment = Treatment(header, frame)
        request = _Request(header.api_key, header.api_version, frame, body_at)
        for rule in rules:
            self._apply(rule, treatment, request)
            if treatment.fate is not Fate.PASS:
                break
        if request.is_changed:
            assert request.message is not None, "only a decoded request is changed"
            body = request.message.encode(header.api_version)
            treatment.frame = bytearray(encode_request_header(header) + body)
        return treatment

    def _apply(self, rule: Rule, treatment: Treatment, request: "_Request") -> None:
        taken: list[Place] = []
        if _is_about_fetched_records(rule, request):
            treatment.session_rules.append(rule)
            return
        if rule.fault.effect is Effect.INJECT_ERROR and not _has_place(rule, request):
            return
        if rule.selector.needs_partitions:
            message = request.decoded()
            if message is None:
                return
            if rule.fault.effect in _PARTIAL and hasattr(message, "session_epoch"):
                treatment.session_rules.append(rule)
                return
            taken = self._taken(rule, message, request.version)
            if not taken:
                return
        if rule.is_due():
            self._fire(rule, treatment, request, taken)

    def _taken(self, rule: Rule, message: Message, version: int) -> list[Place]:
        """Return the parts of a message that name partitions which a rule selects."""
        return [
            place
            for place in places(message, version, self._names)
            if rule.selector.takes_partition(place.topic, place.partition)
        ]

    def _fire(
        self, rule: Rule, treatment: Treatment, request: "_Request", taken: list[Place]
    ) -> None:
        fault = rule.fault
        if fault.after_handling or fault.effect in _ON_RESPONSES:
            treatment.response_rules.append(rule)
            return
        match fault.effect:
            case Effect.DISCONNECT:
                treatment.fate = Fate.DISCONNECT
            case Effect.BLACKHOLE:
                treatment.fate = Fate.BLACKHOLE
            case Effect.DELAY:
                treatment.delay_ms += round(fault.seconds * 1000)
            case Effect.CORRUPT_RECORDS:
                self._corrupt_request(rule, treatment, request, taken)
                return
            case Effect.INJECT_ERROR:
                self._refuse(rule, treatment, request, taken)
        _note(rule, treatment)

    def _corrupt_request(
        self, rule: Rule, treatment: Treatment, request: "_Request", taken: list[Place]
    ) -> None:
        """Damage produced records in the request."""
        message = request.decoded()
        if message is None:
            return
        parts = taken or list(places(message, request.version, self._names))
        if any([_corrupted(place.element) for place in parts]):
            request.is_changed = True
            _note(rule, treatment)

    def _refuse(
        self, rule: Rule, treatment: Treatment, request: "_Request", taken: list[Place]
    ) -> None:
        """Refuse a request that has a place for an error, or a part of it."""
        message = request.decoded()
        assert message is not None, "only a decoded request has a place"
        if getattr(message, "acks", None) == 0:
            treatment.fate = Fate.DISCONNECT  # as a broker does that may not respond
        elif not (taken and self._refuse_part(rule, treatment, request, message)):
            answer = error_answer(message, request.version, rule.fault.error_code)
            assert answer is not None, "only a request with a place is refused"
            treatment.fate = Fate.ANSWER
            treatment.answer = _response_frame(treatment, answer)

    def _refuse_part(
        self, rule: Rule, treatment: Treatment, request: "_Request", message: Message
    ) -> bool:
        """Take the selected partitions out of a request that names others too."""
        version = request.version
        refused, _ = request_class(message.API_KEY).decode(message.encode(version), version)
        kept = list(places(message, version, self._names))
        others = list(places(refused, version, self._names))
        is_taken = [rule.selector.takes_partition(each.topic, each.partition) for each in kept]
        if all(is_taken):
            return False
        without(message, [each for each, taken in zip(kept, is_taken, strict=True) if taken])
        without(refused, [each for each, taken in zip(others, is_taken, strict=True) if not taken])
        request.is_changed = True
        treatment.merged = error_answer(refused, version, rule.fault.error_code)
        return True

    # -- responses -------------------------------------------------------------------------------

    def on_response(self, treatment: Treatment, frame: bytes) -> Outcome:
        """Return the treatment of the response to a request that was passed on."""
        outcome = Outcome(frame)
        wanted = treatment.response_rules or treatment.session_rules or treatment.merged
        if not wanted:
            return outcome
        response = _Response(treatment, frame)
        if treatment.merged is not None:
            response.merge(treatment.merged)
        for rule in treatment.session_rules:
            if response.message is not None:
                taken = self._taken(rule, response.message, treatment.header.api_version)
                if rule.fault.effect is Effect.CORRUPT_RECORDS:
                    taken = [place for place in taken if _records_of(place.element) is not None]
                if taken and rule.is_due():
                    self._change_parts(rule, treatment, response, taken)
        for rule in treatment.response_rules:
            self._respond(rule, treatment, response, outcome)
        outcome.frame = response.frame()
        return outcome

    def _change_parts(
        self, rule: Rule, treatment: Treatment, response: "_Response", taken: list[Place]
    ) -> None:
        """Refuse or damage some partitions of a response."""
        code = rule.fault.error_code
        is_error = rule.fault.effect is Effect.INJECT_ERROR
        hit = [
            set_errors(place.element, code) if is_error else _corrupted(place.element)
            for place in taken
            if isinstance(place.element, Struct)
        ]
        if any(hit):
            response.is_changed = True
            _note(rule, treatment)

    def _respond(
        self, rule: Rule, treatment: Treatment, response: "_Response", outcome: Outcome
    ) -> None:
        fault = rule.fault
        match fault.effect:
            case Effect.DISCONNECT:
                outcome.fate = Fate.DISCONNECT
            case Effect.BLACKHOLE:
                outcome.fate = Fate.BLACKHOLE
            case Effect.DELAY:
                outcome.delay_ms += round(fault.seconds * 1000)
            case Effect.TRUNCATE_RESPONSE:
                outcome.size_bytes_max = fault.size_bytes
            case Effect.THROTTLE:
                if not hasattr(response.message, "throttle_time_ms"):
                    return
                setattr(response.message, "throttle_time_ms", round(fault.seconds * 1000))  # noqa: B010  # not every response has the field
                response.is_changed = True
            case Effect.CORRUPT_RECORDS | Effect.INJECT_ERROR:
                if response.message is not None:
                    version = treatment.header.api_version
                    taken = list(places(response.message, version, self._names))
                    self._change_parts(rule, treatment, response, taken)
                return
        _note(rule, treatment)


class _Request:
    """A request that is decoded when a rule needs that."""

    def __init__(self, api_key: int, version: int, frame: Buffer, body_at: int) -> None:
        self.api_key = api_key
        self.version = version
        self.message: Message | None = None
        self.is_changed = False
        self._frame = frame
        self._body_at = body_at

    def decoded(self) -> Message | None:
        """Return the message; None if its version is unknown, or it is malformed."""
        if self.message is None and self.api_key in REQUESTS:
            try:
                kind = request_class(self.api_key)
                # A copy: parts of the message are slices of it, and may be changed.
                data = bytearray(self._frame)
                self.message, _ = kind.decode(data, self.version, self._body_at)
            except MalformedMessage:
                return None
        return self.message


class _Response:
    """A response, decoded, and encoded again if it was changed."""

    def __init__(self, treatment: Treatment, frame: bytes) -> None:
        self._treatment = treatment
        self._frame = frame
        self.is_changed = False
        self.message: Message | None = None
        header = treatment.header
        try:
            _, body_at = parse_response_header(frame, header.api_key, header.api_version)
            kind = response_class(header.api_key)
            self.message, _ = kind.decode(bytearray(frame), header.api_version, body_at)
        except (MalformedMessage, KeyError):
            pass  # it passes as it is

    def merge(self, other: Message) -> None:
        """Add the elements of another response's arrays."""
        if self.message is None:
            return
        for name in other.field_names:
            mine, others = getattr(self.message, name), getattr(other, name)
            if isinstance(mine, list) and isinstance(others, list) and others:
                mine += others
                self.is_changed = True

    def frame(self) -> bytes:
        """Return the frame."""
        if not self.is_changed or self.message is None:
            return self._frame
        return _response_frame(self._treatment, self.message)


def _response_frame(treatment: Treatment, answer: Message) -> bytes:
    header = treatment.header
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    return head + answer.encode(header.api_version)


def _note(rule: Rule, treatment: Treatment) -> None:
    treatment.fired.append(rule.fault.effect.value)
    rule.note_fired()


def _is_about_fetched_records(rule: Rule, request: "_Request") -> bool:
    """Whether a rule can only fire on a response: only that shows whether there are records."""
    is_corruption = rule.fault.effect is Effect.CORRUPT_RECORDS
    return is_corruption and request.api_key != ProduceRequest.API_KEY


def _has_place(rule: Rule, request: "_Request") -> bool:
    """Whether a request can be refused: its response has a place for an error, or there is none."""
    message = request.decoded()
    if message is None:
        return False
    is_unanswered = getattr(message, "acks", None) == 0
    answer = error_answer(message, request.version, rule.fault.error_code)
    return is_unanswered or answer is not None


def _corrupted(element: object) -> bool:
    """Flip the last byte of an element's records, which breaks the CRC of the last batch."""
    name = _records_of(element)
    if name is None:
        return False
    damaged = bytearray(getattr(element, name))
    damaged[-1] ^= 0xFF
    setattr(element, name, damaged)
    return True


def _records_of(element: object) -> str | None:
    """Return the field of an element that has records, None if it has none."""
    names = ("records", "unaligned_records")
    return next((name for name in names if getattr(element, name, None)), None)
