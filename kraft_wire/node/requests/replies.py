"""Answers as outputs: encoded in the version of their request, with frame length and header.

Parts of files stay slices, which the host sends without copying them. An answer that no version can
hold ends the connection with a named reason.
"""

from struct import Struct
from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Buffers, Close, Reply
from kraft_wire.node.requests.decoding import Answered, unencodable
from kraft_wire.wire.header import RequestHeader, response_header_version
from kraft_wire.wire.message import Message, UnencodableMessage

__all__ = ["encoded_reply", "reply_of_bytes"]

_WITH_SLICES: Final = frozenset({key_of("Fetch"), key_of("FetchSnapshot")})
"""Their answers carry parts of files."""
_HEAD: Final = Struct(">ii")
"""Frame length and correlation id."""
_LENGTH_BYTES: Final = 4
_CORRELATION_ID_BYTES: Final = 4


def encoded_reply(connection_id: int, header: RequestHeader, response: Message) -> Reply | Close:
    """Return the answer to a request, or the end of its connection where it cannot be written."""
    api_key, version = header.api_key, header.api_version
    tags = b"\0" if response_header_version(api_key, version) else b""
    size = _CORRELATION_ID_BYTES + len(tags)
    try:
        if api_key not in _WITH_SLICES:
            body = response.encode(version)
            size += len(body)
            frame = _HEAD.pack(size, header.correlation_id) + tags + body
            return Reply(connection_id, [frame], size + _LENGTH_BYTES)
        parts: Buffers = response.encode_parts(version)
    except UnencodableMessage as problem:
        return Close(connection_id, unencodable(header, problem))
    buffers, body_bytes = _joined(parts)
    size += body_bytes
    buffers[0] = _HEAD.pack(size, header.correlation_id) + tags + buffers[0]  # type: ignore[operator]  # a message begins with bytes
    return Reply(connection_id, buffers, size + _LENGTH_BYTES)


def _joined(parts: Buffers) -> tuple[Buffers, int]:
    """Join the bytes between file slices, so that they are queued as one buffer; and count all.

    They are few, except for what a follower fetches of the metadata log: bytes of
    `QuorumLog.whole_batches`, which are copied once more here.
    """
    joined: Buffers = []
    begin = size = 0
    for at, part in enumerate(parts):
        if type(part) is FileSlice:
            head = b"".join(parts[begin:at])  # type: ignore[arg-type]  # any buffer can be joined
            joined += head, part
            size += len(head) + part.size_bytes
            begin = at + 1
    if begin < len(parts):
        rest = b"".join(parts[begin:])  # type: ignore[arg-type]  # any buffer can be joined
        joined.append(rest)
        size += len(rest)
    return joined, size


def reply_of_bytes(connection_id: int, answer: Answered) -> Reply:
    """Return an answer in a form that no message class has."""
    size = _CORRELATION_ID_BYTES + len(answer.body)
    frame = _HEAD.pack(size, answer.correlation_id) + answer.body
    return Reply(connection_id, [frame], len(frame))
