"""The keys `kafka.…` of the format `kraftwire`: which mean something, which are refused, and why.

Three kinds are refused: keys that Spark's own connector refuses because they would break a query,
keys of encryption and login that are not supported (`login.client_config`), and keys that Kafka's
clients do not have. All other keys of Kafka's clients are accepted; those of features that are not
here (polls, groups, metrics) have no effect.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.cluster import ClusterSettings
from kraft_wire.client.connection import split_address
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.login.client_config import UnusableConfig, is_about_security, security_of
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.option_reader import parse_not_negative, parse_positive

__all__ = ["KafkaKeys"]

_CONNECTOR_REFUSES: Final = {
    "auto.offset.reset": "where a query begins is startingOffsets, and a stream keeps its offsets",
    "key.deserializer": "keys are read as bytes: cast them in the query",
    "value.deserializer": "values are read as bytes: cast them in the query",
    "key.serializer": "keys are written as bytes or strings: cast them in the query",
    "value.serializer": "values are written as bytes or strings: cast them in the query",
    "enable.auto.commit": "offsets are kept in the checkpoint and committed nowhere",
    "interceptor.classes": "an interceptor could change what a query must read again",
}
_EFFECTIVE: Final = [
    "bootstrap.servers",
    "client.id",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
    "isolation.level",
    "compression.type",
    "acks",
    "enable.idempotence",
    "batch.size",
    "delivery.timeout.ms",
    "max.request.size",
]
_WITHOUT_EFFECT: Final = [
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "buffer.memory",
    "check.crcs",
    "client.dns.lookup",
    "client.rack",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "config.providers",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "security.providers",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "transaction.timeout.ms",
]
_UNHONOURABLE: Final = {
    "partitioner.class": "records go where Kafka's default partitioner puts them",
    "partitioner.ignore.keys": "records go where Kafka's default partitioner puts them",
    "transactional.id": "the sink writes idempotently, without transactions",
    "transaction.two.phase.commit.enable": "the sink writes idempotently, without transactions",
}
_NUMBER_MAX: Final = 0x7FFFFFFF
"""All numbers that have an effect are of 32 bits in Kafka's clients."""
_HOST_AND_PORT: Final = re.compile(r"([\w.%-]+|\[[\w.:%-]+\])(:\d+)?", re.ASCII)
_PROTOCOL: Final = "security.protocol"
_PLAINTEXT: Final = "PLAINTEXT"


class KafkaKeys:
    """The keys of one `load()` or `save()`, checked."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = dict(keys)
        for name in self._keys:
            _check(name)

    def cluster(self) -> ClusterSettings:
        """Return how the cluster is reached."""
        text = self._keys.get("bootstrap.servers", "")
        bootstrap = tuple(each.strip() for each in text.split(",") if each.strip())
        if not bootstrap:
            raise PipelineError("option kafka.bootstrap.servers is missing: give host:port,…")
        for each in bootstrap:
            if not _is_address(each):
                raise PipelineError(
                    f"option kafka.bootstrap.servers: {each!r} is not an address host:port"
                )
        defaults = ClusterSettings(bootstrap)
        return ClusterSettings(
            bootstrap,
            self._keys.get("client.id", defaults.client_id),
            self._seconds("request.timeout.ms", defaults.request_seconds),
            self._seconds("default.api.timeout.ms", defaults.deadline_seconds),
            self._security(),
        )

    def _security(self) -> tuple[tuple[str, str], ...]:
        """Return the keys of encryption and login; the workers build their own from them."""
        protocol = self._keys.get(_PROTOCOL, _PLAINTEXT).strip().upper()
        if protocol == _PLAINTEXT:
            return ()  # Kafka's clients do not look at the other keys either
        keys = {
            name: text.strip()
            for name, text in self._keys.items()
            if is_about_security(name) and name not in _WITHOUT_EFFECT
        }
        keys[_PROTOCOL] = protocol
        try:
            security_of(keys)
        except UnusableConfig as error:
            raise PipelineError(f"option kafka.{_PROTOCOL}={protocol}: {error}") from error
        return tuple(sorted(keys.items()))

    def fetching(self, progress_ms: int | None) -> FetchSettings:
        """Return how partitions are read; sizes that are not given are larger than Kafka's."""
        isolation = self._keys.get("isolation.level", "read_uncommitted").strip().lower()
        if isolation not in ("read_uncommitted", "read_committed"):
            raise PipelineError(
                f"option kafka.isolation.level: {isolation!r} is none of read_uncommitted,"
                " read_committed"
            )
        defaults = FetchSettings()
        seconds = defaults.progress_seconds if progress_ms is None else progress_ms / 1000
        return FetchSettings(
            self.number("max.partition.fetch.bytes", defaults.partition_bytes_max, parse_positive),
            self.number("fetch.max.bytes", defaults.fetch_bytes_max, parse_positive),
            self.number("fetch.min.bytes", defaults.bytes_min, parse_not_negative),
            self.number("fetch.max.wait.ms", defaults.wait_ms_max, parse_not_negative),
            isolation == "read_committed",
            seconds,
        )

    def text(self, name: str, default: str) -> str:
        """Return a key's value in lower case."""
        return self._keys.get(name, default).strip().lower()

    def number(self, name: str, default: int, parse: Callable[[str], int]) -> int:
        """Return a key's value as a number."""
        text = self._keys.get(name)
        if text is None:
            return default
        try:
            number = parse(text)
        except ValueError as error:
            raise PipelineError(f"option kafka.{name}: {text!r} {error}") from None
        if number > _NUMBER_MAX:
            raise PipelineError(f"option kafka.{name}: {text!r} is more than {_NUMBER_MAX}")
        return number

    def _seconds(self, name: str, default: float) -> float:
        return self.number(name, round(default * 1000), parse_positive) / 1000


def _is_address(text: str) -> bool:
    """Return whether an address is valid; an IPv6 address is in brackets."""
    if _HOST_AND_PORT.fullmatch(text) is None:
        return False
    try:
        split_address(text)
    except BrokerConnectionError:
        return False
    return True


def _check(name: str) -> None:
    """Refuse a key that would break a query, that is not supported, or that is unknown."""
    reason = _CONNECTOR_REFUSES.get(name) or _UNHONOURABLE.get(name)
    if reason is not None:
        raise PipelineError(f"option kafka.{name} is not supported: {reason}")
    known = [*_EFFECTIVE, *_WITHOUT_EFFECT]
    if name in known or is_about_security(name):
        return
    close = get_close_matches(name, known, 1)
    hint = f"did you mean kafka.{close[0]}?" if close else "Kafka's clients have no such key"
    raise PipelineError(f"option 'kafka.{name}' does not exist; {hint}")
