"""The options of the format `kraftwire`: names, defaults and refusals of Spark's own connector.

The begin and the end of a query are a `Bound`, with several spellings: the timestamp of all
partitions takes precedence over timestamps of each, these over offsets. A value that is wrong for a
batch query or for a stream is refused with its name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kraft_wire.client.cluster import ClusterSettings
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftwire.offsets import EARLIEST, LATEST, parse_assign, parse_offsets
from kraft_wire.spark.kraftwire.wire_keys import KafkaKeys
from kraft_wire.spark.option_reader import (
    OptionReader,
    parse_list,
    parse_not_negative,
    parse_pattern,
    parse_positive,
)

__all__ = ["Bound", "WireOptions", "includes_headers", "parse_wire_options"]

_CHOOSING: Final = ("subscribe", "subscribePattern", "assign")
_ENDING: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_NAMES: Final = (
    "kafka.bootstrap.servers",
    *_CHOOSING,
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingOffsets",
    *_ENDING,
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "arrowBatchRows",
)
_DURATION: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_UNIT_MS: Final = {
    "us": 0.001,
    "ms": 1.0,
    "s": 1000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
_TRIGGER_DELAY_MS: Final = 900_000


@dataclass(frozen=True, slots=True)
class Bound:
    """The begin or the end of a query in each partition."""

    name: str
    """The option of this bound."""
    word: Literal["earliest", "latest"] | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    """In milliseconds."""
    timestamp: int | None = None
    """In all partitions."""


@dataclass(frozen=True, slots=True)
class WireOptions:
    """The options of a user; a value that can be pickled."""

    cluster: ClusterSettings
    fetch: FetchSettings
    starting: Bound
    ending: Bound
    topics: tuple[str, ...] | None = None
    topics_pattern: str | None = None
    assign: frozenset[TopicPartition] | None = None
    latest_if_no_later_record: bool = False
    """Set by `startingOffsetsByTimestampStrategy`; else it is an error."""
    fail_on_data_loss: bool = True
    partitions_min: int | None = None
    partition_records_max: int | None = None
    trigger_offsets_max: int | None = None
    trigger_offsets_min: int | None = None
    trigger_delay_ms: int = _TRIGGER_DELAY_MS
    include_headers: bool = False
    arrow_batch_rows: int = 1 << 15
    keys: KafkaKeys = field(default_factory=lambda: KafkaKeys({}), compare=False)


def includes_headers(raw_options: Mapping[str, str]) -> bool:
    """Return whether the schema has headers; the read checks the other options."""
    return OptionReader(raw_options, "kraftwire").flag("includeHeaders")


def parse_wire_options(raw_options: Mapping[str, str], *, streaming: bool) -> WireOptions:
    """Return the options; PipelineError for the first that is wrong."""
    found = OptionReader(raw_options, "kraftwire")
    found.refuse_unknown(_NAMES, but="kafka.")
    found.refuse_several(_CHOOSING)
    if not any(found.has(name) for name in _CHOOSING):
        raise PipelineError(f"one of the options {', '.join(_CHOOSING)} must say what is read")
    keys = KafkaKeys(found.beginning("kafka."))
    least = found.get("minOffsetsPerTrigger", parse_positive)
    most = found.get("maxOffsetsPerTrigger", parse_positive)
    if least is not None and most is not None and least > most:
        raise PipelineError(
            f"option minOffsetsPerTrigger: {least} is more than maxOffsetsPerTrigger {most}"
        )
    delay_ms = found.get("maxTriggerDelay", _duration_ms)
    strategy = found.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    return WireOptions(
        cluster=keys.cluster(),
        fetch=keys.fetching(found.get("kafkaConsumer.pollTimeoutMs", parse_positive)),
        starting=_starting(found, streaming),
        ending=_ending(found, streaming),
        topics=found.get("subscribe", parse_list),
        topics_pattern=found.get("subscribePattern", parse_pattern),
        assign=found.get("assign", lambda text: parse_assign("assign", text)),
        latest_if_no_later_record=strategy == "latest",
        fail_on_data_loss=found.flag("failOnDataLoss", default=True),
        partitions_min=found.get("minPartitions", parse_positive),
        partition_records_max=found.get("maxRecordsPerPartition", parse_positive),
        trigger_offsets_max=most,
        trigger_offsets_min=least,
        trigger_delay_ms=_TRIGGER_DELAY_MS if delay_ms is None else delay_ms,
        include_headers=found.flag("includeHeaders"),
        arrow_batch_rows=found.get("arrowBatchRows", parse_positive) or 1 << 15,
        keys=keys,
    )


def _starting(found: OptionReader, streaming: bool) -> Bound:
    bound = _bound(found, "starting", "latest" if streaming else "earliest")
    if not streaming:
        at_latest = [key for key, offset in (bound.offsets or {}).items() if offset == LATEST]
        if bound.word == "latest" or at_latest:
            where = f" for {at_latest[0]}" if at_latest else ""
            raise PipelineError(f"option {bound.name}: a batch query cannot begin at latest{where}")
    return bound


def _ending(found: OptionReader, streaming: bool) -> Bound:
    raw_options = [name for name in _ENDING if found.has(name)]
    if streaming and raw_options:
        raise PipelineError(f"option {raw_options[0]} is not for streams, which do not end")
    bound = _bound(found, "ending", "latest")
    at_earliest = [key for key, offset in (bound.offsets or {}).items() if offset == EARLIEST]
    if bound.word == "earliest" or at_earliest:
        where = f" for {at_earliest[0]}" if at_earliest else ""
        raise PipelineError(f"option {bound.name}: a query cannot end at earliest{where}")
    return bound


def _bound(found: OptionReader, end: str, default: Literal["earliest", "latest"]) -> Bound:
    """Return the spelling that takes precedence."""
    name = f"{end}Timestamp"
    timestamp = found.get(name, parse_not_negative)
    if timestamp is not None:
        return Bound(name, timestamp=timestamp)
    name = f"{end}OffsetsByTimestamp"
    text = found.get(name, str.strip)
    if text is not None:
        return Bound(name, timestamps=_timestamps(name, text))
    name = f"{end}Offsets"
    text = found.get(name, str.strip)
    if text is None:
        return Bound(name, word=default)
    if text.startswith("{"):
        return Bound(name, offsets=parse_offsets(name, text))
    if text.lower() == "earliest":
        return Bound(name, word="earliest")
    if text.lower() == "latest":
        return Bound(name, word="latest")
    raise PipelineError(f"option {name}: {text!r} is neither earliest nor latest nor JSON")


def _timestamps(name: str, text: str) -> dict[TopicPartition, int]:
    found = parse_offsets(name, text)
    wrong = [key for key, timestamp in found.items() if timestamp < 0]
    if wrong:
        raise PipelineError(f"option {name}: {wrong[0]} has a time before 1970")
    return found


def _duration_ms(text: str) -> int:
    """Return milliseconds of a duration as Spark writes it: 30s, 15m, 500ms; a number is ms."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not a duration such as 15m")
    return round(int(match[1]) * _UNIT_MS[(match[2] or "ms").lower()])
