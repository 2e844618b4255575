"""`kraft-wire topics` administers our node and Apache Kafka alike, and names what is wrong."""

import json
import socket
from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kraft_wire.cli.topics import partitions as topic_partitions
from kraft_wire.cli.topics.command import app
from kraft_wire.client import BrokerConnection, BrokerConnectionError, split_address
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.apache.node import ApacheNode
from tests.client.test_connection import broker, versions
from tests.server_process import ServerProcess
from tests.waiting import until

Topics = Callable[..., Result]


@pytest.fixture(params=["ours", pytest.param("apache", marks=pytest.mark.java)])
def run(request: pytest.FixtureRequest) -> Topics:
    """The command, pointed at a running broker."""
    broker: ServerProcess | ApacheNode = request.getfixturevalue(
        "module_server" if request.param == "ours" else "apache_node"
    )

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "-b", broker.bootstrap])

    return invoke


def eventually(command: Callable[[], Result], holds: Callable[[Result], bool]) -> Result:
    """Run until the answer is the wanted one: Apache's broker follows a change a moment later."""
    answers: list[Result] = []

    def does_hold() -> bool:
        answers.append(command())
        return holds(answers[-1])

    until(does_hold, lambda: answers[-1].output)
    return answers[-1]


def succeeds(done: Result) -> bool:
    return done.exit_code == 0


def test_topic_is_created_described_configured_and_deleted(run: Topics) -> None:
    created = run("create", "life", "-p", "3", "-r", "1", "-c", "retention.ms=5")
    assert created.exit_code == 0, created.output
    assert created.stdout.startswith("life: 3 partitions, id ")

    eventually(lambda: run("describe", "life"), succeeds)
    listed = json.loads(run("list", "--json").stdout)
    row = next(each for each in listed if each["name"] == "life")
    assert (row["partitions_count"], row["replication_factor"]) == (3, 1)
    assert row["topic_id"] in created.stdout

    (topic,) = json.loads(run("describe", "life", "--json").stdout)
    assert (topic["partitions_count"], topic["replication_factor"]) == (3, 1)
    described = topic["partitions"]
    assert [each["partition"] for each in described] == [0, 1, 2]
    assert all(each["replicas"] == each["isr"] == [each["leader"]] for each in described)

    changed = run("configs", "life", "-c", "cleanup.policy=compact", "-d", "retention.ms")
    assert changed.exit_code == 0
    eventually(
        lambda: run("configs", "life"),
        lambda done: "compact" in done.stdout and "retention.ms" not in done.stdout,
    )
    everything = json.loads(run("configs", "life", "--all", "--json").stdout)
    assert len(everything) == 33
    assert all(each["documentation"] for each in everything)

    assert run("delete", "life").exit_code == 0
    eventually(lambda: run("describe", "life"), lambda done: done.exit_code == 1)


def test_tables_have_a_row_for_each_thing(run: Topics) -> None:
    assert run("create", "tables", "-p", "2").exit_code == 0
    eventually(lambda: run("describe", "tables"), succeeds)
    rows = [line.split() for line in run("list").stdout.splitlines()]
    assert ["tables", "2", "1"] in [row[:3] for row in rows]
    assert len(run("describe", "tables").stdout.splitlines()) == 3
    assert "default" in run("configs", "tables", "--all").stdout
    assert run("delete", "tables").exit_code == 0


def test_partitions_are_the_same_page_by_page_and_by_metadata(
    run: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before KIP-966 tell no eligible leader replicas, and everything else."""
    for name, count in (("paged-a", "3"), ("paged-b", "4")):
        assert run("create", name, "-p", count).exit_code == 0
        eventually(lambda: run("describe", name), succeeds)  # noqa: B023  # called at once
    whole = run("describe", "--json", "paged-b", "paged-a")
    found = json.loads(whole.stdout)
    assert [(each["name"], len(each["partitions"])) for each in found] == [
        ("paged-a", 3),
        ("paged-b", 4),
    ]
    assert all(each["elr"] == each["last_known_elr"] == [] for each in found[0]["partitions"])
    assert not any(each["under_replicated"] for each in found[1]["partitions"])
    monkeypatch.setattr(topic_partitions, "_PAGE_PARTITIONS", 2)
    assert run("describe", "--json", "paged-b", "paged-a").stdout == whole.stdout
    assert len(run("describe").stdout.splitlines()) > 7

    versions = BrokerConnection.version_of

    def before_kip_966(self: BrokerConnection, request: Message) -> int:
        if request.NAME.startswith("DescribeTopicPartitions"):
            raise BrokerConnectionError("not served")
        return versions(self, request)

    monkeypatch.setattr(BrokerConnection, "version_of", before_kip_966)
    older = json.loads(run("describe", "--json", "paged-b", "paged-a").stdout)
    for topic in found:
        for each in topic["partitions"]:
            each |= {"elr": None, "last_known_elr": None}
    assert older == found
    assert run("describe", "paged-a").stdout.splitlines()[1].split()[-2:] == ["?", "?"]
    assert run("delete", "paged-a", "paged-b").exit_code == 0


def test_topic_has_the_replicas_that_were_named(run: Topics) -> None:
    assert run("create", "named", "--replicas", "1", "--replicas", "1").exit_code == 0
    eventually(lambda: run("describe", "named"), succeeds)
    (topic,) = json.loads(run("describe", "named", "--json").stdout)
    assert [each["replicas"] for each in topic["partitions"]] == [[1], [1]]
    moved = run("reassign", "named", "--to", "0=1", "--json")
    assert json.loads(moved.stdout) == {"name": "named", "partitions": {"0": [1]}}
    assert run("reassign", "named", "--to", "1=1").stdout == "named-1: to have 1\n"
    nobody = run("reassign", "named", "--to", "0=77", "--cancel", "1")
    assert nobody.exit_code == 1
    assert sorted(line.split(": ")[1:3] for line in nobody.stderr.splitlines()) == [
        ["named-0", "INVALID_REPLICA_ASSIGNMENT"],
        ["named-1", "NO_REASSIGNMENT_IN_PROGRESS"],
    ]
    assert run("describe", "named", "--under-replicated").stdout.count("\n") == 1
    assert run("delete", "named").exit_code == 0


def test_refusal_of_the_broker_is_one_line_and_exit_code_1(run: Topics) -> None:
    assert run("create", "once", "--partitions", "1").stdout.startswith("once: 1 partition,")
    again = run("create", "once")
    assert again.exit_code == 1
    assert again.stderr == (
        "kraft-wire topics: topic once: TOPIC_ALREADY_EXISTS: Topic 'once' already exists.\n"
    )
    eventually(lambda: run("create", "once", "--if-not-exists"), succeeds)
    assert "INVALID_CONFIG" in run("create", "never-made", "-c", "retention.ms=x").stderr
    assert run("delete", "once", "missing").exit_code == 1
    assert run("delete", "missing", "--if-exists").exit_code == 0
    assert "INVALID_TOPIC_EXCEPTION" in run("create", "a b").stderr


@pytest.mark.parametrize("version", [5, 6])
def test_topics_are_deleted_in_the_last_version_of_names_and_the_first_of_ids(
    run: Topics, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    versions = BrokerConnection.version_of

    def older(self: BrokerConnection, request: Message) -> int:
        return version if isinstance(request, DeleteTopicsRequest) else versions(self, request)

    monkeypatch.setattr(BrokerConnection, "version_of", older)
    assert run("create", f"named-{version}").exit_code == 0
    assert run("delete", f"named-{version}").exit_code == 0
    assert "UNKNOWN_TOPIC_OR_PARTITION" in run("delete", "missing").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "-b", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["list", "-b", "host:none"], "host:none is not an address of the form host:port"),
        (["create", "a", "-c", "b"], '"b" is not of the form key=value'),
        (["create", "a", "--replicas", "1,x"], "'1,x' is not of the form 4,5,6"),
        (["create", "a", "-p", "1", "--replicas", "1"], "--replicas excludes --partitions"),
        (["reassign", "a"], "nothing to do: give --to or --cancel"),
        (["reassign", "a", "--to", "1,2"], "'1,2' is not of the form 0=4,5,6"),
        (["reassign", "a", "--to", "0=2147483648"], "'2147483648' is not of the form 4,5,6"),
        (["reassign", "a", "--to", "0="], "'' is not of the form 4,5,6"),
        (["reassign", "a", "--to", "0=1", "--cancel", "0"], "partition 0 is given twice"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_2(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "offer", "body"),
    [
        (["create", "t"], (19, 2, 2), b"\0" * 8),
        (["configs", "t"], (32, 1, 1), b"\0" * 8),
    ],
    ids=["create", "configs"],
)
def test_an_answer_that_says_nothing_of_the_topic_is_one_line_and_exit_code_2(
    command: list[str], offer: tuple[int, int, int], body: bytes
) -> None:
    refusal = versions(ErrorCode.UNSUPPORTED_VERSION, (18, 0, 0))
    with broker(refusal, versions(0, offer), body) as (address, _):
        done = CliRunner().invoke(app, [*command, "-b", address])
    assert (done.exit_code, done.stderr) == (
        2,
        "kraft-wire topics: the broker's response lacks topic t\n",
    )


@pytest.fixture
def impostor() -> Iterator[Callable[[bytes], str]]:
    """A server that answers its first request with given bytes and closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[Thread] = []

    def serve(answer: bytes) -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(answer)

    def start(answer: bytes) -> str:
        threads.append(Thread(target=serve, args=(answer,)))
        threads[0].start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer like a Kafka broker"),
        (bytes(4), "does not answer like a Kafka broker"),
        ((5).to_bytes(4, "big") + b"\0\0\0\1\0", "sent a malformed response"),
        ((9).to_bytes(4, "big") + b"\0\0\0\2" + bytes(5), "answered out of order"),
    ],
)
def test_peer_that_is_no_broker_is_named(
    impostor: Callable[[bytes], str], answer: bytes, said: str
) -> None:
    done = CliRunner().invoke(app, ["list", "-b", impostor(answer)])
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("host", ("host", 9092)),
        ("host:1", ("host", 1)),
        (":1", ("127.0.0.1", 1)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_address_has_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


def test_port_out_of_range_is_no_address() -> None:
    with pytest.raises(BrokerConnectionError):
        split_address("host:65536")
    with pytest.raises(BrokerConnectionError):
        split_address(f"host:{'9' * 5000}")
