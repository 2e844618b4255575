"""Records as lines, as JSON and as printed text; the expectations follow Kafka's console tools."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.cli.consume.formats import PROPERTIES as PRINTED
from kraft_wire.cli.consume.formats import property_formatter, template_formatter
from kraft_wire.cli.output import WrongInput
from kraft_wire.cli.produce import writer as writing
from kraft_wire.cli.produce.lines import PROPERTIES, line_form, record_of_line
from kraft_wire.cli.produce.writer import TopicWriter
from kraft_wire.cli.properties_options import pairs_of, properties_of
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.cli.record_json import InputRecord, record_json, record_of_json
from kraft_wire.client.cluster import ClusterRefused
from kraft_wire.client.partitioner import partition_of_key
from kraft_wire.model import TopicPartition
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.record import Record

HEADERS = {"parse.headers": "true"}
BOTH = {"parse.key": "TRUE", **HEADERS}
OTHERS = {
    **BOTH,
    "key.separator": "=>",
    "headers.delimiter": "|",
    "headers.separator": ";",
    "headers.key.separator": "=",
    "null.marker": "NULL",
}
RECORD = Record(
    key=b"k",
    value=None,
    offset=7,
    timestamp=1234,
    headers=[("a", b"1"), ("b", None)],
)


@pytest.mark.parametrize(
    ("given", "line", "found"),
    [
        ({}, b"k\tv", InputRecord(None, b"k\tv")),
        ({"parse.key": "true"}, b"k\tv\tw", InputRecord(b"k", b"v\tw")),
        ({"parse.key": "yes"}, b"k\tv", InputRecord(None, b"k\tv")),
        (HEADERS, b"a:1,b:2\tv", InputRecord(None, b"v", (("a", b"1"), ("b", b"2")))),
        (BOTH, b"a:1:2\tk\tv", InputRecord(b"k", b"v", (("a", b"1:2"),))),
        (BOTH, b"\tk\tv", InputRecord(b"k", b"v")),
        (BOTH, b"a:\t\t", InputRecord(b"", b"", (("a", b""),))),
        (BOTH, b"\xffa:\xff\t\xff\t\xfe", InputRecord(b"\xff", b"\xfe", (("\ufffda", b"\xff"),))),
        (OTHERS, b"a=1;b=NULL|k=>v", InputRecord(b"k", b"v", (("a", b"1"), ("b", None)))),
        (OTHERS, b"NULL|NULL=>NULL", InputRecord(None, None)),
        (OTHERS, b"a=1|k=>NULLs", InputRecord(b"k", b"NULLs", (("a", b"1"),))),
    ],
)  # fmt: skip
def test_line_is_split_into_headers_key_and_value(
    given: dict[str, str], line: bytes, found: InputRecord
) -> None:
    assert record_of_line(line, line_form(PROPERTIES | given)) == found


@pytest.mark.parametrize(
    ("given", "line", "text"),
    [
        ({"parse.key": "true"}, b"kv", "no key separator '\\t' in the line"),
        (BOTH, b"a:1", "no headers delimiter '\\t' in the line"),
        (BOTH, b"a:1\tk", "no key separator '\\t' in the line"),
        (BOTH, b"a:1,b\xff\tk\tv", "no header key separator ':' in 'b\ufffd'"),
        ({"key.separator": ""}, b"", "a separator must not be empty"),
        ({"headers.separator": ""}, b"", "a separator must not be empty"),
    ],
)
def test_line_without_a_part_is_refused(given: dict[str, str], line: bytes, text: str) -> None:
    with pytest.raises(WrongInput) as refused:
        record_of_line(line, line_form(PROPERTIES | given))
    assert str(refused.value) == text


def test_properties_are_known_keys_with_tabs() -> None:
    assert pairs_of([" a =b=c", "d="]) == {"a": "b=c", "d": ""}
    assert properties_of([r"x=\t-"], {"x": "1", "y": "2"}) == {"x": "\t-", "y": "2"}
    for text in ("a", "=b", " =b"):
        with pytest.raises(WrongInput, match=f'^"{text}" is not of the form key=value$'):
            pairs_of([text])
    with pytest.raises(WrongInput, match=r'^unknown property "null\.markr"; did you mean'):
        properties_of(["null.markr=x"], PROPERTIES)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"{}", InputRecord(None, None)),
        (b'{"key": "", "value": null, "headers": null}', InputRecord(b"", None)),
        (
            b'{"key":{"base64":"/w=="},"value":{"a":[1,"\xc3\xa9"]},"partition":0,"timestamp_ms":0}',
            InputRecord(b"\xff", '{"a":[1,"é"]}'.encode(), (), 0, 0),
        ),
        (
            b'{"value":{"base64":"/w==","b":1},"timestamp_ms":9223372036854775807}',
            InputRecord(None, b'{"base64":"/w==","b":1}', (), None, (1 << 63) - 1),
        ),
        (b'{"value":["\\ud800"]}', InputRecord(None, b'["\xed\xa0\x80"]')),
        (
            b'{"headers":[{"name":"a","value":"1"},{"name":2}],"key":false,"value":1.50}',
            InputRecord(b"false", b"1.5", (("a", b"1"), ("2", None))),
        ),
    ],
)
def test_json_line_is_a_record(line: bytes, found: InputRecord) -> None:
    assert record_of_json(line) == found


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"[1]", "not a JSON object"),
        (b"{", "not JSON: Expecting property name enclosed in double quotes: line 1"),
        (b'{"value":"\xff"}', "not JSON: 'utf-8' codec can't decode byte 0xff in position 10"),
        (b'{"value":%s}' % (b"9" * 5000), "not JSON: Exceeds the limit (4300 digits)"),
        (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        (b'{"value":{"base64":"abc"}}', "base64: Incorrect padding"),
        (b'{"value":{"base64":"\xc3\xa9"}}', "base64: string argument should contain only ASCII"),
        (b'{"value":{"base64":"a b="}}', "base64: "),
        *(
            (text, 'headers must be a list of {"name": ..., "value": ...}')
            for text in (b'{"headers":3}', b'{"headers":[3]}', b'{"headers":[{"value":"x"}]}')
        ),
        *(
            (
                b'{"%s":%s}' % (name, value),
                f"{name.decode()} must be a number from 0 to 9223372036854775807,"
                f" not {value.decode()}",
            )
            for name in (b"partition", b"timestamp_ms")
            for value in (b"-1", b"true", b"1.0", b'"1"', b"9223372036854775808")
        ),
    ],
)  # fmt: skip
def test_json_line_of_another_form_is_refused(line: bytes, text: str) -> None:
    with pytest.raises(WrongInput) as refused:
        record_of_json(line)
    assert str(refused.value).startswith(text)


def test_record_that_was_read_is_an_object() -> None:
    assert record_json("t", 3, RECORD) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp_ms": 1234,
        "key": "k",
        "value": None,
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }
    binary = record_json("t", 0, Record(b"\xff", b"\x00", 0))
    assert (binary["key"], binary["value"]) == ({"base64": "/w=="}, "\x00")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, b"null\n"),
        ({"print.key": "true"}, b"k\tnull\n"),
        ({"print.key": "true", "print.value": "false", "line.separator": ""}, b"k"),
        ({"print.timestamp": "true"}, b"CreateTime:1234\tnull\n"),
        ({"print.partition": "True", "print.offset": "true"}, b"Partition:3\tOffset:7\tnull\n"),
        ({"print.headers": "true"}, b"a:1,b:null\tnull\n"),
        (
            {name: "true" for name in PRINTED if name.startswith("print.")}
            | {"key.separator": "|", "headers.separator": ";", "null.literal": "-"},
            b"CreateTime:1234|Partition:3|Offset:7|a:1;b:-|k|-\n",
        ),
    ],
)  # fmt: skip
def test_record_is_printed_as_properties_say(given: dict[str, str], text: bytes) -> None:
    assert property_formatter(PRINTED | given)("t", 3, RECORD) == text


def test_record_without_headers_and_key_is_printed_with_their_literals() -> None:
    shown = PRINTED | {"print.headers": "true", "print.key": "true"}
    assert property_formatter(shown)("t", 0, Record(None, b"v", 0)) == b"NO_HEADERS\tnull\tv\n"


def test_template_shows_every_field() -> None:
    template = r"%t %p %o %T %k %K %s %v %S %h%%\n\t\r\\ %"
    text = template_formatter(template, b"?")("t", 3, RECORD)
    assert text == b"t 3 7 1234 k 1 ? ? -1 a=1,b=NULL%\n\t\r\\ %"
    plain = template_formatter("%k%K%s%S%h", b"?")("t", 0, Record(None, b"vv", 0))
    assert plain == b"?-1vv2"
    known = "%t %p %o %k %v %s %K %S %T %h"
    with pytest.raises(WrongInput, match=f'^unknown field "%x" in --format; known: {known}$'):
        template_formatter("%x", b"")


class Producer:
    """Notes appended records; every second one fills its batch."""

    def __init__(self, cluster: object, settings: Any) -> None:
        self.settings = settings
        self.appended: list[tuple[Any, ...]] = []

    def append(self, *record: Any) -> bool:
        self.appended.append(record)
        return len(self.appended) % 2 == 0


class Cluster:
    """A cluster with a topic of three partitions, which it creates."""

    def partitions_of(self, topics: list[str], *, create: bool) -> dict[str, int]:
        assert (topics, create) == (["t"], True)
        return {"t": 3}


def test_writer_chooses_a_partition_as_kafkas_default_partitioner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "IdempotentProducer", Producer)
    monkeypatch.setattr(SystemRandomSource, "below", lambda _, count: count - 1)
    monkeypatch.setattr(writing, "wall_ms", lambda: 55)
    cluster: Any = Cluster()
    writer = TopicWriter(cluster, "t", Compression.GZIP)
    made: Any = writer._producer
    assert (made.settings.compression, made.settings.delivery_seconds) == (Compression.GZIP, 30.0)
    header = (("a", b"1"),)
    for record in (
        InputRecord(None, b"0"),  # starts at the drawn partition
        InputRecord(None, b"1", timestamp_ms=0),  # fills its batch
        InputRecord(None, b"2", header),
        InputRecord(b"key", b"3", partition=2),  # fills the batch of another partition
        InputRecord(None, b"4"),
        InputRecord(b"key", b"5"),
        InputRecord(None, b"6", partition=0),
    ):
        writer.write(record)
    by_key = partition_of_key(b"key", 3)
    assert by_key != 0
    assert made.appended == [
        (TopicPartition("t", 2), 55, None, b"0", ()),
        (TopicPartition("t", 2), 0, None, b"1", ()),
        (TopicPartition("t", 0), 55, None, b"2", header),
        (TopicPartition("t", 2), 55, b"key", b"3", ()),
        (TopicPartition("t", 0), 55, None, b"4", ()),
        (TopicPartition("t", by_key), 55, b"key", b"5", ()),
        (TopicPartition("t", 0), 55, None, b"6", ()),
    ]
    with pytest.raises(ClusterRefused, match=r"^topic t has no partition 3: it has 3$"):
        writer.write(InputRecord(None, b"", partition=3))
