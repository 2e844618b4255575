"""Times of logs that 4.3.1 refuses at its start: `KafkaConfig.validateValues`, in its order."""

from typing import Final

from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.node_settings import topic_sources
from kraft_wire.settings.topic import TOPIC_KEYS

__all__ = ["check_log_times"]

_LEAST_MS: Final = (
    ("segment.ms", 1, "log.roll.ms must be greater than or equal to 1"),
    ("segment.jitter.ms", 0, "log.roll.jitter.ms must be greater than or equal to 0"),
)
_RETENTION: Final = "retention.ms"
_NO_TIME: Final = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"


def check_log_times(reader: ConfigReader) -> None:
    """Raise a ConfigError for a time that no log may have; a negative retention is unlimited."""
    for key, least_ms, reason in _LEAST_MS:
        name, value_ms = _in_force(reader, key)
        if value_ms < least_ms:
            raise reader.error(name, reason)
    name, value_ms = _in_force(reader, _RETENTION)
    if value_ms == 0:
        raise reader.error(name, _NO_TIME)


def _in_force(reader: ConfigReader, key: str) -> tuple[str, int]:
    """Return a topic's default in ms, and the setting that it is from."""
    first = topic_sources(TOPIC_KEYS[key], {}, reader.settings)[0]
    assert isinstance(first.value, int), first
    return first.name, first.value
