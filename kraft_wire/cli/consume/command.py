"""`kraft-wire consume`: print records of topics, from the beginning to the end, or on and on.

Alone it reads all partitions, or those that are named; with `--group` it is a member of a classic
consumer group, which commits what it printed. Exit codes: 0 done, 1 the cluster refused, 2 could
not run.
"""

import json
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.consume import options
from kraft_wire.cli.consume.formats import (
    PROPERTIES,
    Formatter,
    property_formatter,
    template_formatter,
)
from kraft_wire.cli.consume.reading import Reading, read_as_member, read_partitions
from kraft_wire.cli.consume.start import read_start
from kraft_wire.cli.output import WrongInput, clustered, complain, refusals
from kraft_wire.cli.properties_options import properties_of
from kraft_wire.cli.record_json import record_json
from kraft_wire.client.cluster import ClusterClient, ClusterRefused
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.foreign_text import compiled
from kraft_wire.model import TopicPartition
from kraft_wire.wire.records.record import Record

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def consume(
    topics: options.Topics = None,
    topic_option: options.TopicOption = None,
    include: options.Include = None,
    bootstrap_server: Bootstrap = LOCAL,
    group: options.Group = None,
    from_beginning: options.FromBeginning = False,
    offset: options.Offset = None,
    partition: options.Partitions = None,
    follow: options.Follow = False,
    exit_: options.Exit = False,
    max_messages: options.MaxMessages = None,
    timeout_ms: options.TimeoutMs = None,
    isolation: options.IsolationName = options.Isolation.READ_UNCOMMITTED,
    format_: options.Format = None,
    property_: options.Properties = None,
    as_json: options.AsJson = False,
) -> None:
    """Print the records of topics from the beginning to the end; --follow waits for more."""
    with refusals("consume"):
        if from_beginning and offset is not None:
            raise WrongInput("give one of --from-beginning and --offset")
        if exit_ and follow:
            raise WrongInput("give one of --exit and --follow")
        if group is not None and partition:
            raise WrongInput("--partition is not for --group: the group assigns partitions")
        reading = Reading(
            start=read_start(offset or "earliest"),
            follows=follow or timeout_ms is not None,
            count_max=max_messages,
            silence_ms=timeout_ms,
            read_committed=isolation is options.Isolation.READ_COMMITTED,
            note=lambda text: complain("consume", text),
        )
        printer = _Printer(_formatter(as_json, format_, property_ or ()))
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with clustered("consume", bootstrap_server, seconds=60.0) as cluster:
            names = _topics(cluster, [*(topics or ()), *(topic_option or ())], include)
            with suppress(KeyboardInterrupt):
                if group is None:
                    keys = _partitions(cluster, names, partition or ())
                    read_partitions(cluster, keys, reading, printer.write)
                    return
                cluster.partitions_of(names)
                with GroupCoordinator(cluster, group) as coordinator:
                    read_as_member(cluster, coordinator, names, reading, printer.write)


class _Printer:
    """Writes formatted records to standard output."""

    def __init__(self, formatter: Formatter) -> None:
        self._formatter = formatter

    def write(self, key: TopicPartition, record: Record) -> None:
        """Write one record, buffered."""
        sys.stdout.buffer.write(self._formatter(key.topic, key.partition, record))


def _formatter(as_json: bool, template: str | None, properties: Sequence[str]) -> Formatter:
    if sum([as_json, template is not None, bool(properties)]) > 1:
        raise WrongInput("give one of --json, --format and --property")
    if as_json:
        return _json_line
    if template is not None:
        return template_formatter(template, b"")
    return property_formatter(properties_of(properties, PROPERTIES))


def _json_line(topic: str, partition: int, record: Record) -> bytes:
    return json.dumps(record_json(topic, partition, record), ensure_ascii=False).encode() + b"\n"


def _topics(cluster: ClusterClient, names: Sequence[str], include: str | None) -> list[str]:
    """Return the topics to read. Errors: WrongInput, ClusterRefused if none matches."""
    if include is None:
        if not names:
            raise WrongInput("give a topic")
        return list(dict.fromkeys(names))
    try:
        pattern = compiled(include)
    except re.error as error:
        raise WrongInput(f"--include {include}: {error}") from error
    found = [name for name in cluster.topic_names() if pattern.fullmatch(name)]
    if not found and not names:
        raise ClusterRefused(f"no topic matches {include}")
    return list(dict.fromkeys([*names, *found]))


def _partitions(
    cluster: ClusterClient, topics: Sequence[str], wanted: Sequence[int]
) -> list[TopicPartition]:
    """Return the partitions to read. Errors: ClusterRefused for one that does not exist."""
    keys = []
    for topic, count in cluster.partitions_of(topics).items():
        for partition in wanted:
            if partition >= count:
                raise ClusterRefused(f"topic {topic} has no partition {partition}: it has {count}")
        keys += [TopicPartition(topic, each) for each in (wanted or range(count))]
    return keys


secured(app)
