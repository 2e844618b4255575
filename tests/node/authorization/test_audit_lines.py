"""Audit lines: the words of Kafka's logger, levels, silence and limits."""

import pytest

from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.apis.rights import ResourceType, Right
from kraft_wire.metadata.authorizer.standard_authorizer import StandardAuthorizer
from kraft_wire.model import ANONYMOUS
from kraft_wire.node.authorization.audit import Audit, Who
from kraft_wire.node.events.catalogue import EVENTS
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import (
    DENY,
    PREFIXED,
    STRANGER,
    TOPIC,
    GuardedDoor,
    guarded_node,
)


@pytest.fixture
def node() -> GuardedDoor:
    return guarded_node("mine")


def describe(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def test_a_denial_has_kafkas_words(node: GuardedDoor) -> None:
    """SEC-ACL-13: principal, operation, host, resource, request, count and rule; INFO."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    node.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7)
    assert node.denied == [
        "Principal = User:ANONYMOUS is Denied operation = CREATE from host = 10.0.0.2 "
        "on resource = Topic:LITERAL:t for request = CreateTopics with resourceRefCount = 1 "
        "based on rule DefaultDeny"
    ]
    assert EVENTS["authorization_denied"].level == "INFO"
    assert EVENTS["authorization_granted"].level == "DEBUG"


def test_the_entry_that_decides_is_named(node: GuardedDoor) -> None:
    """SEC-ACL-13: the entry that denies goes before those that allow."""
    node.permit(TOPIC, "mine", Op.WRITE)
    node.granted.clear()
    node.ask(describe("mine"))
    (line,) = node.granted
    assert line.endswith(
        "is Allowed operation = DESCRIBE from host = 10.0.0.2 on resource = Topic:LITERAL:mine "
        "for request = Metadata with resourceRefCount = 1 based on rule MatchingAcl("
        "acl=StandardAcl(resourceType=TOPIC, resourceName=mine, patternType=LITERAL, "
        "principal=User:ANONYMOUS, host=10.0.0.2, operation=WRITE, permissionType=ALLOW))"
    )
    node.permit(TOPIC, "m", Op.DESCRIBE, permission=DENY, pattern=PREFIXED)
    node.denied.clear()
    node.ask(describe("mine"))
    (refused,) = node.denied
    assert "resourceName=m, patternType=PREFIXED" in refused
    assert refused.endswith("operation=DESCRIBE, permissionType=DENY))")


def test_questions_about_all_topics_are_silent(node: GuardedDoor) -> None:
    """SEC-ACL-13: what nobody named leaves no line of a denial."""
    node.ask(MetadataRequest(topics=None))
    assert node.denied == []


def test_a_client_cannot_fill_the_disk_with_denials(node: GuardedDoor) -> None:
    """Ten lines a second for an address; the rest is counted."""
    node.ask(describe(*[f"t{number}" for number in range(100)]))
    assert len(node.denied) == 10
    node.advance(1_000)
    assert node.omitted == [{"client": STRANGER, "count": 90}]


def test_lines_beyond_ten_a_second_are_counted_by_address_and_decision() -> None:
    """The counts come before the next line of a later second."""
    lines: list[tuple[str, dict[str, object]]] = []
    audit = Audit(
        StandardAuthorizer(frozenset()), lambda name, **fields: lines.append((name, fields))
    )

    def decide(times: int, host: str, now_ms: int, *, is_allowed: bool) -> None:
        who, right = Who(ANONYMOUS, host, "Fetch"), Right(Op.READ, ResourceType.TOPIC)
        for _ in range(times):
            audit.tell(who, right, "t", 1, now_ms, is_allowed=is_allowed)

    decide(13, "10.0.0.2", 5_000, is_allowed=False)
    decide(12, "10.0.0.2", 5_000, is_allowed=True)
    decide(10, "10.0.0.3", 5_999, is_allowed=True)
    decide(11, "10.0.0.3", 5_999, is_allowed=False)
    denied, granted = "authorization_denied", "authorization_granted"
    assert [name for name, _ in lines] == [*[denied] * 10, *[granted] * 20, *[denied] * 10]
    lines.clear()
    decide(1, "10.0.0.4", 6_000, is_allowed=True)
    assert lines[:-1] == [
        ("authorization_denied_suppressed", {"client": "10.0.0.2", "count": 3}),
        ("authorization_granted_suppressed", {"client": "10.0.0.2", "count": 2}),
        ("authorization_denied_suppressed", {"client": "10.0.0.3", "count": 1}),
    ]
    assert (lines[-1][0], lines[-1][1]["client"]) == (granted, "10.0.0.4")
    assert EVENTS["authorization_denied_suppressed"].level == "INFO"
    assert EVENTS["authorization_granted_suppressed"].level == "DEBUG"
    lines.clear()
    decide(11, "10.0.0.4", 7_000, is_allowed=False)
    audit.tick(7_999)
    assert [name for name, _ in lines] == [denied] * 10
    audit.tick(8_000)
    assert lines[10:] == [(f"{denied}_suppressed", {"client": "10.0.0.4", "count": 1})]


def test_super_users_leave_lines_too() -> None:
    """SEC-ACL-13: rule SuperUser."""
    node = GuardedDoor()
    node.ask(describe("mine"))
    assert node.granted[-1].endswith("based on rule SuperUser")


@pytest.mark.parametrize(
    ("request_", "version", "resources"),
    [
        (
            FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b", "a"]),
            4,
            ["Group:LITERAL:a count 2", "Group:LITERAL:b count 1"],
        ),
        (
            FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]),
            4,
            ["TransactionalId:LITERAL:x count 1"],
        ),
        (
            DescribeTransactionsRequest(transactional_ids=["x", "y"]),
            0,
            ["TransactionalId:LITERAL:x count 1", "TransactionalId:LITERAL:y count 1"],
        ),
        (describe("t"), 12, ["Topic:LITERAL:t count 1"]),
    ],
)
def test_every_name_that_is_denied_has_a_line_with_its_count(
    node: GuardedDoor, request_: Message, version: int, resources: list[str]
) -> None:
    """SEC-ACL-13: a resource that is named twice is asked about once."""
    node.ask(request_, version)
    found = [
        line.partition("resource = ")[2]
        .partition(" based on")[0]
        .replace(f" for request = {request_.NAME.removesuffix('Request')}", "")
        .replace(" with resourceRefCount =", " count")
        for line in node.denied
    ]
    assert sorted(found) == resources
