"""Answers as outputs: encoded in the version of their request, with frame length and header.

Parts of files stay slices, which the host sends without a copy. An answer that cannot be encoded
closes the connection with a named reason.
"""

from struct import Struct
from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.frozen import maker
from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Buffers, Close, Reply
from kraft_wire.node.requests.decoding import Answered, unencodable
from kraft_wire.wire.header import ANSWERS_FLEXIBLE_FROM, RequestHeader
from kraft_wire.wire.message import Message, UnencodableMessage

__all__ = ["encoded_reply", "reply_of_bytes"]

_new_reply: Final = maker(Reply)
_WITH_SLICES: Final = frozenset(map(key_of, ("Fetch", "FetchSnapshot", "ShareFetch")))
"""APIs whose answers have parts of files."""
_HEAD: Final = Struct(">ii")
"""Frame length and correlation id."""
_FLEXIBLE_HEAD: Final = Struct(">iix")
"""Frame length, correlation id, and empty tagged fields."""
_LENGTH_BYTES: Final = 4


def encoded_reply(connection_id: int, header: RequestHeader, response: Message) -> Reply | Close:
    """Return the answer to a request, or `Close` if it cannot be encoded."""
    api_key, version = header.api_key, header.api_version
    head = _FLEXIBLE_HEAD if version >= ANSWERS_FLEXIBLE_FROM[api_key] else _HEAD
    try:
        if api_key not in _WITH_SLICES:
            body = response.encode(version)
            size = head.size + len(body)
            frame = head.pack(size - _LENGTH_BYTES, header.correlation_id) + body
            return _new_reply(connection_id, [frame], size)
        parts: Buffers = response.encode_parts(version)
    except UnencodableMessage as problem:
        return Close(connection_id, unencodable(header, problem))
    buffers, body_bytes = _joined(parts)
    size = head.size + body_bytes
    buffers[0] = head.pack(size - _LENGTH_BYTES, header.correlation_id) + buffers[0]  # type: ignore[operator]  # a message begins with bytes
    return _new_reply(connection_id, buffers, size)


def _joined(parts: Buffers) -> tuple[Buffers, int]:
    """Join the bytes between file slices into one buffer; return also the total size.

    They are few, except in a follower's fetch of the metadata log: bytes of
    `QuorumLog.whole_batches`, which are copied again here.
    """
    joined: Buffers = []
    begin = size = 0
    kinds = list(map(type, parts))  # a loop of ours over all parts would cost twice as much
    for _ in range(kinds.count(FileSlice)):
        at = kinds.index(FileSlice, begin)
        head, part = b"".join(parts[begin:at]), parts[at]  # type: ignore[arg-type]  # any buffer can be joined
        joined += head, part
        size += len(head) + part.size_bytes  # type: ignore[union-attr]  # a slice of a file
        begin = at + 1
    if begin < len(parts):
        rest = b"".join(parts[begin:])  # type: ignore[arg-type]  # any buffer can be joined
        joined.append(rest)
        size += len(rest)
    return joined, size


def reply_of_bytes(connection_id: int, answer: Answered) -> Reply:
    """Return an answer without a message class."""
    size = _HEAD.size - _LENGTH_BYTES + len(answer.body)
    frame = _HEAD.pack(size, answer.header.correlation_id) + answer.body
    return Reply(connection_id, [frame], len(frame))
