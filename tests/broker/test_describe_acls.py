"""DescribeAcls: the entries that a filter matches, grouped by resource."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_acls import handle
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.metadata.image import AclImage
from kraft_wire.model import Uuid
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, image_of, small_broker

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP = 2, 3
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3

ENTRIES = [
    AclImage(TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW),
    AclImage(TOPIC, "orders", LITERAL, "User:bob", "10.0.0.1", WRITE, DENY),
    AclImage(TOPIC, "ord", PREFIXED, "User:alice", "*", READ, ALLOW),
    AclImage(TOPIC, "*", LITERAL, "User:carol", "*", READ, ALLOW),
    AclImage(GROUP, "orders", LITERAL, "User:alice", "*", READ, ALLOW),
]


def broker_with(*, has_authorizer: bool) -> Broker:
    settings = {AUTHORIZER_KEY: STANDARD_AUTHORIZER} if has_authorizer else {}
    acls = {Uuid(bytes(15) + bytes([number])): acl for number, acl in enumerate(ENTRIES)}
    return small_broker(replace(image_of({}), acls=acls), source=NodeSettings(settings))


def described(broker: Broker, version: int = 3, **fields: int | str) -> DescribeAclsResponse:
    wanted = {
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "resource_type_filter": ANY,
        "pattern_type_filter": ANY,
        "operation": ANY,
        "permission_type": ANY,
    }
    request = DescribeAclsRequest(**(wanted | fields))  # type: ignore[arg-type]  # the test's own fields
    return handle(broker, context(version), request)


def shown(response: DescribeAclsResponse) -> list[AclImage]:
    assert response.error_code == ErrorCode.NONE
    return [
        AclImage(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in response.resources
        for acl in each.acls
    ]


def test_node_without_authorizer_refuses() -> None:
    response = described(broker_with(has_authorizer=False))
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured on the broker"
    assert response.resources == []


@pytest.mark.parametrize("version", range(1, 4))
def test_filter_of_anything_shows_every_entry_once(version: int) -> None:
    response = described(broker_with(has_authorizer=True), version)
    assert {*shown(response)} == {*ENTRIES}
    assert len(shown(response)) == len(ENTRIES)
    kinds = [
        (each.resource_type, each.resource_name, each.pattern_type) for each in response.resources
    ]
    assert len(kinds) == len(set(kinds)) == 4, "the two entries of one resource are together"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"resource_type_filter": GROUP}, [4]),
        ({"principal_filter": "User:bob"}, [1]),
        ({"host_filter": "10.0.0.1"}, [1]),
        ({"operation": WRITE}, [1]),
        ({"permission_type": DENY}, [1]),
        ({"resource_name_filter": "ord", "pattern_type_filter": LITERAL}, []),
        ({"resource_name_filter": "ord", "pattern_type_filter": PREFIXED}, [2]),
        ({"resource_name_filter": "orders", "resource_type_filter": TOPIC}, [0, 1]),
        (
            {
                "resource_name_filter": "orders",
                "resource_type_filter": TOPIC,
                "pattern_type_filter": MATCH,
            },
            [0, 1, 2, 3],
        ),
    ],
)
def test_entry_is_shown_where_every_part_of_the_filter_matches(
    fields: dict[str, int | str], expected: list[int]
) -> None:
    response = described(broker_with(has_authorizer=True), **fields)
    assert {*shown(response)} == {ENTRIES[number] for number in expected}
