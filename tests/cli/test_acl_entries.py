"""Entries and filters of `kraft-wire acls` are those that Apache's kafka-acls makes.

Operations of a producer and a consumer: getProducerResourceToAcls and getConsumerResourceToAcls of
AclCommand in 4.3.1.
"""

import itertools

import pytest

from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.apis.rights import ResourceType as Type
from kraft_wire.cli.acls.entries import (
    Resource,
    Who,
    convenience,
    entries,
    filters,
    named,
    pattern_number,
    principals,
    resources_of,
)
from kraft_wire.cli.output import WrongInput
from kraft_wire.metadata.acl_rules import AclFilter
from kraft_wire.metadata.image import AclImage

TOPIC, GROUP, TRANSACTION, CLUSTER = (
    Resource(kind, name)
    for kind, name in (
        (Type.TOPIC, "t"),
        (Type.GROUP, "g"),
        (Type.TRANSACTIONAL_ID, "x"),
        (Type.CLUSTER, "kafka-cluster"),
    )
)
PRODUCER = [
    (TOPIC, Op.WRITE),
    (TOPIC, Op.DESCRIBE),
    (TOPIC, Op.CREATE),
    (TRANSACTION, Op.WRITE),
    (TRANSACTION, Op.DESCRIBE),
]
CONSUMER = [(TOPIC, Op.READ), (TOPIC, Op.DESCRIBE), (GROUP, Op.READ)]
LITERAL, PREFIXED, MATCH = 3, 4, 2
FIELDS = (
    *("resource_type", "resource_name", "pattern_type", "principal", "host"),
    *("operation", "permission_type"),
)


def _fields(one: AclImage | AclFilter) -> tuple[object, ...]:
    """Return resource type and name, pattern, principal, host, operation and permission."""
    return tuple(getattr(one, each) for each in FIELDS)


@pytest.mark.parametrize(("producer", "consumer"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("idempotent", [False, True])
def test_clients_get_the_operations_of_kafka_acls_once(
    producer: bool, consumer: bool, idempotent: bool
) -> None:
    resources = [TOPIC, GROUP, TRANSACTION]
    if idempotent and not producer:
        with pytest.raises(WrongInput, match="--idempotent needs --producer"):
            convenience(resources, producer=producer, consumer=consumer, idempotent=idempotent)
        return
    found = convenience(resources, producer=producer, consumer=consumer, idempotent=idempotent)
    wanted = {*(PRODUCER if producer else ()), *(CONSUMER if consumer else ())}
    if idempotent:
        wanted.add((CLUSTER, Op.IDEMPOTENT_WRITE))
    assert len(found) == len(wanted)
    assert set(found) == wanted


@pytest.mark.parametrize(
    ("resources", "words"),
    [([GROUP], "--producer and --consumer need --topic"), ([TOPIC], "--consumer needs --group")],
)
def test_client_without_its_resource_is_refused(resources: list[Resource], words: str) -> None:
    with pytest.raises(WrongInput, match=words):
        convenience(resources, producer=True, consumer=True, idempotent=False)


def test_each_principal_is_at_each_of_its_own_hosts_or_at_all() -> None:
    found = principals(["User:a", "User:b"], ["User:c"], [], ["h1", "h2"])
    assert found == [
        Who("User:a", "*", 3),
        Who("User:b", "*", 3),
        Who("User:c", "h1", 2),
        Who("User:c", "h2", 2),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([], ["User:a"], ["h"], []), "--allow-host needs --allow-principal"),
        ((["User:a"], [], [], ["h"]), "--deny-host needs --deny-principal"),
        ((["ann"], [], [], []), "ann is not a principal: write User:ann"),
        (([], ["ann"], [], []), "ann is not a principal: write User:ann"),
    ],
)
def test_principals_that_cannot_be_meant_are_refused(
    given: tuple[list[str], list[str], list[str], list[str]], words: str
) -> None:
    with pytest.raises(WrongInput, match=words):
        principals(*given)


def test_an_entry_has_each_field_in_its_place_and_a_cluster_is_literal() -> None:
    who = [Who("User:a", "h", 3), Who("User:b", "*", 2)]
    wanted: list[tuple[Resource, int]] = [(TOPIC, Op.READ), (CLUSTER, Op.ALTER)]
    assert [_fields(each) for each in entries(wanted, who, PREFIXED)] == [
        (Type.TOPIC, "t", PREFIXED, "User:a", "h", Op.READ, 3),
        (Type.TOPIC, "t", PREFIXED, "User:b", "*", Op.READ, 2),
        (Type.CLUSTER, "kafka-cluster", LITERAL, "User:a", "h", Op.ALTER, 3),
        (Type.CLUSTER, "kafka-cluster", LITERAL, "User:b", "*", Op.ALTER, 2),
    ]


def test_filters_are_each_resource_with_each_principal() -> None:
    found = [_fields(each) for each in filters([TOPIC, GROUP], MATCH, ("User:a", "User:b"))]
    assert found == [
        (kind, name, MATCH, principal, None, 1, 1)
        for (kind, name), principal in itertools.product((TOPIC, GROUP), ("User:a", "User:b"))
    ]
    assert [_fields(each) for each in filters([], LITERAL, ("User:a",))] == [
        (1, None, 1, "User:a", None, 1, 1)
    ]
    assert [_fields(each)[3] for each in filters([TOPIC], LITERAL)] == [None]


def test_types_of_patterns_are_fewer_for_an_entry_than_for_a_filter() -> None:
    numbers = {"any": 1, "match": MATCH, "literal": LITERAL, "Prefixed": PREFIXED}
    for name, number in numbers.items():
        assert pattern_number(name, is_filter=True) == number
        if number in (LITERAL, PREFIXED):
            assert pattern_number(name, is_filter=False) == number
        else:
            with pytest.raises(WrongInput, match="--resource-pattern-type"):
                pattern_number(name, is_filter=False)


def test_operations_are_named_in_any_spelling_and_belong_to_their_resource() -> None:
    for spelling in ("DescribeConfigs", "describe_configs", "DESCRIBECONFIGS"):
        assert named([TOPIC], [spelling]) == [(TOPIC, Op.DESCRIBE_CONFIGS)]
    assert named([TOPIC, GROUP], []) == [(TOPIC, 2), (GROUP, 2)]
    with pytest.raises(WrongInput, match="write means nothing for a group"):
        named([TOPIC, GROUP], ["Write"])
    for unknown in ("any", "reed"):
        with pytest.raises(WrongInput, match="--operation"):
            named([TOPIC], [unknown])


def test_resources_keep_the_order_of_the_options() -> None:
    given = {Type.TOPIC: ["b", "a"], Type.GROUP: None, Type.TRANSACTIONAL_ID: ["x"]}
    assert resources_of(given) == [
        Resource(Type.TOPIC, "b"),
        Resource(Type.TOPIC, "a"),
        TRANSACTION,
    ]
