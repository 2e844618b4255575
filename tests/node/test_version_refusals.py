"""A version that is refused by an answer leaves a log line; a flood of them is counted."""

from __future__ import annotations

import struct

from kraft_wire.node.outputs import Peer, Reply
from kraft_wire.sim.disk.files import SimFileSystem
from tests.broker.groups.node_door import NodeDoor

OLD_PRODUCE = struct.pack(">hiihsiii", 1, 5, 1, 1, b"t", 1, 0, 0)
"""acks, timeout, one topic `t`, one partition with no bytes of records."""


class Door(NodeDoor):
    """Keeps the lines about versions."""

    def _report(self, name: str, **fields: object) -> None:
        if name.startswith("version_refused"):
            self.lines.append((name, fields))

    def send_frame(self, api_key: int, version: int, body: bytes, host: str = "10.0.0.9") -> None:
        peer = Peer(3, host, 53114, "PLAINTEXT")
        head = struct.pack(">hhih3s", api_key, version, 7, 3, b"old")
        self.node.receive(peer, bytearray(head + body), self.now_ms, self.wall_ms)
        answers = [each for each in self.node.outputs if isinstance(each, Reply)]
        assert len(answers) == 1, "it is answered, and the connection stays open"
        self.node.outputs.clear()


def line(api: str, version: int) -> tuple[str, dict[str, object]]:
    """The line of one refused request."""
    fields = {
        "client": "10.0.0.9:53114",
        "listener": "PLAINTEXT",
        "api": api,
        "version": version,
        "client_id": "old",
        "reason": "UNSUPPORTED_VERSION",
    }
    return "version_refused", fields


def test_refused_versions_of_api_versions_and_produce_are_logged() -> None:
    door = Door(SimFileSystem())
    door.send_frame(18, 77, b"\0")
    door.send_frame(0, 2, OLD_PRODUCE)
    assert door.lines == [line("ApiVersions", 77), line("Produce", 2)]


def test_flood_of_one_address_and_api_is_ten_lines_a_second_and_a_count() -> None:
    door = Door(SimFileSystem(), now_ms=2_000)
    for _ in range(25):
        door.send_frame(0, 0, OLD_PRODUCE)
    door.send_frame(18, 77, b"\0")
    door.send_frame(0, 0, OLD_PRODUCE, host="10.0.0.8")
    assert door.lines[:11] == [line("Produce", 0)] * 10 + [line("ApiVersions", 77)]
    assert [fields["client"] for _, fields in door.lines[11:]] == ["10.0.0.8:53114"]
    door.node.tick(3_000, door.wall_ms + 1_000)
    hidden = {"client": "10.0.0.9", "api": "Produce", "count": 15}
    assert door.lines[12:] == [("version_refused_suppressed", hidden)]
