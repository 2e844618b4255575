"""Requests and their responses: kept in bounded memory, decoded on access, written as JSON."""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from kraft_wire.testing.faults.treatment import Treatment
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.registry import REQUESTS, request_class, response_class
from kraft_wire.wire.header import RequestHeader, parse_request_header, parse_response_header
from kraft_wire.wire.json_form import Json, message_to_json
from kraft_wire.wire.message import Buffer, MalformedMessage, Message, UnencodableMessage

__all__ = ["Client", "Exchange", "Recorder"]

_COUNT_MAX: Final = 10_000
_BYTES_MAX: Final = 8 * 1024 * 1024


@dataclass(slots=True)
class Client:
    """One connection of a client."""

    address: str
    software: str = ""
    """Name and version, from its ApiVersions request (KIP-511)."""


@dataclass(slots=True)
class Exchange:
    """One request with its response; frames are without their length."""

    node_id: int
    client: Client
    at_ms: int
    """When the request came, in milliseconds since 1970."""
    header: RequestHeader
    request_frame: bytes
    response_frame: bytes | None = None
    """None until there is one, and if none is sent."""
    took_ms: int | None = None
    treatment: Treatment | None = None

    @property
    def api(self) -> str:
        """Kafka's name of the API, or its key."""
        entry = REQUESTS.get(self.header.api_key)
        return str(self.header.api_key) if entry is None else entry.name.removesuffix("Request")

    @property
    def version(self) -> int:
        """The API version."""
        return self.header.api_version

    @property
    def client_id(self) -> str | None:
        """The client id of the request."""
        return self.header.client_id

    @property
    def faults(self) -> list[str]:
        """The effects of the rules that fired on it."""
        return [] if self.treatment is None else list(self.treatment.fired)

    @property
    def request(self) -> Message | None:
        """The request, decoded; None if it cannot be decoded."""
        try:
            _, body_at = parse_request_header(self.request_frame)
            kind = request_class(self.header.api_key)
            return kind.decode(self.request_frame, self.version, body_at)[0]
        except (MalformedMessage, KeyError):
            return None

    @property
    def response(self) -> Message | None:
        """The response, decoded; None without a response that can be decoded."""
        if self.response_frame is None:
            return None
        try:
            key = self.header.api_key
            _, body_at = parse_response_header(self.response_frame, key, self.version)
            return response_class(key).decode(self.response_frame, self.version, body_at)[0]
        except (MalformedMessage, KeyError):
            return None

    def to_json(self) -> dict[str, Json]:
        """Return the exchange as an object, one line of a trace."""
        return {
            "at_ms": self.at_ms,
            "took_ms": self.took_ms,
            "node": self.node_id,
            "client": self.client.address,
            "client_software": self.client.software,
            "header": {
                "api": self.api,
                "api_key": self.header.api_key,
                "api_version": self.version,
                "correlation_id": self.header.correlation_id,
                "client_id": self.header.client_id,
            },
            "request": _json_of(self.request, self.version),
            "response": _json_of(self.response, self.version),
            "faults": [*self.faults],
        }


def _json_of(message: Message | None, version: int) -> Json:
    try:
        return None if message is None else message_to_json(message, version)
    except UnencodableMessage:
        return None


class Recorder:
    """The newest exchanges of all nodes, and a trace file where one is asked for."""

    def __init__(self, wall_ms: Callable[[], int], *, keeps: bool = True) -> None:
        """Without `keeps` there is nothing but the trace file."""
        self._wall_ms = wall_ms
        self._keeps = keeps
        self._exchanges: OrderedDict[int, Exchange] = OrderedDict()
        """Those that are kept, oldest first, by identity."""
        self._held_bytes = 0
        self._trace: IO[str] | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is done with exchanges."""
        return self._keeps or self._trace is not None

    def begin(self, node_id: int, client: Client, frame: Buffer) -> Exchange | None:
        """Record a request; None if its header cannot be read."""
        try:
            header, body_at = parse_request_header(frame)
        except MalformedMessage:
            return None
        if header.api_key == ApiVersionsRequest.API_KEY and not client.software:
            client.software = _software(frame, header.api_version, body_at)
        exchange = Exchange(node_id, client, self._wall_ms(), header, bytes(frame))
        if self._keeps:
            self._exchanges[id(exchange)] = exchange
            self._hold(len(frame))
        return exchange

    def end(self, exchange: Exchange, frame: bytes | None) -> None:
        """Record a response, or that there is none."""
        exchange.response_frame = frame
        exchange.took_ms = self._wall_ms() - exchange.at_ms
        if id(exchange) in self._exchanges:  # a late response may find its request dropped
            self._hold(len(frame or b""))
        if self._trace is not None:
            self._trace.write(json.dumps(exchange.to_json()) + "\n")
            self._trace.flush()

    def _hold(self, size_bytes: int) -> None:
        """Drop the oldest exchanges while all of them are too many or too large."""
        self._held_bytes += size_bytes
        while len(self._exchanges) > _COUNT_MAX or (
            self._held_bytes > _BYTES_MAX and len(self._exchanges) > 1
        ):
            _, oldest = self._exchanges.popitem(last=False)
            self._held_bytes -= len(oldest.request_frame) + len(oldest.response_frame or b"")

    def trace_to(self, path: Path | str | None) -> None:
        """Write each exchange from now on as one line of JSON; None ends that."""
        if self._trace is not None:
            self._trace.close()
        self._trace = None if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115  # open as long as the trace

    def exchanges(self, api: str | None, client_id: str | None) -> list[Exchange]:
        """Return the kept exchanges, oldest first."""
        return [
            each
            for each in self._exchanges.values()
            if api in (None, each.api) and client_id in (None, each.client_id)
        ]

    def clear(self) -> None:
        """Drop everything."""
        self._exchanges.clear()
        self._held_bytes = 0


def _software(frame: Buffer, version: int, body_at: int) -> str:
    """Return the name and version of a client, "" below version 3."""
    try:
        request, _ = ApiVersionsRequest.decode(frame, version, body_at)
    except MalformedMessage:
        return ""
    return f"{request.client_software_name} {request.client_software_version}".strip()
