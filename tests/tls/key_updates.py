"""A TLS 1.3 client that asks for key updates, by OpenSSL and ctypes: `ssl` has no call for it."""

import ctypes
import ctypes.util
import socket
from typing import Any, Final

__all__ = ["KeyUpdater"]

_ROOM_BYTES: Final = 64 * 1024
_UPDATE_REQUESTED: Final = 1
_POINTER, _INT, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p


def _function(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


class KeyUpdater:
    """A connection over memory; certificates are not checked."""

    def __init__(self, sock: socket.socket) -> None:
        """Shake hands over a blocking socket."""
        tls = ctypes.CDLL(ctypes.util.find_library("ssl"))
        crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
        self._shake = _function(tls, "SSL_do_handshake", _INT, _POINTER)
        self._update = _function(tls, "SSL_key_update", _INT, _POINTER, _INT)
        self._read = _function(crypto, "BIO_read", _INT, _POINTER, _TEXT, _INT)
        self._write = _function(crypto, "BIO_write", _INT, _POINTER, _TEXT, _INT)
        memory = _function(crypto, "BIO_s_mem", _POINTER)
        new_memory = _function(crypto, "BIO_new", _POINTER, _POINTER)
        self._received, self._sent = new_memory(memory()), new_memory(memory())
        method = _function(tls, "TLS_client_method", _POINTER)
        context = _function(tls, "SSL_CTX_new", _POINTER, _POINTER)(method())
        self._tls = _function(tls, "SSL_new", _POINTER, _POINTER)(context)
        set_memory = _function(tls, "SSL_set_bio", None, _POINTER, _POINTER, _POINTER)
        set_memory(self._tls, self._received, self._sent)
        _function(tls, "SSL_set_connect_state", None, _POINTER)(self._tls)
        while self._shake(self._tls) != 1:
            sock.sendall(self._taken())
            data = sock.recv(_ROOM_BYTES)
            assert data, "the handshake was refused"
            self._write(self._received, data, len(data))
        sock.sendall(self._taken())

    def updates(self, count: int) -> bytes:
        """Return the records of so many key updates, each of which asks for one in return."""
        for _ in range(count):
            assert self._update(self._tls, _UPDATE_REQUESTED) == 1
            assert self._shake(self._tls) == 1
        return self._taken()

    def _taken(self) -> bytes:
        data = b""
        room = ctypes.create_string_buffer(_ROOM_BYTES)
        while (count := self._read(self._sent, room, _ROOM_BYTES)) > 0:
            data += room.raw[:count]
        return data
