"""The options of `kraft-wire produce`."""

from enum import StrEnum
from typing import Annotated

import typer

from kraft_wire.cli.produce.lines import PROPERTIES
from kraft_wire.cli.record_json import NUMBER_MAX

__all__ = [
    "AsJson",
    "Codec",
    "CodecName",
    "Headers",
    "Key",
    "KeySeparator",
    "Null",
    "Partition",
    "Properties",
    "Timestamp",
    "Topic",
    "TopicOption",
    "Value",
]


class Codec(StrEnum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


Topic = Annotated[str | None, typer.Argument(metavar="TOPIC", help="The topic.")]
TopicOption = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic, as in Kafka.")
]
Key = Annotated[
    str | None, typer.Option("--key", "-k", metavar="TEXT", help="Key of every record.")
]
Value = Annotated[
    str | None,
    typer.Option("--value", "-v", metavar="TEXT", help="Write this record and read no input."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator", "-K", metavar="TEXT", help="Split each line into key and value."
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="NAME=VALUE", help="Header of every record; may be repeated."
    ),
]
Partition = Annotated[
    int | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        metavar="N",
        help="The partition (default: by key, else any).",
        show_default=False,
    ),
]
Timestamp = Annotated[
    int | None,
    typer.Option(
        "--timestamp",
        min=0,
        max=NUMBER_MAX,
        metavar="MS",
        help="Time of every record (default: now).",
    ),
]
CodecName = Annotated[Codec, typer.Option("--compression-codec", "-z", help="Compression.")]
Null = Annotated[
    str | None,
    typer.Option("--null", metavar="TEXT", help="A key or value of this text is null."),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "--reader-property",
        metavar="KEY=VALUE",
        help=f"As in kafka-console-producer: {', '.join(PROPERTIES)}.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Read JSON lines, as `consume --json` prints them.")
]
