"""`kraft-wire topics` administers our node and Apache Kafka alike, and names what is wrong."""

import json
import socket
from collections.abc import Callable, Iterator
from threading import Thread
from time import monotonic, sleep

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kraft_wire.cli.topics import app
from kraft_wire.client import CannotTalk, split_address
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

Topics = Callable[..., Result]

FOLLOWED_WITHIN_S = 20


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
    deadline = monotonic() + FOLLOWED_WITHIN_S
    while not holds(done := command()):
        assert monotonic() < deadline, done.output
        sleep(0.05)
    return done


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

    described = json.loads(run("describe", "life", "--json").stdout)[0]["partitions"]
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


def test_refusal_of_the_broker_is_one_line_and_exit_code_1(run: Topics) -> None:
    assert run("create", "once").exit_code == 0
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "-b", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["list", "-b", "host:none"], "host:none is not an address of the form host:port"),
        (["create", "a", "-c", "b"], "'b' is not of the form key=value"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_2(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


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
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer as a Kafka broker does"),
        (bytes(4), "does not answer as a Kafka broker does"),
        ((5).to_bytes(4, "big") + b"\0\0\0\1\0", "sent a broken answer"),
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
    with pytest.raises(CannotTalk):
        split_address("host:65536")
    with pytest.raises(CannotTalk):
        split_address(f"host:{'9' * 5000}")
