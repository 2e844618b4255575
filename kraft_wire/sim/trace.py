"""The trace of a run, always as a hash and on request as a story.

Every event adds a fixed-column line to the hash: time, node, event, role, epoch, leader, log end,
high watermark, and a checksum of the bytes that moved. Equal seeds give equal hashes, with any
PYTHONHASHSEED. With `keeps` on, the same moments are kept as JSON objects, requests and answers
decoded, for `--trace` (JSON lines) and the page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from zlib import crc32

from kraft_wire.sim.judge.judge import NodeWatch
from kraft_wire.wire.generated.registry import request_class, response_class
from kraft_wire.wire.header import parse_request_header, parse_response_header
from kraft_wire.wire.json_form import Json, message_to_json
from kraft_wire.wire.message import MalformedMessage

__all__ = ["Trace"]

_LINES_PER_UPDATE = 256


class Trace:
    """One run's trace."""

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps = keeps
        self.entries: list[dict[str, Json]] = []
        self._hash = hashlib.blake2b(digest_size=16)
        self._lines: list[str] = []

    def hexdigest(self) -> str:
        """Return the hash of everything so far."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._lines:
            self._hash.update("".join(self._lines).encode())
            self._lines.clear()

    def turn(self, now_us: int, watch: NodeWatch, event: str) -> None:
        """A node took an event."""
        lines = self._lines
        lines.append(
            f"{now_us} {watch.id} {event} {watch.role_name} {watch.epoch} {watch.leader_id} "
            f"{watch.log.end_offset} {watch.high_watermark}\n"
        )
        if len(lines) >= _LINES_PER_UPDATE:
            self._flush()

    def bytes(self, now_us: int, source: int, target: int, data: bytes | bytearray) -> None:
        """Bytes left for somewhere."""
        self._lines.append(f"{now_us} {source}>{target} {len(data)} {crc32(data)}\n")

    # -- the story -------------------------------------------------------------------------------

    def keep(self, kind: str, now_us: int, **fields: Json) -> int:
        """Keep one moment; return its number."""
        self.entries.append({"kind": kind, "us": now_us, **fields})
        return len(self.entries) - 1

    def arrived(self, number: int, now_us: int) -> None:
        """A kept message has reached the other end."""
        self.entries[number]["arrived_us"] = now_us

    def lines(self) -> Iterator[str]:
        """Yield the kept moments as JSON lines."""
        for entry in self.entries:
            yield json.dumps(entry, separators=(",", ":"))


def decoded_request(frame: bytes) -> tuple[str, int, Json]:
    """Return name, version and JSON of a request frame without its length."""
    header, at = parse_request_header(frame)
    kind = request_class(header.api_key)
    try:
        message, _ = kind.decode(frame, header.api_version, at)
    except MalformedMessage as error:
        return kind.NAME, header.api_version, str(error)
    return kind.NAME, header.api_version, message_to_json(message, header.api_version)


def decoded_response(frame: bytes, api_key: int, version: int) -> tuple[str, Json]:
    """Return name and JSON of a response frame without its length."""
    kind = response_class(api_key)
    try:
        _, at = parse_response_header(frame, api_key, version)
        message, _ = kind.decode(frame, version, at)
    except MalformedMessage as error:
        return kind.NAME, str(error)
    return kind.NAME, message_to_json(message, version)
