"""Settings that limit each other: what 4.3.1 refuses at the start and in a change of a broker.

`KafkaConfig.validateValues`, in its order and words, and `LogManager.apply` for brokers. Not here:
times of logs (`log_times.py`), and settings of groups, which only a start can change
(`node.config.group_bounds`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.values import HOST, comma_entries

__all__ = ["JointProblem", "joint_problem"]

_MEBIBYTE: Final = 1 << 20
_INT: Final = re.compile(r"[+-]?[0-9]{1,10}")
_INT_MAX: Final = 2**31 - 1
_CODECS_MAX: Final = 4
_OVERRIDES: Final = "max.connections.per.ip.overrides"
_PER_IP: Final = "max.connections.per.ip"
_CODECS: Final = (
    "offsets.topic.compression.codec",
    "share.coordinator.state.topic.compression.codec",
)
_CLEANER_THREADS, _CLEANER_BUFFER = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"
_FETCH_WAIT: Final = "replica.fetch.wait.max.ms"
_FRAME_MAX, _QUEUED = "socket.request.max.bytes", "queued.max.request.bytes"
_DELAY, _IDLE = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
_LAG_MIN, _LAG_MAX = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class JointProblem(NamedTuple):
    """Why a node cannot have a setting, in 4.3.1's words, and the setting to look at."""

    key: str
    words: str
    is_requirement: bool = True
    """Whether 4.3.1's own message begins with `requirement failed: `."""


def joint_problem(settings: NodeSettings, *, is_broker: bool) -> JointProblem | None:
    """Return the first problem of settings that are valid one by one; None if there is none."""
    return next((found for rule in _rules(is_broker) for found in rule(settings)), None)


def _rules(is_broker: bool) -> Iterator[Callable[[NodeSettings], Iterator[JointProblem]]]:
    yield from (_codecs, _node_ids, _cleaner, _fetches, _frames, _addresses, _delays)
    if is_broker:
        yield _logs


def _set_one(settings: NodeSettings, *keys: str) -> str:
    """Return the first of some keys that is set: one of them must be, for the defaults agree."""
    return next(key for key in keys if settings.is_set(key))


def _codecs(settings: NodeSettings) -> Iterator[JointProblem]:
    """`GroupCoordinatorConfig`, `ShareCoordinatorConfig`: `CompressionType.forId`."""
    for key in _CODECS:
        codec = settings.integer(key)
        if not 0 <= codec <= _CODECS_MAX:
            yield JointProblem(key, f"Unknown compression type id: {codec}", is_requirement=False)


def _node_ids(settings: NodeSettings) -> Iterator[JointProblem]:
    if settings.value("node.id") != settings.value("broker.id"):
        words = "You must set `node.id` to the same value as `broker.id`."
        yield JointProblem("broker.id", words, is_requirement=False)


def _cleaner(settings: NodeSettings) -> Iterator[JointProblem]:
    """4.3.1 divides by the number of threads, so that 0 is refused there too."""
    threads = settings.integer(_CLEANER_THREADS)
    if threads == 0:
        yield JointProblem(_CLEANER_THREADS, "at least one thread is needed", is_requirement=False)
    elif settings.integer(_CLEANER_BUFFER) // threads <= _MEBIBYTE:
        words = f"{_CLEANER_BUFFER} must be at least 1MB per cleaner thread."
        yield JointProblem(_set_one(settings, _CLEANER_BUFFER, _CLEANER_THREADS), words)


def _fetches(settings: NodeSettings) -> Iterator[JointProblem]:
    wait_ms = settings.integer(_FETCH_WAIT)
    if wait_ms > settings.integer("replica.socket.timeout.ms"):
        words = (
            f"replica.socket.timeout.ms should always be at least {_FETCH_WAIT} to prevent "
            "unnecessary socket timeouts"
        )
        yield JointProblem(_set_one(settings, "replica.socket.timeout.ms", _FETCH_WAIT), words)
    if wait_ms > settings.integer("replica.lag.time.max.ms"):
        words = (
            f"{_FETCH_WAIT} should always be less than or equal to replica.lag.time.max.ms to "
            "prevent frequent changes in ISR"
        )
        yield JointProblem(_set_one(settings, "replica.lag.time.max.ms", _FETCH_WAIT), words)


def _frames(settings: NodeSettings) -> Iterator[JointProblem]:
    """Only a bound that was set counts: by default there is none in 4.3.1."""
    queued = settings.integer(_QUEUED)
    if settings.is_set(_QUEUED) and 0 < queued < settings.integer(_FRAME_MAX):
        yield JointProblem(_QUEUED, f"{_QUEUED} must be larger or equal to {_FRAME_MAX}")


def _address_limits(text: str | None) -> dict[str, int]:
    """Return the numbers of `max.connections.per.ip.overrides` by host.

    An address may stand in brackets, which 4.3.1 refuses. Errors: ValueError for an entry without a
    colon or a number, then for one without a valid host.
    """
    limits = {}
    for entry in comma_entries(text or ""):
        host, colon, number = entry.rpartition(":")
        if not colon:
            raise ValueError(f"{entry!r} is not host:number")
        if not (_INT.fullmatch(number.strip()) and abs(int(number)) <= _INT_MAX):
            raise ValueError(f"{number.strip()!r} is not a number of connections")
        limits[host.strip()] = int(number)
    invalid = [host for host in limits if not re.fullmatch(rf"\[{HOST}\]|{HOST}", host)]
    if invalid:
        raise ValueError(f"contains invalid addresses : {','.join(invalid)}")
    return limits


def _addresses(settings: NodeSettings) -> Iterator[JointProblem]:
    try:
        limits = _address_limits(settings.text(_OVERRIDES))
    except ValueError as problem:
        yield JointProblem(_OVERRIDES, f"{_OVERRIDES} {problem}", is_requirement=False)
        return
    if settings.integer(_PER_IP) == 0 and not limits:
        words = f"{_PER_IP} can be set to zero only if {_OVERRIDES} property is set."
        yield JointProblem(_PER_IP, words)


def _delays(settings: NodeSettings) -> Iterator[JointProblem]:
    delay_ms, idle_ms = settings.integer(_DELAY), settings.integer(_IDLE)
    if 0 <= idle_ms <= delay_ms:
        words = (
            f"{_DELAY}={delay_ms} should always be less than {_IDLE}={idle_ms} to prevent failed "
            "authentication responses from timing out"
        )
        yield JointProblem(_set_one(settings, _IDLE, _DELAY), words)


def _logs(settings: NodeSettings) -> Iterator[JointProblem]:
    """`LogConfig.validateBrokerLogConfigValues`, of what topics have by default."""
    least_ms, most_ms = settings.integer(_LAG_MIN), settings.integer(_LAG_MAX)
    if least_ms > most_ms:
        words = (
            f"conflict topic config setting min.compaction.lag.ms ({least_ms}) > "
            f"max.compaction.lag.ms ({most_ms})"
        )
        key = _set_one(settings, _LAG_MIN, _LAG_MAX)
        yield JointProblem(key, words, is_requirement=False)
    key = next(key for key in _FLUSH if settings.value(key) is not None)
    if settings.integer(key) < 0:
        yield JointProblem(key, "Value must be at least 0", is_requirement=False)
