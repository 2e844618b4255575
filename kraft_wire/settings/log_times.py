"""Times of logs that a node refuses, at its start and in a change: `KafkaConfig.validateValues`."""

from typing import Final

__all__ = ["LOG_TIMES", "RETENTION_MS", "ROLL_JITTER_MS", "ROLL_MS", "log_time_problem"]

ROLL_MS: Final = "log.roll.ms"
ROLL_JITTER_MS: Final = "log.roll.jitter.ms"
RETENTION_MS: Final = "log.retention.ms"

_PROBLEMS: Final = {
    ROLL_MS: f"{ROLL_MS} must be greater than or equal to 1",
    ROLL_JITTER_MS: f"{ROLL_JITTER_MS} must be greater than or equal to 0",
    RETENTION_MS: f"{RETENTION_MS} must be unlimited (-1) or, greater than or equal to 1",
}
LOG_TIMES: Final = tuple(_PROBLEMS)
"""In the order in which 4.3.1 looks at them."""


def log_time_problem(key: str, value_ms: int) -> str | None:
    """Return why no log may have a time, in 4.3.1's words; a negative retention is unlimited."""
    if key == RETENTION_MS:
        is_valid = value_ms != 0
    else:
        is_valid = value_ms >= (1 if key == ROLL_MS else 0)
    return None if is_valid else _PROBLEMS[key]
