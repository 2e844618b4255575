"""Settings of one share group: its own value, else the broker's, within the broker's limits.

KIP-932, KIP-1240. Share partitions read them at each use, so a change acts on the next lock, fetch
or release.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import GROUP_RESOURCE, MetadataImage
from kraft_wire.settings.definition import ConfigValue
from kraft_wire.settings.durations import duration_ms
from kraft_wire.settings.group import GROUP_KEYS
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = ["ShareGroupSettings", "ShareSettings"]

_GROUPS_MAX: Final = 1_000
_BY_DURATION: Final = "by_duration:"
_READ_COMMITTED: Final = "read_committed"


@frozen(kw_only=True)
class ShareGroupSettings:
    """The settings of a group that share partitions read."""

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: str = "latest"
    """`latest`, `earliest`, or `by_duration:` and a duration."""
    reads_committed: bool = False
    renew_acknowledge_enable: bool = True

    @property
    def reset_duration_ms(self) -> int | None:
        """How long ago a group without a start begins; None for `latest` and `earliest`."""
        text = self.auto_offset_reset
        if not text.startswith(_BY_DURATION):
            return None
        return duration_ms(text.removeprefix(_BY_DURATION))


class ShareSettings:
    """The settings of all groups, kept until the metadata or the broker's own settings change."""

    def __init__(
        self, image: Callable[[], MetadataImage], settings: Callable[[], BrokerSettings]
    ) -> None:
        self._image = image
        self._settings = settings
        self._read_from: tuple[MetadataImage, BrokerSettings] | None = None
        self._groups: dict[str, ShareGroupSettings] = {}

    def of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group, which need not exist."""
        image, settings = self._image(), self._settings()
        known = self._read_from
        is_current = known is not None and known[0] is image and known[1] is settings
        if not is_current or len(self._groups) > _GROUPS_MAX:
            self._read_from = image, settings
            self._groups.clear()
        found = self._groups.get(group_id)
        if found is None:
            own = image.config(GROUP_RESOURCE, group_id)
            found = self._groups[group_id] = _settings(own, settings.source)
        return found


def _settings(own: Mapping[str, str], broker: NodeSettings) -> ShareGroupSettings:
    reset = _own(own, "share.auto.offset.reset")
    isolation = _own(own, "share.isolation.level")
    renews = _own(own, "share.renew.acknowledge.enable")
    return ShareGroupSettings(
        record_lock_duration_ms=_within(own, broker, "record.lock.duration.ms"),
        delivery_count_limit=_within(own, broker, "delivery.count.limit"),
        partition_max_record_locks=_within(own, broker, "partition.max.record.locks"),
        auto_offset_reset="latest" if reset is None else str(reset),
        reads_committed=isolation == _READ_COMMITTED,
        renew_acknowledge_enable=renews is None or bool(renews),
    )


def _within(own: Mapping[str, str], broker: NodeSettings, key: str) -> int:
    """Return the group's own value or the broker's, within the broker's limits."""
    value = _own(own, f"share.{key}")
    if value is None:
        return broker.integer(f"group.share.{key}")
    assert isinstance(value, int), (key, value)
    lowest, highest = (broker.integer(f"group.share.{end}.{key}") for end in ("min", "max"))
    return max(lowest, min(value, highest))


def _own(own: Mapping[str, str], key: str) -> ConfigValue | None:
    """Return the group's own value, None without one; another release may have stored a bad one."""
    text = own.get(key)
    if text is None:
        return None
    try:
        return parse_value(GROUP_KEYS[key], text)
    except InvalidConfigValue:
        return None
