"""A connection without a socket: wires in memory, plain and TLS transports over them, and a loop.

TLS is OpenSSL's, over `ssl.MemoryBIO` and without certificates, so that an implementation that we
did not write judges what a connection may expect of a transport. The loop is level-triggered as the
host's is: it calls a connection while a watched side of its wire is ready, and never otherwise.
"""

import ssl
from collections.abc import Callable
from typing import Protocol, TypeAlias

from kraft_wire.model import FileSlice
from kraft_wire.node.limits import RequestMemory, ServerLimits
from kraft_wire.node.outputs import Buffers, Peer, Rejection
from kraft_wire.server.clock import now_ms
from kraft_wire.server.connection import Connection
from kraft_wire.server.transport import Transport
from kraft_wire.wire.structs import Buffer

__all__ = ["Answer", "Client", "Loop", "PlainClient", "PlainWire", "TlsClient", "TlsWire", "Wire"]

Answer: TypeAlias = Callable[[bytes], Buffers]
"""What a request leads to."""

TURNS_MAX = 1_000_000
"""A connection that needs more does not come to rest."""
RECORD_BYTES = 16_384
"""Of plaintext in one TLS record."""


class Wire:
    """What a socket has received, and what it has room for."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_ended = False
        self.sent = bytearray()
        self.room_bytes = 1 << 40
        self.bytes_per_send = 1 << 40
        self.is_closed = False

    @property
    def is_readable(self) -> bool:
        return bool(self.received) or self.is_ended

    def recv(self, size: int) -> bytes:
        if not self.is_readable:
            raise BlockingIOError
        data = bytes(self.received[:size])
        del self.received[:size]
        return data

    def send(self, data: Buffer) -> int:
        if not self.room_bytes:
            raise BlockingIOError
        taken = bytes(data[: min(self.room_bytes, self.bytes_per_send)])
        self.room_bytes -= len(taken)
        self.sent += taken
        return len(taken)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True


class PlainWire(Wire):
    """A transport that sends and receives what a connection hands it."""

    has_pending = False
    unsent_bytes = 0

    def recv_into(self, room: memoryview, /) -> int:
        data = self.recv(len(room))
        room[: len(data)] = data
        return len(data)

    def send(self, buffers: Buffer | list[Buffer], more_follows: bool = False) -> int:
        data = b"".join(buffers) if isinstance(buffers, list) else buffers
        return super().send(data)

    def sendfile(self, part: FileSlice) -> int:
        size = min(part.size_bytes, self.bytes_per_send)
        return self.send(part.file.pread(size, part.position))

    def flush(self) -> None:
        raise AssertionError("nothing is kept")


class TlsWire(Wire):
    """A transport that encrypts: handshake, records that were read ahead, ciphertext that waits."""

    def __init__(self) -> None:
        super().__init__()
        self.has_pending = False
        self.unsent_bytes = 0
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context(ssl.PROTOCOL_TLS_SERVER).wrap_bio(self._in, self._out, True)
        self._ciphertext = bytearray()

    def recv_into(self, room: memoryview, /) -> int:
        if self.is_readable and not self.has_pending:
            self._in.write(self.recv(4 * RECORD_BYTES))
            if self.is_ended and not self.received:
                self._in.write_eof()
        try:
            return self._tls.read(len(room), room)  # type: ignore[return-value,arg-type]  # a count, into any buffer
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return 0
        finally:
            self._push()
            self.has_pending = self._tls.pending() > 0 or self._in.pending > 0

    def send(self, buffers: Buffer | list[Buffer], more_follows: bool = False) -> int:
        assert isinstance(buffers, list)
        self.flush()
        taken = self._tls.write(b"".join(buffers)[:RECORD_BYTES])
        self._push()
        return taken

    def sendfile(self, part: FileSlice) -> int:
        data = part.file.pread(min(part.size_bytes, RECORD_BYTES), part.position)
        return self.send([data]) if data else 0

    def flush(self) -> None:
        self._push()
        if self.unsent_bytes:
            raise BlockingIOError

    def _push(self) -> None:
        self._ciphertext += self._out.read()
        while self._ciphertext and self.room_bytes:
            del self._ciphertext[: super().send(self._ciphertext)]
        self.unsent_bytes = len(self._ciphertext)


class Client(Protocol):
    """The peer of a wire."""

    def sends(self, data: bytes) -> None: ...
    def sees(self) -> bytes:
        """Return all plaintext that came so far."""


class PlainClient:
    """A peer that writes plaintext to its wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def sends(self, data: bytes) -> None:
        self._wire.received += data

    def sees(self) -> bytes:
        return bytes(self._wire.sent)


class TlsClient:
    """OpenSSL's client; each call of `sees` moves what it has to send to its wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(self._in, self._out)
        self._unsent = b""
        self._seen = b""
        self._read_to = 0

    def sends(self, data: bytes) -> None:
        self._unsent += data
        self.sees()

    def sees(self) -> bytes:
        self._in.write(self._wire.sent[self._read_to :])
        self._read_to = len(self._wire.sent)
        try:
            self._tls.do_handshake()
            while self._unsent:
                self._unsent = self._unsent[self._tls.write(self._unsent[:RECORD_BYTES]) :]
            while True:
                self._seen += self._tls.read(RECORD_BYTES)
        except ssl.SSLWantReadError:
            self._wire.received += self._out.read()
        return self._seen


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES128-SHA:@SECLEVEL=0")  # needs no certificate
    return context


class Loop:
    """The host of one connection; `answer` makes each answer, at once or when `answer_all` runs."""

    def __init__(self, wire: Wire, answer: Answer) -> None:
        self.now_ms = now_ms
        self.receive_view = memoryview(bytearray(64 * 1024))
        self.limits = ServerLimits()
        self.memory = RequestMemory(1 << 30)
        self.wire = wire
        self.answer = answer
        self.answers_at_once = True
        self.frames: list[bytes] = []
        self.drops: list[Rejection | None] = []
        self.watches_reads, self.watches_writes = True, False
        self._deferred = 0
        self._unanswered: list[bytes] = []
        peer = Peer(1, "127.0.0.1", 50_000, "PLAINTEXT")
        transport: Transport = wire  # type: ignore[assignment]  # the wires that are given are transports
        self.connection = Connection(self, transport, peer, 0)

    def run(self) -> None:
        """Call the connection until nothing is ready."""
        for _ in range(TURNS_MAX):
            if not self._turn():
                return
        raise AssertionError("the connection does not come to rest")

    def _turn(self) -> bool:
        connection, wire = self.connection, self.wire
        if connection.is_closed:
            return False
        if self._deferred:
            self._deferred -= 1
            connection.is_deferred = False
            connection.resume()
        elif self.watches_reads and wire.is_readable:
            connection.on_readable(0)
        elif self.watches_writes and wire.room_bytes:
            connection.settle()
        else:
            return False
        self._settle()
        return True

    def answer_all(self) -> None:
        """Answer what was asked, and end the wake-up as the host does."""
        while self._unanswered and not self.connection.is_closed:
            self._answer(self._unanswered.pop(0))
            self._settle()

    def _settle(self) -> None:
        while self.connection.is_dirty:
            self.connection.is_dirty = False
            self.connection.settle()

    def _answer(self, frame: bytes) -> None:
        parts = self.answer(frame)
        size = sum(p.size_bytes if isinstance(p, FileSlice) else len(p) for p in parts)
        self.connection.answered(parts, size)
        self.connection.is_dirty = True

    def watch_reads(self, connection: Connection, wanted: bool) -> None:
        self.watches_reads = wanted

    def watch_writes(self, connection: Connection, wanted: bool) -> None:
        self.watches_writes = wanted

    def deliver(self, connection: Connection, frame: bytearray) -> None:
        self.frames.append(bytes(frame))
        if self.answers_at_once:
            self._answer(bytes(frame))
        else:
            self._unanswered.append(bytes(frame))

    def defer(self, connection: Connection) -> None:
        assert not self._deferred, "a connection that is deferred twice runs ever more often"
        self._deferred += 1

    def drop(self, connection: Connection, rejection: Rejection | None = None) -> None:
        self.drops.append(rejection)
        connection.close()
