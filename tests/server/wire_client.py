"""A client at the socket: one connection, requests in our own classes or in plain bytes.

For tests that care about what exactly goes over the wire; correctness of the codecs is proven
elsewhere, against Apache's.
"""

import socket
import struct
import time
from types import TracebackType
from typing import TypeVar

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.waiting import HANG_S, until

__all__ = ["WireClient", "has_read_all", "one_batch", "produce_request"]

Response = TypeVar("Response", bound=Message)


class WireClient:
    """A connection that speaks one request at a time, or several in a row."""

    def __init__(self, bootstrap: str, *, client_id: str | None = "test") -> None:
        host, _, port = bootstrap.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=HANG_S)
        self.client_id = client_id
        self._correlation_id = 0

    def send(self, request: Message, version: int, *, trailing: bytes = b"") -> RequestHeader:
        """Write a request; `trailing` goes behind its body, inside the frame."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self.client_id)
        self.send_frame(encode_request_header(header) + request.encode(version) + trailing)
        return header

    def send_frame(self, payload: bytes) -> None:
        """Write bytes behind their length."""
        self.sock.sendall(struct.pack(">i", len(payload)) + payload)

    def receive_frame(self) -> bytes | None:
        """Return the next answer without its length, None when the server closed."""
        head = self._exactly(4)
        return None if head is None else self._exactly(struct.unpack(">i", head)[0])

    def receive(self, kind: type[Response], header: RequestHeader) -> Response:
        """Return the next answer, which must be whole and belong to `header`."""
        frame = self.receive_frame()
        assert frame is not None, "the server closed the connection"
        correlation_id, at = parse_response_header(frame, header.api_key, header.api_version)
        assert correlation_id == header.correlation_id
        response, end = kind.decode(frame, header.api_version, at)
        assert end == len(frame)
        return response

    def call(self, request: Message, version: int, kind: type[Response]) -> Response:
        """Send a request and return its answer."""
        return self.receive(kind, self.send(request, version))

    def is_closed(self) -> bool:
        """Wait for the server to close the connection, as it must now."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def topic(self, name: str, version: int = 12) -> MetadataResponseTopic:
        """Have a topic created and return what Metadata says of it."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])

        def created() -> MetadataResponseTopic | None:
            (topic,) = self.call(request, version, MetadataResponse).topics
            return topic if topic.partitions else None

        topic = until(created, lambda: f"topic {name} is not created", every_s=0)
        assert topic is not None
        return topic

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                received = self.sock.recv(size - len(data))
            except ConnectionError:
                return None
            if not received:
                return None
            data += received
        return data

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sock.close()


def has_read_all(bootstrap: str) -> bool:
    """Return when a server has read, and begun to serve, all that clients have sent it until now.

    Its loop accepts a connection, and reads from it, no sooner than it reads what came before.
    """
    with WireClient(bootstrap) as client:
        return client.call(ApiVersionsRequest(), 2, ApiVersionsResponse).error_code == 0


def one_batch(
    *values: bytes, codec: Compression = Compression.NONE, key: bytes | None = None
) -> bytes:
    """A batch with one record per value, stamped now."""
    now_ms = int(time.time() * 1000)
    records = [Record(key, value, timestamp=now_ms) for value in values]
    return bytes(build_batch(records, compression=codec))


def produce_request(
    topic: MetadataResponseTopic, records: bytes | None, *, acks: int = -1, by_id: bool = False
) -> ProduceRequest:
    """A produce of one partition."""
    data = TopicProduceData(partition_data=[PartitionProduceData(index=0, records=records)])
    if by_id:
        data.topic_id = topic.topic_id
    else:
        assert topic.name is not None
        data.name = topic.name
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])
