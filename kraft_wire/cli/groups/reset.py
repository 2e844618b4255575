"""`kraft-wire groups reset-offsets`: which partitions, to which offsets.

The options are those of kafka-consumer-groups --reset-offsets. An offset outside of a log is moved
to the log's start or end.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kraft_wire.cli.consume.start import Start, start_offsets, timestamp_ms
from kraft_wire.cli.output import WrongInput
from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
)
from kraft_wire.model import TopicPartition
from kraft_wire.settings.durations import duration_ms

__all__ = ["Target", "new_offsets", "partitions_to_reset", "read_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a reset: a place in the log, or a distance from the committed offset."""

    start: Start | None = None
    shift: int | None = None
    """0 keeps the committed offset."""


def read_target(chosen: Mapping[str, object], now_ms: int) -> Target:
    """Read the one option that is given. Errors: WrongInput."""
    given = {
        name: value for name, value in chosen.items() if value is not None and value is not False
    }
    if len(given) != 1:
        raise WrongInput(f"give one of {', '.join(chosen)}")
    ((name, value),) = given.items()
    match name:
        case "--to-earliest":
            return Target(Start(timestamp=EARLIEST_TIMESTAMP))
        case "--to-latest":
            return Target(Start(timestamp=LATEST_TIMESTAMP))
        case "--to-current":
            return Target(shift=0)
        case "--to-offset":
            assert isinstance(value, int), value
            return Target(Start(offset=value))
        case "--shift-by":
            assert isinstance(value, int), value
            return Target(shift=value)
        case "--to-datetime":
            return Target(Start(timestamp=timestamp_ms(str(value))))
        case _:
            return Target(Start(timestamp=max(0, now_ms - _duration_ms(str(value)))))


def _duration_ms(text: str) -> int:
    ago_ms = duration_ms(text)
    if ago_ms is None:
        raise WrongInput(f'"{text}" is not an ISO 8601 duration such as P1D or PT2H30M')
    return ago_ms


def partitions_to_reset(
    cluster: ClusterClient, topics: Sequence[str], committed: dict[TopicPartition, int]
) -> list[TopicPartition]:
    """Read `topic` and `topic:0,1`; none means the committed offsets.

    Errors: WrongInput for a wrong form, ClusterRefused for a partition that does not exist.
    """
    if not topics:
        return sorted(committed)
    keys: list[TopicPartition] = []
    for text in topics:
        topic, colon, listed = text.partition(":")
        if colon and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", listed):
            raise WrongInput(f'"{text}" is not of the form topic or topic:0,1')
        count = cluster.partitions_of([topic])[topic]
        wanted = list(map(int, listed.split(","))) if colon else list(range(count))
        highest = max(wanted, default=-1)
        if highest >= count:
            raise ClusterRefused(f"topic {topic} has no partition {highest}: it has {count}")
        keys += [TopicPartition(topic, each) for each in wanted]
    return sorted(set(keys))


def new_offsets(
    cluster: ClusterClient,
    keys: Sequence[TopicPartition],
    committed: dict[TopicPartition, int],
    target: Target,
) -> dict[TopicPartition, int]:
    """Return the offset of each partition, within its log. Errors: ClusterRefused.

    If the target depends on the committed offset, a partition without one is reset to its end, as
    in Kafka.
    """
    first = cluster.offsets_at(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
    ends = cluster.offsets_at(dict.fromkeys(keys, LATEST_TIMESTAMP))
    if target.start is not None:
        wanted = start_offsets(cluster, keys, target.start, read_committed=False)
    else:
        assert target.shift is not None, target
        missing = [key for key in keys if key not in committed]
        if missing and target.shift:
            raise ClusterRefused(f"{missing[0]} has no committed offset to shift")
        wanted = {key: committed.get(key, ends[key]) + target.shift for key in keys}
    return {key: min(max(wanted[key], first[key]), ends[key]) for key in keys}
