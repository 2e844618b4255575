"""Every frame that a node or a client sends or receives passes here: it is traced and decoded.

Requests of the quorum are decoded for the invariants about messages; some are kept, so that hostile
connections can send them again. Vote requests are decoded as they arrive, from peers and hostile
clients alike: an answer does not repeat its request. Answers to clients are marked with the node
that sent them, which the history needs. With a kept trace everything is decoded for the story.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from struct import Struct
from typing import Final

from kraft_wire.raft.roles import Leader
from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.network import SimConnection
from kraft_wire.sim.odd_answers import OddAnswers
from kraft_wire.sim.setup import CONTROLLER_PORT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.trace import Trace, decoded_request, decoded_response
from kraft_wire.wire.generated.registry import request_class, response_class
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.header import parse_request_header, parse_response_header
from kraft_wire.wire.json_form import Json
from kraft_wire.wire.message import MalformedMessage

__all__ = ["Answered", "Traffic"]

_HEAD: Final = Struct(">hhi")
_JUDGED_REQUESTS: Final = frozenset({1, 52, 53, 54})
"""Fetch, Vote, BeginQuorumEpoch, EndQuorumEpoch: the invariants read these."""
_FETCH: Final = 1
_VOTE: Final = VoteRequest.API_KEY
_KEPT_SHARE: Final = 0.05
_KEPT_MAX: Final = 64

_Number = tuple[int, int]
"""A connection and a correlation id on it."""

Answered = tuple[tuple[int, int], int, bool]
"""Sender of a response (node, life), its number, and whether the newest leader sent it."""


class Traffic:
    """All frames of one world."""

    def __init__(
        self, stage: Stage, judge: Judge, trace: Trace, random: Random, odd_answers: OddAnswers
    ) -> None:
        self._stage = stage
        self._judge = judge
        self._trace = trace
        self._random = random
        self.odd_answers = odd_answers
        self.kept_requests: list[tuple[int, bytes]] = []
        """Port and bytes of requests of peers, for hostile connections."""
        self._asked: dict[_Number, tuple[int, int]] = {}
        """API key and version of the requests that await an answer."""
        self._votes_asked: dict[_Number, tuple[VoteRequest, int]] = {}
        """Vote requests that a node has to answer, and their versions."""
        self.vote_request_arrived: Callable[[SimConnection, bytes, VoteRequest], None] | None = None
        """Called with each vote request that a node is about to receive."""
        self._answers = 0
        self._answered: dict[_Number, Answered] = {}
        self._last_fetch: dict[int, tuple[bytes, int, int]] = {}
        self._arriving: dict[tuple[int, bool], list[int]] = {}

    def forget(self, machine: MachineState) -> None:
        """A new process begins: messages of the old one do not count for it."""
        self._last_fetch.pop(machine.id, None)

    # -- outgoing frames -------------------------------------------------------------------------

    def sent(
        self, machine: MachineState, connection: SimConnection, data: bytes, *, is_request: bool
    ) -> bytes:
        """A node is about to send a frame; return the bytes that leave, judged are its own."""
        target = connection.accepting if is_request else connection.dialling
        leaving = data if is_request else self._leaving(machine, connection, data)
        self._trace.bytes(self._stage.scheduler.now_us, machine.id, target.place, leaving)
        if is_request:
            api_key, version, number = _HEAD.unpack_from(data, 4)
            self._asked[connection.number, number] = (api_key, version)
            if self._random.random() < _KEPT_SHARE and len(self.kept_requests) < _KEPT_MAX:
                self.kept_requests.append((connection.port, data))
            if api_key in _JUDGED_REQUESTS and connection.port == CONTROLLER_PORT:
                self._judge_request(machine, api_key, version, data, target.place)
        else:
            self._judge_answer(machine, connection, data, target.place)
        if self._trace.keeps:
            self._keep(machine.id, target.place, connection, leaving, is_request)
        return leaving

    def _leaving(self, machine: MachineState, connection: SimConnection, data: bytes) -> bytes:
        """Return a response as it leaves: one to another node may be odd."""
        asked = self._asked.get((connection.number, int.from_bytes(data[4:8], "big")))
        if asked is None or connection.dialling.place < 0:
            return data
        leaving = self.odd_answers.changed(machine.id, self._stage.now_us, data, *asked)
        if leaving is not data:
            self._stage.marks[f"odd {response_class(asked[0]).NAME}"] += 1
        return leaving

    def _judge_request(
        self, machine: MachineState, api_key: int, version: int, data: bytes, target: int
    ) -> None:
        frame = memoryview(data)[4:]
        if api_key == _FETCH:
            # A fetch that asks for the same as the one before it was judged then.
            same = (bytes(frame[8:]), target, machine.fs.changes_count)
            if self._last_fetch.get(machine.id) == same:
                return
            self._last_fetch[machine.id] = same
        _, at = parse_request_header(frame)
        request, _ = request_class(api_key).decode(frame, version, at)
        self._judge.sent(machine, request, target)

    def _judge_answer(
        self, machine: MachineState, connection: SimConnection, data: bytes, target: int
    ) -> None:
        number = int.from_bytes(data[4:8], "big")
        vote_asked = self._votes_asked.pop((connection.number, number), None)
        if vote_asked is not None:
            request, version = vote_asked
            frame = memoryview(data)[4:]
            _, at = parse_response_header(frame, _VOTE, version)
            response, _ = VoteResponse.decode(frame, version, at)
            self._judge.sent(machine, response, target, request)
        if target < 0:
            self._answers += 1
            answered = ((machine.id, machine.life), self._answers, self._is_current(machine))
            self._answered[connection.number, number] = answered

    def _is_current(self, machine: MachineState) -> bool:
        """Return whether a node is the newest leader and has applied all committed records."""
        quorum, ledger = machine.quorum, self._judge.ledger
        role = quorum.role
        return (
            isinstance(role, Leader)
            and role.high_watermark is not None
            and quorum.epoch >= max(ledger.leaders, default=0)
            and machine.node is not None
            and machine.node.raft.committed.next_offset >= ledger.committed_end
        )

    def client_sent(self, place: int, connection: SimConnection, data: bytes) -> None:
        """A client sends a request."""
        api_key, version, number = _HEAD.unpack_from(data, 4)
        self._asked[connection.number, number] = (api_key, version)
        target = connection.accepting.place
        self._trace.bytes(self._stage.now_us, place, target, data)
        if self._trace.keeps:
            self._keep(place, target, connection, data, True)

    # -- incoming frames -------------------------------------------------------------------------

    def arrived(self, connection: SimConnection, frame: bytearray, *, is_request: bool) -> None:
        """A frame has reached a node, and is about to be handed to it."""
        if not is_request:
            self._asked.pop((connection.number, int.from_bytes(frame[:4], "big")), None)
        elif connection.port == CONTROLLER_PORT and int.from_bytes(frame[:2], "big") == _VOTE:
            self._note_vote_request(connection, frame)
        if self._trace.keeps:
            self._keep_arrival(connection, is_request)

    def _note_vote_request(self, connection: SimConnection, frame: bytearray) -> None:
        if int.from_bytes(frame[2:4], "big") > VoteRequest.MAX_VERSION:
            return  # a stranger's; the node refuses it
        try:
            header, at = parse_request_header(frame)
            request, _ = VoteRequest.decode(frame, header.api_version, at)
        except MalformedMessage:
            return
        if self.vote_request_arrived is not None:
            self.vote_request_arrived(connection, bytes(frame), request)
        asked = (request, header.api_version)
        self._votes_asked[connection.number, header.correlation_id] = asked

    def client_received(self, connection: SimConnection, frame: bytearray) -> Answered:
        """A client takes an answer; return the node that gave it."""
        number = (connection.number, int.from_bytes(frame[:4], "big"))
        self._asked.pop(number, None)
        if self._trace.keeps:
            self._keep_arrival(connection, False)
        return self._answered.pop(number)

    # -- the story -------------------------------------------------------------------------------

    def _keep(
        self, source: int, target: int, connection: SimConnection, data: bytes, is_request: bool
    ) -> None:
        frame = data[4:]
        fields: dict[str, Json] = {"from": source, "to": target, "bytes": len(data)}
        if is_request:
            name, version, content = decoded_request(frame)
        else:
            number = int.from_bytes(frame[:4], "big")
            asked = self._asked.get((connection.number, number))
            if asked is None:
                return
            version = asked[1]
            name, content = decoded_response(frame, asked[0], version)
        fields |= {"name": name, "version": version, "content": content}
        kept = self._trace.keep("message", self._stage.now_us, **fields)
        self._arriving.setdefault((connection.number, is_request), []).append(kept)

    def _keep_arrival(self, connection: SimConnection, is_request: bool) -> None:
        waiting = self._arriving.get((connection.number, is_request))
        if waiting:
            self._trace.arrived(waiting.pop(0), self._stage.now_us)
