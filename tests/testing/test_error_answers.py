"""Error answers to every request of the release, in every version, made from the schemas alone."""

from __future__ import annotations

import pytest

from kraft_wire.testing.faults.error_answers import error_answer
from kraft_wire.wire.defaults import default_value
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.registry import (
    REQUESTS,
    RESPONSES,
    message_class,
    message_table,
    response_class,
    struct_class,
)
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes

CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER

NO_PLACE = {
    ("AlterReplicaLogDirsRequest", 1),
    ("AlterReplicaLogDirsRequest", 2),
    ("AlterUserScramCredentialsRequest", 0),
    ("DescribeLogDirsRequest", 1),
    ("DescribeLogDirsRequest", 2),
}
"""Their responses list what their requests do not; docs/FAULTS.md says so."""


def full_struct(table: MessageTable, struct: StructTable, version: int) -> Struct:
    """A struct with one element in each array."""
    values = {}
    for field in struct.fields:
        value = default_value(field, table)
        if includes(field.versions, version):
            value = full_value(table, field, version, value)
        values[field.name] = value
    return struct_class(table, struct)(**values)


def full_value(table: MessageTable, field: FieldTable, version: int, default: object) -> object:
    plain = {"string": "name", "uuid": bytes(15) + b"\x07", "bytes": b"x", "bool": True}
    if field.struct is not None and field.is_array:
        return [full_struct(table, field.struct, version)]
    if field.is_array:
        return [plain.get(field.kind, 3)]
    return "name" if field.kind == "string" else default


def codes_in(value: object) -> list[int]:
    """Every error code of a message."""
    found = []
    if isinstance(value, list):
        return [code for each in value for code in codes_in(each)]
    if isinstance(value, Struct):
        for name in value.field_names:
            inner = getattr(value, name)
            if name.endswith("error_code"):
                found.append(inner)
            else:
                found += codes_in(inner)
    return found


def elements_in(value: object) -> list[Struct]:
    """Return every element of every array below a struct."""
    inner = (
        [getattr(value, each) for each in value.field_names] if isinstance(value, Struct) else []
    )
    found = [one for each in inner if isinstance(each, list) for one in each]
    structs = [each for each in (*found, *inner) if isinstance(each, Struct)]
    return [
        *(each for each in found if isinstance(each, Struct)),
        *(below for each in structs for below in elements_in(each)),
    ]


VERSIONS = [
    (entry.name, version)
    for key, entry in sorted(REQUESTS.items())
    for version in range(entry.min_version, entry.max_version + 1)
    if key in RESPONSES
]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_request_has_an_error_answer_that_its_client_can_read(
    name: str, version: int
) -> None:
    table = message_table(name)
    request = full_struct(table, table.struct, version)
    assert isinstance(request, Message)
    answer = error_answer(request, version, CODE)
    if (name, version) in NO_PLACE:
        assert answer is None
        return
    assert answer is not None
    decoded, _ = response_class(request.API_KEY).decode(answer.encode(version), version)
    codes = codes_in(decoded)
    assert CODE in codes
    assert [each for each in elements_in(decoded) if not codes_in(each)] == []
    assert message_class(RESPONSES[request.API_KEY].name) is type(decoded)


def test_fetch_answer_names_what_was_asked_for() -> None:
    partitions = [FetchPartition(partition=3), FetchPartition(partition=5)]
    request = FetchRequest(topics=[FetchTopic(topic="orders", partitions=partitions)])
    answer = error_answer(request, 12, CODE)
    assert answer is not None
    (topic,) = answer.responses
    assert topic.topic == "orders"
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (3, CODE),
        (5, CODE),
    ]
