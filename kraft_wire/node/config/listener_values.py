"""The keys of one listener: `listener.name.{listener}.{key}` overrides the key (KIP-103).

For a mechanism `listener.name.{listener}.{mechanism}.{key}` comes before both.
"""

from kraft_wire.node.config.sources import ConfigError, ConfigReader
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import ConfigValue
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = ["ListenerValues"]


class ListenerValues:
    """Typed values of one listener, or of one mechanism of it; its own are the nearest."""

    def __init__(self, reader: ConfigReader, listener: str, mechanism: str | None = None) -> None:
        self.listener = listener
        self._reader = reader
        self._prefixes = [f"listener.name.{listener.lower()}."]
        """The nearest first."""
        if mechanism is not None:
            self._prefixes.insert(0, f"{self._prefixes[0]}{mechanism.lower()}.")

    def of_mechanism(self, mechanism: str) -> "ListenerValues":
        """Return the values of one mechanism."""
        return ListenerValues(self._reader, self.listener, mechanism)

    def place(self, key: str) -> str:
        """Return the name of the entry that has the value of a key."""
        names = (prefix + key for prefix in self._prefixes)
        return next((name for name in names if self._reader.is_set(name)), key)

    def is_own(self, key: str) -> bool:
        """Return whether there is an own entry for a key."""
        return self._reader.is_set(self._prefixes[0] + key)

    def own_text(self, key: str) -> str | None:
        """Return the own entry of a key, which may be unknown."""
        return self._reader.entry(self._prefixes[0] + key)

    def own_error(self, key: str, reason: str) -> ConfigError:
        """Return the error of the own entry, or of its absence."""
        return self._reader.error(self._prefixes[0] + key, reason)

    def value(self, key: str) -> ConfigValue:
        """Return the value in force. Errors: ConfigError."""
        place = self.place(key)
        text = None if place == key else self._reader.entry(place)
        if text is None:
            return self._reader.settings.value(key)
        try:
            return parse_value(BROKER_KEYS[key], text)
        except InvalidConfigValue as error:
            raise self._reader.error(place, error.reason) from error

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
