"""`kraft-wire server --ephemeral`: a Kafka for tests in any language, with rules over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process import KraftWireServer
from tests.testing.clients import consume, produce

pytestmark = pytest.mark.client


class EphemeralServer(KraftWireServer):
    """The command, in a directory that must stay as it is."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory / "log", directory / "ready.json")
        self.directory_of_work = directory / "work"
        self.directory_of_work.mkdir()
        self.options = options

    def arguments(self) -> list[str]:
        return ["--listen", "127.0.0.1:0", "--ephemeral", *self.options]

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return self.ready["listeners"]["PLAINTEXT"]

    def http(self, method: str, path: str, document: object = None) -> tuple[int, object]:
        """Ask the control port; return the status and what it says."""
        body = None if document is None else json.dumps(document).encode()
        url = f"http://{self.ready['control']}{path}"
        try:
            request = urllib.request.Request(url, body, method=method)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EphemeralServer]:
    with EphemeralServer(tmp_path, "--control", "127.0.0.1:0") as running:
        yield running


def test_ephemeral_server_writes_no_file_but_the_ready_file(tmp_path: Path) -> None:
    server = EphemeralServer(tmp_path)
    with server:
        produce(server.bootstrap, "orders", b"a")
        assert consume(server.bootstrap, "orders", 1) == [b"a"]
        assert server.ready["log_dirs"] == []
        assert server.directory_of_work is not None
        assert list(server.directory_of_work.iterdir()) == []
    assert not server.ready_file.exists()


def test_memory_of_an_ephemeral_server_is_small(tmp_path: Path) -> None:
    with EphemeralServer(tmp_path) as server:
        produce(server.bootstrap, "orders", b"a")
        status = Path(f"/proc/{server.pid}/status").read_text()
        (line,) = [each for each in status.splitlines() if each.startswith("VmHWM:")]
        assert int(line.split()[1]) < 40 * 1024, "KiB"


def test_rules_over_http_reach_a_client_and_tell_that_they_fired(server: EphemeralServer) -> None:
    produce(server.bootstrap, "orders", b"a")
    rule = {"inject_error": "TOPIC_AUTHORIZATION_FAILED", "api": "Produce", "when": "once"}
    status, added = server.http("POST", "/rules", rule)
    assert (status, added[0]["fired"]) == (200, 0)
    (error,) = produce(server.bootstrap, "orders", b"b")
    assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
    number = added[0]["number"]
    assert server.http("GET", f"/rules/{number}?wait=10")[1]["fired"] == 1
    assert produce(server.bootstrap, "orders", b"c") == []
    assert server.http("DELETE", "/rules")[0] == 200
    assert server.http("GET", "/rules") == (200, [])


@pytest.mark.parametrize(
    ("method", "path", "document", "status", "reason"),
    [
        ("POST", "/rules", {"delay": "long"}, 400, "delay: 'long' is not a number"),
        ("POST", "/rules", {}, 400, "expected one effect of"),
        ("POST", "/rules", {"disconnect": True, "api": "Fech"}, 400, "unknown API 'Fech'"),
        ("GET", "/rules/7", None, 404, "unknown rule 7"),
        ("GET", "/", None, 404, "expected /rules"),
        ("PUT", "/rules", {}, 405, "expected GET, POST or DELETE"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_reason(
    server: EphemeralServer, method: str, path: str, document: object, status: int, reason: str
) -> None:
    found, body = server.http(method, path, document)
    assert found == status
    assert reason in body["error"]


def test_rules_of_a_file_and_a_trace(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text(
        "- inject_error: INVALID_TOPIC_EXCEPTION\n  api: Produce\n  when: {times: 1}\n"
    )
    trace = tmp_path / "trace.jsonl"
    options = ("--faults", str(tmp_path / "faults.yaml"), "--trace", str(trace))
    with EphemeralServer(tmp_path, *options) as server:
        (error,) = produce(server.bootstrap, "orders", b"a")
        assert error.name() == "TOPIC_EXCEPTION"
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    faults = [each["faults"] for each in lines if each["header"]["api"] == "Produce"]
    assert faults == [["inject_error"]]
