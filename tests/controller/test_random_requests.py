"""No request of any content stops the controller, and whatever it records can be replayed."""

import sys
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

from kraft_wire.apis.api import ListenerType, Owner
from kraft_wire.apis.registry import APIS, owned
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_record, encode_record
from kraft_wire.node.requests.unknown_codes import unknown_code
from kraft_wire.wire.generated.registry import message_table, request_class
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, StructTable, includes
from tests.controller.cluster import Context, OneNodeCluster

DECIDED = owned(Owner.CONTROLLER, ListenerType.CONTROLLER)
READERS = (29, 32, 48, 50, 74)
NAMES = [
    *("", "a", "b", "t", "t.x", "t_x", "1", "2", "9", "-1", "*", "User:a", "kafka-cluster"),
    *("user", "client-id", "ip", "127.0.0.1", "producer_byte_rate", "connection_creation_rate"),
    *("retention.ms", "cleanup.policy", "compact", "delete,compact", "message.max.bytes", "5"),
    *("metadata.version", "kraft.version", "group.version", "\ufffd" * 12_000, "x" * 32_767),
]
NUMBERS = [-(1 << 63), -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 30, 32, 4096, 9000, 30_000, 1 << 31]
FLOATS = [float("nan"), float("inf"), -1.0, 0.0, 1e-9, 1.0, 1.5, 5.0, 1e30]
LIKELY: dict[str, list[object]] = {
    "entity_type": ["user", "client-id", "ip"],
    "entity_name": ["a", "b", "127.0.0.1"],
    "key": ["producer_byte_rate", "connection_creation_rate"],
    "value": [1.0, 5.0],
    "resource_type": [2, 3, 5],
    "resource_name": ["a", "b", "t"],
    "resource_pattern_type": [3, 4],
    "principal": ["User:a", "User:b"],
    "operation": [2, 3, 8],
    "permission_type": [2, 3],
    "mechanism": [1, 2],
    "iterations": [4096],
    "salted_password": [bytes(32)],
    "name": ["a", "b", "t", "c", "d"],
    "num_partitions": [1, 2, -1],
    "replication_factor": [1, -1],
    "assignments": [[]],
    "configs": [[]],
    "count": [2, 3, 4],
    "controller_id": [7, 8],
    "broker_id": [1],
    "broker_epoch": [3],
    "feature": ["group.version", "metadata.version"],
    "max_version_level": [0, 30],
    "validate_only": [False],
    "resource_type_filter": [1, 2],
    "pattern_type_filter": [1, 2],
}
"""Values that may well be right, drawn more often than not."""
WIDTHS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16, "uint32": 32}


class Drawn:
    """Requests of one API with anything that its decoder lets through."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def request(self, api_key: int, version: int) -> Message:
        kind = request_class(api_key)
        made = self._struct(message_table(kind.NAME).struct, kind, version)
        assert isinstance(made, Message)
        return made

    def _struct(self, table: StructTable, kind: type[Struct], version: int) -> Struct:
        return kind(
            **{
                field.name: self._field(field, kind, version)
                for field in table.fields
                if includes(field.versions, version)
            }
        )

    def _field(self, field: FieldTable, kind: type[Struct], version: int) -> object:
        if field.name in LIKELY and self.random.random() < 0.8:
            right = self.random.choice(LIKELY[field.name])
            is_number = isinstance(right, float) == (field.kind == "float64")
            if is_number and isinstance(right, list) == field.is_array:
                return right
        if includes(field.nullable, version) and self.random.random() < 0.2:
            return None
        if not field.is_array:
            return self._value(field, kind, version)
        count = self.random.choice((0, 1, 1, 2, 3))
        return [self._value(field, kind, version) for _ in range(count)]

    def _value(self, field: FieldTable, kind: type[Struct], version: int) -> object:
        if field.struct is not None:
            nested = getattr(sys.modules[kind.__module__], field.struct.class_name)
            return self._struct(field.struct, nested, version)
        if field.kind == "string":
            return self.random.choice(NAMES)
        if field.kind == "bool":
            return self.random.random() < 0.3
        if field.kind == "float64":
            return self.random.choice(FLOATS)
        if field.kind == "bytes":
            return self.random.choice((b"", b"salt", bytes(64)))
        if field.kind == "uuid":
            return self.random.choice((bytes(16), b"t" * 16))
        bits = WIDTHS[field.kind]
        lowest = 0 if field.kind.startswith("u") else -(1 << bits)
        return max(lowest, min((1 << bits) - 1, self.random.choice(NUMBERS)))


@pytest.mark.parametrize("seed", range(12))
def test_requests_of_any_content_are_answered_and_leave_a_log_that_replays(seed: int) -> None:
    cluster = OneNodeCluster(
        {AUTHORIZER_KEY: STANDARD_AUTHORIZER, "delegation.token.secret.key": "all nodes have it"}
    )
    cluster.controller.kraft_version = 0
    drawn = Drawn(seed)
    for _ in range(400):
        api_key = drawn.random.choice((*DECIDED, *READERS))
        version = drawn.random.randint(*APIS[api_key].versions)
        request = drawn.request(api_key, version)
        if unknown_code(request) is not None:
            continue  # it ends its connection when it is read
        if api_key in READERS:
            broker = SimpleNamespace(
                image=cluster.loader.image,
                node_id=1,
                settings=BrokerSettings.of(cluster.controller.settings),
            )
            assert isinstance(handler(api_key)(broker, Context(version), request), Message)
        else:
            result = decide(cluster.controller, Context(version), request)
            assert result.values == tuple(encode_record(each) for each in result.records)
            cluster.commit(result.records)
    assert len(cluster.committed) > 20, "too many were refused to prove anything"
    image = cluster.loader.image
    values = list(snapshot_values(image))
    again = MetadataLoader().replay_snapshot(
        [decode_record(value).record for value in values], image.offset, image.epoch
    )
    assert again == replace(image, finalized_features_epoch=again.finalized_features_epoch)
