"""`kraft-wire produce`: write the lines of standard input, or one record, to a topic.

Idempotent, acknowledged by all in-sync replicas. What was read is sent whenever the input pauses.
Exit codes: 0 all written, 1 the cluster refused, 2 could not run.
"""

import sys
from collections.abc import Iterable, Iterator

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.output import WrongInput, clustered, one_topic, refusals
from kraft_wire.cli.produce import options
from kraft_wire.cli.produce.lines import PROPERTIES, LineForm, line_form, lines_of, record_of_line
from kraft_wire.cli.produce.writer import SECONDS, TopicWriter
from kraft_wire.cli.properties_options import pairs_of, properties_of
from kraft_wire.cli.record_json import InputRecord, record_of_json
from kraft_wire.wire.compression.codecs import Compression

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def produce(
    topic: options.Topic = None,
    topic_option: options.TopicOption = None,
    bootstrap_server: Bootstrap = LOCAL,
    key: options.Key = None,
    value: options.Value = None,
    key_separator: options.KeySeparator = None,
    header: options.Headers = None,
    partition: options.Partition = None,
    timestamp: options.Timestamp = None,
    compression: options.CodecName = options.Codec.NONE,
    null: options.Null = None,
    property_: options.Properties = None,
    as_json: options.AsJson = False,
) -> None:
    """Write records to a topic: each line of standard input is one."""
    with refusals("produce"):
        name = one_topic(topic, topic_option)
        form = _form(property_ or (), key_separator, null)
        fixed = InputRecord(
            key=None if key is None else key.encode(),
            value=None if value is None or value == null else value.encode(),
            headers=tuple((each, text.encode()) for each, text in pairs_of(header or ()).items()),
            partition=partition,
            timestamp_ms=timestamp,
        )
        with clustered("produce", bootstrap_server, seconds=SECONDS) as cluster:
            writer = TopicWriter(cluster, name, Compression[compression.name])
            if value is None:
                _write_lines(writer, fixed, None if as_json else form)
            else:
                writer.write(fixed)
            writer.flush()


def _form(properties: Iterable[str], key_separator: str | None, null: str | None) -> LineForm:
    """Return the form of a line; the options are short for properties."""
    given = list(properties)
    if key_separator is not None:
        given += ["parse.key=true", f"key.separator={key_separator}"]
    if null is not None:
        given.append(f"null.marker={null}")
    return line_form(properties_of(given, PROPERTIES))


def _write_lines(writer: TopicWriter, fixed: InputRecord, form: LineForm | None) -> None:
    """Write the lines of standard input; None as form means JSON."""
    try:
        for number, line, has_paused in _numbered(lines_of(sys.stdin.fileno())):
            writer.write(_record(line, number, fixed, form))
            if has_paused:
                writer.flush()
    except WrongInput:
        writer.flush()
        raise


def _numbered(chunks: Iterable[tuple[list[bytes], bool]]) -> Iterator[tuple[int, bytes, bool]]:
    """Yield lines with their numbers from 1, and whether the input paused after each."""
    number = 0
    for lines, has_paused in chunks:
        last = number + len(lines)
        for line in lines:
            number += 1
            yield number, line, has_paused and number == last


def _record(line: bytes, number: int, fixed: InputRecord, form: LineForm | None) -> InputRecord:
    """Return a line's record; options take precedence. Errors: WrongInput with the line."""
    try:
        read = record_of_json(line) if form is None else record_of_line(line, form)
    except WrongInput as problem:
        raise WrongInput(f"line {number}: {problem}") from problem
    return InputRecord(
        key=read.key if fixed.key is None else fixed.key,
        value=read.value,
        headers=(*read.headers, *fixed.headers),
        partition=read.partition if fixed.partition is None else fixed.partition,
        timestamp_ms=read.timestamp_ms if fixed.timestamp_ms is None else fixed.timestamp_ms,
    )


secured(app)
