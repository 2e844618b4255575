"""The far side of links: what real releases offer, and requests and answers as bytes.

`controller_versions.json` is what `ApiKeys.apisForListener(CONTROLLER)` of the releases says.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from kraft_wire.node.outputs import Output, SendBytes
from kraft_wire.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.header import RequestHeader, encode_response_header, parse_request_header
from kraft_wire.wire.message import Message

RELEASES = json.loads((Path(__file__).parent / "controller_versions.json").read_text())


def requests_of(outputs: Iterable[Output]) -> list[tuple[RequestHeader, Message]]:
    """Decode outputs, all of which must be requests."""
    found = []
    for output in outputs:
        assert isinstance(output, SendBytes), output
        data = b"".join(bytes(part) for part in output.buffers)  # type: ignore[arg-type]  # no slices
        assert len(data) == output.size_bytes == 4 + int.from_bytes(data[:4], "big")
        header, body_at = parse_request_header(data[4:])
        request, end = request_class(header.api_key).decode(data[4:], header.api_version, body_at)
        assert end == len(data) - 4
        found.append((header, request))
    return found


def offer(versions: dict[str, list[int]]) -> ApiVersionsResponse:
    """Return the answer of a peer that serves these versions."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=int(key), min_version=low, max_version=high)
            for key, (low, high) in versions.items()
        ]
    )


def framed(header: RequestHeader, body: bytes) -> bytes:
    """Return an answer to a request, without its length."""
    return encode_response_header(header.api_key, header.api_version, header.correlation_id) + body


def answer(header: RequestHeader, response: Message) -> bytes:
    """Return an answer to a request, in its version."""
    return framed(header, response.encode(header.api_version))
