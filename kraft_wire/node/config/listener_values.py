"""The keys of one listener: `listener.name.{listener}.{key}` overrides the key (KIP-103)."""

from kraft_wire.node.config.sources import ConfigError, ConfigReader
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import ConfigValue
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = ["ListenerValues"]


class ListenerValues:
    """Typed values of one listener."""

    def __init__(self, reader: ConfigReader, listener: str) -> None:
        self.listener = listener
        self._reader = reader
        self._prefix = f"listener.name.{listener.lower()}."

    def place(self, key: str) -> str:
        """Return the name of the entry that has the value of a key."""
        own = self._prefix + key
        return own if self._reader.is_set(own) else key

    def is_own(self, key: str) -> bool:
        """Return whether the listener has its own entry for a key."""
        return self._reader.is_set(self._prefix + key)

    def own_text(self, key: str) -> str | None:
        """Return the listener's own entry of a key, which may be unknown."""
        return self._reader.entry(self._prefix + key)

    def own_error(self, key: str, reason: str) -> ConfigError:
        """Return the error of the listener's own entry, or of its absence."""
        return self._reader.error(self._prefix + key, reason)

    def value(self, key: str) -> ConfigValue:
        """Return the value in force. Errors: ConfigError."""
        text = self.own_text(key)
        if text is None:
            return self._reader.settings.value(key)
        try:
            return parse_value(BROKER_KEYS[key], text)
        except InvalidConfigValue as error:
            raise self.own_error(key, error.reason) from error

    def text(self, key: str) -> str | None:
        """Return a string, None if it is not set."""
        value = self.value(key)
        assert value is None or isinstance(value, str), (key, type(value))
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list; empty if it is not set."""
        value = self.value(key)
        assert value is None or isinstance(value, tuple), (key, type(value))
        return value or ()

    def integer(self, key: str) -> int:
        """Return a number that has a value."""
        value = self.value(key)
        assert isinstance(value, int), (key, type(value))
        return value

    def error(self, key: str, reason: str) -> ConfigError:
        """Return the error of the value in force."""
        return self._reader.error(self.place(key), reason)
