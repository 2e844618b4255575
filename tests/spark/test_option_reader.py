"""Options of both formats and of the sink: every value that is read, every line of a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kraft_wire.client.cluster import ClusterSettings
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.client.producing import ProduceSettings
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftlog.options import LogOptions, parse_log_options
from kraft_wire.spark.kraftwire.offsets import (
    from_nested,
    parse_assign,
    parse_offsets,
    to_nested,
)
from kraft_wire.spark.kraftwire.wire_options import Bound, WireOptions, parse_wire_options
from kraft_wire.spark.kraftwire.wire_sink import Sink, parse_sink
from kraft_wire.spark.option_reader import (
    OptionReader,
    parse_list,
    parse_not_negative,
    parse_pattern,
    parse_positive,
)
from kraft_wire.wire.compression.codecs import Compression

LARGEST = (1 << 63) - 1
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
WIRE = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}
CLUSTER = ClusterSettings(("a:1",))
STARTING = "startingOffsets"


def line_of(call: Callable[[], object]) -> str:
    with pytest.raises(PipelineError) as refused:
        call()
    return str(refused.value)


def reader(**options: str) -> OptionReader:
    return OptionReader(options, "form")


def test_reader_knows_names_in_any_case() -> None:
    found = reader(MaxRows="7", Word=" Two ", On=" TRUE ", kafka_Acks="1", kafkas="2")
    assert (found.has("maxRows"), found.has("maxrow")) == (True, False)
    assert found.get("MAXROWS", int) == 7
    assert found.get("other", int) is None
    assert found.one_of("word", ("one", "two"), "one") == "two"
    assert found.one_of("other", ("one", "two"), "one") == "one"
    assert (found.flag("on"), found.flag("off"), found.flag("off", default=True)) == (
        *(True, False),
        True,
    )
    assert found.beginning("kafka_") == {"acks": "1"}
    found.refuse_unknown(("maxRows", "word", "on", "kafkas"), but="kafka_")
    found.refuse_several(("maxRows", "other"))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: reader(maxRow="7").refuse_unknown(("first", "maxRows", "maxRanks")),
            "option 'maxrow' does not exist in form; did you mean maxRows?",
        ),
        (
            lambda: reader(kafka_x="7").refuse_unknown(("first", "maxRows")),
            "option 'kafka_x' does not exist in form; known: first, maxRows",
        ),
        (
            lambda: reader(first="1", zzz="7").refuse_unknown(("first",), but="kafka_"),
            "option 'zzz' does not exist in form; known: first",
        ),
        (
            lambda: reader(c="1", A="1").refuse_several(("a", "b", "C")),
            "options a and C exclude one another: give one",
        ),
        (
            lambda: reader(Rows="-1").get("rows", parse_positive),
            "option rows: '-1' is not a number of 1 or more",
        ),
        (
            lambda: reader(word=" Three ").one_of("word", ("one", "two"), "one"),
            "option word: 'three' is none of one, two",
        ),
        (lambda: reader(on="1").flag("on"), "option on: '1' is none of true, false"),
    ],
)
def test_reader_refuses_in_one_line(call: Callable[[], object], line: str) -> None:
    assert line_of(call) == line


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (parse_list, " a, ,b ,a", ("a", "b", "a")),
        (parse_list, " , ", "names no topic"),
        (parse_pattern, "a.*", "a.*"),
        (
            parse_pattern,
            "(",
            "is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (parse_not_negative, " 0 ", 0),
        (parse_not_negative, str(LARGEST), LARGEST),
        (parse_not_negative, str(LARGEST + 1), f"is more than {LARGEST}"),
        (parse_not_negative, "-1", "is not a number of 0 or more"),
        (parse_not_negative, "", "is not a number of 0 or more"),
        (parse_positive, " 1 ", 1),
        (parse_positive, str(LARGEST), LARGEST),
        (parse_positive, str(LARGEST + 1), f"is more than {LARGEST}"),
        (parse_positive, "0", "is not a number of 1 or more"),
        (parse_positive, "x", "is not a number of 1 or more"),
    ],
)
def test_values_are_parsed_or_refused(
    parse: Callable[[str], object], text: str, found: object
) -> None:
    if isinstance(found, str) and found != text:
        with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
            parse(text)
        assert str(refused.value) == found
    else:
        assert parse(text) == found


def test_offsets_and_partitions_have_the_connectors_forms() -> None:
    text = f'{{"t":{{"1":-2,"0":-1}},"s":{{"10":{LARGEST},"9":0}}}}'
    found = parse_offsets("o", text)
    s9, s10 = TopicPartition("s", 9), TopicPartition("s", 10)
    assert found == {T1: -2, T0: -1, s10: LARGEST, s9: 0}
    nested = to_nested(found)
    assert str(nested) == f"{{'s': {{'9': 0, '10': {LARGEST}}}, 't': {{'0': -1, '1': -2}}}}"
    assert from_nested(nested) == found
    assert parse_assign("a", '{"t":[1,0,1],"s":[]}') == frozenset({T0, T1})


WANTED = 'JSON such as {"orders":{"0":23,"1":-2}}'
NUMBERS = "a partition's number and an offset >= -2 are wanted"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", f"'[]' is no {WANTED}"),
        ("{", f"'{{' is no {WANTED}: Expecting property name enclosed in double quotes: "),
        ('{"t":[0]}', f"topic 't' has no partitions, {WANTED} has"),
        ('{"t":{"0":-3}}', f"t-0 at -3: {NUMBERS}"),
        ('{"t":{"0":true}}', f"t-0 at True: {NUMBERS}"),
        ('{"t":{"0":"1"}}', f"t-0 at '1': {NUMBERS}"),
        (f'{{"t":{{"0":{LARGEST + 1}}}}}', f"t-0 at {LARGEST + 1}: {NUMBERS}"),
        ('{"t":{"-1":1}}', f"t--1 at 1: {NUMBERS}"),
        ('{"t":{"²":1}}', f"t-² at 1: {NUMBERS}"),
    ],
)
def test_offsets_are_refused_with_what_is_wanted(text: str, line: str) -> None:
    assert line_of(lambda: parse_offsets("o", text)).startswith(f"option o: {line}")


@pytest.mark.parametrize("text", ['{"t":[true]}', '{"t":[0,-1]}', '{"t":[0.0]}', '{"t":"0"}'])
def test_partitions_are_refused_with_what_is_wanted(text: str) -> None:
    line = "option a: 't' needs a list of partitions, JSON such as {\"orders\":[0,1]}"
    assert line_of(lambda: parse_assign("a", text)) == line


def test_every_option_of_a_log_is_taken() -> None:
    given = {
        "paths": '["/a/","file:///b%20c","/"]',
        "view": "batches",
        "topicsPattern": "a.*",
        "startingOffsets": ' {"t":{"0":5}} ',
        "endingOffsets": '{"t":{"0":9}}',
        "isolationLevel": "read_committed",
        "includeHeaders": "true",
        "includeBatchFields": "true",
        "onCorrupt": "skip",
        "maxOffsetsPerTrigger": "11",
        "asOfOffset": "0",
        "image": "snapshot",
        "maxPartitionBytes": "2 KB",
        "openCostInBytes": "0",
        "minPartitions": "12",
        "arrowBatchRows": "13",
        "pushdown": "true",
        "failOnDataLoss": "false",
    }
    assert parse_log_options(given) == LogOptions(
        paths=("/a", "/b c", "/"),
        view="batches",
        topics_pattern="a.*",
        starting_offsets={T0: 5},
        ending_offsets={T0: 9},
        is_start_explicit=True,
        read_committed=True,
        include_headers=True,
        include_batch_fields=True,
        on_corrupt="skip",
        offsets_per_trigger_max=11,
        as_of_offset=0,
        image="snapshot",
        partition_bytes_max=2048,
        open_cost_bytes=0,
        partitions_min=12,
        arrow_batch_rows=13,
        pushdown=True,
        fail_on_data_loss=False,
    )
    physical = parse_log_options({"path": "/a", "topics": "b,a", STARTING: "Physical"})
    assert physical == LogOptions(
        ("/a",), topics=("b", "a"), starting="physical", is_start_explicit=True
    )
    earliest = {"path": "/a", STARTING: "EARLIEST", "endingOffsets": "Latest"}
    assert parse_log_options(earliest) == LogOptions(("/a",), is_start_explicit=True)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("7", 7), ("7B", 7), ("2k", 2048), ("2 Mb", 2 << 20), ("1g", 1 << 30), ("1TB", 1 << 40)],
)
def test_sizes_have_units_of_1024(text: str, size_bytes: int) -> None:
    found = parse_log_options({"path": "/", "maxPartitionBytes": text, "openCostInBytes": text})
    assert (found.partition_bytes_max, found.open_cost_bytes) == (size_bytes, size_bytes)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"maxPartitionBytes": "0"}, "maxPartitionBytes: '0' is not a size such as 128MB"),
        ({"openCostInBytes": "1x"}, "openCostInBytes: '1x' is not a size such as 128MB"),
        ({STARTING: "new"}, "startingOffsets: 'new' is neither earliest nor physical nor JSON"),
        ({"endingOffsets": "end"}, "endingOffsets: 'end' is neither latest nor JSON"),
        (
            {"path": "s3://x"},
            "path: 's3://x' is not a path of this machine; mount it and give the path",
        ),
    ],
)
def test_options_of_a_log_are_refused(options: dict[str, str], line: str) -> None:
    assert line_of(lambda: parse_log_options({"path": "/", **options})) == f"option {line}"


def wire(streaming: bool = False, **options: str) -> WireOptions:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return parse_wire_options({**WIRE, **named}, streaming=streaming)


def test_every_option_of_topics_is_taken() -> None:
    begin, end = Bound(STARTING, word="earliest"), Bound("endingOffsets", word="latest")
    plain = WireOptions(CLUSTER, FetchSettings(), begin, end, topics=("t",))
    assert wire() == plain
    stream = WireOptions(CLUSTER, FetchSettings(), Bound(STARTING, word="latest"), end, ("t",))
    assert wire(streaming=True) == stream
    given = {
        "kafka.bootstrap.servers": " a:1 , ,[::1]:2",
        "kafka.client.id": "me",
        "kafka.request.timeout.ms": "1500",
        "kafka.default.api.timeout.ms": "2500",
        "kafka.max.partition.fetch.bytes": "1",
        "kafka.fetch.max.bytes": "2",
        "kafka.fetch.min.bytes": "0",
        "kafka.fetch.max.wait.ms": "4",
        "kafka.isolation.level": " READ_COMMITTED ",
        "kafkaConsumer.pollTimeoutMs": "500",
        "assign": '{"t":[0]}',
        "startingOffsetsByTimestamp": '{"t":{"0":7}}',
        "endingTimestamp": "8",
        "startingOffsetsByTimestampStrategy": "latest",
        "failOnDataLoss": "false",
        "minPartitions": "3",
        "maxRecordsPerPartition": "4",
        "maxOffsetsPerTrigger": "6",
        "minOffsetsPerTrigger": "5",
        "maxTriggerDelay": "0",
        "includeHeaders": "true",
        "arrowBatchRows": "9",
    }
    assert parse_wire_options(given, streaming=False) == WireOptions(
        cluster=ClusterSettings(("a:1", "[::1]:2"), "me", 1.5, 2.5),
        fetch=FetchSettings(1, 2, 0, 4, True, 0.5),
        starting=Bound("startingOffsetsByTimestamp", timestamps={T0: 7}),
        ending=Bound("endingTimestamp", timestamp=8),
        assign=frozenset({T0}),
        latest_if_no_later_record=True,
        fail_on_data_loss=False,
        partitions_min=3,
        partition_records_max=4,
        trigger_offsets_max=6,
        trigger_offsets_min=5,
        trigger_delay_ms=0,
        include_headers=True,
        arrow_batch_rows=9,
    )


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({STARTING: " Earliest "}, Bound(STARTING, word="earliest")),
        ({STARTING: ' {"t":{"0":3}}'}, Bound(STARTING, offsets={T0: 3})),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":0}}', STARTING: "earliest"},
            Bound("startingOffsetsByTimestamp", timestamps={T0: 0}),
        ),
        (
            {"startingTimestamp": "0", "startingOffsetsByTimestamp": '{"t":{"0":3}}'},
            Bound("startingTimestamp", timestamp=0),
        ),
    ],
)
def test_first_spelling_of_a_bound_takes_precedence(options: dict[str, str], bound: Bound) -> None:
    assert wire(**options).starting == bound
    ending = {name.replace("starting", "ending"): value for name, value in options.items()}
    if bound.word is None:
        name = bound.name.replace("starting", "ending")
        other = Bound(name, None, bound.offsets, bound.timestamps, bound.timestamp)
        assert wire(**ending).ending == other
        line = (
            f"option {next(n for n in ORDER if n in ending)} is not for streams, which do not end"
        )
        assert line_of(lambda: wire(streaming=True, **ending)) == line


ORDER = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        ("1500us", 2),
        ("3", 3),
        ("3ms", 3),
        ("2 s", 2_000),
        ("2M", 120_000),
        ("2min", 120_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
    ],
)
def test_durations_have_sparks_units(text: str, delay_ms: int) -> None:
    assert wire(maxTriggerDelay=text).trigger_delay_ms == delay_ms
    assert wire().trigger_delay_ms == 900_000


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon' is not a duration such as 15m"),
        (
            {"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
            "minOffsetsPerTrigger: 3 is more than maxOffsetsPerTrigger 2",
        ),
        ({STARTING: "latest"}, "startingOffsets: a batch query cannot begin at latest"),
        (
            {STARTING: '{"t":{"0":1,"1":-1}}'},
            "startingOffsets: a batch query cannot begin at latest for t-1",
        ),
        ({"endingOffsets": "earliest"}, "endingOffsets: a query cannot end at earliest"),
        (
            {"endingOffsets": '{"t":{"0":1,"1":-2}}'},
            "endingOffsets: a query cannot end at earliest for t-1",
        ),
        ({STARTING: "new"}, "startingOffsets: 'new' is neither earliest nor latest nor JSON"),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":0,"1":-1}}'},
            "startingOffsetsByTimestamp: t-1 has a time before 1970",
        ),
        (
            {"kafka_bootstrap_servers": " , "},
            "kafka.bootstrap.servers is missing: give host:port,…",
        ),
        (
            {"kafka_bootstrap_servers": "a:1,a:b"},
            "kafka.bootstrap.servers: 'a:b' is not an address host:port",
        ),
        (
            {"kafka_isolation_level": "x"},
            "kafka.isolation.level: 'x' is none of read_uncommitted, read_committed",
        ),
        (
            {"kafka_fetch_max_bytes": "0"},
            "kafka.fetch.max.bytes: '0' is not a number of 1 or more",
        ),
        (
            {"kafka_fetch_max_bytes": "2147483648"},
            "kafka.fetch.max.bytes: '2147483648' is more than 2147483647",
        ),
        (
            {"kafka_group_id": "g", "kafka_enable_auto_commit": "true"},
            "kafka.enable.auto.commit is not supported: offsets are kept in the checkpoint and"
            " committed nowhere",
        ),
        (
            {"kafka_transactional_id": "x"},
            "kafka.transactional.id is not supported: the sink writes idempotently, without"
            " transactions",
        ),
        ({"kafka_fetch_max_byte": "1"}, "'kafka.fetch.max.byte' does not exist; did you mean"),
        ({"kafka_zzz": "1"}, "'kafka.zzz' does not exist; Kafka's clients have no such key"),
    ],
)
def test_options_of_topics_are_refused(options: dict[str, str], line: str) -> None:
    assert line_of(lambda: wire(**options)).startswith(f"option {line}")


def test_largest_number_and_the_choice_of_topics() -> None:
    assert wire(kafka_fetch_max_bytes="2147483647").fetch.fetch_bytes_max == 2147483647
    assert wire(minOffsetsPerTrigger="2", maxOffsetsPerTrigger="2").trigger_offsets_min == 2
    servers = {"kafka.bootstrap.servers": "a:1"}
    assert line_of(lambda: parse_wire_options(servers, streaming=False)) == (
        "one of the options subscribe, subscribePattern, assign must say what is read"
    )
    pattern = parse_wire_options({**servers, "subscribePattern": "a.*"}, streaming=False)
    assert (pattern.topics, pattern.topics_pattern, pattern.assign) == (None, "a.*", None)


HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
ROW = StructType(
    [
        StructField("key", StringType()),
        StructField("value", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)


def sink(schema: StructType = ROW, **options: str) -> Sink:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return parse_sink({"kafka.bootstrap.servers": "a:1", **named}, schema)


def test_every_key_of_the_sink_is_taken() -> None:
    plain = ProduceSettings(record_bytes_max=1_048_576)
    assert sink() == Sink(CLUSTER, plain, None)
    assert sink(topic=" x ") == Sink(CLUSTER, plain, "x")
    given = {
        "kafka_compression_type": " ZSTD ",
        "kafka_acks": "1",
        "kafka_batch_size": "2",
        "kafka_max_request_size": "3",
        "kafka_delivery_timeout_ms": "4500",
    }
    assert sink(**given).produce == ProduceSettings(
        compression=Compression.ZSTD,
        batch_bytes=2,
        record_bytes_max=3,
        is_idempotent=False,
        acks=1,
        delivery_seconds=4.5,
    )
    kinds: list[tuple[dict[str, str], tuple[bool, int]]] = [
        ({"kafka_acks": "-1"}, (True, -1)),
        ({"kafka_acks": "All"}, (True, -1)),
        ({"kafka_enable_idempotence": "false"}, (False, -1)),
        ({"kafka_acks": "1", "kafka_enable_idempotence": "false"}, (False, 1)),
    ]
    for options, found in kinds:
        settings = sink(**options).produce
        assert (settings.is_idempotent, settings.acks) == found


def without(name: str) -> StructType:
    return StructType([field for field in ROW.fields if field.name != name])


def changed(name: str, kind: Any) -> StructType:
    return StructType([*without(name).fields, StructField(name, kind)])


CAST = "cast it before"


@pytest.mark.parametrize(
    ("schema", "options", "line"),
    [
        (
            without("value"),
            {},
            "column value is missing; there are key, topic, partition, headers",
        ),
        (StructType(), {}, "column value is missing; there are none"),
        (without("topic"), {}, "option topic is missing, and there is no column topic"),
        (
            changed("value", IntegerType()),
            {},
            f"column value is int, not string or binary: {CAST}",
        ),
        (changed("topic", BinaryType()), {}, f"column topic is binary, not string: {CAST}"),
        (changed("partition", LongType()), {}, f"column partition is bigint, not int: {CAST}"),
        (
            ROW,
            {"kafka_compression_type": "x"},
            "option kafka.compression.type: 'x' is none of none, gzip, snappy, lz4, zstd",
        ),
        (ROW, {"kafka_acks": "0"}, "option kafka.acks: '0' is none of all, -1, 1"),
        (
            ROW,
            {"kafka_acks": "1", "kafka_enable_idempotence": "true"},
            "option kafka.acks: '1' and enable.idempotence exclude one another",
        ),
        (
            ROW,
            {"tpic": "x"},
            "option 'tpic' does not exist in the sink of kraftwire; did you mean topic?",
        ),
    ],
)
def test_sink_is_refused(schema: StructType, options: dict[str, str], line: str) -> None:
    assert line_of(lambda: sink(schema, **options)) == line
