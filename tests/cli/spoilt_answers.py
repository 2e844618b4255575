"""`python -m tests.cli.spoilt_answers [--seed N] [--seconds N]`: commands against a broken broker.

A relay stands before a node of ours and spoils one field of an answer now and then: a number, a
text, bytes, a list that is empty, doubled or turned. Whatever comes, a command has to end in time
and without a Python trace. Each finding is printed once, with the fields that were spoilt last.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, NoReturn

from typer.testing import CliRunner

from kraft_wire.cli.main import COMMANDS
from kraft_wire.client.connection import BrokerConnection
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.header import parse_response_header
from kraft_wire.wire.message import Message
from kraft_wire.wire.structs import Struct
from tests.conformance.broken_broker import Relay
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess

__all__ = ["Finding", "findings", "spoilt_node"]

COMMAND_LINES = (
    "topics list",
    "topics describe t",
    "topics describe --json",
    "topics create n%d --partitions 2",
    "topics delete n%d",
    "topics add-partitions t --partitions 3",
    "topics configs t",
    "topics reassign --topic t --replicas 1 --json",
    "configs describe --topic t",
    "configs describe --broker 1 --json",
    "configs alter --topic t --add-config retention.ms=%d",
    "groups list",
    "groups describe g",
    "groups describe c --json",
    "groups describe s",
    "groups describe g --members",
    "groups reset-offsets g --topic t --to-earliest",
    "groups delete gone",
    "groups delete-offsets g --topic t",
    "consume t --max-messages 5",
    "consume t --group r --max-messages 3 --timeout-ms 2000",
    "consume t --json",
    "transactions list",
    "transactions describe --transactional-id x",
    "transactions describe-producers --topic t --partition 0",
    "transactions find-hanging --broker-id 1",
    "acls list",
    "users list",
    "users delete ann",
    "quotas describe",
    "tokens list",
    "quorum describe --json",
    "quorum describe",
    "cluster health",
)
"""`%d` is a number that grows; the address comes behind."""
_API_VERSIONS = 18
_PATIENCE_S = 150
"""A member that is told of another leader waits for it as long as a rebalance may take."""
_RATES = (1.0, 0.4, 0.2)


class Finding(NamedTuple):
    """How a command ended as it must not."""

    command: str
    problem: str
    place: str
    spoilt: tuple[str, ...]


class _TooLong(BaseException):
    """A command does not end."""


class Spoiler:
    """Changes answers; addresses of the node become those of the relay."""

    def __init__(self, random: Random, port: int) -> None:
        self.random = random
        self.rate = 1.0
        """Which share of the answers is spoilt."""
        self.spoilt: list[str] = []
        self.relay_port = 0
        self._port = port

    def change(self, api_key: int, version: int, frame: bytes) -> bytes:
        """Return an answer as the command gets it."""
        kind = response_class(api_key)
        _, at = parse_response_header(frame, api_key, version)
        answer, _ = kind.decode(frame, version, at)
        for owner, name, value, _ in list(_fields(answer, "")):
            if name == "port" and value == self._port:
                setattr(owner, name, self.relay_port)
        plain = frame[:at] + _encoded(answer, version)
        if api_key == _API_VERSIONS or self.random.random() > self.rate:
            return plain
        owner, name, value, path = self.random.choice(list(_fields(answer, "")))
        new = self._other(value)
        try:
            setattr(owner, name, new)
            changed = frame[:at] + _encoded(answer, version)
        except Exception:  # noqa: BLE001  # no answer has such a value
            return plain
        self.spoilt.append(f"{kind.NAME} {path}: {str(value)[:60]!r} became {str(new)[:60]!r}")
        return changed

    def _other(self, value: Any) -> Any:
        choice = self.random.choice
        match value:
            case bool():
                return not value
            case int():
                ends = (2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
                return choice((0, -1, 1, 2, 7, 999, value - 1, value + 1, *ends))
            case str():
                return choice(("", "x" * 300, "a\nb\x1b[2J", value + "x", "10.0.0.256", None))
            case bytes() | memoryview():
                data = bytes(value)
                noise = self.random.randbytes(choice((1, 16, 40)))
                return choice((b"", data[: len(data) // 2], data[::-1], data + data, noise, None))
            case list():
                return choice(([], value + value, value[::-1], value[1:], value * 50, None))
            case _:
                return choice(("", b"", 0, [], "x"))


def _encoded(answer: Message, version: int) -> bytes:
    return b"".join(bytes(part) for part in answer.encode_parts(version))  # type: ignore[arg-type]  # a node's answers have no slices here


def _fields(owner: Struct, path: str) -> Iterator[tuple[Struct, str, Any, str]]:
    """Yield every field of a struct and of those in it, with where it is."""
    for name in owner.field_names:
        value = getattr(owner, name)
        yield owner, name, value, path + name
        inner = value if isinstance(value, list) else [value]
        for number, each in enumerate(inner[:5]):
            if isinstance(each, Struct):
                yield from _fields(each, f"{path}{name}[{number}].")


@contextmanager
def spoilt_node(directory: Path, random: Random) -> Iterator[tuple[Spoiler, str]]:
    """Start a node with some of everything, and a relay before it; yield the relay's address."""
    with ServerProcess(directory, overrides={"num.partitions": "3"}) as server:
        _run(server.bootstrap, "topics create t --partitions 3")
        _run(server.bootstrap, f"users set-scram ann --password-file {_password(directory)}")
        with WireClient(server.bootstrap) as client:
            for value in (b"one", b"two", b"three"):
                client.call(
                    produce_request(client.topic("t"), one_batch(value)), 9, ProduceResponse
                )
        _run(server.bootstrap, "consume t --group g --max-messages 3")
        _join(server.bootstrap)
        spoiler = Spoiler(random, int(server.bootstrap.rpartition(":")[2]))
        with Relay(server.bootstrap, spoiler.change) as relay:
            spoiler.relay_port = int(relay.address.rpartition(":")[2])
            yield spoiler, relay.address


def _run(address: str, line: str) -> None:
    verb, *words = line.split()
    app = import_module(COMMANDS[verb][0]).app
    done = CliRunner().invoke(app, [*words, "-b", address])
    assert done.exit_code == 0, done.output


def _password(directory: Path) -> str:
    file = directory / "password"
    file.write_text("secret")
    return str(file)


def _join(address: str) -> None:
    """Put a member into a consumer group and into a share group."""
    with BrokerConnection(address) as connection:
        member = "vK0CWJJjQ7Wv0zDvX1pZtA"
        consumer = ConsumerGroupHeartbeatRequest(
            group_id="c",
            member_id=member,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        connection.send(consumer, ConsumerGroupHeartbeatResponse)
        share = ShareGroupHeartbeatRequest(
            group_id="s", member_id=member, subscribed_topic_names=["t"]
        )
        connection.send(share, ShareGroupHeartbeatResponse)


def findings(
    spoiler: Spoiler, address: str, patience_s: int | None = None
) -> Iterator[Finding | None]:
    """Run one command after the other without end; yield what each has shown, mostly nothing.

    One that takes longer than `patience_s` is a finding; None leaves that to pytest's own alarm.
    """
    runner, number = CliRunner(), 0
    while True:
        number += 1
        line = spoiler.random.choice(COMMAND_LINES)
        words = (line % number if "%d" in line else line).split()
        spoiler.spoilt.clear()
        spoiler.rate = spoiler.random.choice(_RATES)
        app = import_module(COMMANDS[words[0]][0]).app
        error: BaseException | None
        try:
            with _at_most(patience_s):
                error = runner.invoke(app, [*words[1:], "-b", address]).exception
        except _TooLong as late:
            error = late
        # An error of the system is one line of every command (`cli.main`).
        is_one_line = error is None or isinstance(error, SystemExit | OSError)
        yield None if is_one_line else _finding(line, error, spoiler.spoilt)


@contextmanager
def _at_most(seconds: int | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(*_: object) -> NoReturn:
    raise _TooLong


def _finding(line: str, error: BaseException | None, spoilt: list[str]) -> Finding:
    assert error is not None, line
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/kraft_wire/" in each.filename] or frames
    place = f"{ours[-1].filename.rpartition('/kraft_wire/')[2]}:{ours[-1].lineno}"
    problem = f"{type(error).__name__}: {str(error)[:100]}"
    return Finding(line, problem, place, tuple(spoilt[-3:]))


def main() -> int:
    """Search for a while; return 1 with a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.cli.spoilt_answers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    wanted = parser.parse_args()
    known: set[tuple[str, str]] = set()
    count, end = 0, time.monotonic() + wanted.seconds
    with (
        tempfile.TemporaryDirectory() as folder,
        spoilt_node(Path(folder), Random(wanted.seed)) as (spoiler, address),
    ):
        for found in findings(spoiler, address, _PATIENCE_S):
            count += 1
            if found is not None and (found.place, found.problem[:20]) not in known:
                known.add((found.place, found.problem[:20]))
                print(*found[:3], *found.spoilt, sep="\n  ", flush=True)
            if time.monotonic() > end:
                break
    print(f"{count} commands, {len(known)} findings")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
