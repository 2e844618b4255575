"""Limits that are on by default, each at the socket of a server that has it small."""

import os
import resource
import signal
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kraft_wire.cli.server.descriptors import connections_possible
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from tests.server.wire_client import WireClient, has_read_all
from tests.server_process import ServerProcess
from tests.waiting import HANG_S, until


def lines(server: ServerProcess, reason: str) -> list[str]:
    """The log lines that refuse a connection for a reason."""
    return [line for line in server.log.read_text().splitlines() if f"reason={reason}" in line]


def test_connections_get_four_fifths_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1_000, 1_000))
    assert connections_possible() == 800
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    assert connections_possible() == 2_147_483_647


def test_the_soft_limit_of_descriptors_is_raised_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1_000, 4_000))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    assert connections_possible() == 3_200
    assert asked == [(4_000, 4_000)]


def is_served(client: WireClient, within_s: float = HANG_S) -> bool:
    """Return whether the request that was sent gets an answer in time."""
    client.sock.settimeout(within_s)
    try:
        return client.receive_frame() is not None
    except TimeoutError:
        return False


def test_a_connection_above_max_connections_waits_until_another_ends(tmp_path: Path) -> None:
    """SEC-QUOTA-18: the listener accepts nothing meanwhile; the log says why, once a second."""
    with ServerProcess(tmp_path, overrides={"max.connections": "2"}) as server:
        with WireClient(server.bootstrap) as first, WireClient(server.bootstrap) as second:
            for client in (first, second):
                client.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
            with WireClient(server.bootstrap) as third:
                third.send(ApiVersionsRequest(), 2)
                assert not is_served(third, within_s=0.5)
                first.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
                second.sock.close()
                assert is_served(third)
        (line,) = lines(server, "max.connections")
        assert "accept_delayed" in line


def set_for_all(client: WireClient, key: str, value: str) -> None:
    """Change a setting of all brokers while they run."""
    change = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == 0, answer


def test_max_connections_is_obeyed_as_it_changes_and_costs_the_longest_idle(tmp_path: Path) -> None:
    """SEC-QUOTA-18: a change has effect on connections that are open, and on one that waits."""
    with ServerProcess(tmp_path) as server:
        with WireClient(server.bootstrap) as admin, WireClient(server.bootstrap) as idle:
            idle.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
            set_for_all(admin, "max.connections", "2")
            with WireClient(server.bootstrap) as third:
                third.send(ApiVersionsRequest(), 2)
                assert not is_served(third, within_s=0.5), "two are connected"
                set_for_all(admin, "max.connections", "3")
                assert is_served(third)
                set_for_all(admin, "max.connections", "2")
                assert idle.is_closed(), "three were connected, and it was idle the longest"
                third.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
        server.restart()
        with WireClient(server.bootstrap) as first, WireClient(server.bootstrap) as second:
            for client in (first, second):
                client.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
            with WireClient(server.bootstrap) as third:
                third.send(ApiVersionsRequest(), 2)
                assert not is_served(third, within_s=0.5), "the change holds after a restart"


def test_no_more_connections_wait_to_be_accepted_than_the_backlog_holds(tmp_path: Path) -> None:
    connected: list[socket.socket] = []
    with ServerProcess(tmp_path, overrides={"socket.listen.backlog.size": "3"}) as server:
        host, _, port = server.bootstrap.rpartition(":")
        os.kill(server.pid, signal.SIGSTOP)
        until(lambda: is_stopped(server.pid))
        try:
            with suppress(TimeoutError):
                while len(connected) < 20:
                    connected.append(socket.create_connection((host, int(port)), timeout=0.5))
            assert 3 <= len(connected) <= 4, "Linux holds one more than it is told"
        finally:
            os.kill(server.pid, signal.SIGCONT)
            for sock in connected:
                sock.close()


def is_stopped(pid: int) -> bool:
    """Whether a signal has taken a process from the processors."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def long_fetch(topic: str) -> FetchRequest:
    """A fetch that waits for a minute where the topic has nothing."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1_000, topics=topics)


def test_a_parked_request_above_purgatory_max_requests_ends_its_connection(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, overrides={"purgatory.max.requests": "1"}) as server,
        WireClient(server.bootstrap) as first,
        WireClient(server.bootstrap) as second,
    ):
        first.topic("quiet")
        first.send(long_fetch("quiet"), 11)
        assert has_read_all(server.bootstrap)
        second.send(long_fetch("quiet"), 11)
        assert second.is_closed()
        (line,) = lines(server, "too_many_parked_requests")
        assert "api=Fetch" in line


def test_a_parked_request_whose_client_has_gone_makes_room(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, overrides={"purgatory.max.requests": "1"}) as server,
        WireClient(server.bootstrap) as second,
    ):
        with WireClient(server.bootstrap) as first:
            first.topic("quiet")
            first.send(long_fetch("quiet"), 11)
            second.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
        second.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
        second.send(long_fetch("quiet"), 11)
        second.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            second.receive_frame()
        assert not lines(server, "too_many_parked_requests")


def test_a_request_waits_until_the_one_before_it_is_answered(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        client.topic("quiet")
        waiting = long_fetch("quiet")
        waiting.max_wait_ms = 300
        sent = [client.send(waiting, 11), client.send(ApiVersionsRequest(), 2)]
        sent += [client.send(waiting, 11), client.send(MetadataRequest(topics=[]), 1)]
        found = [struct.unpack_from(">i", client.receive_frame() or b"")[0] for _ in sent]
        assert found == [each.correlation_id for each in sent]


def test_a_client_that_sends_on_while_its_fetch_waits_is_pushed_back(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        client.topic("quiet")
        client.send(long_fetch("quiet"), 11)
        head = encode_request_header(RequestHeader(MetadataRequest.API_KEY, 12, 2, "restless"))
        frame = head + MetadataRequest(topics=[]).encode(12)
        frames = struct.pack(">i", len(frame)) + frame
        beyond_the_kernels_buffers = frames * ((64 << 20) // len(frames))
        before = resident_bytes(server.pid)
        client.sock.settimeout(2)
        with pytest.raises(TimeoutError):
            client.sock.sendall(beyond_the_kernels_buffers)
        assert resident_bytes(server.pid) - before < 8 << 20


def large_answers(client: WireClient, requests: int) -> None:
    """Ask often for all topics, in one go, and read nothing."""
    head = encode_request_header(RequestHeader(MetadataRequest.API_KEY, 12, 1, "greedy"))
    frame = head + MetadataRequest(topics=None).encode(12)
    client.sock.sendall((struct.pack(">i", len(frame)) + frame) * requests)


def with_a_large_topic(server: ServerProcess) -> None:
    with WireClient(server.bootstrap) as client:
        client.topic("large")


def test_requests_wait_while_their_predecessors_answers_are_not_taken(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, overrides={"num.partitions": "1000"}) as server:
        with_a_large_topic(server)
        with WireClient(server.bootstrap) as greedy, WireClient(server.bootstrap) as good:
            large_answers(greedy, 300)
            before = resident_bytes(server.pid)
            for _ in range(20):
                good.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
            assert resident_bytes(server.pid) - before < 8 << 20
            assert greedy.receive_frame() is not None
            answers = 1
            while answers < 300:
                assert greedy.receive_frame() is not None
                answers += 1


def test_two_requests_that_outgrow_the_memory_of_all_are_both_read(tmp_path: Path) -> None:
    """Each has taken a part of it when it needs more; neither may wait for the other for ever."""
    frame = struct.pack(">ihhihi", 250_000, MetadataRequest.API_KEY, 1, 7, -1, 0)
    frame += bytes(4 + 250_000 - len(frame))
    overrides = {"queued.max.request.bytes": "300000", "socket.request.max.bytes": "300000"}
    with (
        ServerProcess(tmp_path, overrides=overrides) as server,
        WireClient(server.bootstrap) as first,
        WireClient(server.bootstrap) as second,
    ):
        for begin, end in ((0, 20), (20, 70_000), (70_000, len(frame))):
            for client in (first, second):
                client.sock.sendall(frame[begin:end])
            time.sleep(0.2)
        for client in (first, second):
            assert client.receive_frame(), "what is behind the request is passed over"
