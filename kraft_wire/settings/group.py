"""The configuration keys of a group and of a client-metrics subscription, release 4.3.1.

KIP-848, KIP-932 and KIP-1071 for groups; KIP-714 for client metrics.
"""

from typing import Final

from kraft_wire.settings.definition import ConfigKey
from kraft_wire.settings.key_tables import load_keys

__all__ = ["CLIENT_METRICS_KEYS", "GROUP_KEYS"]

GROUP_KEYS: Final[dict[str, ConfigKey]] = load_keys("group_keys.json")
CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = load_keys("client_metrics_keys.json")
