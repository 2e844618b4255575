"""Python's spelling of Kafka's names, and which module and class each schema becomes.

The rule is one: a field is the snake_case of its JSON name, also where Kafka is inconsistent.
"""

import keyword
import re

from codegen.spec import MessageSpec

__all__ = ["class_name", "json_name", "message_kind", "module_name", "snake_case"]

BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

DATA_KINDS = {
    "ConsumerProtocolAssignment": "consumer_protocol",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "ControlRecordTypeSchema": "control_record",
    "DefaultPrincipalData": "principal",
    "EndTxnMarker": "control_record",
    "KRaftVersionRecord": "raft_record",
    "LeaderChangeMessage": "raft_record",
    "ProducerSnapshot": "storage_record",
    "QuorumStateData": "raft_record",
    "SnapshotFooterRecord": "raft_record",
    "SnapshotHeaderRecord": "raft_record",
    "VotersRecord": "raft_record",
}


def snake_case(name: str) -> str:
    """Return the attribute name of a field: TopicId is topic_id, KRaftVersion is kraft_version."""
    snake = BOUNDARY.sub("_", name.replace("KRaft", "Kraft").replace("kRaft", "kraft")).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def json_name(name: str) -> str:
    """Return the key that Apache's JSON converters write: only the first letter is lowered."""
    return name[0].lower() + name[1:]


def module_name(message: MessageSpec) -> str:
    """Return the module of a message; request and response share one."""
    name = message.name
    if message.type in ("request", "response"):
        name = name.removesuffix("Request").removesuffix("Response")
    return snake_case(name)


def class_name(message: MessageSpec, struct: str, taken: set[str]) -> str:
    """Return the class of a struct; a response's struct named like a request's gets a prefix."""
    if struct not in taken:
        return struct
    prefixed = f"Response{struct}"
    assert message.type == "response", (message.name, struct)
    assert prefixed not in taken, (message.name, struct)
    return prefixed


def message_kind(message: MessageSpec) -> str:
    """Return the kind under which tools know the message."""
    if message.type == "header":
        return "request_header" if message.name == "RequestHeader" else "response_header"
    if message.type == "metadata":
        return "remote_log_record" if message.name.startswith("Remote") else "metadata_record"
    if message.type == "data":
        return DATA_KINDS[message.name]
    return message.type.replace("-", "_")
