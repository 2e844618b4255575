"""The settings of one broker: file, dynamic cluster defaults, dynamic own values.

KIP-226: a broker's own dynamic value beats the cluster-wide dynamic default, which beats the
properties file, which beats the built-in default. `NodeSettings` is immutable; a change of the
metadata makes a new one through `with_dynamic`. Topic values are derived from it: a topic's own
value, else the broker's value of the first synonym that is set (`topic_values`).

Values from a file are checked when the object is made, because a node must not start with a wrong
one. A dynamic value was checked by the controller that recorded it; one that is nevertheless wrong
here (another release wrote it) is ignored, as in Kafka.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from kraft_wire.settings.broker import BROKER_KEYS, FIXED_WHILE_RUNNING
from kraft_wire.settings.definition import (
    REQUIRED,
    ConfigKey,
    ConfigSource,
    ConfigValue,
    UpdateMode,
)
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import (
    InvalidConfigValue,
    default_value,
    parse_value,
)

__all__ = ["NodeSettings", "SourcedValue", "topic_sources", "topic_values"]

_NO_VALUES: Final[Mapping[str, str]] = {}

_BROKER_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.roll.ms": ("log.roll.hours",),
    "log.roll.jitter.ms": ("log.roll.jitter.hours",),
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms",),
}


class SourcedValue(NamedTuple):
    """One source of a value: the key's name there, the typed value, the kind of place."""

    name: str
    value: ConfigValue
    source: ConfigSource
    text: str | None = None
    """The value as it was written, None for a default."""


class NodeSettings:
    """All settings of one broker, typed, with their sources."""

    __slots__ = ("_cluster", "_file", "_in_force", "_own")

    def __init__(self, file: Mapping[str, str] = _NO_VALUES) -> None:
        """Take a properties file's entries; InvalidConfigValue for the first wrong one."""
        for name, text in file.items():
            if name in BROKER_KEYS:
                parse_value(BROKER_KEYS[name], text)
        self._file: Mapping[str, str] = _with_both_ids(file)
        self._cluster: Mapping[str, str] = _NO_VALUES
        self._own: Mapping[str, str] = _NO_VALUES
        self._in_force: dict[str, ConfigValue] = {}
        """Values that were asked for: nothing here ever changes."""

    def with_dynamic(self, cluster: Mapping[str, str], own: Mapping[str, str]) -> "NodeSettings":
        """Return these settings under other dynamic values: cluster-wide ones, and the broker's.

        Where those are the same it is this very object, with all the values that it has looked up.
        """
        if cluster == self._cluster and own == self._own:
            return self
        layered = NodeSettings.__new__(NodeSettings)
        layered._file = self._file
        layered._cluster = dict(cluster)
        layered._own = dict(own)
        layered._in_force = {}
        return layered

    @property
    def file_values(self) -> Mapping[str, str]:
        """The entries of the properties file, as text."""
        return self._file

    def sources(self, name: str) -> list[SourcedValue]:
        """Every place where a key has a value, the one in force first; [] for an unknown key."""
        return [value for candidate in _candidates(name) for value in self._places(candidate)]

    def _places(self, name: str) -> Iterator[SourcedValue]:
        key = BROKER_KEYS.get(name)
        if key is None:
            return
        is_fixed = key.scope is UpdateMode.READ_ONLY or name in FIXED_WHILE_RUNNING
        layers = (
            (self._own, ConfigSource.DYNAMIC_BROKER),
            (self._cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._file, ConfigSource.STATIC_BROKER),
        )
        for texts, source in layers:
            is_dynamic = source is not ConfigSource.STATIC_BROKER
            if name not in texts or (is_dynamic and is_fixed):
                continue
            try:
                yield SourcedValue(name, parse_value(key, texts[name]), source, texts[name])
            except InvalidConfigValue:
                continue  # only a dynamic one can be wrong: see the module's docstring
        if key.default is not REQUIRED and key.default is not None:
            yield SourcedValue(name, default_value(key), ConfigSource.DEFAULT)

    def values(self) -> dict[str, ConfigValue]:
        """Return the value in force of every broker key that has one or may be null."""
        return {name: self.value(name) for name in BROKER_KEYS}

    def value(self, name: str) -> ConfigValue:
        """Return the value in force, None if the key is not set and has no default.

        `log.retention.ms` is None if only `log.retention.hours` is set: the conversion belongs to
        the topic's key, see `topic_values`.
        """
        assert name in BROKER_KEYS, f"{name} is not a broker key"
        if name not in self._in_force:
            first = next(self._places(name), None)
            self._in_force[name] = None if first is None else first.value
        return self._in_force[name]

    def is_set(self, name: str) -> bool:
        """Return whether a key has a value that is not its default."""
        assert name in BROKER_KEYS, f"{name} is not a broker key"
        return any(each.source is not ConfigSource.DEFAULT for each in self._places(name))

    def integer(self, name: str) -> int:
        """Return a number without fraction that has a value."""
        value = self.value(name)
        assert isinstance(value, int), (name, value)
        assert not isinstance(value, bool), (name, value)
        return value

    def number(self, name: str) -> float:
        """Return a number that has a value."""
        value = self.value(name)
        assert isinstance(value, int | float), (name, value)
        assert not isinstance(value, bool), (name, value)
        return value

    def boolean(self, name: str) -> bool:
        """Return a yes or no."""
        value = self.value(name)
        assert isinstance(value, bool), (name, value)
        return value

    def text(self, name: str) -> str | None:
        """Return a string, or None if it is not set."""
        value = self.value(name)
        assert value is None or isinstance(value, str), (name, value)
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list; empty where it is not set."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), (name, value)
        return () if value is None else value


def topic_values(own: Mapping[str, str], settings: NodeSettings) -> dict[str, ConfigValue]:
    """Return the value in force of every topic key, given the values that the topic sets itself."""
    return {name: topic_sources(key, own, settings)[0].value for name, key in TOPIC_KEYS.items()}


def topic_sources(
    key: ConfigKey, own: Mapping[str, str], settings: NodeSettings
) -> list[SourcedValue]:
    """Every place where a topic key has a value, the one in force first; never empty.

    Order: the topic, then dynamic own, dynamic default and file of each synonym in turn, then the
    default.
    """
    found: list[SourcedValue] = []
    if key.name in own:
        with suppress(InvalidConfigValue):  # recorded by another release: the next place counts
            value = parse_value(key, own[key.name])
            found.append(SourcedValue(key.name, value, ConfigSource.TOPIC))
    for synonym in key.synonyms:
        for place in settings._places(synonym.name):
            if place.source is not ConfigSource.DEFAULT:
                found.append(place._replace(value=_converted(place.value, synonym.factor)))
    found.append(SourcedValue(_default_name(key), default_value(key), ConfigSource.DEFAULT))
    return found


def _converted(value: ConfigValue, factor: int) -> ConfigValue:
    if factor == 1:
        return value
    assert isinstance(value, int), value
    return -1 if value < 0 else value * factor


def _default_name(key: ConfigKey) -> str:
    return key.synonyms[-1].name if key.synonyms else key.name


def _with_both_ids(file: Mapping[str, str]) -> dict[str, str]:
    """Return the entries with `node.id` and its old name `broker.id` standing for each other."""
    both = dict(file)
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in both:
            both.setdefault(other, both[name])
    return both


def _candidates(name: str) -> tuple[str, ...]:
    return (name, *_BROKER_SYNONYMS.get(name, ()))
