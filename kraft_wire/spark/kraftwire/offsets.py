"""Offsets and partitions as JSON, in the forms of Spark's own Kafka connector.

`{"orders": {"0": 23}}` are offsets, -2 is the earliest and -1 the latest; `{"orders": [0, 1]}` are
partitions. Offsets of a stream are of the first form, without negatives.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kraft_wire.foreign_text import json_value
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError

__all__ = ["EARLIEST", "LATEST", "from_nested", "parse_assign", "parse_offsets", "to_nested"]

EARLIEST: Final = -2
LATEST: Final = -1
_OFFSET_MAX: Final = (1 << 63) - 1


def parse_offsets(name: str, text: str) -> dict[TopicPartition, int]:
    """Return the offsets that an option's JSON names; PipelineError names option and mistake."""
    wanted = 'JSON such as {"orders":{"0":23,"1":-2}}'
    content = _parse_object(name, text, wanted)
    found: dict[TopicPartition, int] = {}
    for topic, partitions in content.items():
        if not isinstance(partitions, dict):
            raise PipelineError(f"option {name}: topic {topic!r} has no partitions, {wanted} has")
        for number, offset in partitions.items():
            is_offset = type(offset) is int and EARLIEST <= offset <= _OFFSET_MAX
            if not is_offset or not _is_number(number):
                wrong = f"option {name}: {topic}-{number} at {offset!r}"
                raise PipelineError(f"{wrong}: a partition's number and an offset >= -2 are wanted")
            found[TopicPartition(topic, int(number))] = offset
    return found


def parse_assign(name: str, text: str) -> frozenset[TopicPartition]:
    """Return the partitions that an option's JSON names."""
    wanted = 'JSON such as {"orders":[0,1]}'
    content = _parse_object(name, text, wanted)
    found: list[TopicPartition] = []
    for topic, numbers in content.items():
        if not isinstance(numbers, list) or any(type(n) is not int or n < 0 for n in numbers):
            raise PipelineError(f"option {name}: {topic!r} needs a list of partitions, {wanted}")
        found += [TopicPartition(topic, number) for number in numbers]
    return frozenset(found)


def to_nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in the form that a checkpoint keeps, in the order of topics and partitions."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def from_nested(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, partitions in nested.items()
        for number, offset in partitions.items()
    }


def _parse_object(name: str, text: str, wanted: str) -> dict[str, object]:
    try:
        content = json_value(text, object_pairs_hook=_without_repetition)
    except ValueError as error:
        raise PipelineError(f"option {name}: {text!r} is no {wanted}: {error}") from None
    if not isinstance(content, dict):
        raise PipelineError(f"option {name}: {text!r} is no {wanted}")
    return content


def _without_repetition(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Refuse a repeated key, of which the standard parser would drop one silently."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} stands there twice")
        found[key] = value
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
