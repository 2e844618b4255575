"""An exchange as text: every field of request and response with its bytes, the one at fault marked.

Undecodable bytes are printed up to the byte of the error, and as plain bytes after it.
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.conformance.verdict import Exchange
from kraft_wire.wire.dissect import dissect_frame
from kraft_wire.wire.generated.registry import message_table, request_class, response_class

__all__ = ["exchange_lines"]

_BYTES_SHOWN: Final = 16
_LINES_SHOWN: Final = 200
_MARK: Final = ">>"


def exchange_lines(exchange: Exchange, path: str = "") -> Iterator[str]:
    """Yield a request and its response field by field; the response's field at `path` is marked."""
    try:
        names = request_class(exchange.api_key).NAME, response_class(exchange.api_key).NAME
    except KeyError:
        yield f"request, {len(exchange.request)} bytes: {exchange.request[:64].hex(' ')}"
        return
    yield f"{names[0]} version {exchange.version}, {len(exchange.request)} bytes"
    yield from _fields(names[0], exchange.request, exchange.version, "")
    if exchange.response is None:
        yield f"no {names[1]}"
        return
    yield f"{names[1]} version {exchange.version}, {len(exchange.response)} bytes"
    yield from _fields(names[1], exchange.response, exchange.version, path)


def _fields(name: str, data: bytes, version: int, marked: str) -> Iterator[str]:
    found = dissect_frame(message_table(name), data, version)
    for count, piece in enumerate(found.pieces):
        if count == _LINES_SHOWN:
            yield f"   … {len(found.pieces) - count} more fields"
            break
        shown = data[piece.start : min(piece.end, piece.start + _BYTES_SHOWN)].hex(" ")
        more = "…" if piece.end - piece.start > _BYTES_SHOWN else ""
        mark = _MARK if marked and piece.path == marked else "  "
        value = "" if piece.value is None else f" = {_short(piece.value)}"
        yield f"{mark} {piece.start:6} {shown + more:48} {piece.path or '(unread)'}{value}"
    if found.error is not None:
        yield f"{_MARK} {found.end:6} {found.error}"


def _short(value: object) -> str:
    text = repr(bytes(value)) if isinstance(value, memoryview) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
