"""Settings as DescribeConfigs shows them: value, source, synonyms, type, documentation.

KIP-226 defined sources and synonyms, KIP-569 types and documentation. A synonym's value is shown as
it was written at its own key, so hours stay hours there, and blanks blanks; the entry's value is
converted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile

from kraft_wire.settings.broker import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    FIXED_WHILE_RUNNING,
    is_listener_key,
    listener_base_name,
)
from kraft_wire.settings.definition import ConfigKey, ConfigSource, ConfigValue, Required
from kraft_wire.settings.group import CLIENT_METRICS_KEYS, GROUP_KEYS
from kraft_wire.settings.node_settings import NodeSettings, SourcedValue, topic_sources
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import (
    InvalidConfigValue,
    default_value,
    format_value,
    parse_value,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

__all__ = [
    "broker_entries",
    "client_metrics_entries",
    "default_broker_entries",
    "group_entries",
    "topic_entries",
]

Entries = Iterator[DescribeConfigsResourceResult]

_UNKNOWN_TYPE = 0


def topic_entries(own: Mapping[str, str], settings: NodeSettings) -> Entries:
    """Every topic key; internal ones only where the topic sets them."""
    for key in TOPIC_KEYS.values():
        if key.internal and key.name not in own:
            continue
        in_force = topic_sources(key, own, settings)[0]
        places = [in_force] if in_force.source is ConfigSource.TOPIC else []
        if key.synonyms:
            places += _broker_places(settings, key.synonyms[0].name)
        source = places[0].source if places else ConfigSource.DEFAULT
        yield _entry(key, in_force._replace(source=source), places)


def broker_entries(settings: NodeSettings, dynamic: Sequence[Mapping[str, str]]) -> Entries:
    """Every broker key with its effective value; unknown keys without their value.

    `dynamic` are the broker's own dynamic values, and then the cluster-wide ones.
    """
    for name, key in BROKER_KEYS.items():
        places = _broker_places(settings, name)
        is_set = any(place.source is not ConfigSource.DEFAULT for place in places)
        if not key.internal or is_set:
            in_force = places[0] if places else SourcedValue(name, None, ConfigSource.DEFAULT)
            read_only = name not in DYNAMIC_BROKER_KEYS or name in FIXED_WHILE_RUNNING
            yield _entry(key, in_force, places, read_only=read_only)
    sources = (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    extra: dict[str, list[SourcedValue]] = {}
    for texts, source in zip(dynamic, sources, strict=True):
        for name, text in texts.items():
            if name not in BROKER_KEYS:
                extra.setdefault(name, []).append(_dynamic(name, text, source))
    for name in sorted(extra):
        yield _dynamic_entry(name, extra[name])


def default_broker_entries(cluster: Mapping[str, str]) -> Entries:
    """Only the settings for all brokers."""
    for name in sorted(cluster):
        place = _dynamic(name, cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER)
        yield _dynamic_entry(name, [place])


def group_entries(own: Mapping[str, str], settings: NodeSettings) -> Entries:
    """Every group key; the broker's value applies if the group has none."""
    for key in GROUP_KEYS.values():
        places = _own_places(key, own, ConfigSource.GROUP)
        if key.synonyms:
            places += _broker_places(settings, key.synonyms[0].name)
        else:
            places.append(SourcedValue(key.name, default_value(key), ConfigSource.DEFAULT))
        yield _entry(key, places[0], places)


def client_metrics_entries(own: Mapping[str, str]) -> Entries:
    """Every key of a client-metrics subscription."""
    for key in CLIENT_METRICS_KEYS.values():
        places = _own_places(key, own, ConfigSource.CLIENT_METRICS)
        default = SourcedValue(key.name, default_value(key), ConfigSource.DEFAULT)
        yield _entry(key, places[0] if places else default, places)


def _broker_places(settings: NodeSettings, name: str) -> list[SourcedValue]:
    """Return where a broker key has a value, its synonyms behind it.

    Kafka shows a synonym only behind the key itself: while `log.retention.ms` is not set, the
    hours that count in its place are not shown as its synonym, and its source is "default".
    """
    return list(dropwhile(lambda place: place.name != name, settings.sources(name)))


def _own_places(key: ConfigKey, own: Mapping[str, str], source: ConfigSource) -> list[SourcedValue]:
    if key.name not in own:
        return []
    try:
        return [SourcedValue(key.name, parse_value(key, own[key.name]), source)]
    except InvalidConfigValue:
        return []  # recorded by another release; the default counts


def _dynamic(name: str, text: str, source: ConfigSource) -> SourcedValue:
    key = _dynamic_key(name)
    value: ConfigValue = text
    if key is not None:
        with suppress(InvalidConfigValue):  # recorded by another release: shown as it was written
            value = parse_value(key, text)
    return SourcedValue(name, value, source, text)


def _dynamic_key(name: str) -> ConfigKey | None:
    return DYNAMIC_BROKER_KEYS.get(listener_base_name(name) if is_listener_key(name) else name)


def _dynamic_entry(name: str, places: Sequence[SourcedValue]) -> DescribeConfigsResourceResult:
    key = _dynamic_key(name)
    if key is not None:
        entry = _entry(key, places[0], places)
        entry.name = name
        entry.value = None if key.sensitive else places[0].text
        return entry
    # A value of unknown meaning may be a secret, so it is treated as one.
    return DescribeConfigsResourceResult(
        name=name,
        value=None,
        read_only=True,
        config_source=places[0].source,
        is_sensitive=True,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=None, source=each.source)
            for each in places
        ],
        config_type=_UNKNOWN_TYPE,
        documentation=None,
    )


def _as_written(place: SourcedValue) -> str | None:
    return format_value(place.value) if place.text is None else place.text


def _entry(
    key: ConfigKey,
    in_force: SourcedValue,
    places: Sequence[SourcedValue],
    *,
    read_only: bool = False,
) -> DescribeConfigsResourceResult:
    """Return an entry with all its fields; the handler removes those that were not requested."""
    assert not isinstance(in_force.value, Required), key.name
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.sensitive else format_value(in_force.value),
        read_only=read_only,
        config_source=in_force.source,
        is_sensitive=key.sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=each.name,
                value=None if key.sensitive else _as_written(each),
                source=each.source,
            )
            for each in places
        ],
        config_type=key.kind,
        documentation=key.documentation,
    )
