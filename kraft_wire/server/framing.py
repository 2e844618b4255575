"""Cuts the bytes of one connection into frames, copying each byte at most once.

Small frames are copied out of the host's receive buffer, so that every frame owns its memory. A
partial frame is received in place, into memory that grows with its received bytes: a declared
length alone allocates nothing. Lengths are checked before they are used; only Produce may use the
largest (all others: `request.metadata.max.bytes`).

`wire.frame.FrameReader` does the same for clients.
"""

from struct import Struct
from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Rejection

__all__ = ["Framing"]

_LENGTH: Final = Struct(">i")
_API_KEY: Final = Struct(">h")
_HEADER_BYTES_MIN: Final = 8
"""Api key, version and correlation id: the shortest possible request."""
_PRODUCE: Final = key_of("Produce")
_TLS_HANDSHAKES: Final = frozenset({0x160300, 0x160301, 0x160302, 0x160303})
"""First bytes of a TLS record, in the place of the first length."""
_FIRST_ROOM_BYTES: Final = 64 * 1024
"""First size of a partial frame: a bytearray is allocated at once, for each of many clients."""
_GROWTH: Final = 4
"""Growth factor by received bytes: a batch of the default size takes two steps."""
_EMPTY: Final = memoryview(b"")


class Framing:
    """The bytes of one connection that are not part of a request yet."""

    __slots__ = (
        "_data",
        "_filled",
        "_first_room",
        "_frame",
        "_frame_bytes",
        "_limits",
        "_login_max",
        "_position",
        "_usual_max",
        "_usual_min",
    )

    def __init__(self, limits: ServerLimits, login_bytes_max: int | None = None) -> None:
        """`login_bytes_max` is for clients that must log in first, until `logged_in`."""
        self._limits = limits
        self._login_max = login_bytes_max
        self._usual_max, self._usual_min = limits.metadata_frame_bytes_max, _HEADER_BYTES_MIN
        self._first_room = _FIRST_ROOM_BYTES
        if login_bytes_max is not None:
            self._usual_max, self._usual_min, self._first_room = login_bytes_max, 0, 0
        self._data = _EMPTY
        self._position = 0
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0

    def logged_in(self) -> None:
        """Accept frames of any allowed length from now on."""
        self._login_max = None
        self._usual_max, self._usual_min = self._limits.metadata_frame_bytes_max, _HEADER_BYTES_MIN
        self._first_room = _FIRST_ROOM_BYTES

    @property
    def has_begun(self) -> bool:
        """Whether there are bytes of a frame that was not returned yet."""
        return self._frame is not None or self._position < len(self._data)

    @property
    def held_bytes(self) -> int:
        """Received bytes of a partial frame."""
        return self._filled if self._frame is not None else len(self._data) - self._position

    @property
    def room_bytes(self) -> int:
        """Memory allocated for a frame that is received in place."""
        return 0 if self._frame is None else len(self._frame)

    def room(self) -> memoryview | None:
        """Return the memory to receive into; None for the host's own buffer.

        The view must be released before any other call.
        """
        return None if self._frame is None else memoryview(self._frame)[self._filled :]

    def filled(self, count: int) -> None:
        """Note bytes received into `room`."""
        assert self._frame is not None, count
        self._filled += count
        assert self._filled <= len(self._frame), (self._filled, len(self._frame))
        if self._filled == len(self._frame) < self._frame_bytes:
            growth = (_GROWTH - 1) * len(self._frame)
            self._frame.extend(bytes(min(growth, self._frame_bytes - len(self._frame))))

    def feed(self, data: memoryview) -> None:
        """Take received bytes; after `next_frame` the caller must `hold` the rest."""
        assert self._frame is None, "bytes of a frame that is received in place"
        if self._position < len(self._data):
            data = memoryview(bytes(self._data[self._position :]) + data)
        self._data, self._position = data, 0

    def next_frame(self) -> bytearray | Rejection | None:
        """Return the next whole frame without its length, or the reason of a refusal."""
        if self._frame is not None:
            if self._filled < self._frame_bytes:
                return None
            frame, self._frame = self._frame, None
            return frame
        data, begin = self._data, self._position + 4
        left = len(data) - begin
        if left < 0:
            return None
        size: int = _LENGTH.unpack_from(data, self._position)[0]
        if not self._usual_min <= size <= self._usual_max:
            refused = self._judge(size, data[begin : begin + _API_KEY.size])
            if refused is not None:
                return refused
        if size > left:
            if left >= _API_KEY.size:
                self._begin_in_place(size, data[begin:])
            return None
        self._position = begin + size
        return bytearray(data[begin : self._position])

    def hold(self) -> bool:
        """Copy the rest out of the host's buffer, which is reused; return `has_begun`."""
        is_left = self._position < len(self._data)
        self._data = memoryview(bytes(self._data[self._position :])) if is_left else _EMPTY
        self._position = 0
        return is_left or self._frame is not None

    def clear(self) -> None:
        """Drop everything: the connection is closed."""
        self._frame = None
        self._data, self._position = _EMPTY, 0

    def _judge(self, size: int, api_key: memoryview) -> Rejection | None:
        """Return why an unusual length is refused, if it is."""
        if size >> 8 in _TLS_HANDSHAKES:
            return Rejection("tls_on_a_plain_listener")
        if size < self._usual_min:
            return _refusal("frame_length_invalid", size, self._usual_min)
        if self._login_max is not None:
            return _refusal("frame_too_large_before_login", size, self._login_max)
        allowed = self._limits.frame_bytes_max
        if len(api_key) == _API_KEY.size and _API_KEY.unpack(api_key)[0] != _PRODUCE:
            allowed = self._usual_max
        return _refusal("frame_too_large", size, allowed) if size > allowed else None

    def _begin_in_place(self, size: int, start: memoryview) -> None:
        self._filled, self._frame_bytes = len(start), size
        self._frame = bytearray(min(size, max(self._first_room, _GROWTH * self._filled)))
        self._frame[: self._filled] = start
        self._data, self._position = _EMPTY, 0


def _refusal(reason: str, declared: int, allowed: int) -> Rejection:
    details = (("declared", declared), ("allowed", allowed))
    return Rejection(reason, field="length", byte=0, details=details)
