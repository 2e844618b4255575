"""A whole node with StandardAuthorizer on a simulated disk, asked from addresses of our choice.

Everybody is ANONYMOUS, so entries tell askers apart by their address, which stands for a user. The
administrator's address may do everything.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from kraft_wire.model import ZERO_UUID, uuid_to_text
from kraft_wire.node.outputs import Close, FlushLogs, NoReply, Peer, Reply
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.broker.groups.harness import CountingChance
from tests.broker.groups.node_door import DIRECTORY, NodeDoor, NodeReply

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ADMINISTRATOR = "10.0.0.1"
STRANGER = "10.0.0.2"
ALL, ALLOW, DENY, LITERAL, PREFIXED = 2, 3, 2, 3, 4
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
KINDS = (TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID)
CLUSTER_NAME = "kafka-cluster"
BROKER_LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"


class GuardedDoor(NodeDoor):
    """One node with an authorizer; see the module."""

    def __init__(self, fs: SimFileSystem | None = None, **overrides: str) -> None:
        self.closed: list[int] = []
        self.silent: list[int] = []
        self.granted: list[str] = []
        self.denied: list[str] = []
        self.omitted: list[dict[str, object]] = []
        """Counts of denials without a line."""
        self._connections = count(1_000)
        values = {
            "authorizer_class_name": AUTHORIZER,
            "super_users": "User:ANONYMOUS",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "transaction_state_log_num_partitions": "2",
            **overrides,
        }
        super().__init__(SimFileSystem() if fs is None else fs, **values)

    def reopened(self, **overrides: str) -> GuardedDoor:
        """Stop the node and return another one over its disk, without super users."""
        self.stop()
        return GuardedDoor(self.fs, **{"super_users": "", **overrides})

    def ask(
        self,
        request: Message,
        version: int | None = None,
        *,
        host: str = STRANGER,
        listener: str = BROKER_LISTENER,
        connection: int | None = None,
    ) -> Any:
        """Return the answer, `closed` or `silent`; None while there is none."""
        asked = request.MAX_VERSION if version is None else version
        number = next(self._connections) if connection is None else connection
        peer = self._peers.setdefault(number, Peer(number, host, 1, listener))
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=asked,
            correlation_id=7,
            client_id="client",
        )
        header_version = 2 if asked >= type(request).FLEXIBLE_FROM else 1
        frame = bytearray(header.encode(header_version)) + request.encode(asked)
        reply = NodeReply()
        self._waiting[number] = (reply, request, asked)
        self.node.receive(peer, frame, self.now_ms, self.wall_ms)
        self._drain()
        self.settle()
        if number in self.closed:
            return "closed"
        return "silent" if number in self.silent else reply.response

    def ask_json(self, request: Message, version: int, **asker: str) -> Any:
        """Return the answer as JSON, or `closed`."""
        answer = self.ask(request, version, **asker)
        return message_to_json(answer, version) if isinstance(answer, Message) else answer

    def create(self, name: str) -> str:
        """Create a topic as the administrator; return its id as text."""
        wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=1)
        answer = self.ask(request, host=ADMINISTRATOR)
        (made,) = answer.topics
        assert made.error_code == 0, made
        assert made.topic_id != ZERO_UUID
        return uuid_to_text(made.topic_id)

    def permit(
        self,
        kind: int,
        name: str,
        operation: int,
        *,
        host: str = STRANGER,
        permission: int = ALLOW,
        pattern: int = LITERAL,
    ) -> None:
        """Record an entry about an address, as the administrator."""
        entry = AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:ANONYMOUS",
            host=host,
            operation=operation,
            permission_type=permission,
        )
        answer = self.ask(CreateAclsRequest(creations=[entry]), host=ADMINISTRATOR)
        assert [each.error_code for each in answer.results] == [0], answer

    def chance(self) -> CountingChance:
        """Draw ids that no former node over this disk has drawn."""
        chance = CountingChance()
        chance.drawn = len(self.fs.names(DIRECTORY)) * 1_000_000
        return chance

    def _report(self, name: str, **fields: object) -> None:
        if name == "authorization_denied":
            self.denied.append(fields["message"].text)  # type: ignore[attr-defined]  # a Line
        elif name == "authorization_granted":
            self.granted.append(fields["message"].text)  # type: ignore[attr-defined]  # as above
        elif name == "authorization_denied_suppressed":
            self.omitted.append(fields)
        else:
            super()._report(name, **fields)

    def _drain(self) -> None:
        outputs, self.node.outputs = self.node.outputs, []
        for output in outputs:
            if isinstance(output, Reply):
                self._answer(output)
            elif isinstance(output, FlushLogs):
                self.flushes.append(output)
            elif isinstance(output, Close):
                self.closed.append(output.connection_id)
            elif isinstance(output, NoReply):
                self.silent.append(output.connection_id)
        if not self.keeps_flushes_back:
            self.flush()


def guarded_node(*topics: str, **overrides: str) -> GuardedDoor:
    """Return a node with topics, whose administrator is an address, and where nobody is super."""
    first = GuardedDoor(**overrides)
    for name in topics:
        first.create(name)
    for kind in KINDS:
        name = CLUSTER_NAME if kind == CLUSTER else "*"
        first.permit(kind, name, ALL, host=ADMINISTRATOR)
    return first.reopened(**overrides)
