"""A fault rule: its requests, its time and its effect; and its handle for a test.

A rule is its own handle: `fired` counts, `wait` blocks another thread until it has fired, `remove`
ends it. Everything but the count is fixed when the rule is made.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from threading import Condition
from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.wire.header import RequestHeader

__all__ = [
    "Effect",
    "Fault",
    "Rule",
    "Selector",
    "When",
    "every_time",
    "on_call",
    "once",
    "times",
    "with_probability",
]

_INT16_MAX: Final = 32_767
_ANY_VERSION: Final = (0, _INT16_MAX)
_SECONDS_MAX: Final = 2_147_483
"""As milliseconds an int32, which a throttle time is."""


class Effect(Enum):
    """The effects; the value is the name in Python, YAML and HTTP."""

    INJECT_ERROR = "inject_error"
    DISCONNECT = "disconnect"
    DELAY = "delay"
    BLACKHOLE = "blackhole"
    THROTTLE = "throttle"
    TRUNCATE_RESPONSE = "truncate_response"
    CORRUPT_RECORDS = "corrupt_records"


@dataclass(frozen=True, slots=True)
class Fault:
    """An effect with its number."""

    effect: Effect
    error_code: int = 0
    """Of `inject_error`."""
    seconds: float = 0.0
    """Of `delay` and `throttle`."""
    size_bytes: int = 0
    """Of `truncate_response`: so much of the response arrives."""
    after_handling: bool = False
    """Whether the node handles the request first, and only its response is hit."""

    def __post_init__(self) -> None:
        """Refuse a number that no response can carry. Errors: ValueError."""
        if not -1 <= self.error_code <= _INT16_MAX:
            raise ValueError(f"{self.error_code} is not an error code")
        if not 0 <= self.seconds <= _SECONDS_MAX:
            raise ValueError(f"{self.seconds} is not a number of seconds up to {_SECONDS_MAX}")
        if self.size_bytes < 0:
            raise ValueError(f"{self.size_bytes} is not a size")


@dataclass(frozen=True, slots=True)
class Selector:
    """The requests that a rule selects; None selects any."""

    api: str | None = None
    versions: tuple[int, int] = _ANY_VERSION
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    node: int | None = None

    def __post_init__(self) -> None:
        """Refuse an API that does not exist. Errors: ValueError."""
        if self.api is not None:
            try:
                key_of(self.api)
            except KeyError:
                raise ValueError(f"unknown API {self.api!r}") from None

    @property
    def needs_partitions(self) -> bool:
        """Whether the header is not enough to decide."""
        return self.topic is not None or self.partition is not None

    def takes(self, node_id: int, header: RequestHeader) -> bool:
        """Whether a request is one of these, judged by its header alone."""
        return (
            (self.api is None or key_of(self.api) == header.api_key)
            and self.versions[0] <= header.api_version <= self.versions[1]
            and (self.client_id is None or self.client_id == header.client_id)
            and (self.node is None or self.node == node_id)
        )

    def takes_partition(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition is one of these; None for a topic without partitions."""
        return self.topic in (None, topic) and self.partition in (None, partition)


@dataclass(frozen=True, slots=True)
class When:
    """On which of the selected requests a rule fires, counted from 1."""

    first_call: int = 1
    times_max: int | None = None
    probability: float = 1.0
    seed: int = 0


def once() -> When:
    """Fire on the first selected request only."""
    return times(1)


def times(count: int) -> When:
    """Fire on the first `count` selected requests."""
    return When(times_max=_counted(count))


def on_call(number: int) -> When:
    """Fire on the selected request of that number only, counted from 1."""
    return When(first_call=_counted(number), times_max=1)


def every_time() -> When:
    """Fire on every selected request."""
    return When()


def with_probability(probability: float, seed: int = 0) -> When:
    """Fire on each selected request by chance; the same seed decides the same way."""
    if not 0 <= probability <= 1:
        raise ValueError(f"{probability} is not a probability")
    return When(probability=probability, seed=seed)


def _counted(number: int) -> int:
    if number < 1:
        raise ValueError(f"{number}: the first request is 1")
    return number


class Rule:
    """One rule, and the handle that a test holds; see the module."""

    def __init__(
        self, number: int, fault: Fault, selector: Selector, when: When, remove: Callable[[], None]
    ) -> None:
        self.number = number
        self.fault = fault
        self.selector = selector
        self.when = when
        self.remove = remove
        """End the rule; harmless when repeated."""
        self._calls = self._decided = self._fired = 0
        self._random = random.Random(when.seed)
        self._changed = Condition()

    @property
    def fired(self) -> int:
        """How often the rule has fired."""
        return self._fired

    def wait(self, count: int = 1, *, timeout: float = 30.0) -> int:
        """Block until the rule has fired `count` times; return how often it has.

        Errors: TimeoutError. In asyncio: `await asyncio.to_thread(rule.wait)`.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._fired >= count, timeout):
                raise TimeoutError(f"{self} fired {self._fired} times in {timeout} s, not {count}")
            return self._fired

    def is_due(self) -> bool:
        """Count a selected request, and decide whether the rule fires on it."""
        self._calls += 1
        when = self.when
        if self._calls < when.first_call:
            return False
        if when.times_max is not None and self._decided >= when.times_max:
            return False
        if when.probability < 1 and self._random.random() >= when.probability:
            return False
        self._decided += 1
        return True

    def note_fired(self) -> None:
        """Count that the rule has had its effect."""
        with self._changed:
            self._fired += 1
            self._changed.notify_all()

    def __repr__(self) -> str:
        chosen = [
            f"{name}={getattr(self.selector, name)!r}"
            for name in ("api", "client_id", "topic", "partition", "node")
            if getattr(self.selector, name) is not None
        ]
        return f"rule {self.number} {self.fault.effect.value}({', '.join(chosen)})"
