"""Connections to a node under attack that are held by hand, and what requests end in there."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import dialogue
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.apache.secured_node import ACCOUNTS
from tests.attack.target import read_frame

__all__ = ["Line", "host_and_port", "outcome_of"]

_PATIENCE_S = 15.0


class Line:
    """One connection whose every byte is the attacker's."""

    def __init__(
        self,
        address: tuple[str, int],
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.socket = socket.create_connection(address, _PATIENCE_S, (host, 0))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])

    def frame(self, request: Message, version: int, client_id: str = "attacker") -> bytes:
        """Return a request as it is sent."""
        header = RequestHeader(request.API_KEY, version, 7, client_id)
        payload = encode_request_header(header) + request.encode(version)
        return len(payload).to_bytes(4, "big") + payload

    def says(self, data: bytes) -> None:
        """Send bytes; that the node has closed already is no error."""
        with suppress(ConnectionError, ssl.SSLError):
            self.socket.sendall(data)

    def hears(self) -> bytes | None:
        """Return a frame, None where the node closes."""
        try:
            return read_frame(self.socket)  # a TLS socket is one too
        except (ConnectionError, ssl.SSLError):
            return None

    def ask(self, request: Message, version: int, client_id: str = "attacker") -> Any:
        """Return the answer to a request, None where the node closes."""
        self.says(self.frame(request, version, client_id))
        frame = self.hears()
        if frame is None:
            return None
        _, at = parse_response_header(frame, request.API_KEY, version)
        return response_class(request.API_KEY).decode(frame, version, at)[0]

    def outcome(self, request: Message, version: int) -> str:
        """Return what a request ends in: see `outcome_of`."""
        return outcome_of(self.ask(request, version), version)

    def shake(self, mechanism: str) -> Any:
        """Choose a mechanism."""
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), 1)

    def show(self, token: bytes) -> Any:
        """Show a token."""
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), 2)

    def refused(self, mechanism: str, *tokens: bytes) -> str:
        """Choose a mechanism and show tokens; return the outcome of the last."""
        answer = self.shake(mechanism)
        for token in tokens:
            if answer is None or answer.error_code:
                break
            answer = self.show(token)
        return outcome_of(answer, 2 if tokens else 1)

    def enters(self, user: str) -> None:
        """Log in by PLAIN with the right password."""
        self.shake("PLAIN")
        answer = self.show(f"\0{user}\0{ACCOUNTS[user]}".encode())
        assert answer is not None, user
        assert answer.error_code == 0, answer

    def logs_in(self, credentials: Credentials, nonce: str = "") -> str:
        """Log in as a client does; return the outcome."""
        tokens = dialogue(credentials, nonce)
        answer = self.shake(credentials.mechanism)
        token: bytes | None = next(tokens)
        while token is not None and answer is not None and not answer.error_code:
            answer = self.show(token)
            token = None
            if answer is not None and not answer.error_code:
                with suppress(StopIteration):
                    token = tokens.send(bytes(answer.auth_bytes))
        return outcome_of(answer, 2)

    def is_closed(self, seconds: float = _PATIENCE_S) -> bool:
        """Wait for the end of the connection; whatever comes before is dropped."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except (ConnectionError, ssl.SSLError):
            return True
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def host_and_port(address: str) -> tuple[str, int]:
    """Return both parts of an address."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def outcome_of(answer: Message | None, version: int) -> str:
    """Return `close`, or the error codes of an answer, the innermost ones where there are such."""
    if answer is None:
        return "close"
    shown = message_to_json(answer, version)
    inner = set(_codes([each for each in shown.values() if isinstance(each, list | dict)]))
    if shown.get("errorCode"):
        inner = {shown["errorCode"]}
    return "+".join(map(str, sorted(inner or {shown.get("errorCode", 0)})))


def _codes(shown: Any) -> Iterator[int]:
    if isinstance(shown, list):
        for each in shown:
            yield from _codes(each)
    elif isinstance(shown, dict):
        inner = [code for value in shown.values() for code in _codes(value)]
        own = [value for key, value in shown.items() if key.lower().endswith("errorcode")]
        yield from inner if inner and own in ([], [0]) else own
