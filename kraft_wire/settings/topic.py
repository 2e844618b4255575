"""The configuration keys of a topic, release 4.3.1 (33, and one that is for tests only).

A topic that does not set a key takes the value of the broker key named as its synonym; the first
synonym that is set wins, its number converted where hours become milliseconds.
"""

from typing import Final

from kraft_wire.settings.definition import ConfigKey
from kraft_wire.settings.key_tables import load_keys

__all__ = ["TOPIC_KEYS"]

TOPIC_KEYS: Final[dict[str, ConfigKey]] = load_keys("topic_keys.json")
