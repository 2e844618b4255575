"""Settings of groups that limit each other: 4.3.1's checks at start, in its order and words.

KIP-848, KIP-932, KIP-1071. A group's own settings stay within the same limits
(`controller.config_rules`).
"""

from typing import Final

from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.server_assignors import (
    UnknownAssignor,
    assignor_names,
    check_share_assignors,
)

__all__ = ["check_groups"]

_KINDS: Final = ("consumer", "share", "streams")
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_ASSIGNORS: Final = "group.consumer.assignors"
_SHARE_ASSIGNORS: Final = "group.share.assignors"
_STANDBYS, _STANDBYS_MAX = (
    "group.streams.num.standby.replicas",
    "group.streams.max.standby.replicas",
)

_NOT_BELOW: Final = (
    ("max.delivery.count.limit", "delivery.count.limit"),
    ("delivery.count.limit", "min.delivery.count.limit"),
    ("max.partition.max.record.locks", "partition.max.record.locks"),
    ("partition.max.record.locks", "min.partition.max.record.locks"),
    ("record.lock.duration.ms", "min.record.lock.duration.ms"),
    ("max.record.lock.duration.ms", "record.lock.duration.ms"),
    ("max.share.sessions", "max.size"),
)
"""Of share groups: the first must be greater than or equal to the second."""


def check_groups(reader: ConfigReader) -> None:
    """Raise a ConfigError for the first setting that is outside its limits."""
    if "classic" not in reader.settings.strings(_PROTOCOLS):
        raise reader.error(_PROTOCOLS, "Disabling the 'classic' protocol is not supported.")
    for kind in _KINDS:
        heartbeat, session = (
            f"group.{kind}.heartbeat.interval.ms",
            f"group.{kind}.session.timeout.ms",
        )
        _check_bounds(reader, kind, "heartbeat.interval.ms")
        _check_bounds(reader, kind, "session.timeout.ms")
        if reader.settings.integer(heartbeat) >= reader.settings.integer(session):
            raise reader.error(heartbeat, f"{heartbeat} must be less than {session}")
        _check_bounds(reader, kind, "assignment.interval.ms")
    for key, check in ((_ASSIGNORS, assignor_names), (_SHARE_ASSIGNORS, check_share_assignors)):
        try:
            check(reader.settings.strings(key))
        except UnknownAssignor as unknown:
            raise reader.error(key, str(unknown)) from unknown

    _check_standbys(reader)
    for greater, lesser in _NOT_BELOW:
        _check_not_below(reader, f"group.share.{greater}", f"group.share.{lesser}")


def _check_standbys(reader: ConfigReader) -> None:
    if reader.settings.integer(_STANDBYS) > reader.settings.integer(_STANDBYS_MAX):
        raise reader.error(_STANDBYS, f"{_STANDBYS} must be less than or equal to {_STANDBYS_MAX}")


def _check_not_below(reader: ConfigReader, greater: str, lesser: str) -> None:
    if reader.settings.integer(greater) < reader.settings.integer(lesser):
        raise reader.error(greater, f"{greater} must be greater than or equal to {lesser}")


def _check_bounds(reader: ConfigReader, kind: str, key: str) -> None:
    lowest, highest = f"group.{kind}.min.{key}", f"group.{kind}.max.{key}"
    name, settings = f"group.{kind}.{key}", reader.settings
    _check_not_below(reader, highest, lowest)
    _check_not_below(reader, name, lowest)
    if settings.integer(name) > settings.integer(highest):
        raise reader.error(name, f"{name} must be less than or equal to {highest}")
