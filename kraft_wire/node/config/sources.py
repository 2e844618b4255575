"""Sources of a node's settings, and errors that name key, value, file and line.

`server.properties`, and `KAFKA_…` variables as Apache's container image takes them
(KAFKA_NUM_PARTITIONS is num.partitions, two underscores are one, three are a dash). `config` has
the order of precedence.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kraft_wire.properties import parse_properties
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "ConfigError",
    "ConfigReader",
    "Setting",
    "is_number_up_to",
    "settings_of_environment",
    "settings_of_file",
]

_ENVIRONMENT_PREFIX: Final = "KAFKA_"
_NOT_SETTINGS: Final = frozenset(
    {
        *("KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS"),
        *("KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS"),
        *("KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT", "KAFKA_JMX_HOSTNAME"),
        *("KAFKA_DEBUG", "KAFKA_HOME", "KAFKA_VERSION", "KAFKA_CLUSTER_ID"),
    }
)
"""Variables of the container image that are not broker keys."""
_JAVA_OPTIONS: Final = "KAFKA_OPTS"
_SYSTEM_PROPERTIES: Final = ("org.apache.kafka.sasl.oauthbearer.allowed.urls",)
"""Kafka's settings that are properties of Java, read here as keys (`-Dkey=value`)."""


class ConfigError(Exception):
    """A value that prevents the start; its text is the whole line for the user."""

    def __init__(self, key: str, value: str | None, place: str, reason: str) -> None:
        what = f"{key} is not set" if value is None else f"{key}={_shown(key, value)}"
        super().__init__(f"{place}: {what}: {reason}")
        self.key = key
        self.value = value
        self.place = place
        self.reason = reason


class Setting(NamedTuple):
    """One entry with its place for error messages."""

    value: str
    place: str


class ConfigReader:
    """Typed values, and errors that name the place of an entry."""

    def __init__(self, settings: NodeSettings, merged: Mapping[str, Setting], place: str) -> None:
        """Read `settings`, made from `merged`; `place` is named for a missing key."""
        self.settings = settings
        self._merged = merged
        self._place = place

    def is_set(self, key: str) -> bool:
        """Return whether a key has an entry."""
        return key in self._merged

    def entry(self, key: str) -> str | None:
        """Return the text of a key's entry, also of an unknown key."""
        setting = self._merged.get(key)
        return None if setting is None else setting.value

    def error(self, key: str, reason: str) -> ConfigError:
        """Return the error of a key's value."""
        setting = self._merged.get(key)
        if setting is None:
            return ConfigError(key, None, self._place, reason)
        return ConfigError(key, setting.value, setting.place, reason)

    def beneath(self, dynamic: Mapping[str, str], place: str) -> "ConfigReader":
        """Return a reader in which the dynamic values of listeners override these entries."""
        entries = {name: Setting(value, place) for name, value in dynamic.items()}
        return ConfigReader(self.settings, {**self._merged, **entries}, self._place)

    def strings(self, key: str) -> list[str]:
        """Return a value as a list, whether its key is a list or a text with commas."""
        value = self.settings.value(key)
        texts = value if isinstance(value, tuple) else str(value or "").split(",")
        return [text.strip() for text in texts if text.strip()]


def _shown(key: str, value: str) -> str:
    """Return a value for an error's text; a password, a key or a login entry is hidden."""
    parts = key.split(".")
    names = (".".join(parts[first:]) for first in range(len(parts)))
    is_secret = any(name in BROKER_KEYS and BROKER_KEYS[name].sensitive for name in names)
    return "[hidden]" if is_secret else value


def settings_of_file(text: str, file_name: str) -> dict[str, Setting]:
    """Return a properties file's entries."""
    return {
        entry.key: Setting(entry.value, f"{file_name}:{entry.line}")
        for entry in parse_properties(text)
    }


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Return the entries of environment variables."""
    found = {}
    for variable in sorted(environment):
        if variable.startswith(_ENVIRONMENT_PREFIX) and variable not in _NOT_SETTINGS:
            name = variable.removeprefix(_ENVIRONMENT_PREFIX).lower()
            key = name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
            found[key] = Setting(environment[variable], f"environment variable {variable}")
    for option in environment.get(_JAVA_OPTIONS, "").split():
        key, _, value = option.removeprefix("-D").partition("=")
        if option.startswith("-D") and key in _SYSTEM_PROPERTIES:
            found[key] = Setting(value, f"environment variable {_JAVA_OPTIONS}")
    return found


def is_number_up_to(text: str, highest: int) -> bool:
    """Return whether a text of any length is a number from 0 to `highest`; int() has a limit."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(highest))
    return is_number and int(text) <= highest
