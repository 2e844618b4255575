"""What a broker says of itself: ApiVersions, DescribeCluster, DescribeLogDirs, producers.

And what it does with versions that it does not know. The APIs that 4.3.1 has and we leave out are
listed in docs/DEVIATIONS.md.
"""

import struct
import time
from collections.abc import Iterator
from typing import Any

from kraft_wire.apis.registry import advertised
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.header import request_header_version
from tests.apache.differential.probes import probe
from tests.apache.differential.side import CLOSED, Side, batch

API_VERSIONS = 18


@probe(ApiVersionsRequest)
def keys_that_both_serve(side: Side, version: int) -> None:
    names = [("name", "1.0"), ("a-b.c_d", "v1-2"), ("", ""), ("a b", "1"), ("a", "é"), ("-", "1")]
    for name, number in names if version >= 3 else names[:1]:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
        answer = side.prepare(request, version)
        ours = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        shown = {key: ours.get(key) for key in advertised()} if ours else {}
        side.note(f"{name!r} {number!r}", (answer.error_code, answer.throttle_time_ms, shown))


@probe(ApiVersionsRequest, [4])
def versions_beyond(side: Side, version: int) -> None:
    for api_key, (first, last) in advertised().items():
        for asked in (first - 1, last + 1, 99, -1):
            if asked == first - 1 and first == 0:
                continue
            side.note(f"key {api_key} version {asked}", _raw(side, api_key, asked))
    for api_key in (4, 5, 6, 7, 93, 999, -1):
        side.note(f"key {api_key}", _raw(side, api_key, 0))


@probe(ApiVersionsRequest, [4])
def broken_heads(side: Side, version: int) -> None:
    """Requests for metadata whose header is not what it should be; from v12 on it has tags."""
    body = {1: struct.pack(">i", 0), 12: bytes.fromhex("01010000")}
    for asked, rest in body.items():
        tags = b"\0" if asked == 12 else b""
        head = struct.pack(">hhi", 3, asked, 5)
        for question, frame in {
            "plain": head + b"\0\1t" + tags + rest,
            "no client id": head + b"\xff\xff" + tags + rest,
            "an empty client id": head + b"\0\0" + tags + rest,
            "a client id of -2": head + b"\xff\xfe" + tags + rest,
            "a client id too long": head + b"\x7f\xff" + tags + rest,
            "a client id of no text": head + b"\0\2\xff\xfe" + tags + rest,
            "a tag": head + b"\0\1t" + b"\1\x63\3abc" + rest,
            "two tags": head + b"\0\1t" + b"\2\x62\1a\x63\3abc" + rest,
            "a tag twice": head + b"\0\1t" + b"\2\x63\1a\x63\3abc" + rest,
            "falling tags": head + b"\0\1t" + b"\2\x63\1a\x62\3abc" + rest,
            "a tag cut": head + b"\0\1t" + b"\1\x63\x7fabc" + rest,
            "no body": head + b"\0\1t" + tags,
            "no tags": head + b"\0\1t",
            "nothing": b"",
            "a byte": b"\0",
            "a key": b"\0\3",
            "a version": head[:4],
            "a correlation id": head,
        }.items():
            side.note(f"{question} v{asked}", _survives(side, frame))


def _survives(side: Side, frame: bytes) -> str:
    client = side.line("head")
    client.send_frame(frame)
    answer = client.receive_frame()
    if answer is None:
        side.drop("head")
        return CLOSED
    return answer[:4].hex()


def _raw(side: Side, api_key: int, version: int) -> str:
    """What comes back to a head and some zeros."""
    client = side.line("raw")
    head = struct.pack(">hhih", api_key, version, 5, -1)
    tags = b"\0" if request_header_version(api_key, version) == 2 else b""
    client.send_frame(head + tags + bytes(12))
    frame = client.receive_frame()
    if frame is not None:
        return frame.hex()
    side.drop("raw")
    return CLOSED


@probe(DescribeClusterRequest)
def cluster(side: Side, version: int) -> None:
    for operations in (False, True):
        for endpoints in (0, 1, 2, 3, -1):
            for fenced in (False, True):
                request = DescribeClusterRequest(
                    include_cluster_authorized_operations=operations,
                    endpoint_type=endpoints,
                    include_fenced_brokers=fenced,
                )
                side.ask(request, version, f"{operations} {endpoints} {fenced}")


@probe(DescribeLogDirsRequest)
def log_dirs(side: Side, version: int) -> None:
    one, two = side.topic("dirs"), side.filled("dirs-filled")
    for topics in _places(one, two, side.name("nowhere")):
        asked = [DescribableLogDirTopic(topic=name, partitions=each) for name, each in topics]
        side.ask(DescribeLogDirsRequest(topics=asked), version, f"{topics}", hashed=True)


@probe(DescribeLogDirsRequest)
def all_log_dirs(side: Side, version: int) -> None:
    mine = {side.topic("dirs"), side.filled("dirs-filled")}
    answer = side.prepare(DescribeLogDirsRequest(topics=None), version)
    for result in answer.results:
        result.topics = [topic for topic in result.topics if topic.name in mine]
    side.note_message("everything", answer, version, hashed=True)


def _places(one: str, two: str, nowhere: str) -> Iterator[list[tuple[str, list[int]]]]:
    yield [(one, [0])]
    yield [(two, [0]), (one, [0])]
    yield [(one, [0, 7, -1])]
    yield [(nowhere, [0])]
    yield [("", [0])]
    yield [("a b", [0])]
    yield [(one, [])]
    yield [(one, [0, 0])]
    yield []


@probe(DescribeProducersRequest)
def producers(side: Side, version: int) -> None:
    name = side.topic("producers", 2)
    if not side.once("producers"):
        for sequence in (0, 1):
            numbered: dict[str, Any] = {
                "producer_id": 88,
                "producer_epoch": 3,
                "base_sequence": sequence,
            }
            side.produce(name, batch(b"v", **numbered))
    for topics in _places(name, name, side.name("nowhere")):
        asked = [TopicRequest(name=topic, partition_indexes=each) for topic, each in topics]
        side.ask(DescribeProducersRequest(topics=asked), version, f"{topics}", hashed=True)


@probe(InitProducerIdRequest)
def producer_ids(side: Side, version: int) -> None:
    """With a transactional id only what is refused before transactions come into it."""
    while side.prepare(InitProducerIdRequest(transactional_id=None), 5).error_code:
        time.sleep(0.05)  # Apache's broker fetches its first block of ids
    for question, transactional_id, timeout_ms in (
        ("idempotent", None, 60_000),
        ("no timeout", None, -1),
        ("an empty id", "", 60_000),
        ("an id without timeout", "t", 0),
        ("an id, negative timeout", "t", -1),
        ("a timeout too long", "t", 900_001),
    ):
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        side.ask(request, version, question)
    for producer_id, epoch in ((5, -1), (-1, 3), (5, 1), (-2, -1), (5, -3)):
        request = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        side.ask(request, version, f"{producer_id} at {epoch}")
