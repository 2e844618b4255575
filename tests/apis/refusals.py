"""What Apache Kafka 4.3.1 answers to a principal without any right, for each API and version.

`python -m tests.apis.refusals` records it: a node with `StandardAuthorizer`, whose brokers are
super users over SASL, is asked by ANONYMOUS over plain text, on a broker's listener and on a
controller's. Each request names one topic that exists, one group, and so on: what it names is made
of the schema of the request. A connection that ends without an answer is `closed`.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraft_wire.apis.api import Api, ListenerType
from kraft_wire.apis.rows import ROWS
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.model import ZERO_UUID, uuid_to_text
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.json_form import message_from_json, message_to_json
from kraft_wire.wire.message import Message
from kraft_wire.wire.schema import FieldTable, StructTable
from tests.apache.node import ApacheNode
from tests.ports import free_port

RECORDED = Path(__file__).parent / "observed" / "apache_refusals.jsonl"
TOPIC = "there"
PATIENCE_S = 20.0
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="secret" user_broker="secret";'
)
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
VALUES: dict[str, Any] = {
    "acks": 1,
    "timeout_ms": 5000,
    "max_wait_ms": 0,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "transaction_timeout_ms": 10_000,
    "producer_id": 1,
    "replica_id": -1,
    "member_epoch": 0,
    "max_bytes": 1000,
    "partition_max_bytes": 1000,
    "replication_factor": 1,
    "num_partitions": 1,
    "count": 9,
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "principal": "User:ann",
    "principal_filter": "User:ann",
    "mechanism": 1,
    "iterations": 4096,
    "client_software_name": "probe",
    "client_software_version": "1",
    "key": "g",
    "protocol_type": "consumer",
    "entity_type": "user",
    "current_leader_epoch": -1,
    "validate_only": False,
    "endpoint_type": 1,
    "records": None,
}
"""Of fields by name; all others are made of their types."""


BY_NAME = ("Metadata", "DeleteTopics")
"""Requests in which a topic's name and its id exclude each other."""


class RefusingNode(ApacheNode):
    """A node whose brokers are `User:broker`, with a plain listener for whoever has no rights."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.super_users = "User:broker;User:ANONYMOUS"
        self._plain_controller_port = free_port()

    @property
    def plain_controller(self) -> str:
        """The controller's listener for ANONYMOUS."""
        return f"127.0.0.1:{self._plain_controller_port}"

    def properties(self) -> dict[str, str]:
        """The node's settings: SASL between broker and controller, plain text for others."""
        given = super().properties()
        given["listeners"] += f",OPEN://{self.plain_controller}"
        return given | {
            "controller.listener.names": "CONTROLLER,OPEN",
            "listener.security.protocol.map": (
                "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,OPEN:PLAINTEXT"
            ),
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": LOGIN,
            "authorizer.class.name": AUTHORIZER,
            "super.users": self.super_users,
            "group.share.enable": "true",
            "unstable.api.versions.enable": "false",
        }


def request_of(api: Api, version: int, topic_id: str) -> Message:
    """Return a request that names one of each thing."""
    table = message_table(f"{api.name}Request")
    if api.name in BY_NAME:
        topic_id = uuid_to_text(ZERO_UUID)
    return message_from_json(table, _struct(table.struct, version, topic_id), version)


def _struct(table: StructTable, version: int, topic_id: str) -> dict[str, Any]:
    return {
        field.json_name: _value(field, version, topic_id)
        for field in table.fields
        if field.versions[0] <= version <= field.versions[1] and field.tag < 0
    }


def _value(field: FieldTable, version: int, topic_id: str) -> Any:
    one = _element(field, version, topic_id)
    return [one] if field.is_array else one


def _element(field: FieldTable, version: int, topic_id: str) -> Any:
    if field.struct is not None:
        return _struct(field.struct, version, topic_id)
    known = VALUES.get(field.name)
    if field.name in VALUES and isinstance(known, str) is (field.kind == "string"):
        return known
    match field.kind:
        case "float64":
            return 1.0
        case "string":
            return _name(field.name)
        case "uuid":
            return topic_id
        case "bytes" | "records":
            return ""
        case "bool":
            return False
    return 0


def _name(field: str) -> str:
    if "group" in field:
        return "g"
    if "transactional" in field:
        return "x"
    return TOPIC if "topic" in field or field.endswith("name") else "a"


def answer(address: str, api: Api, version: int, topic_id: str) -> Any:
    """Return the answer as JSON, or `closed`."""
    try:
        with BrokerConnection(address, timeout_s=PATIENCE_S) as connection:
            request = request_of(api, version, topic_id)
            found = connection.send(request, Message, version=version)
            return message_to_json(found, version)
    except BrokerConnectionError as problem:
        if "timed out" in str(problem):
            return "no answer"
        if "closed" in str(problem) or "lost" in str(problem):
            return "closed"
        raise


def record() -> Any:
    """Return answers by listener, API and version."""
    with tempfile.TemporaryDirectory() as directory:
        node = RefusingNode(Path(directory))
        with node:
            topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            with BrokerConnection(node.bootstrap) as connection:
                made = connection.send(
                    CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse
                )
            topic_id = uuid_to_text(made.topics[0].topic_id)
            node.super_users = "User:broker"
            node.configure()
            node.restart()
            found: dict[str, dict[str, dict[str, Any]]] = {}
            for listener, address in (
                (ListenerType.BROKER, node.bootstrap),
                (ListenerType.CONTROLLER, node.plain_controller),
            ):
                found[listener.value] = {
                    api.name: {
                        str(version): answer(address, api, version, topic_id)
                        for version in range(api.versions[0], api.versions[1] + 1)
                    }
                    for api in ROWS
                    if listener in api.listeners
                }
    return json.loads(json.dumps(found).replace(topic_id, "TOPIC-ID"))


def recorded() -> Iterator[tuple[ListenerType, str, int, Any]]:
    """Every cell of the recording: listener, API, version and answer."""
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        cell = json.loads(line)
        yield ListenerType(cell["listener"]), cell["api"], cell["version"], cell["is"]


def error_codes(answer: Any) -> Iterator[int]:
    """Every error code in an answer that is not 0."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key.lower().endswith("errorcode") and value:
                yield value
            else:
                yield from error_codes(value)
    elif isinstance(answer, list):
        for each in answer:
            yield from error_codes(each)


def main() -> None:
    """Write the recording, one line for each API and version."""
    lines = []
    for listener, apis in record().items():
        for name, versions in apis.items():
            lines += [
                json.dumps(
                    {"listener": listener, "api": name, "version": int(version), "is": shown}
                )
                for version, shown in versions.items()
            ]
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} cells")


if __name__ == "__main__":
    main()
