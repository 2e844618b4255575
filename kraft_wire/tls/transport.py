"""The transport of a TLS listener: OpenSSL over memory, between a socket and TLS records.

One call receives once from the socket, or encrypts a bounded piece. So neither a handshake nor a
large answer delays other connections, and only bytes that the socket accepts soon are encrypted.
File slices are read: sendfile cannot encrypt them.
"""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.tls.refused import TransportRefused
from kraft_wire.wire.structs import Buffer

__all__ = ["TlsTransport"]

_RECEIVE_BYTES: Final = 64 * 1024
_SEND_BYTES: Final = 64 * 1024
"""Plaintext bytes of one call: four records."""
_HEAD_BYTES_MAX: Final = 1024
_ALERT: Final = bytes.fromhex("15030300020250")
"""The alert internal_error, for a refused peer if OpenSSL wrote none."""


class TlsTransport:
    """One connection of a TLS listener."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        handshaken: Callable[[bytes | None], None],
    ) -> None:
        """`handshaken` gets the client's certificate, and may raise TransportRefused."""
        self.has_pending = False
        self.unsent_bytes = 0
        self.fileno, self._close = sock.fileno, sock.close
        self._recv, self._send = sock.recv, sock.send
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._handshaken: Callable[[bytes | None], None] | None = handshaken
        self._ciphertext = memoryview(b"")

    # -- bytes in --------------------------------------------------------------------------------

    def recv_into(self, room: memoryview, /) -> int:
        """Receive once, and decrypt whole records."""
        if not self.has_pending:
            data = self._recv(_RECEIVE_BYTES)
            if not data:
                return 0
            self._incoming.write(data)
        self.has_pending = False
        try:
            if self._handshaken is not None:
                self._shake_hands(self._handshaken)
            return self._decrypt(room)
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0
        except ssl.SSLError as error:
            raise self._refused(error) from error
        finally:
            if self._outgoing.pending:
                self._push()

    def _shake_hands(self, handshaken: Callable[[bytes | None], None]) -> None:
        self._tls.do_handshake()
        handshaken(self._tls.getpeercert(binary_form=True))
        self._handshaken = None

    def _decrypt(self, room: memoryview) -> int:
        """Fill the room with decrypted bytes of whole records."""
        tls, incoming = self._tls, self._incoming
        filled = 0
        while filled < len(room):
            try:
                count: int = tls.read(len(room) - filled, room[filled:])  # type: ignore[assignment]  # a count, into any buffer
            except ssl.SSLWantReadError:
                if not filled:
                    raise
                return filled
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                if not filled:
                    raise
                self.has_pending = True  # the next call finds the end again
                return filled
            if not count:
                self.has_pending = filled > 0  # the next call finds the end again
                return filled
            filled += count
            if not incoming.pending and not tls.pending():
                return filled
        self.has_pending = True
        return filled

    def _refused(self, error: ssl.SSLError) -> TransportRefused:
        """Send the peer an alert, if its socket accepts it, and return the error for the log."""
        if not self._outgoing.pending and not self.unsent_bytes:
            self._outgoing.write(_ALERT)
        with suppress(OSError):
            self._push()
        self._outgoing.read()
        self._ciphertext = memoryview(b"")
        return TransportRefused((error.reason or str(error)).lower().replace("_", " "))

    # -- bytes out -------------------------------------------------------------------------------

    def send(self, buffers: list[Buffer], more_follows: bool) -> int:
        """Encrypt the beginning of some buffers; keep ciphertext that the socket refuses.

        The short head of an answer leaves together with what follows.
        """
        if self._ciphertext:
            self.flush()
        taken = 0
        for buffer in buffers:
            piece = memoryview(buffer)[: _SEND_BYTES - taken]
            if not piece:
                break
            taken += self._tls.write(piece)
        if more_follows and taken <= _HEAD_BYTES_MAX:
            self.unsent_bytes = self._outgoing.pending
        else:
            self._push()
        return taken

    def sendfile(self, part: FileSlice) -> int:
        """Read and send the beginning of a slice."""
        data = part.file.pread(min(part.size_bytes, _SEND_BYTES), part.position)
        return self.send([data], False) if data else 0

    def flush(self) -> None:
        """Send the kept ciphertext."""
        self._push()
        if self.unsent_bytes:
            raise BlockingIOError

    def _push(self) -> None:
        """Send as much ciphertext as the socket accepts."""
        outgoing, left = self._outgoing, self._ciphertext
        try:
            while left or outgoing.pending:
                if not left:
                    left = memoryview(outgoing.read())
                left = left[self._send(left) :]
        except (BlockingIOError, InterruptedError):
            pass
        finally:
            self._ciphertext = left
            self.unsent_bytes = len(left) + outgoing.pending

    def close(self) -> None:
        """Send close_notify, if the socket accepts it, and close."""
        with suppress(OSError):  # ssl's errors, too
            self._tls.unwrap()
        with suppress(OSError):
            self._push()
        self._close()
