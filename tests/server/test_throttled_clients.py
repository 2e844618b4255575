"""Throttled connections at the socket: not read, not idle, without memory, and gone at a stop."""

import resource
import time
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.server.wire_client import WireClient, has_read_all, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import until

PRODUCE = 9
THROTTLED = 500
FLOOD_BYTES = 300_000


def set_quota(client: WireClient, key: str, value: float) -> None:
    """Set a quota of every client id."""
    entity = [EntityData(entity_type="client-id", entity_name=None)]
    entry = EntryData(entity=entity, ops=[OpData(key=key, value=value)])
    answer = client.call(AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse)
    assert answer.entries[0].error_code == 0, answer


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_next_request_is_answered_when_the_throttle_time_is_over(tmp_path: Path) -> None:
    """SEC-QUOTA-11: the answer comes at once, that of a request behind it waits."""
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        topic = client.topic("t")
        set_quota(client, "producer_byte_rate", 2_000)
        began = time.monotonic()
        answer = client.call(
            produce_request(topic, one_batch(b"v" * 22_000)), PRODUCE, ProduceResponse
        )
        assert 1_000 < answer.throttle_time_ms < 2_000
        next_one = client.send(ApiVersionsRequest(), 2)
        with WireClient(server.bootstrap) as other:
            other.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
        client.receive(ApiVersionsResponse, next_one)
        assert time.monotonic() - began >= answer.throttle_time_ms / 1_000


def test_throttled_connections_hold_no_memory_and_do_not_idle_out(tmp_path: Path) -> None:
    """SEC-QUOTA-21: 500 of them send what nobody reads, for longer than the idle time."""
    overrides = {"connections.max.idle.ms": "1500", "max.connections.per.ip": "1000"}
    with ServerProcess(tmp_path, overrides=overrides) as server, ExitStack() as stack:
        with WireClient(server.bootstrap) as admin:
            topic = admin.topic("t")
            set_quota(admin, "producer_byte_rate", 1)
        request = produce_request(topic, one_batch(b"v" * 5_000), acks=0)
        clients = [
            stack.enter_context(WireClient(server.bootstrap, client_id=f"client-{number}"))
            for number in range(THROTTLED)
        ]
        for client in clients:
            client.send(request, PRODUCE)
        assert has_read_all(server.bootstrap)
        before = resident_bytes(server.pid)
        for client in clients:
            client.sock.setblocking(False)
            flood(client)
        assert has_read_all(server.bootstrap)
        grown = resident_bytes(server.pid) - before
        assert grown < THROTTLED * 10_000, f"{grown} bytes for {THROTTLED} connections"
        swept = time.monotonic() + 3
        until(lambda: time.monotonic() > swept and has_read_all(server.bootstrap))
        assert all(is_open(client) for client in clients)


def flood(client: WireClient) -> None:
    """Write until the kernel's buffers are full."""
    sent = 0
    try:
        while sent < FLOOD_BYTES:
            sent += client.sock.send(b"\0" * 65_536)
    except BlockingIOError:
        pass


def is_open(client: WireClient) -> bool:
    try:
        return client.sock.recv(1) != b""
    except BlockingIOError:
        return True
