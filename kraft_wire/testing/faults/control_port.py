"""Rules over HTTP, for tests in any language: one small request a connection, JSON both ways.

GET    /rules               all rules, each with its number and how often it has fired
POST   /rules               add one rule, or a list of them; the same form is returned
GET    /rules/3?wait=5      one rule, once it has fired or after 5 seconds
DELETE /rules/3             remove one; DELETE /rules removes all
"""

import asyncio
import json
from typing import Final
from urllib.parse import parse_qs, urlsplit

from kraft_wire.foreign_text import json_value
from kraft_wire.testing.faults.documents import InvalidRule, rule_to_document, rules_of
from kraft_wire.testing.faults.rule import Rule
from kraft_wire.testing.faults.rules import FaultRules

__all__ = ["serve_control"]

_HEAD_BYTES_MAX: Final = 16_384
_BODY_BYTES_MAX: Final = 1_048_576
_REQUEST_SECONDS_MAX: Final = 5.0
_WAIT_SECONDS_MAX: Final = 60.0
_LOOK_S: Final = 0.002
_REASONS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class _Refused(Exception):
    """An HTTP status with the reason as its text."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def serve_control(rules: FaultRules, host: str, port: int) -> asyncio.Server:
    """Serve the rules on a port, 0 for a free one."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(_read(reader), _REQUEST_SECONDS_MAX)
            status, document = await _respond(rules, *request)
        except _Refused as refusal:
            status, document = refusal.status, {"error": str(refusal)}
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            return
        body = json.dumps(document).encode() + b"\n"
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        writer.close()

    return await asyncio.start_server(answer, host, port, limit=_HEAD_BYTES_MAX)


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    """Return method, target and body of a request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, _, rest = first.partition(" ")
    size = 0
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length" and value.strip().isdecimal():
            size = int(value)
    if size > _BODY_BYTES_MAX:
        raise _Refused(400, "the body is too large")
    return method, rest.partition(" ")[0], await reader.readexactly(size)


async def _respond(rules: FaultRules, method: str, target: str, body: bytes) -> tuple[int, object]:
    parts = urlsplit(target)
    names = [each for each in parts.path.split("/") if each]
    if not names or names[0] != "rules" or len(names) > 2:
        raise _Refused(404, "expected /rules or /rules/NUMBER")
    if method == "POST" and len(names) == 1:
        return 200, [rule_to_document(each) for each in _add(rules, body)]
    chosen = list(rules.in_force) if len(names) == 1 else [_numbered(rules, names[1])]
    if method == "DELETE":
        for each in chosen:
            each.remove()
    elif method != "GET":
        raise _Refused(405, "expected GET, POST or DELETE")
    elif "wait" in parse_qs(parts.query):
        await _wait(chosen, parse_qs(parts.query)["wait"][0])
    shown = [rule_to_document(each) for each in chosen]
    return 200, shown if len(names) == 1 else shown[0]


def _add(rules: FaultRules, body: bytes) -> list[Rule]:
    try:
        documents = rules_of(json_value(body))
    except InvalidRule as error:
        raise _Refused(400, str(error)) from error
    except ValueError as error:
        raise _Refused(400, f"the body is not JSON: {error}") from error
    return [rules.add(*each) for each in documents]


def _numbered(rules: FaultRules, number: str) -> Rule:
    for each in rules.in_force:
        if str(each.number) == number:
            return each
    raise _Refused(404, f"unknown rule {number}")


async def _wait(chosen: list[Rule], seconds: str) -> None:
    """Return once all have fired, or the time is over."""
    try:
        limit = min(float(seconds), _WAIT_SECONDS_MAX)
    except ValueError:
        raise _Refused(400, f"wait: {seconds!r} is not a number of seconds") from None
    loop = asyncio.get_running_loop()
    until = loop.time() + limit
    while not all(each.fired for each in chosen) and loop.time() < until:
        await asyncio.sleep(_LOOK_S)
