"""Times of logs that a node refuses at its start, whichever unit they were set in."""

from typing import Final

from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.log_times import (
    LOG_TIMES,
    RETENTION_MS,
    ROLL_JITTER_MS,
    ROLL_MS,
    log_time_problem,
)
from kraft_wire.settings.node_settings import topic_sources
from kraft_wire.settings.topic import TOPIC_KEYS

__all__ = ["check_log_times"]

_KEYS_OF_TOPICS: Final = {
    ROLL_MS: "segment.ms",
    ROLL_JITTER_MS: "segment.jitter.ms",
    RETENTION_MS: "retention.ms",
}


def check_log_times(reader: ConfigReader) -> None:
    """Raise a ConfigError for a time that no log may have."""
    for key in LOG_TIMES:
        name, value_ms = _in_force(reader, _KEYS_OF_TOPICS[key])
        problem = log_time_problem(key, value_ms)
        if problem is not None:
            raise reader.error(name, problem)


def _in_force(reader: ConfigReader, key: str) -> tuple[str, int]:
    """Return a topic's default in ms, and the setting that it is from."""
    first = topic_sources(TOPIC_KEYS[key], {}, reader.settings)[0]
    assert isinstance(first.value, int), first
    return first.name, first.value
