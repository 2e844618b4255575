"""A connection to any broker: what its first question is answered, and names that are none."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from tests.waiting import HANG_S

API_VERSIONS, METADATA, FETCH = 18, 3, 1
UNSUPPORTED_VERSION = 35


@contextmanager
def broker(
    *answers: bytes, astray: int | None = None
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """A broker that gives these bodies one after the other; yields address and what it is asked.

    Answers to the API key `astray` carry the number of the request behind theirs.
    """
    asked: list[tuple[int, int]] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, answers, asked, astray))
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", asked
        thread.join(HANG_S)


def _serve(
    listening: socket.socket,
    answers: Sequence[bytes],
    asked: list[tuple[int, int]],
    astray: int | None,
) -> None:
    line, _ = listening.accept()
    with line, line.makefile("rb") as incoming:
        for body in answers:
            (size,) = struct.unpack(">i", incoming.read(4))
            api_key, version, correlation_id = struct.unpack_from(">hhi", incoming.read(size))
            asked.append((api_key, version))
            correlation_id += api_key == astray
            frame = struct.pack(">i", correlation_id) + body
            line.sendall(struct.pack(">i", len(frame)) + frame)


def versions(error: int, *ranges: tuple[int, int, int]) -> bytes:
    """An ApiVersions answer in version 0, by hand."""
    return struct.pack(">hi", error, len(ranges)) + b"".join(
        struct.pack(">hhh", *each) for each in ranges
    )


def test_a_broker_that_does_not_know_the_version_of_the_first_question_is_asked_in_version_0() -> (
    None
):
    """KIP-511: it answers in version 0, and Kafka's clients ask again. 2.3 and older do so."""
    refusal = versions(UNSUPPORTED_VERSION, (API_VERSIONS, 0, 2))
    offer = versions(0, (METADATA, 0, 5), (API_VERSIONS, 0, 2))
    metadata_v1 = struct.pack(">iii", 0, 0, 0)  # no brokers, controller 0, no topics
    with broker(refusal, offer, metadata_v1) as (address, asked):
        with BrokerConnection(address) as connection:
            request = MetadataRequest(topics=None)
            assert connection.version_of(request) == 5
            answer = connection.send(request, MetadataResponse, version=1)
        assert answer.brokers == []
    assert asked == [(API_VERSIONS, 3), (API_VERSIONS, 0), (METADATA, 1)]


def test_a_broker_that_knows_no_version_of_the_first_question_is_named() -> None:
    refusal = versions(UNSUPPORTED_VERSION)
    with (
        broker(refusal, refusal) as (address, _),
        pytest.raises(
            BrokerConnectionError, match=f"{address} refused ApiVersions: UNSUPPORTED_VERSION"
        ),
    ):
        BrokerConnection(address)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, FetchRequest.MIN_VERSION - 1),
        (FetchRequest.MAX_VERSION + 1, FetchRequest.MAX_VERSION + 1),
        (FetchRequest.MIN_VERSION, FetchRequest.MIN_VERSION),
    ],
)
def test_a_request_goes_out_in_a_version_of_both_sides_or_not_at_all(low: int, high: int) -> None:
    """A broker may be older than the oldest version, or newer than the newest."""
    fetch = FetchRequest()
    with (
        broker(versions(UNSUPPORTED_VERSION), versions(0, (FETCH, low, high))) as (address, _),
        BrokerConnection(address) as connection,
    ):
        if low == fetch.MIN_VERSION:
            assert connection.version_of(fetch) == low
            return
        with pytest.raises(BrokerConnectionError, match=f"{address} supports no version of Fetch"):
            connection.version_of(fetch)


def test_an_answer_to_another_request_is_none() -> None:
    offer = versions(0, (METADATA, 0, 5), (API_VERSIONS, 0, 3))
    refusal = versions(UNSUPPORTED_VERSION)
    metadata_v1 = struct.pack(">iii", 0, 0, 0)
    with (
        broker(refusal, offer, metadata_v1, astray=METADATA) as (address, _),
        BrokerConnection(address) as connection,
        pytest.raises(BrokerConnectionError, match=f"{address} answered out of order"),
    ):
        connection.send(MetadataRequest(topics=None), MetadataResponse, version=1)


def test_a_request_that_a_broker_does_not_serve_is_named() -> None:
    refusal = versions(UNSUPPORTED_VERSION)
    with (
        broker(refusal, versions(0, (METADATA, 0, 5))) as (address, _),
        BrokerConnection(address) as connection,
        pytest.raises(BrokerConnectionError, match=f"^{address} does not serve Fetch"),
    ):
        connection.version_of(FetchRequest())


def test_an_answer_of_another_kind_is_none() -> None:
    offer = versions(0, (METADATA, 0, 5), (API_VERSIONS, 0, 3))
    metadata_v1 = struct.pack(">iii", 0, 0, 0)
    with (
        broker(versions(UNSUPPORTED_VERSION), offer, metadata_v1) as (address, _),
        BrokerConnection(address) as connection,
        pytest.raises(BrokerConnectionError, match=f"^{address} answered Metadata.* for Fetch"),
    ):
        connection.send(MetadataRequest(topics=None), FetchResponse, version=1)


def test_a_broker_that_closes_is_lost_with_its_address() -> None:
    """After its last answer the broker closes the connection."""
    offer = versions(0, (METADATA, 0, 5), (API_VERSIONS, 0, 3))
    with (
        broker(versions(UNSUPPORTED_VERSION), offer) as (address, _),
        BrokerConnection(address) as connection,
        pytest.raises(BrokerConnectionError, match=address),
    ):
        connection.send(MetadataRequest(topics=None), MetadataResponse, version=1)


@pytest.mark.parametrize(
    "host",
    ["foo..bar", "a" * 64 + ".example", "a\0b", "\udcff", "é" * 80],
    ids=["empty label", "long label", "zero byte", "surrogate", "long in ASCII"],
)
def test_a_name_that_no_host_can_have_is_one_clear_line(host: str) -> None:
    """Operators mistype them, and a broker may advertise them."""
    with pytest.raises(BrokerConnectionError, match=r"cannot connect to .*:9092'?: ") as refused:
        BrokerConnection(f"{host}:9092")
    assert "\n" not in str(refused.value)


def test_small_requests_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm is off, as in Kafka's clients."""
    connect, made = socket.create_connection, []

    def connected(*arguments: object, **options: object) -> socket.socket:
        made.append(connect(*arguments, **options))  # type: ignore[arg-type]  # passed on
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", connected)
    refusal, offer = versions(UNSUPPORTED_VERSION), versions(0, (METADATA, 0, 5))
    with broker(refusal, offer) as (address, _), BrokerConnection(address):
        assert made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
