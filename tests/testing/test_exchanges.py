"""Exchanges decoded and as lines of a trace; clock, thread and disk of a cluster for tests."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.storage.files import LockHeld, MissingFile
from kraft_wire.testing import Cluster
from kraft_wire.testing import clock as clock_module
from kraft_wire.testing.clock import Clock
from kraft_wire.testing.exchanges import Client, Exchange, Recorder
from kraft_wire.testing.faults.injecting import Faults
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.faults.treatment import Treatment
from kraft_wire.testing.loop_thread import LoopThread
from kraft_wire.testing.memory_files import MemoryFileSystem
from kraft_wire.testing.proxy.addresses import address_holders, carries_addresses, node_id_of
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.find_coordinator import Coordinator as FoundCoordinator
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header, encode_response_header
from kraft_wire.wire.message import Message

METADATA, API_VERSIONS, UNKNOWN_API = 3, 18, 999


def request_frame(request: Message, version: int, client_id: str | None = "shop") -> bytes:
    header = RequestHeader(request.API_KEY, version, 5, client_id)
    return encode_request_header(header) + request.encode(version)


def begun(recorder: Recorder, frame: bytes, client: Client | None = None) -> Exchange:
    exchange = recorder.begin(2, client or Client("127.0.0.1:7"), frame)
    assert exchange is not None
    return exchange


def test_exchange_is_decoded_and_a_line_of_a_trace() -> None:
    times = iter([100, 130])
    recorder = Recorder(lambda: next(times))
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    exchange = begun(recorder, request_frame(request, 4))
    broker: Any = MetadataResponseBroker(node_id=1, host="h", port=9, rack=None)
    response = MetadataResponse(brokers=[broker], cluster_id="c", controller_id=1)
    answer = encode_response_header(METADATA, 4, 5) + response.encode(4)
    assert exchange.response is None
    exchange.treatment = Treatment(exchange.header, b"", fired=["delay", "throttle"])
    recorder.end(exchange, answer)
    assert (exchange.api, exchange.version, exchange.client_id) == ("Metadata", 4, "shop")
    assert (exchange.request, exchange.response) == (request, response)
    assert exchange.to_json() == {
        "at_ms": 100,
        "took_ms": 30,
        "node": 2,
        "client": "127.0.0.1:7",
        "client_software": "",
        "header": {
            "api": "Metadata",
            "api_key": 3,
            "api_version": 4,
            "correlation_id": 5,
            "client_id": "shop",
        },
        "request": {"topics": [], "allowAutoTopicCreation": False},
        "response": {
            "throttleTimeMs": 0,
            "brokers": [{"nodeId": 1, "host": "h", "port": 9, "rack": None}],
            "clusterId": "c",
            "controllerId": 1,
            "topics": [],
        },
        "faults": ["delay", "throttle"],
    }


def test_exchange_that_cannot_be_decoded_has_its_header_alone() -> None:
    recorder = Recorder(lambda: 0)
    unknown = begun(recorder, encode_request_header(RequestHeader(METADATA, 4, 1, None)) + b"\xff")
    recorder.end(unknown, b"\x00")
    assert (unknown.api, unknown.client_id, unknown.faults) == ("Metadata", None, [])
    assert (unknown.request, unknown.response) == (None, None)
    assert recorder.begin(1, Client("a"), b"\x00\x03") is None
    other = Exchange(1, Client("a"), 0, RequestHeader(UNKNOWN_API, 0, 1, None), b"", b"")
    assert (other.api, other.request, other.response) == ("999", None, None)


def test_exchanges_are_chosen_by_api_and_client() -> None:
    recorder = Recorder(lambda: 0)
    client = Client("127.0.0.1:7")
    versions = ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7")
    frames = [
        request_frame(versions, 3),
        request_frame(MetadataRequest(topics=None), 9, "other"),
        request_frame(MetadataRequest(topics=None), 9),
    ]
    first, second, third = (begun(recorder, each, client) for each in frames)
    assert recorder.exchanges(None, None) == [first, second, third]
    assert recorder.exchanges("Metadata", None) == [second, third]
    assert recorder.exchanges("Metadata", "shop") == [third]
    assert recorder.exchanges(None, "shop") == [first, third]
    assert client.software == "kcat 1.7"
    later = ApiVersionsRequest(client_software_name="new", client_software_version="2")
    begun(recorder, request_frame(later, 3), client)
    assert client.software == "kcat 1.7", "the first of a connection counts"


@pytest.mark.parametrize(
    ("frame", "software"),
    [
        (request_frame(ApiVersionsRequest(), 0), ""),
        (encode_request_header(RequestHeader(API_VERSIONS, 3, 1, "c")) + b"\x09", ""),
        (request_frame(ApiVersionsRequest(client_software_name="n"), 3), "n"),
    ],
)
def test_software_of_a_client_is_that_of_its_first_request(frame: bytes, software: str) -> None:
    client = Client("a")
    begun(Recorder(lambda: 0), frame, client)
    assert client.software == software


@pytest.mark.parametrize(("keeps", "is_on"), [(True, True), (False, False)])
def test_recorder_is_on_while_it_keeps_or_traces(tmp_path: Any, keeps: bool, is_on: bool) -> None:
    recorder = Recorder(lambda: 0, keeps=keeps)
    assert recorder.is_on is is_on
    recorder.trace_to(tmp_path / "trace")
    assert recorder.is_on
    recorder.trace_to(None)
    assert recorder.is_on is is_on


def test_rule_is_shown_with_its_selection() -> None:
    faults = Faults(FaultRules(lambda _: None))
    rule = faults.delay(1, api="Fetch", client_id="c", topic="t", partition=0, node=2)
    chosen = "api='Fetch', client_id='c', topic='t', partition=0, node=2"
    assert repr(rule) == f"rule 1 delay({chosen})"
    assert repr(faults.blackhole()) == "rule 2 blackhole()"
    with pytest.raises(TimeoutError) as over:
        rule.wait(2, timeout=0.001)
    assert str(over.value) == f"{rule} fired 0 times in 0.001 s, not 2"


def test_clock_is_ahead_of_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "now_ms", lambda: 5)
    monkeypatch.setattr(clock_module, "wall_ms", lambda: 1_000)
    clock = Clock()
    assert (clock.now_ms(), clock.wall_ms()) == (5, 1_000)
    clock.ahead_ms = 20
    assert (clock.now_ms(), clock.wall_ms()) == (25, 1_020)


def test_call_on_the_loops_thread_returns_and_raises() -> None:
    thread = LoopThread("kraft-wire test")

    def named(word: str) -> tuple[str, str]:
        return word, threading.current_thread().name

    async def awaited() -> str:
        return threading.current_thread().name

    try:
        assert thread.call(named, "x") == ("x", "kraft-wire test")
        assert thread.call(lambda: thread.call(named, "y")) == ("y", "kraft-wire test")
        assert thread.run(awaited()) == "kraft-wire test"
        with pytest.raises(ZeroDivisionError):
            thread.call(lambda: 1 // 0)
    finally:
        thread.stop()
    assert thread.loop.is_closed()


def refused(call: Any) -> tuple[type[Exception], str, str]:
    with pytest.raises(StorageError) as error:
        call()
    return type(error.value), error.value.operation, error.value.reason


def test_disk_in_memory_refuses_what_a_disk_refuses() -> None:
    fs = MemoryFileSystem(lambda: 1_000)
    fs.make_directory("/d/e")
    fs.open("d/f", create=True)
    missing, plain = MissingFile, StorageError
    assert refused(lambda: fs.make_directory("d/f/x")) == (plain, "mkdir", "file exists")
    assert refused(lambda: fs.rename("d/f", "d/e")) == (plain, "rename", "is a directory")
    assert refused(lambda: fs.rename("d/g", "d/h")) == (missing, "rename", "no such file")
    gone = "the directory does not exist"
    assert refused(lambda: fs.rename("d/f", "x/h")) == (missing, "rename", gone)
    assert refused(lambda: fs.open("d/e")) == (plain, "open", "is a directory")
    assert refused(lambda: fs.open("d/g")) == (missing, "open", "no such file")
    assert refused(lambda: fs.read("x/g")) == (missing, "read", gone)
    assert refused(lambda: fs.names("x")) == (missing, "list", "no such directory")
    assert refused(lambda: fs.unlink("d/e")) == (plain, "unlink", "is a directory")
    line = "is not an empty directory"
    assert refused(lambda: fs.remove_directory("d")) == (plain, "rmdir", line)
    assert refused(lambda: fs.remove_directory("x")) == (plain, "rmdir", line)
    fs.make_read_only("d/f")
    assert refused(lambda: fs.open("d/f")) == (plain, "open", "permission denied")
    fs.lock("d/.lock")
    held = (LockHeld, "lock", "another node holds it")
    assert refused(lambda: fs.lock("d/.lock")) == held
    assert (fs.names("/"), fs.names("d")) == (["d"], ["e", "f"])
    assert (fs.total_bytes("d"), fs.free_bytes("d")) == (1 << 40, 1 << 40)


def test_file_in_memory_has_times_zeros_and_no_descriptor() -> None:
    wall_ms = 1_000
    fs = MemoryFileSystem(lambda: wall_ms)
    file: Any = fs.open("f", create=True)
    assert (file.fileno(), file.modified_ms(), file.path) == (-1, 1_000, "f")
    wall_ms = 2_000
    file.pwrite(b"", 9)
    assert (file.size_bytes(), file.modified_ms()) == (0, 1_000)
    file.pwrite(b"ab", 2)
    assert (fs.read("f"), file.modified_ms()) == (b"\0\0ab", 2_000)
    file.pwrite(b"XYZ", 1)
    assert fs.read("f") == b"\0XYZ"
    file.set_modified_ms(7)
    file.truncate(6)
    file.reserve(3)
    assert (fs.read("f"), file.modified_ms()) == (b"\0XYZ\0\0", 7)
    file.truncate(2)
    assert (fs.read("f"), file.pread(9, 1)) == (b"\0X", b"X")


def test_full_and_broken_disk_fail_the_right_calls() -> None:
    fs = MemoryFileSystem(lambda: 0)
    file: Any = fs.open("f", create=True)
    file.pwrite(b"abc", 0)
    fs.is_full = True
    full = (DiskFull, "write", "no space left on device")
    assert refused(lambda: file.pwrite(b"d", 3)) == full
    assert refused(lambda: file.pwrite(b"cd", 2)) == full
    assert refused(lambda: file.truncate(4)) == (DiskFull, "truncate", full[2])
    assert refused(lambda: file.reserve(4)) == (DiskFull, "reserve", full[2])
    file.pwrite(b"C", 2)
    file.reserve(3)
    fs.open("g", create=True)
    fs.is_full, fs.is_broken = False, True
    wrong = "input/output error"
    for call, operation in (
        (lambda: file.pwrite(b"x", 0), "write"),
        (lambda: file.truncate(1), "truncate"),
        (lambda: fs.open("h", create=True), "open"),
        (lambda: fs.unlink("f"), "unlink"),
        (lambda: fs.rename("f", "h"), "rename"),
        (lambda: fs.make_directory("d"), "mkdir"),
        (lambda: fs.remove_directory("d"), "rmdir"),
    ):
        assert refused(call) == (StorageError, operation, wrong)
    for path, sync in (("f", file.fsync), ("d", lambda: fs.sync_directory("d"))):
        with pytest.raises(FsyncFailed) as failed:
            sync()
        assert str(failed.value) == f"fsync {path}: {wrong}"
    fs.unlink("nothing")
    assert (fs.read("f"), fs.names("")) == (b"abC", ["f", "g"])


def test_addresses_are_those_of_nodes_that_are_named() -> None:
    brokers: Any = [
        MetadataResponseBroker(node_id=4, host="h", port=9),
        MetadataResponseBroker(node_id=5, host="", port=9),
        MetadataResponseBroker(node_id=6, host="h", port=-1),
        MetadataResponseBroker(node_id=7, host="h", port=0),
    ]
    found = list(address_holders(MetadataResponse(brokers=brokers), 9))
    assert [(each.host, each.port, node_id_of(each)) for each in found] == [("h", 9, 4)]
    old = FindCoordinatorResponse(node_id=3, host="c", port=8)
    assert [each.host for each in address_holders(old, 2)] == ["c"]
    coordinators: Any = [FoundCoordinator(key="g", node_id=3, host="d", port=8)]
    new = FindCoordinatorResponse(coordinators=coordinators)
    assert [each.host for each in address_holders(new, 4)] == ["d"]
    assert node_id_of(object()) is None
    assert carries_addresses(METADATA, 9)
    assert not carries_addresses(API_VERSIONS, 3)
    assert not carries_addresses(UNKNOWN_API, 0)


def test_cluster_that_does_not_run_or_is_elsewhere_refuses_calls(tmp_path: Any) -> None:
    def line(call: Any) -> str:
        with pytest.raises(ValueError, match="cluster") as error:
            call()
        return str(error.value)

    cluster = Cluster(directory=tmp_path / "data")
    assert line(cluster.requests) == "the cluster does not run"
    assert line(lambda: cluster.trace_to(None)) == "the cluster does not run"
    processes = Cluster(in_process=False, directory=tmp_path / "other")
    assert line(processes.reset) == "this needs a cluster with in_process=True"
    assert line(lambda: processes.faults) == "this needs a cluster with in_process=True"
    with cluster:
        assert line(lambda: cluster.disk(1)) == "this needs a cluster in memory"
        assert line(cluster.reset) == (
            "reset needs a cluster in memory: it does not remove a directory"
        )
        cluster.stop_node(1)
        cluster.stop_node(1)
        cluster.start_node(1)
    cluster.stop()
