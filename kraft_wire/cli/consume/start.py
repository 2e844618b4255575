"""Where reading starts: `--offset` and `--from-beginning`, as offsets of partitions."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kraft_wire.cli.output import WrongInput
from kraft_wire.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ClusterClient
from kraft_wire.model import TopicPartition

__all__ = ["Start", "read_start", "start_offsets", "timestamp_ms"]

_NAMES: Final = {
    "earliest": EARLIEST_TIMESTAMP,
    "beginning": EARLIEST_TIMESTAMP,
    "latest": LATEST_TIMESTAMP,
    "end": LATEST_TIMESTAMP,
}
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}")


class Start(NamedTuple):
    """A place in every partition; one of the three is set."""

    timestamp: int | None = None
    """In ms; EARLIEST_TIMESTAMP and LATEST_TIMESTAMP are the log's ends."""
    offset: int | None = None
    before_end: int | None = None
    """How many offsets before the end."""

    @property
    def is_latest(self) -> bool:
        """Whether only later records are wanted."""
        return self.timestamp == LATEST_TIMESTAMP


def read_start(text: str) -> Start:
    """Read earliest, latest, N, -N before the end, or @time. Errors: WrongInput."""
    if text in _NAMES:
        return Start(timestamp=_NAMES[text])
    if text.startswith("@"):
        return Start(timestamp=timestamp_ms(text[1:]))
    if not _NUMBER.fullmatch(text):
        raise WrongInput(
            f'"{text}" is not an offset: earliest, latest, a number, -N before the end, or @time'
        )
    if text.startswith("-"):
        return Start(before_end=int(text[1:]))
    return Start(offset=int(text))


def timestamp_ms(text: str) -> int:
    """Read milliseconds, or ISO 8601 as `2026-01-31T12:00:00`, UTC without a zone.

    Errors: WrongInput.
    """
    if text.isdecimal() and len(text) <= len(str(1 << 62)):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongInput(f'"{text}" is not a time: milliseconds or 2026-01-31T12:00:00') from error
    at = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return max(0, round(at.timestamp() * 1000))


def start_offsets(
    cluster: ClusterClient, keys: Sequence[TopicPartition], start: Start, *, read_committed: bool
) -> dict[TopicPartition, int]:
    """Return the offset of each partition at which reading starts; the end without a later one."""
    if start.offset is not None:
        return dict.fromkeys(keys, start.offset)
    if start.before_end is not None:
        first = cluster.offsets_at(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        ends = _ends(cluster, keys, read_committed)
        return {key: max(first[key], ends[key] - start.before_end) for key in keys}
    assert start.timestamp is not None, start
    found = cluster.offsets_at(
        dict.fromkeys(keys, start.timestamp), read_committed=read_committed and start.is_latest
    )
    if min(found.values()) < 0:
        ends = _ends(cluster, keys, read_committed)
        found = {key: ends[key] if offset < 0 else offset for key, offset in found.items()}
    return found


def _ends(
    cluster: ClusterClient, keys: Sequence[TopicPartition], read_committed: bool
) -> dict[TopicPartition, int]:
    wanted = dict.fromkeys(keys, LATEST_TIMESTAMP)
    return cluster.offsets_at(wanted, read_committed=read_committed)
