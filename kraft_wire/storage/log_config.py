"""The topic settings that a log applies, as numbers with units; defaults are Kafka 4.3.1's.

`from_mapping` takes the texts of topic configs (already validated by `settings`) and adds defaults
for the rest, so that storage never gets an unparsed value. Kafka's documentation of each key has
its meaning; -1 means "no limit" for the same keys as in Kafka.
"""

from collections.abc import Mapping
from dataclasses import field, fields

from kraft_wire.frozen import frozen

__all__ = ["LogConfig"]

_LONG_MAX = (1 << 63) - 1
_WEEK_MS = 7 * 24 * 3600 * 1000
_INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
"""Replaces `segment.bytes`, without its lower limit; Kafka Streams' tests use it."""


@frozen(kw_only=True)
class LogConfig:
    """One topic's storage settings."""

    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = _WEEK_MS
    retention_bytes: int = -1
    cleanup_policy: tuple[str, ...] = ("delete",)
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _LONG_MAX
    flush_messages: int = _LONG_MAX
    flush_ms: int = _LONG_MAX
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    preallocate: bool = False
    compression_type: str = "producer"
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The topic's own settings as texts, including those that storage does not use."""

    @property
    def is_compacted(self) -> bool:
        """Whether `cleanup.policy` includes compact."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether `cleanup.policy` includes delete (retention by time and size)."""
        assert isinstance(self.cleanup_policy, tuple), self.cleanup_policy
        return "delete" in self.cleanup_policy

    @property
    def flushes_every_append(self) -> bool:
        """Whether acknowledged records survive power loss (`flush.messages=1`)."""
        assert self.flush_messages >= 1, self.flush_messages
        return self.flush_messages <= 1

    @classmethod
    def from_mapping(cls, texts: Mapping[str, str]) -> "LogConfig":
        """Build from topic config texts; other keys are ignored.

        ValueError names the key if a text is not a value of the key's type.
        """
        assert all(isinstance(key, str) for key in texts), texts
        values: dict[str, int | float | bool | str | tuple[str, ...]] = {}
        for setting in fields(cls):
            key = setting.name.replace("_", ".")
            text = texts.get(key)
            if text is not None:
                values[setting.name] = _parsed(key, text, setting.default)
        internal = texts.get(_INTERNAL_SEGMENT_BYTES)
        if internal is not None:
            given = _parsed(_INTERNAL_SEGMENT_BYTES, internal, 0)
            assert isinstance(given, int), internal
            values["segment_bytes"] = max(1, given)  # it has no bounds
        return cls(**values, texts=dict(texts))  # type: ignore[arg-type]  # typed by default


def _parsed(key: str, text: str, default: object) -> int | float | bool | str | tuple[str, ...]:
    """Return the text as a value of the default's type."""
    assert isinstance(default, int | float | str | tuple), (key, default)
    text = text.strip()
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{key}: {text!r} is neither true nor false")
        return text.lower() == "true"
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, str):
        return text
    try:
        return type(default)(text)
    except ValueError as error:
        raise ValueError(f"{key}: {text!r} is not a number") from error
