"""`kraft-wire produce` and `consume` against our node and Apache's, beside other clients."""

import json
import signal
from collections.abc import Callable
from itertools import count

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kraft_wire.cli.consume.formats import template_formatter
from kraft_wire.cli.consume.start import read_start
from kraft_wire.cli.output import WrongInput
from kraft_wire.wire.records.record import Record
from tests.apache.tools import run_tool
from tests.cli.conftest import Commands
from tests.waiting import until

NUMBERS = count()
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def new_topic(commands: Commands, partitions: int = 3, *options: str) -> str:
    """A topic that no other test uses."""
    name = f"pc-{next(NUMBERS)}"
    commands.did("topics", "create", name, "-p", str(partitions), *options)
    return name


def read_by_librdkafka(commands: Commands, topic: str, wanted: int) -> list[Row]:
    """Records of all three partitions, in the order of partitions and offsets."""
    consumer = Consumer({"bootstrap.servers": commands.bootstrap, "group.id": "x"})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(3)])
    found = []
    while len(found) < wanted:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        found.append(message)
    consumer.close()
    found.sort(key=lambda each: (each.partition(), each.offset()))
    return [(each.partition(), each.key(), each.value(), each.headers()) for each in found]


@pytest.mark.client
def test_other_client_reads_what_was_written_where_it_would_have_put_it(commands: Commands) -> None:
    topic = new_topic(commands)
    lines = [f"key-{number}:value {number}" for number in range(50)]
    commands.did("produce", topic, "-K", ":", "-z", "zstd", stdin="\n".join(lines).encode())
    ours = read_by_librdkafka(commands, topic, 50)
    theirs = new_topic(commands)
    producer = Producer({"bootstrap.servers": commands.bootstrap, "partitioner": "murmur2_random"})
    for line in lines:
        key, value = line.split(":")
        producer.produce(theirs, key=key, value=value)
    producer.flush()
    assert ours == read_by_librdkafka(commands, theirs, 50)


@pytest.mark.client
def test_headers_nulls_bytes_partition_and_time_arrive(commands: Commands) -> None:
    topic = new_topic(commands)
    commands.did("produce", topic, "-k", "k", "-v", "v", "-H", "a=1", "-p", "1", "--timestamp", "7")
    commands.did("produce", "--topic", topic, "-p", "1", "--null", "NULL", stdin=b"NULL\n")
    binary = {
        "key": {"base64": "/w=="},
        "headers": [{"name": "h", "value": None}],
        "value": {"n": 1},
    }
    commands.did("produce", topic, "--json", "-p", "1", stdin=json.dumps(binary).encode())
    assert read_by_librdkafka(commands, topic, 3) == [
        (1, b"k", b"v", [("a", b"1")]),
        (1, None, None, None),
        (1, b"\xff", b'{"n":1}', [("h", None)]),
    ]
    first, *_ = map(json.loads, commands.did("consume", topic, "--json").splitlines())
    assert first == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp_ms": 7,
        "key": "k",
        "value": "v",
        "headers": [{"name": "a", "value": "1"}],
    }


def test_json_of_consume_copies_a_topic(commands: Commands) -> None:
    topic, copy = new_topic(commands), new_topic(commands)
    commands.did("produce", topic, "-K", ":", "-H", "a=\t", stdin=b"a:1\nb:2\nc:\xff\n")
    shown = commands.did("consume", topic, "--json")
    commands.did("produce", copy, "--json", stdin=shown.encode())
    form = "%p %o %T %k %s %h\n"
    copied, lines = (
        sorted(commands.run("consume", each, "--format", form).stdout.splitlines())
        for each in (copy, topic)
    )
    assert copied == lines, "of each partition, which come in any order"
    assert len(copied) == 3


@pytest.mark.java
def test_properties_print_and_read_what_apaches_tools_do(commands: Commands) -> None:
    topic = new_topic(commands, 1)
    options = ["parse.key=true", "parse.headers=true", "key.separator=|", "null.marker=NUL"]
    properties = [each for text in options for each in ("--reader-property", text)]
    lines = "h1:v1,h2:NUL\tk|v\nNUL\tNUL|v2\nh:x\tk3|NUL\n"
    commands.did("produce", topic, *properties, stdin=lines.encode())
    server = ["--bootstrap-server", commands.bootstrap, "--topic", topic]
    done = run_tool("kafka-console-producer", [*server, *properties], stdin=lines)
    assert done.exit_code == 0, done.text
    option = "--formatter-property"
    names = ["timestamp", "partition", "offset", "headers", "key", "value"]
    shown = [each for name in names for each in (option, f"print.{name}=true")]
    shown += [option, "key.separator=/", option, "null.literal=~"]
    theirs = run_tool(
        "kafka-console-consumer", [*server, *shown, "--from-beginning", "--max-messages", "6"]
    ).stdout
    assert commands.did("consume", topic, *shown) == theirs
    values = [line.split("/", 3)[3] for line in theirs.splitlines()]
    assert values[:3] == values[3:]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ((), range(10)),
        (("--from-beginning", "-e"), range(10)),
        (("-o", "7"), range(7, 10)),
        (("-o", "-2"), range(8, 10)),
        (("-o", "-99"), range(10)),
        (("-o", "end"), ()),
        (("-o", "@1004"), range(4, 10)),
        (("-o", "@1970-01-01T00:00:01.004"), range(4, 10)),
        (("-o", "@99999999"), ()),
        (("-n", "3"), range(3)),
        (("-o", "5", "-n", "3", "--follow"), range(5, 8)),
        (("--timeout-ms", "300"), range(10)),
    ],
)
def test_start_and_end_choose_the_records(
    commands: Commands, options: tuple[str, ...], offsets: range
) -> None:
    topic = ten_records(commands)
    found = commands.did("consume", topic, "--format", "%o ", *options)
    assert list(map(int, found.split())) == list(offsets)


_TEN: dict[str, str] = {}


def ten_records(commands: Commands) -> str:
    """One topic with ten records of times 1000 to 1009, made once for each broker."""
    if commands.bootstrap not in _TEN:
        topic = new_topic(commands, 1, "--config", "retention.ms=-1")  # they are of 1970
        lines = [json.dumps({"value": str(n), "timestamp_ms": 1000 + n}) for n in range(10)]
        commands.did("produce", topic, "--json", stdin="\n".join(lines).encode())
        _TEN[commands.bootstrap] = topic
    return _TEN[commands.bootstrap]


def test_isolation_hides_what_was_aborted_and_what_is_open(commands: Commands) -> None:
    topic = new_topic(commands, 1)
    for number, ends in enumerate(("commit", "abort", "commit", "stays open")):
        producer = Producer(
            {"bootstrap.servers": commands.bootstrap, "transactional.id": f"{topic}{number}"}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        for each in range(2):
            producer.produce(topic, f"{ends} {number}.{each}")
        producer.flush(60)
        if ends == "commit":
            producer.commit_transaction(60)
        elif ends == "abort":
            producer.abort_transaction(60)
    committed = ["commit 0.0", "commit 0.1", "commit 2.0", "commit 2.1"]
    shown = commands.did("consume", topic, "--isolation", "read_committed").splitlines()
    assert shown == committed
    everything = commands.did("consume", topic).splitlines()
    assert sorted({*everything} - {*committed}) == [
        *("abort 1.0", "abort 1.1", "stays open 3.0", "stays open 3.1")
    ]
    producer.abort_transaction(60)


def test_group_goes_on_where_it_committed(commands: Commands) -> None:
    topic, group = new_topic(commands), f"pc-group-{next(NUMBERS)}"
    commands.did("produce", topic, "-K", ":", stdin=b"a:1\nb:2\nc:3\nd:4\n")
    first = commands.did("consume", topic, "-g", group, "-n", "3").split()
    rest = commands.did("consume", topic, "-g", group).split()
    assert sorted(first + rest) == ["1", "2", "3", "4"]
    assert len(first) == 3
    consumer = Consumer({"bootstrap.servers": commands.bootstrap, "group.id": group})
    keys = [TopicPartition(topic, each) for each in range(3)]
    committed = [each.offset for each in consumer.committed(keys, timeout=60)]
    consumer.close()
    assert sum(offset for offset in committed if offset > 0) == 4
    assert commands.did("consume", topic, "-g", group) == ""


@pytest.mark.client
def test_members_share_partitions_with_another_client_and_lose_none(commands: Commands) -> None:
    topic, group = new_topic(commands), f"pc-group-{next(NUMBERS)}"
    other = Consumer(
        {
            "bootstrap.servers": commands.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
        }
    )
    other.subscribe([topic])
    seen: list[str] = []

    def other_has(partitions: int) -> Callable[[], bool]:
        def look() -> bool:
            message = other.poll(0.1)
            if message is not None and message.error() is None:
                seen.append(message.value().decode())
            return len(other.assignment()) == partitions

        return look

    until(other_has(3), lambda: str(other.assignment()))
    with commands.start("consume", topic, "-g", group, "--follow") as process:
        until(lambda: other_has(1)() or other_has(2)(), lambda: str(other.assignment()))
        lines = "\n".join(f"k{number}:{number}" for number in range(100))
        commands.did("produce", topic, "-K", ":", stdin=lines.encode())
        counts = [len(other.assignment())]
        until(lambda: other_has(counts[0])() and len(seen) >= 20, lambda: str(seen))
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0, printed
    until(lambda: other_has(3)() and len({*seen, *printed.split()}) == 100, lambda: str(seen))
    other.close()
    assert printed.split(), "its partitions had records"


def test_following_shows_what_arrives(commands: Commands) -> None:
    topic = new_topic(commands)
    with commands.start("consume", topic, "--follow", "-n", "2") as process:
        commands.did("produce", topic, "-v", "one")
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n", "printed as soon as it is there"
        commands.did("produce", topic, "-v", "two")
        assert process.communicate(timeout=60)[0] == "two\n"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["consume", "no-such"], 1, "consume: topic 'no-such' does not exist at "),
        (["consume"], 2, "consume: give a topic"),
        (
            ["consume", "t", "-o", "x"],
            2,
            'consume: "x" is not an offset: earliest, latest, a number',
        ),
        (["consume", "t", "-o", "@x"], 2, 'consume: "x" is not a time'),
        (["consume", "t", "--format", "%z"], 2, 'consume: unknown field "%z" in --format'),
        (["consume", "t", "--json", "--format", "%k"], 2, "consume: give one of --json"),
        (["consume", "t", "--property", "print.kee=true"], 2, 'did you mean "print.key"?'),
        (["consume", "t", "-g", "g", "-p", "0"], 2, "consume: --partition is not for --group"),
        (["produce"], 2, "produce: give a topic"),
        (["produce", "a", "--topic", "b"], 2, "produce: two topics are given: a and b"),
        (["produce", "t", "-H", "x"], 2, 'produce: "x" is not of the form key=value'),
    ],
)
def test_what_cannot_be_done_is_one_line(
    module_server: object, arguments: list[str], code: int, line: str
) -> None:
    done = Commands(module_server).run(*arguments)  # type: ignore[arg-type]  # a fixture's type
    assert done.returncode == code, done
    (said,) = done.stderr.decode().splitlines()
    assert line in said


def test_lines_before_a_wrong_one_are_written_and_it_is_named(commands: Commands) -> None:
    topic = new_topic(commands, 1)
    done = commands.run("produce", topic, "-K", ":", stdin=b"a:1\nb:2\nc\n")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("kraft-wire produce: line 3: no key separator ':' in")
    assert commands.did("consume", topic).split() == ["1", "2"]
    done = commands.run("produce", topic, "-p", "1", "-v", "x")
    assert (done.returncode, b"has no partition 1" in done.stderr) == (1, True)


def test_template_fields_and_escapes() -> None:
    record = Record(None, b"v", 5, 9, [("a", b"1"), ("b", None)])
    form = template_formatter(r"%t/%p/%o/%k/%K/%s/%v/%S/%T/%h/%%\t\n\\", b"-")
    assert form("t", 2, record) == b"t/2/5/-/-1/v/v/1/9/a=1,b=NULL/%\t\n\\"


@pytest.mark.parametrize("text", ["", "1.5", "--1", "@", "now", "1" * 20])
def test_wrong_start_is_refused(text: str) -> None:
    with pytest.raises(WrongInput):
        read_start(text)
