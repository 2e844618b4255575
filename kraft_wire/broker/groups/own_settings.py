"""A group's own settings: its value, else the broker's, within the broker's limits.

KIP-1240: a stored value outside the limits that the broker has now counts as the nearest limit.
"""

from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.metadata.image import GROUP_RESOURCE
from kraft_wire.settings.group import GROUP_KEYS
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = ["own_integer", "within"]


def within(own: int | None, default: int, lowest: int, highest: int) -> int:
    """Return the group's own value or the broker's, within the broker's limits."""
    value = default if own is None else own
    return max(lowest, min(value, highest))


def own_integer(env: GroupEnvironment, group_id: str, key: str) -> int | None:
    """Return the group's own value, None without one; another release may have stored a bad one."""
    text = env.image().config(GROUP_RESOURCE, group_id).get(key)
    if text is None:
        return None
    try:
        value = parse_value(GROUP_KEYS[key], text)
    except InvalidConfigValue:
        return None
    assert isinstance(value, int), (key, value)
    return value
