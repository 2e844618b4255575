"""The proxy's two connections of a client: how one ends with the other, waits for it, and why.

The cluster is a socket of the test, so that it can do what no broker does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kraft_wire.testing.exchanges import Client
from kraft_wire.testing.faults.rule import Effect, Fault, Selector
from kraft_wire.testing.proxy.server import Proxy, Relay
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from tests.waiting import HANG_S

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Broker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HEADER = RequestHeader(ApiVersionsRequest.API_KEY, 0, 77, "shop")
FRAME = encode_request_header(HEADER) + ApiVersionsRequest().encode(0)
REQUEST = len(FRAME).to_bytes(4) + FRAME
MUCH = 24 << 20
"""More bytes than the buffers of two sockets and the proxy hold."""


class Front:
    """A proxy before a broker that a test plays."""

    def __init__(self, broker: Broker) -> None:
        self.reported: list[tuple[str, dict[str, Any]]] = []
        self._broker = broker
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Front]:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.append(writer)
            await self._broker(reader, writer)

        def report(event: str, **what: Any) -> None:
            self.reported.append((event, what))

        self.server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        self.upstream: tuple[str, int] = self.server.sockets[0].getsockname()[:2]
        self.proxy = Proxy(("127.0.0.1", 0), self.upstream, report)
        self.proxy.listen()
        try:
            yield self
        finally:
            self.proxy.close()
            self.server.close()
            for writer in self._writers:
                writer.close()
            await asyncio.sleep(0.05)  # the proxy's own connections end with those

    async def connected(self, address: tuple[str, int] | None = None) -> Streams:
        reader, writer = await asyncio.open_connection(*(address or self.proxy.address))
        self._writers.append(writer)
        return reader, writer


class Ended(asyncio.Transport):
    """A connection without a socket, which only ends."""

    is_open = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is written."""

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False


async def within(work: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(work, HANG_S)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


async def test_client_of_a_broker_that_closes_at_once_is_closed_too() -> None:
    async def closing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with Front(closing).running() as front:
        for _ in range(20):
            reader, writer = await front.connected()
            assert await within(reader.read()) == b""
            writer.close()


async def test_client_connection_that_begins_after_the_brokers_end_is_closed() -> None:
    async with Front(echo).running() as front:
        relay = Relay(front.proxy, Client("127.0.0.1:1"), front.upstream, lambda *_, **__: None)
        ends = [Ended(), Ended()]
        relay.upstream.connection_made(ends[0])
        relay.upstream.connection_lost(None)
        relay.client.connection_made(ends[1])
        assert [each.is_closing() for each in ends] == [True, True]


async def test_broker_of_a_client_that_closes_is_told() -> None:
    ended = asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""
        ended.set()
        writer.close()

    async with Front(waiting).running() as front:
        _, writer = await front.connected()
        writer.close()
        await within(ended.wait())


async def test_broker_that_cannot_be_reached_is_reported_and_the_client_closed() -> None:
    front = Front(echo)
    async with front.running():
        front.server.close()
        reader, writer = await front.connected()
        assert await within(reader.read()) == b""
        writer.close()
    ((event, what),) = front.reported
    assert (event, what["address"]) == ("upstream_refused", front.upstream)


async def test_bytes_that_are_no_frame_close_both_connections_and_are_reported() -> None:
    ended = asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        ended.set()
        writer.close()

    front = Front(waiting)
    async with front.running():
        reader, writer = await front.connected()
        writer.write(b"\xff" * 64)
        assert await within(reader.read()) == b""
        await within(ended.wait())
        writer.close()
    assert [event for event, _ in front.reported] == ["frame_refused"]


async def test_slow_client_stops_the_broker_until_it_reads() -> None:
    sent = 0

    async def flooding(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readexactly(len(REQUEST))
        body = HEADER.correlation_id.to_bytes(4) + bytes(1 << 16)
        while sent < MUCH:
            writer.write(len(body).to_bytes(4) + body)
            await writer.drain()
            sent += 4 + len(body)
        writer.close()

    async with Front(flooding).running() as front:
        reader, writer = await front.connected()
        writer.write(REQUEST)
        before = -1
        while sent != before or not sent:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < MUCH, "the proxy holds everything"
        read = 0
        while data := await within(reader.read(1 << 20)):
            read += len(data)
        assert read == sent >= MUCH


async def test_delayed_request_goes_on_after_its_delay() -> None:
    async with Front(echo).running() as front:
        fault = Fault(Effect.DELAY, seconds=0.2)
        front.proxy.rules.add(fault, Selector())
        reader, writer = await front.connected()
        began = asyncio.get_running_loop().time()
        writer.write(REQUEST)
        assert await within(reader.readexactly(len(REQUEST))) == REQUEST
        assert 0.19 <= asyncio.get_running_loop().time() - began < HANG_S


async def test_addresses_have_one_listener_each_until_the_proxy_closes() -> None:
    async with Front(echo).running() as front:
        other = front.proxy.local_address(("127.0.0.1", front.upstream[1]))
        assert other == front.proxy.address, "it is the bootstrap server itself"
        second = front.proxy.local_address(("localhost", front.upstream[1]))
        assert second == front.proxy.local_address(("localhost", front.upstream[1])) != other
        reader, writer = await front.connected(second)
        writer.write(REQUEST)
        assert await within(reader.readexactly(len(REQUEST))) == REQUEST
        writer.close()
    for address in (other, second):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)


def test_api_whose_addresses_are_not_replaced_is_reported_once() -> None:
    reported: list[tuple[str, dict[str, Any]]] = []

    def report(event: str, **what: Any) -> None:
        reported.append((event, what))

    proxy = Proxy(("127.0.0.1", 0), ("127.0.0.1", 1), report)
    for api, version in ((3, 99), (3, 99), (3, 98), (60, 99)):
        proxy.not_understood(api, version)
    assert reported == [
        ("not_rewritten", {"api": 3, "version": 99}),
        ("not_rewritten", {"api": 3, "version": 98}),
        ("not_rewritten", {"api": 60, "version": 99}),
    ]
    for sock in proxy._sockets.values():
        sock.close()
