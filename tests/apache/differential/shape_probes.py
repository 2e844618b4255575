"""Every API in every version: the request with nothing in it, cut short, too long, and absurd.

What the answers to broken frames are is told by whether there is one: 4.3.1 closes the connection
where it cannot read a request.
"""

from collections.abc import Callable

from kraft_wire.apis.registry import advertised
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import Message
from tests.apache.differential.probes import PROBES, Probe
from tests.apache.differential.side import CLOSED, Side

PRODUCE, METADATA, API_VERSIONS = 0, 3, 18
BATCHED_FROM = 4
"""Of AddPartitionsToTxn, which 4.3.1 never answers without transactions."""
LISTING = {16, 35, 66, 74, 75}
"""APIs that list all there is when asked for nothing; other tests use the same Apache node."""


def blank(api_key: int, version: int) -> Message:
    """A request of defaults, except where those wait or are answered by silence."""
    request = request_class(api_key)()
    if isinstance(request, ProduceRequest):
        request.acks = -1
    if isinstance(request, FetchRequest):
        request.max_wait_ms = 0
    if isinstance(request, AddPartitionsToTxnRequest) and version >= BATCHED_FROM:
        request.transactions = [AddPartitionsToTxnTransaction()]
    return request


def outcome(side: Side, api_key: int, version: int, body: bytes) -> str:
    """Send a body that may be broken; say whether the connection survives it."""
    client = side.line("shape")
    header = RequestHeader(api_key, version, 7, "shape")
    client.send_frame(encode_request_header(header) + body)
    frame = client.receive_frame()
    if frame is None:
        side.drop("shape")
        return CLOSED
    correlation_id, _ = parse_response_header(frame, api_key, version)
    assert correlation_id == header.correlation_id
    return "answered"


def probe_of(api_key: int) -> Callable[[Side, int], None]:
    """Make the probe of one API."""

    def shapes(side: Side, version: int) -> None:
        side.group("shapes")
        request = blank(api_key, version)
        listing = api_key in LISTING or (api_key == METADATA and version == 0)
        if not listing and api_key != API_VERSIONS:
            side.ask(request, version, "nothing in it")
        body = bytes(request.encode(version))
        for cut in sorted({0, 1, len(body) // 2, len(body) - 1} - {len(body)}):
            if 0 <= cut < len(body):
                side.note(f"cut at {cut}", outcome(side, api_key, version, body[:cut]))
        side.note("trailing", outcome(side, api_key, version, body + b"\1\0\0"))
        # A null in a Produce request makes 4.3.1 fail in itself and never answer.
        for filler in (b"\x7f",) if api_key == PRODUCE else (b"\xff", b"\x7f", b"\x00"):
            side.note(f"{filler!r}", outcome(side, api_key, version, filler * 40))

    return shapes


for key, (first, last) in advertised().items():
    name = request_class(key).NAME.removesuffix("Request")
    served = range(max(first, request_class(key).MIN_VERSION), last + 1)
    PROBES.extend(Probe(name, number, probe_of(key)) for number in served)
