"""What Apache Kafka 4.3.1 answers for each API and version with each set of the rights it needs.

`python -m tests.apis.rights_matrix` records it. Of the rights that the table names for an API every
subset is granted, and each is denied to somebody who may do everything else; what the request names
exists or not. Askers are told apart by their address, 127.0.1.N, as entries name it. Of an answer
only error codes, names and operations are kept.
"""

import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

from kraft_wire.apis.api import Api, ListenerType
from kraft_wire.apis.rights import ResourceType, Right
from kraft_wire.apis.rows import ROWS
from kraft_wire.model import uuid_from_text, uuid_to_text
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.registry import message_table, response_class
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.generated.response_header import ResponseHeader
from kraft_wire.wire.json_form import message_from_json, message_to_json
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apis.refusals import TOPIC, RefusingNode, request_of

RECORDED = Path(__file__).parent / "observed" / "apache_rights.jsonl"
ADMINISTRATOR = "127.0.0.1"
UNKNOWN_ID = uuid_to_text(uuid_from_text("AAAAAAAAQACAAAAAAAAAAQ"))
CLUSTER_NAME = "kafka-cluster"
ALL, ALLOW, DENY, LITERAL = 2, 3, 2, 3
KINDS = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
NAMES = ("name", "topic", "topicName", "groupId", "transactionalId", "user", "resourceName", "key")
OPERATIONS = ("topicAuthorizedOperations", "clusterAuthorizedOperations", "authorizedOperations")
LEFT_OUT = {
    "SaslHandshake": "no right",
    "SaslAuthenticate": "no right",
    "ApiVersions": "no right",
    "BrokerRegistration": "would register a broker",
    "ControllerRegistration": "would register a controller",
    "DescribeUserScramCredentials": "fails on a controller's listener",
    **dict.fromkeys(
        (
            "CreateDelegationToken",
            "RenewDelegationToken",
            "ExpireDelegationToken",
            "DescribeDelegationToken",
        ),
        "needs a login: `tests/apache/test_delegation_tokens.py`",
    ),
}
PATIENCE_S = 60.0
ANSWER_S = 15.0


class Asker(NamedTuple):
    """Who asks: the rights that it has, or the one that it lacks."""

    granted: tuple[Right, ...]
    denied: Right | None = None

    def __str__(self) -> str:
        if self.denied is not None:
            return f"all but {self.denied}"
        return " + ".join(map(str, self.granted)) or "nothing"


class Cell(NamedTuple):
    """One request by one asker."""

    listener: ListenerType
    api: Api
    version: int
    asker: Asker
    exists: bool

    @property
    def key(self) -> tuple[str, str, str, bool]:
        """What lines of the recording are grouped by."""
        return self.listener.value, self.api.name, str(self.asker), self.exists


Ask = Callable[[ListenerType, str, Message, int], Any]
"""Asks on a kind of listener from an address; returns JSON or `closed`."""


def askers_of(api: Api, listener: ListenerType) -> list[Asker]:
    """Every subset of the rights that an API needs, and everything but one of them."""
    rights = list(
        dict.fromkeys(
            right
            for need in api.needs_on(listener)
            for right in need.rights
            if right.resource in KINDS
        )
    )
    subsets = chain.from_iterable(combinations(rights, count) for count in range(len(rights) + 1))
    return [Asker(each) for each in subsets] + [Asker((), each) for each in rights]


def cells() -> list[Cell]:
    """Every cell, in the order in which both nodes are asked."""
    return [
        Cell(listener, api, version, asker, exists)
        for listener in ListenerType
        for api in ROWS
        if api.owner_on(listener) is not None and api.name not in LEFT_OUT
        for asker in askers_of(api, listener)
        for exists in (False, True)
        for version in range(api.versions[0], api.versions[1] + 1)
    ]


def addresses(all_cells: Iterable[Cell]) -> dict[Asker, str]:
    """An address for each asker."""
    askers = dict.fromkeys(cell.asker for cell in all_cells)
    return {
        asker: f"127.0.{1 + number // 250}.{1 + number % 250}"
        for number, asker in enumerate(askers)
    }


def entries(hosts: dict[Asker, str]) -> Iterator[AclCreation]:
    """The entries of all askers, and of the administrator."""

    def entry(kind: ResourceType, operation: int, host: str, permission: int) -> AclCreation:
        return AclCreation(
            resource_type=kind,
            resource_name=CLUSTER_NAME if kind is ResourceType.CLUSTER else "*",
            resource_pattern_type=LITERAL,
            principal="User:ANONYMOUS",
            host=host,
            operation=operation,
            permission_type=permission,
        )

    for kind in KINDS:
        yield entry(kind, ALL, ADMINISTRATOR, ALLOW)
    for asker, host in hosts.items():
        for right in asker.granted:
            yield entry(right.resource, right.operation, host, ALLOW)
        if asker.denied is not None:
            for kind in KINDS:
                yield entry(kind, ALL, host, ALLOW)
            yield entry(asker.denied.resource, asker.denied.operation, host, DENY)


def request_for(cell: Cell, number: int, topic_id: str) -> Message:
    """Return a cell's request: what it names is there, or has a name that nothing has."""
    request = request_of(cell.api, cell.version, topic_id if cell.exists else UNKNOWN_ID)
    name = TOPIC if cell.exists else f"nowhere-{number}"
    if cell.exists and cell.api.name == "DeleteTopics":
        name = f"doomed-{number}"
    if isinstance(request, ProduceRequest):
        request.topic_data[0].partition_data[0].records = _batch(cell.version)
    shown = json.dumps(message_to_json(request, cell.version)).replace(f'"{TOPIC}"', f'"{name}"')
    table = cell.api.name + "Request"
    return message_from_json(message_table(table), json.loads(shown), cell.version)


def _batch(version: int) -> bytes:
    """Return a batch, of a transaction in every second version."""
    is_transactional = version % 2 == 0
    batch = build_batch(
        [Record(value=b"v", timestamp=1_700_000_000_000)],
        producer_id=1 if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    return bytes(batch)


def prepare(ask: Ask, hosts: dict[Asker, str]) -> None:
    """Record the entries, and have the coordinators' topics created and led."""
    every = [*entries(hosts)]
    for begin in range(0, len(every), 100):
        request = CreateAclsRequest(creations=every[begin : begin + 100])
        answer = ask(ListenerType.BROKER, ADMINISTRATOR, request, 3)
        assert {each["errorCode"] for each in answer["results"]} == {0}, answer
    for kind in (0, 1):
        _await_coordinator(ask, kind)


def _await_coordinator(ask: Ask, kind: int) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g", "x"])
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = ask(ListenerType.BROKER, ADMINISTRATOR, request, 6)
        if {each["errorCode"] for each in answer["coordinators"]} == {0}:
            return
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def create(ask: Ask, name: str) -> str:
    """Create a topic and return its id."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = ask(ListenerType.BROKER, ADMINISTRATOR, request, 7)
    assert answer["topics"][0]["errorCode"] == 0, answer
    return str(answer["topics"][0]["topicId"])


def answers(ask: Ask, all_cells: list[Cell], hosts: dict[Asker, str], topic_id: str) -> list[Any]:
    """Ask all cells in turn; what is kept of each answer."""
    found = []
    for number, cell in enumerate(all_cells):
        if cell.exists and cell.api.name == "DeleteTopics":
            create(ask, f"doomed-{number}")
        request = request_for(cell, number, topic_id)
        answer = ask(cell.listener, hosts[cell.asker], request, cell.version)
        if answer == "no answer":
            print(f"no answer: {cell.key} version {cell.version}")
        kept = json.dumps(seen(answer)).replace(topic_id, "ID")
        for name in (f"nowhere-{number}", f"doomed-{number}"):
            kept = kept.replace(f'"{name}"', '"N"')
        found.append(json.loads(kept))
    return found


def seen(answer: Any) -> Any:
    """Return error codes, names and operations of an answer; lists in one order."""
    if isinstance(answer, list):
        kept = [each for each in map(seen, answer) if each not in ({}, [])]
        return sorted(kept, key=json.dumps)
    if not isinstance(answer, dict):
        return answer if answer in ("closed", "no answer") else {}
    kept_fields = {}
    for key, value in answer.items():
        if key.lower().endswith("errorcode") or key in NAMES or key in OPERATIONS:
            kept_fields[key] = value
        elif isinstance(value, dict | list) and key not in ("brokers", "configs", "apiKeys"):
            kept = seen(value)
            if kept not in ({}, []):
                kept_fields[key] = kept
    return kept_fields


def lines(all_cells: list[Cell], kept: list[Any]) -> Iterator[str]:
    """The recording: a line for versions that follow one another and are answered alike."""
    run: tuple[Any, int, int, Any] | None = None
    for cell, outcome in [*zip(all_cells, kept, strict=True), (None, None)]:
        if run is not None and (
            cell is None or cell.key != run[0] or outcome != run[3] or cell.version != run[2] + 1
        ):
            (listener, api, asker, exists), low, high, is_ = run
            yield json.dumps([listener, api, asker, exists, low, high, is_])
            run = None
        if cell is not None:
            low = cell.version if run is None else run[1]
            run = (cell.key, low, cell.version, outcome)


def recorded() -> dict[tuple[str, str, str, bool, int], Any]:
    """Every recorded cell: listener, API, asker, whether things exist, version; its outcome."""
    found = {}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        listener, api, asker, exists, low, high, is_ = json.loads(line)
        for version in range(low, high + 1):
            found[listener, api, asker, exists, version] = is_
    return found


def over_sockets(ports: dict[ListenerType, tuple[str, int]]) -> Ask:
    """Return what asks a node over a connection for each request."""

    def ask(listener: ListenerType, host: str, request: Message, version: int) -> Any:
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=7,
            client_id="client",
        )
        flexible = version >= type(request).FLEXIBLE_FROM
        frame = header.encode(2 if flexible else 1) + request.encode(version)
        address = ports[listener]
        with socket.create_connection(address, ANSWER_S, (host, 0)) as connection:
            connection.sendall(len(frame).to_bytes(4, "big") + frame)
            try:
                body = _receive(connection)
            except TimeoutError:
                return "no answer"
        if body is None:
            return "closed"
        kind = response_class(request.API_KEY)
        _, start = ResponseHeader.decode(body, 1 if version >= kind.FLEXIBLE_FROM else 0)
        if request.NAME == "ApiVersionsRequest":
            start = 4
        return message_to_json(kind.decode(body, version, start)[0], version)

    return ask


def _receive(connection: socket.socket) -> bytes | None:
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        part = connection.recv(65_536)
        if not part:
            return None
        data += part
    return data[4:]


def main() -> None:
    """Ask Apache, and write the recording."""
    all_cells = cells()
    hosts = addresses(all_cells)
    with tempfile.TemporaryDirectory() as directory:
        node = RefusingNode(Path(directory))
        with node:
            broker = ("127.0.0.1", int(node.bootstrap.rpartition(":")[2]))
            controller = ("127.0.0.1", int(node.plain_controller.rpartition(":")[2]))
            ask = over_sockets({ListenerType.BROKER: broker, ListenerType.CONTROLLER: controller})
            topic_id = create(ask, TOPIC)
            prepare(ask, hosts)
            node.super_users = "User:broker"
            node.configure()
            node.restart()
            for kind in (0, 1):
                _await_coordinator(ask, kind)
            kept = answers(ask, all_cells, hosts, topic_id)
    RECORDED.write_text("\n".join(lines(all_cells, kept)) + "\n", encoding="utf-8")
    print(f"{len(all_cells)} cells, {len(hosts)} askers")


if __name__ == "__main__":
    main()
