"""Rules over HTTP without a node: every form of a request, with its status and its whole body."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.node.disks.opening import StartError
from kraft_wire.testing import observed_server as server_module
from kraft_wire.testing.faults import control_port as port_module
from kraft_wire.testing.faults.control_port import serve_control
from kraft_wire.testing.faults.documents import InvalidRule, read_rules, rule_of
from kraft_wire.testing.faults.rule import Effect, Fault
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.observed_server import ObservedServer, add_rules_of_file, open_control


def exchanged(rules: FaultRules, *requests: bytes) -> list[tuple[str, Any]]:
    """The status line and the document of each response; all are of one server."""

    async def run() -> list[tuple[str, Any]]:
        server = await serve_control(rules, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        found = []
        for request in requests:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 30)
            writer.close()
            head, _, body = answer.partition(b"\r\n\r\n")
            status, *fields = head.decode().split("\r\n")
            if answer:
                assert fields == [
                    "Content-Type: application/json",
                    f"Content-Length: {len(body)}",
                    "Connection: close",
                ]
                assert body.endswith(b"\n")
            found.append((status, json.loads(body) if body else None))
        server.close()
        return found

    return asyncio.run(run())


def request(method: str, target: str, document: object = None) -> bytes:
    body = b"" if document is None else json.dumps(document).encode()
    length = f"CONTENT-length:  {len(body)} \r\n" if body else "X: y\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + body


OK, BAD, MISSING = "HTTP/1.1 200 OK", "HTTP/1.1 400 Bad Request", "HTTP/1.1 404 Not Found"
FIRST = {"number": 1, "fired": 0, "disconnect": True, "api": "Fetch", "topic": "t"}
SECOND = {"number": 2, "fired": 0, "delay": 0.5, "partition": 3, "node": 1}
THIRD = {"number": 3, "fired": 0, "inject_error": "NOT_LEADER_OR_FOLLOWER", "client_id": "c"}


def test_rules_are_added_shown_and_removed() -> None:
    rules = FaultRules(lambda _: None)
    several = [{"delay": 0.5, "partition": 3, "node": 1}, {"inject_error": 6, "client_id": "c"}]
    found = exchanged(
        rules,
        request("POST", "/rules", {"disconnect": True, "api": "Fetch", "topic": "t"}),
        request("POST", "/rules/", several),
        request("GET", "/rules"),
        request("GET", "/rules/2"),
        request("DELETE", "/rules/2"),
        request("GET", "/rules/2"),
        request("DELETE", "/rules"),
        request("GET", "/rules"),
    )
    assert found == [
        (OK, [FIRST]),
        (OK, [SECOND, THIRD]),
        (OK, [FIRST, SECOND, THIRD]),
        (OK, SECOND),
        (OK, SECOND),
        (MISSING, {"error": "unknown rule 2"}),
        (OK, [FIRST, THIRD]),
        (OK, []),
    ]


@pytest.mark.parametrize(
    ("sent", "status", "line"),
    [
        (request("GET", "/"), MISSING, "expected /rules or /rules/NUMBER"),
        (request("GET", "/rule"), MISSING, "expected /rules or /rules/NUMBER"),
        (request("GET", "/rules/1/x"), MISSING, "expected /rules or /rules/NUMBER"),
        (request("GET", "/rules/1"), MISSING, "unknown rule 1"),
        (request("POST", "/rules/1", {}), MISSING, "unknown rule 1"),
        (
            request("PUT", "/rules", {}),
            "HTTP/1.1 405 Method Not Allowed",
            "expected GET, POST or DELETE",
        ),
        (request("GET", "/rules?wait=x"), BAD, "wait: 'x' is not a number of seconds"),
        (
            request("POST", "/rules", {"delay": -1}),
            BAD,
            "rule 1: delay: -1 is not a number of 0 or more",
        ),
        (
            b"POST /rules HTTP/1.1\r\nContent-Length: 1\r\n\r\n{",
            BAD,
            "the body is not JSON: Expecting property name enclosed in double quotes: line 1 column"
            " 2 (char 1)",
        ),
        pytest.param(
            b"POST /rules HTTP/1.1\r\nContent-Length: 9999\r\n\r\n" + b"[" * 9_999,
            BAD,
            "the body is not JSON: maximum recursion depth exceeded while decoding a JSON array"
            " from a unicode string",
            id="deep",
        ),
        (
            b"POST /rules HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n",
            BAD,
            "the body is too large",
        ),
    ],
)
def test_request_that_is_wrong_is_answered_with_its_reason(
    sent: bytes, status: str, line: str
) -> None:
    rules = FaultRules(lambda _: None)
    assert exchanged(rules, sent) == [(status, {"error": line})]
    assert rules.in_force == ()


def test_half_a_request_is_not_answered() -> None:
    half = b"POST /rules HTTP/1.1\r\nContent-Length: 5\r\n\r\n{}"
    endless = b"GET /" + b"x" * 20_000
    rules = FaultRules(lambda _: None)
    found = exchanged(rules, half, b"GET /rules", endless, request("GET", "/rules"))
    assert found == [("", None), ("", None), ("", None), (OK, [])]


def test_wait_ends_when_all_chosen_rules_have_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = FaultRules(lambda _: None)
    first, second = (rules.add(*each) for each in read_rules('[{"delay": 1}, {"delay": 2}]'))
    first.note_fired()
    looked = 0

    async def look(seconds: float) -> None:
        nonlocal looked
        looked += 1
        if looked == 3:
            second.note_fired()

    monkeypatch.setattr(port_module.asyncio, "sleep", look)
    asyncio.run(port_module._wait([first, second], "50"))
    assert looked == 3
    asyncio.run(port_module._wait([first], "50"))
    assert looked == 3


def test_rules_of_a_file_are_in_force_or_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('[{"delay": 1}, {"blackhole": true}]')
    rules = FaultRules(lambda _: None)
    add_rules_of_file(rules, str(path))
    assert [each.fault.effect.value for each in rules.in_force] == ["delay", "blackhole"]
    assert ObservedServer(str(path), None).rules.in_force[0].fault.seconds == 1
    path.write_text('{"delay": -1}')
    refusals = {
        str(path): f"--faults {path}: rule 1: delay: -1 is not a number of 0 or more",
        str(tmp_path / "no"): f"--faults {tmp_path}/no: No such file or directory",
    }
    for name, line in refusals.items():
        with pytest.raises(StartError) as refused:
            add_rules_of_file(rules, name)
        assert str(refused.value) == line
    path.write_bytes(b"\xff")
    with pytest.raises(StartError, match=f"^--faults {path}: 'utf-8' codec can't decode"):
        add_rules_of_file(rules, str(path))
    with pytest.raises(StartError) as refused:
        ObservedServer(None, str(tmp_path))
    assert str(refused.value) == f"--trace {tmp_path}: Is a directory"


def test_text_that_cannot_be_read_is_one_line() -> None:
    with pytest.raises(InvalidRule) as refused:
        read_rules("a:\n  - [b\nc: d")
    assert str(refused.value).startswith("the rules cannot be read: while parsing a flow sequence")
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidRule, match=r"^the rules cannot be read: maximum recursion depth"):
        read_rules("[" * 9_999)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("9000", " is not an address of the form host:port"),
        ("host:", " is not an address of the form host:port"),
        ("host:x", " is not an address of the form host:port"),
        ("127.0.0.1:99999", ": bind(): port must be 0-65535."),
    ],
)
def test_control_port_that_cannot_be_served_is_refused(address: str, reason: str) -> None:
    with pytest.raises(StartError) as refused:
        asyncio.run(open_control(FaultRules(lambda _: None), address))
    assert str(refused.value) == f"--control {address}{reason}"


def test_control_port_is_served_or_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[asyncio.Server] = []

    async def serve(rules: FaultRules, host: str, port: int) -> asyncio.Server:
        served.append(await serve_control(rules, host, port))
        return served[-1]

    async def run() -> str:
        rules = FaultRules(lambda _: None)
        taken = await open_control(rules, "127.0.0.1:0")
        host, port = served[0].sockets[0].getsockname()[:2]
        assert taken == f"{host}:{port}"
        with pytest.raises(StartError) as refused:
            await open_control(rules, taken)
        served[0].close()
        return str(refused.value).replace(taken, "ADDRESS")

    monkeypatch.setattr(server_module, "serve_control", serve)
    assert asyncio.run(run()) == "--control ADDRESS: Address already in use"


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"delay": 1}, Fault(Effect.DELAY, seconds=1)),
        ({"delay": 1.0}, Fault(Effect.DELAY, seconds=1)),
        ({"throttle": 1}, Fault(Effect.THROTTLE, seconds=1)),
        ({"truncate_response": 1}, Fault(Effect.TRUNCATE_RESPONSE, size_bytes=1)),
        ({"truncate_response": 0}, Fault(Effect.TRUNCATE_RESPONSE)),
        ({"disconnect": None}, Fault(Effect.DISCONNECT)),
        ({"disconnect": True}, Fault(Effect.DISCONNECT)),
    ],
)
def test_number_of_a_rule_is_taken_and_a_flag_has_none(
    document: dict[str, object], fault: Fault
) -> None:
    """In Python 1 equals True, which stands for "without a number"."""
    assert rule_of(document, "rule 1").fault == fault
