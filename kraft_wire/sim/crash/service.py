"""Starts a whole node on the disk after a crash, and checks what a recovered node must know.

Frames go in and come out as on a socket: production decoding, routing, replica, log and flush. A
candidate whose log is far ahead asks for a vote. In the epoch of a vote that the node announced,
only the candidate that got it may get it again. In the next epoch the vote must be granted,
durably. A node that is the only voter must lead and commit a change instead.
"""

from __future__ import annotations

from typing import Any, Final

from kraft_wire.model import LeaderEpoch
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import FlushLogs, Peer, Reply
from kraft_wire.raft.roles import Leader
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.sim.crash.promises import Promise
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.judge.log_watch import LogWatch
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.runs.script import write_request
from kraft_wire.sim.scheduler import SeededRandomSource
from kraft_wire.sim.setup import CLUSTER_ID, LISTENER, directory_id, node_config
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.vote import PartitionData, TopicData, VoteRequest
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import Message

__all__ = ["what_is_refused"]

_NOW_MS: Final = 10_000
_WALL_MS: Final = 1_800_000_000_000
_FAR: Final = 1_000_000
_ROUNDS_MAX: Final = 8


def what_is_refused(
    machine: Machine, fs: SimFileSystem, owed: Promise, seen: LogWatch
) -> list[str]:
    """Return the faults of a node that serves from this disk."""
    fs.release_locks()
    config = node_config(machine.setup, machine.id)
    random_source = SeededRandomSource(machine.id, "crash")
    try:
        node = Node(
            config,
            fs,
            random_source,
            now_ms=_NOW_MS,
            wall_ms=_WALL_MS,
            report=lambda name, **fields: None,
        )
    except StartError as error:
        return [f"the node does not start: {error}"]
    service = _Service(machine, fs, node)
    service.flush()
    quorum = node.raft.replica.quorum
    if isinstance(quorum.role, Leader):
        if quorum.epoch <= max(owed.epoch, owed.led_epoch):
            return [f"leads epoch {quorum.epoch} again"]
        return service.wrong_write()
    return service.wrong_votes(owed, seen)


class _Service:
    """One running node and its client."""

    def __init__(self, machine: Machine, fs: SimFileSystem, node: Node) -> None:
        self._machine = machine
        self._fs = fs
        self._node = node
        self._peer = Peer(1, "crash", 1, LISTENER)

    def flush(self) -> list[Reply]:
        """Carry out the node's disk operations; return its answers."""
        replies: list[Reply] = []
        node = self._node
        for _ in range(_ROUNDS_MAX):
            outputs, node.outputs = node.outputs, []
            for output in outputs:
                if isinstance(output, Reply):
                    replies.append(output)
                elif isinstance(output, FlushLogs):
                    failure = output.run()
                    assert failure is None, failure
                    node.flushed(output.flush_id, _NOW_MS, _WALL_MS)
        return replies

    def _ask(self, request: Message) -> Any:
        """Send a request as a frame; return the answer, None without one."""
        version = request.MAX_VERSION
        head = encode_request_header(RequestHeader(request.API_KEY, version, 1, "crash"))
        frame = bytearray(head + request.encode(version))
        self._node.receive(self._peer, frame, _NOW_MS, _WALL_MS)
        replies = self.flush()
        if not replies:
            return None
        body = b"".join(bytes(part) for part in replies[0].buffers)[4:]  # type: ignore[arg-type]  # no slice of a file is in these answers
        _, start = parse_response_header(body, request.API_KEY, version)
        return response_class(request.API_KEY).decode(body, version, start)[0]

    def wrong_write(self) -> list[str]:
        """Write a setting as a client."""
        answer = self._ask(write_request("after", "1500"))
        if answer is None:
            return ["a change is never answered"]
        code = answer.responses[0].error_code
        return [] if code == ErrorCode.NONE else [f"a change is refused with {code}"]

    def wrong_votes(self, owed: Promise, seen: LogWatch) -> list[str]:
        """Ask for a second vote in an epoch, and for one in the next."""
        epoch, voted_id = owed.vote
        others = [node for node in self._machine.setup.nodes if node != self._machine.id]
        for candidate in others:
            if epoch >= 0 and candidate != voted_id and self._grants(candidate, epoch):
                return [f"two votes in epoch {epoch}: for {voted_id} and for {candidate}"]
        found = seen.election
        following = max(owed.epoch, found.epoch if found is not None else 0) + 1
        if not self._grants(others[0], following):
            return [f"no vote in epoch {following}"]
        look = LogWatch()
        look.look(self._fs)
        stored = look.election
        if stored is None or (stored.epoch, stored.voted_id) != (following, others[0]):
            return [f"the vote in epoch {following} is not on the disk: {stored}"]
        return []

    def _grants(self, candidate: int, epoch: int) -> bool:
        """Have a candidate with every record that there could be ask for a vote."""
        partition = PartitionData(
            partition_index=0,
            replica_epoch=LeaderEpoch(epoch),
            replica_id=candidate,
            replica_directory_id=directory_id(candidate),
            voter_directory_id=directory_id(self._machine.id, self._machine.generation),
            last_offset_epoch=max(0, epoch - 1),
            last_offset=_FAR,
        )
        topic = TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        request = VoteRequest(cluster_id=CLUSTER_ID, voter_id=self._machine.id, topics=[topic])
        answer = self._ask(request)
        if answer is None or not answer.topics:
            return False
        return bool(answer.topics[0].partitions[0].vote_granted)
