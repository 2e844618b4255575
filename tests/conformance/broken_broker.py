"""A broker that answers through a relay, which changes what comes back: a judge must notice.

Stands between the suite and a real broker, frame by frame; `change` is given the API key, the
version and a response frame, and returns the bytes that the suite receives.
"""

import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

Change = Callable[[int, int, bytes], bytes | None]


class Relay:
    """Relay connections to `upstream`; None from `change` closes the connection."""

    def __init__(self, upstream: str, change: Change) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = host, int(port)
        self._change = change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._upstream) as far:
            while (request := _frame(near)) is not None:
                far.sendall(struct.pack(">i", len(request)) + request)
                response = _frame(far)
                if response is None:
                    return
                api_key, version = struct.unpack(">hh", request[:4])
                changed = self._change(api_key, version, response)
                if changed is None:
                    return
                near.sendall(struct.pack(">i", len(changed)) + changed)


def _frame(sock: socket.socket) -> bytes | None:
    head = _exactly(sock, 4)
    return None if head is None else _exactly(sock, struct.unpack(">i", head)[0])


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            chunk = sock.recv(size - len(data))
        except OSError:
            return None
        if not chunk:
            return None
        data += chunk
    return data
