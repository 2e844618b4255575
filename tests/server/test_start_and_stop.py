"""How the process begins and ends: one clear line for each mistake, nobody left waiting."""

import gc
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.node.event_log import EventLog
from kraft_wire.server.process import ServerProcess as ThisProcess
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.server.wire_client import WireClient, has_read_all, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import HANG_S

COULD_NOT_RUN = 2
LONG_MS = 3_600_000
"""Longer than any stop may take."""


def refused(directory: Path, *arguments: str, **environment: str) -> str:
    """Start a server that must not run; return its one line."""
    program = str(Path(sys.executable).parent / "kraft-wire")
    done = subprocess.run(
        [program, "server", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=HANG_S,
    )
    assert done.returncode == COULD_NOT_RUN, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("kraft-wire server: ")
    return line


def test_a_port_in_use_is_refused_before_data_is_touched(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refused(tmp_path, "--listen", address)
    assert f"cannot listen on PLAINTEXT://{address}: Address already in use" in line
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("# mine\nnum.partitions=none\n")
    line = refused(tmp_path, "a.properties")
    assert "a.properties:2: num.partitions=none: " in line
    assert "KAFKA_NUM_PARTITIONS: num.partitions=x" in refused(tmp_path, KAFKA_NUM_PARTITIONS="x")
    assert "--override: num.partitions=-1" in refused(tmp_path, "--override", "num.partitions=-1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], 'unknown option "--nonsense"'),
        (["--data"], "--data requires a value"),
        (["--override", "num.partitions"], "is not KEY=VALUE"),
        (["one", "two"], "'two' is a second file"),
        (["missing.properties"], "missing.properties: No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    assert words in refused(tmp_path, *arguments)


def configured(directory: Path) -> Path:
    """A file that names a directory, which nobody formatted."""
    properties = directory / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={directory}/unformatted\n"
        "controller.quorum.voters=1@127.0.0.1:9093\n"
    )
    return properties


def test_a_configured_directory_must_be_formatted(tmp_path: Path) -> None:
    line = refused(tmp_path, str(configured(tmp_path)))
    assert f"log directory {tmp_path}/unformatted is not formatted" in line
    assert "kraft-wire format -t CLUSTER_ID -c server.properties" in line


def test_a_locked_directory_is_refused(server_process: ServerProcess, tmp_path: Path) -> None:
    line = refused(tmp_path, "--data", str(server_process.data), "--listen", "127.0.0.1:0")
    assert f"log directory {server_process.data} is locked" in line


def test_a_foreign_cluster_id_or_node_id_is_refused(
    server_process: ServerProcess, tmp_path: Path
) -> None:
    cluster_id = server_process.ready["cluster_id"]
    server_process.stop()
    start = ["--data", str(server_process.data), "--listen", "127.0.0.1:0"]
    line = refused(tmp_path, *start, CLUSTER_ID="AAAAAAAAAAAAAAAAAAAAAQ")
    assert f"belongs to cluster {cluster_id}, expected AAAAAAAAAAAAAAAAAAAAAQ" in line
    assert "belongs to node 1, this is node 2" in refused(
        tmp_path, *start, "--override", "node.id=2"
    )


def test_an_unusable_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refused(tmp_path, "--data", f"{tmp_path}/file/data", "--listen", "127.0.0.1:0")
    assert f"log directory {tmp_path}/file/data cannot be used" in line


def test_asserts_cannot_be_switched_off(tmp_path: Path) -> None:
    assert "asserts are off" in refused(tmp_path, "--listen", "127.0.0.1:0", PYTHONOPTIMIZE="1")


def fetch_request(topic: str, *, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def test_sigterm_answers_a_waiting_fetch_and_leaves_a_clean_mark(
    server_process: ServerProcess,
) -> None:
    with WireClient(server_process.bootstrap) as client:
        client.topic("waiting")
        header = client.send(fetch_request("waiting", max_wait_ms=LONG_MS), 11)
        assert has_read_all(server_process.bootstrap), "the fetch waits: the stop has to answer it"
        assert server_process.stop() == 0
        assert client.receive(FetchResponse, header).error_code == 0
        assert client.is_closed()
    assert (server_process.data / ".kafka_cleanshutdown").exists()
    assert "stopped clean=True" in server_process.log.read_text()


def test_sigterm_waits_only_so_long_for_a_client_that_reads_no_answers(
    server_process: ServerProcess,
) -> None:
    with WireClient(server_process.bootstrap) as client:
        topic = client.topic("unread")
        client.call(produce_request(topic, one_batch(bytes(900_000))), 8, ProduceResponse)
        for _ in range(40):  # more than the buffers of both sockets hold
            client.send(fetch_request("unread", max_wait_ms=0), 11)
        assert has_read_all(server_process.bootstrap)
        assert server_process.stop() == 0
    assert "stopped clean=True" in server_process.log.read_text()


def test_what_was_acknowledged_is_there_after_a_kill(server_process: ServerProcess) -> None:
    with WireClient(server_process.bootstrap) as client:
        topic = client.topic("kept")
        for number in range(20):
            client.call(produce_request(topic, one_batch(b"%d" % number)), 8, ProduceResponse)
    server_process.kill()
    assert not (server_process.data / ".kafka_cleanshutdown").exists()
    server_process.start()
    with WireClient(server_process.bootstrap) as client:
        answer = client.call(fetch_request("kept", max_wait_ms=0), 11, FetchResponse)
        partition = answer.responses[0].partitions[0]
        assert partition.high_watermark == 20
        again = client.topic("kept")
        assert again.topic_id == topic.topic_id
        assert again.partitions[0].leader_epoch > topic.partitions[0].leader_epoch


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", ["fastest", "asyncio"])
def test_a_signal_before_the_loop_runs_stops_the_server(
    tmp_path: Path, number: signal.Signals, loop: str
) -> None:
    """The moment between the ready file and the loop, which uvloop's own handlers forget."""
    program = (
        "import os, sys\n"
        f"if {loop == 'asyncio'}: sys.modules['uvloop'] = None\n"
        "from kraft_wire.server.serve import Serving\n"
        "run = Serving.run\n"
        f"Serving.run = lambda self: (os.kill(os.getpid(), {int(number)}), run(self))\n"
        "from kraft_wire.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "server", "--listen", "127.0.0.1:0", "--data", "data"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done
    events = [line.split(maxsplit=3)[3] for line in done.stderr.splitlines()]
    last = [each for each in events if each.startswith(("stopping", "stopped"))]
    assert last == [f"stopping signal={number.name}", "stopped clean=True"]


def test_a_ready_file_that_cannot_be_made_is_refused_before_data_is_touched(
    tmp_path: Path,
) -> None:
    listen = ["--listen", "127.0.0.1:0"]
    assert "--ready-file .: Is a directory" in refused(tmp_path, *listen, "--ready-file", ".")
    missing = refused(tmp_path, *listen, "--ready-file", "no/file")
    assert "--ready-file no/file: No such directory" in missing
    assert list(tmp_path.iterdir()) == []


def test_the_ready_file_of_a_killed_node_is_gone_before_clients_are_taken(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_text("of another time")
    line = refused(tmp_path, str(configured(tmp_path)), "--ready-file", str(ready))
    assert "not formatted" in line
    assert ready.exists(), "a node that may not start leaves the file of a running one"
    program = (
        "import os, sys\n"
        "from kraft_wire.server.serve import Serving\n"
        "Serving.listen = lambda self, ready: os._exit(os.path.exists('ready'))\n"
        "from kraft_wire.cli.main import main\n"
        "main()\n"
    )
    start = ["server", "--listen", "127.0.0.1:0", "--data", "data", "--ready-file", "ready"]
    done = subprocess.run([sys.executable, "-c", program, *start], cwd=tmp_path, timeout=HANG_S)
    assert done.returncode == 0


def test_a_node_with_an_authorizer_refuses_and_says_so(tmp_path: Path) -> None:
    """SEC-ACL-13: the line of the denial has Kafka's words."""
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with ServerProcess(tmp_path, overrides={"authorizer.class.name": standard}) as server:
        with WireClient(server.bootstrap) as client:
            topics = [MetadataRequestTopic(name="t")]
            answer = client.call(MetadataRequest(topics=topics), 12, MetadataResponse)
        assert [topic.error_code for topic in answer.topics] == [29]
        log = server.log.read_text()
    assert "INFO authorizer authorization_denied" in log
    assert "Principal = User:ANONYMOUS is Denied operation = DESCRIBE from host = 127.0.0.1" in log


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize("instead", ["&-", "/dev/full"])
def test_a_server_without_output_serves_and_stops(
    tmp_path: Path, stream: int, instead: str
) -> None:
    class WithoutOutput(ServerProcess):
        def command(self) -> list[str]:
            return ["sh", "-c", f"exec {shlex.join(super().command())} {stream}>{instead}"]

    with WithoutOutput(tmp_path) as server:
        assert server.stop() == 0


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    overrides = {"log.flush.interval.messages": "1"}
    with ServerProcess(tmp_path, overrides=overrides) as server:
        pid = server.pid
        with WireClient(server.bootstrap) as client:
            client.topic("any")
            client.sock.sendall(b"\0\0\x01\0")  # a frame that never becomes whole
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGTERM)
        assert server.stop() in (0, 130)


class Exited(Exception):
    """The process would have ended."""


@pytest.mark.parametrize("log_fails", [False, True])
def test_second_signal_is_logged_and_exits_whether_or_not_the_log_can_be_written(
    monkeypatch: pytest.MonkeyPatch, log_fails: bool
) -> None:
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        if log_fails:
            raise ValueError("a write within a write")

    def leave(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: None)
    process, stops = ThisProcess(), []
    process.log = EventLog(write)
    process._signalled(signal.SIGTERM, lambda: stops.append("gracefully"))
    assert (lines, stops) == ([], ["gracefully"])
    with pytest.raises(Exited, match="130"):
        process._signalled(signal.SIGINT, lambda: stops.append("again"))
    assert lines == ["WARN server stopped_at_once signal=SIGINT\n"]
    assert stops == ["gracefully"]


def test_a_durable_topic_is_acknowledged_after_its_flush(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, overrides={"log.flush.interval.messages": "1"}) as server,
        WireClient(server.bootstrap) as client,
    ):
        topic = client.topic("durable")
        for number in range(5):
            response = client.call(
                produce_request(topic, one_batch(b"%d" % number)), 8, ProduceResponse
            )
            answer = response.responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, number)
        assert "survives power loss" in server.log.read_text()


@pytest.mark.parametrize("name", ["CLUSTER_ID", "KAFKA_CLUSTER_ID"])
def test_cluster_id_of_the_environment_is_that_of_a_new_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "kWjudgeAAAAAAAAAAAAAAA")
    with ServerProcess(tmp_path) as server:
        kept = (server.data / "meta.properties").read_text()
    assert "cluster.id=kWjudgeAAAAAAAAAAAAAAA\n" in kept
