"""The options of the format `kraftlog`, parsed once; every mistake is one line that names it.

Names are case-insensitive, as everywhere in Spark (`raw_options`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import unquote, urlsplit

from kraft_wire.foreign_text import json_value
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftwire.offsets import parse_assign, parse_offsets
from kraft_wire.spark.option_reader import (
    OptionReader,
    parse_list,
    parse_not_negative,
    parse_pattern,
    parse_positive,
)

__all__ = ["LogOptions", "OnCorrupt", "Pushed", "View", "parse_log_options"]

View = Literal["records", "batches", "segments", "metadata", "snapshots", "partitions"]
OnCorrupt = Literal["fail", "skip", "report"]

_MIB: Final = 1 << 20
_SIZE: Final = re.compile(r"(\d+)\s*(b|kb?|mb?|gb?|tb?)?", re.IGNORECASE)
_UNITS: Final = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NAMES: Final = (
    "path",
    "paths",
    "view",
    "topics",
    "topicsPattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "isolationLevel",
    "includeHeaders",
    "includeBatchFields",
    "onCorrupt",
    "maxOffsetsPerTrigger",
    "asOfOffset",
    "image",
    "maxPartitionBytes",
    "openCostInBytes",
    "minPartitions",
    "arrowBatchRows",
    "pushdown",
    "failOnDataLoss",
)
_CHOOSING: Final = ("topics", "topicsPattern", "assign")


@dataclass(frozen=True, slots=True)
class Pushed:
    """The part of a query's filters that is pushed down; more rows than that do no harm."""

    chosen: tuple[tuple[str, tuple[object, ...]], ...] = ()
    """Values that `topic`, `partition` or `node` may have."""
    start_offset: int = -(1 << 63)
    end_offset: int | None = None
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of a user; defaults are those of the format."""

    paths: tuple[str, ...]
    """Entries of `log.dirs`, of one or several nodes."""
    view: View = "records"
    topics: tuple[str, ...] | None = None
    topics_pattern: str | None = None
    assign: frozenset[TopicPartition] | None = None
    starting: Literal["earliest", "physical"] = "earliest"
    starting_offsets: Mapping[TopicPartition, int] | None = None
    """The begin in the named partitions; other partitions begin at the earliest offset."""
    ending_offsets: Mapping[TopicPartition, int] | None = None
    """Exclusive; partitions that are not named are read to their end."""
    is_start_explicit: bool = False
    read_committed: bool = False
    include_headers: bool = False
    include_batch_fields: bool = False
    on_corrupt: OnCorrupt = "fail"
    offsets_per_trigger_max: int | None = None
    as_of_offset: int | None = None
    """Exclusive."""
    image: Literal["replay", "snapshot"] = "replay"
    partition_bytes_max: int = 128 * _MIB
    open_cost_bytes: int = 4 * _MIB
    partitions_min: int | None = None
    arrow_batch_rows: int = 1 << 15
    pushdown: bool = False
    fail_on_data_loss: bool = True
    pushed: Pushed = Pushed()
    """Not an option: the filters that were pushed down to a reader."""


def parse_log_options(raw_options: Mapping[str, str]) -> LogOptions:
    """Return the options; PipelineError for the first that is wrong."""
    found = OptionReader(raw_options, "kraftlog")
    found.refuse_unknown(_NAMES)
    found.refuse_several(_CHOOSING)
    starting = found.get("startingOffsets", str.strip)
    physical = starting is not None and starting.lower() == "physical"
    ending = found.get("endingOffsets", str.strip)
    open_cost = found.get("openCostInBytes", _size_or_nothing)
    return LogOptions(
        paths=_paths(found),
        view=found.one_of("view", get_args(View), "records"),
        topics=found.get("topics", parse_list),
        topics_pattern=found.get("topicsPattern", parse_pattern),
        assign=found.get("assign", lambda text: parse_assign("assign", text)),
        starting="physical" if physical else "earliest",
        starting_offsets=_offsets("startingOffsets", starting, ("earliest", "physical")),
        ending_offsets=_offsets("endingOffsets", ending, ("latest",)),
        is_start_explicit=starting is not None,
        read_committed=found.one_of(
            "isolationLevel", ("read_uncommitted", "read_committed"), "read_uncommitted"
        )
        == "read_committed",
        include_headers=found.flag("includeHeaders"),
        include_batch_fields=found.flag("includeBatchFields"),
        on_corrupt=found.one_of("onCorrupt", get_args(OnCorrupt), "fail"),
        offsets_per_trigger_max=found.get("maxOffsetsPerTrigger", parse_positive),
        as_of_offset=found.get("asOfOffset", parse_not_negative),
        image=found.one_of("image", ("replay", "snapshot"), "replay"),
        partition_bytes_max=found.get("maxPartitionBytes", _size) or 128 * _MIB,
        open_cost_bytes=4 * _MIB if open_cost is None else open_cost,
        partitions_min=found.get("minPartitions", parse_positive),
        arrow_batch_rows=found.get("arrowBatchRows", parse_positive) or 1 << 15,
        pushdown=found.flag("pushdown"),
        fail_on_data_loss=found.flag("failOnDataLoss", default=True),
    )


def _paths(found: OptionReader) -> tuple[str, ...]:
    """Return the directories of `path`, a list with commas, or of `load([...])`."""
    several = found.get("paths", _texts)
    if several is None:
        several = [each.strip() for each in (found.get("path", str) or "").split(",")]
    if not any(several):
        raise PipelineError("option path is missing: give log directories, as log.dirs has them")
    return tuple(dict.fromkeys(_local(each) for each in several if each))


def _texts(text: str) -> list[str]:
    content = json_value(text)
    if not isinstance(content, list) or not all(isinstance(each, str) for each in content):
        raise ValueError("is not a list of paths")
    return content


def _local(path: str) -> str:
    """Return a path of this machine's file system, of which shared ones are a part."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        path = unquote(parts.path)
    elif "://" in path:
        raise PipelineError(
            f"option path: {path!r} is not a path of this machine; mount it and give the path"
        )
    return path.rstrip("/") or "/"


def _offsets(
    name: str, text: str | None, words: tuple[str, ...]
) -> dict[TopicPartition, int] | None:
    if text is None or text.lower() in words:
        return None
    if not text.startswith("{"):
        raise PipelineError(f"option {name}: {text!r} is neither {' nor '.join(words)} nor JSON")
    return parse_offsets(name, text)


def _size(text: str) -> int:
    """Return bytes of a size as Spark writes them: 134217728, 134217728b, 128m, 128MB."""
    size = _size_or_nothing(text)
    if not size:
        raise ValueError("is not a size such as 128MB")
    return size


def _size_or_nothing(text: str) -> int:
    """Return the bytes of such a size; 0 is allowed, for no cost."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not a size such as 128MB")
    return int(match[1]) * _UNITS[(match[2] or "b")[0].lower()]
