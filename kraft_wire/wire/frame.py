"""Framing: a four-byte length, then that many bytes; any chunking, no memory before the check.

A reader offers the buffer that the socket fills next (`writable`, then `received`), so that a
large frame lands in its own exact-size buffer without being assembled by copying. `feed` takes
chunks that came otherwise. Time limits and the queue of frames are the host's.
"""

from kraft_wire.wire.message import Buffer

__all__ = ["FRAME_PREFIX_BYTES", "FrameReader", "MalformedFrame", "frame_prefix"]

FRAME_PREFIX_BYTES = 4
SCRATCH_BYTES = 65_536


class MalformedFrame(ValueError):
    """A length that no frame may have; the connection cannot be resynchronised."""

    def __init__(self, size_bytes: int, reason: str) -> None:
        super().__init__(f"frame of {size_bytes} bytes: {reason}")
        self.size_bytes = size_bytes
        self.reason = reason


def frame_prefix(size_bytes: int) -> bytes:
    """Return the length to send before `size_bytes` of header and body."""
    return size_bytes.to_bytes(FRAME_PREFIX_BYTES, "big")


class FrameReader:
    """Cuts one connection's byte stream into frames.

    `frame_bytes_max` may change while the connection lives (it is lower before authentication);
    it counts for frames whose length is read after the change.
    """

    __slots__ = ("_filled", "_large", "_large_filled", "_scratch", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int, scratch_bytes: int = SCRATCH_BYTES) -> None:
        assert frame_bytes_max > 0, frame_bytes_max
        assert scratch_bytes > FRAME_PREFIX_BYTES, scratch_bytes
        self.frame_bytes_max = frame_bytes_max
        self._scratch = bytearray(scratch_bytes)
        self._filled = 0
        self._large: bytearray | None = None
        self._large_filled = 0

    @property
    def pending_bytes(self) -> int:
        """Return the bytes received of a frame that is not complete yet."""
        return self._filled + self._large_filled

    @property
    def held_bytes(self) -> int:
        """Return the memory that an incomplete large frame holds."""
        return 0 if self._large is None else len(self._large)

    def writable(self) -> memoryview:
        """Return the space that the next bytes of the stream go to; never empty."""
        if self._large is not None:
            return memoryview(self._large)[self._large_filled :]
        return memoryview(self._scratch)[self._filled :]

    def received(self, size_bytes: int) -> list[bytes | bytearray]:
        """Take note of bytes written to `writable()`; return the frames that they complete.

        Raises MalformedFrame for a length that is negative or above the limit. Frames before it
        in the same bytes are lost with the connection.
        """
        if self._large is not None:
            return self._large_received(self._large, size_bytes)
        self._filled += size_bytes
        assert self._filled <= len(self._scratch), "more bytes than the space had"
        frames: list[bytes | bytearray] = []
        scratch = self._scratch
        filled = self._filled
        start = 0
        while filled - start >= FRAME_PREFIX_BYTES:
            body = start + FRAME_PREFIX_BYTES
            size = self._checked_size(start)
            if body + size > filled:
                if FRAME_PREFIX_BYTES + size > len(scratch):
                    self._begin_large(body, size)
                    return frames
                break
            frames.append(bytes(scratch[body : body + size]))
            start = body + size
        if start:
            scratch[: filled - start] = scratch[start:filled]
            self._filled = filled - start
        return frames

    def feed(self, chunk: Buffer) -> list[bytes | bytearray]:
        """Take bytes that were received elsewhere; return the frames that they complete."""
        frames: list[bytes | bytearray] = []
        rest = memoryview(chunk)
        while rest:
            space = self.writable()
            size = min(len(space), len(rest))
            space[:size] = rest[:size]
            space.release()
            frames += self.received(size)
            rest = rest[size:]
        return frames

    def _checked_size(self, position: int) -> int:
        prefix = self._scratch[position : position + FRAME_PREFIX_BYTES]
        size = int.from_bytes(prefix, "big", signed=True)
        if size < 0:
            raise MalformedFrame(size, "the length is negative")
        if size > self.frame_bytes_max:
            raise MalformedFrame(size, f"{self.frame_bytes_max} bytes are the most")
        return size

    def _begin_large(self, body: int, size: int) -> None:
        """Give a frame that does not fit the scratch buffer its own, with what has arrived."""
        assert self._large is None
        arrived = self._filled - body
        self._large = bytearray(size)  # zero pages: memory is taken as bytes arrive
        self._large[:arrived] = self._scratch[body : self._filled]
        self._large_filled = arrived
        self._filled = 0

    def _large_received(self, large: bytearray, size_bytes: int) -> list[bytes | bytearray]:
        self._large_filled += size_bytes
        assert self._large_filled <= len(large), "more bytes than the space had"
        if self._large_filled < len(large):
            return []
        self._large = None
        self._large_filled = 0
        return [large]
