"""Framing: a four-byte length, then that many bytes; any chunks, no memory before the check.

For clients of a broker: the command line's client, and external tests. The server has its own
framing in place (`server/framing.py`). The caller applies time limits.
"""

from kraft_wire.wire.message import Buffer

__all__ = ["FRAME_PREFIX_BYTES", "FrameReader", "MalformedFrame", "frame_prefix"]

FRAME_PREFIX_BYTES = 4


class MalformedFrame(ValueError):
    """An invalid length; the connection cannot be resynchronised."""

    def __init__(self, size_bytes: int, reason: str) -> None:
        super().__init__(f"frame of {size_bytes} bytes: {reason}")
        self.size_bytes = size_bytes
        self.reason = reason


def frame_prefix(size_bytes: int) -> bytes:
    """Return the length to send before `size_bytes` of header and body."""
    return size_bytes.to_bytes(FRAME_PREFIX_BYTES, "big")


class FrameReader:
    """Cuts one connection's bytes into frames; holds only received bytes, not declared ones."""

    __slots__ = ("_arrived", "_refusal", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        """`frame_bytes_max` may change during the connection; it applies from then on."""
        assert frame_bytes_max > 0, frame_bytes_max
        self.frame_bytes_max = frame_bytes_max
        self._arrived = bytearray()
        self._refusal: MalformedFrame | None = None

    @property
    def pending_bytes(self) -> int:
        """Return the bytes received of a frame that is not complete yet."""
        return len(self._arrived)

    def feed(self, chunk: Buffer) -> list[bytes]:
        """Take the next bytes of the stream; return the frames that they complete.

        Raises MalformedFrame for a length that is negative or above the limit, after the frames
        before it were returned, and at every later call.
        """
        if self._refusal is not None:
            raise self._refusal
        arrived = self._arrived
        arrived += chunk
        frames: list[bytes] = []
        start = 0
        while len(arrived) - start >= FRAME_PREFIX_BYTES:
            begin = start + FRAME_PREFIX_BYTES
            size = int.from_bytes(arrived[start:begin], "big", signed=True)
            if not 0 <= size <= self.frame_bytes_max:
                self._refusal = self._refused(size)
                break
            if begin + size > len(arrived):
                break
            frames.append(bytes(arrived[begin : begin + size]))
            start = begin + size
        del arrived[:start]
        if self._refusal is not None and not frames:
            raise self._refusal
        return frames

    def _refused(self, size: int) -> MalformedFrame:
        if size < 0:
            return MalformedFrame(size, "the length is negative")
        return MalformedFrame(size, f"{self.frame_bytes_max} bytes are the maximum")
