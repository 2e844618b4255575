"""What a run learns of a broker before its cases, and preparations that a broker may refuse."""

from __future__ import annotations

import ssl
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.conformance.share_members import assigned
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.conformance.target import _identity
from kraft_wire.conformance.token_clients import needs_no_login
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.login.client_config import Credentials, Security
from kraft_wire.model import Uuid
from kraft_wire.wire.generated import share_group_heartbeat as heartbeats
from kraft_wire.wire.generated.metadata import MetadataResponse, MetadataResponseBroker
from tests.conformance.test_subject import TARGET, Scripted

ADDRESS = ("127.0.0.1", 9092)
HERE, THERE = (7, *ADDRESS), (8, "127.0.0.1", 9093)


def identity(offered: tuple[int, int] | None, *brokers: tuple[int, str, int]) -> tuple[Any, Any]:
    """Return what is learned, and the versions of the Metadata requests that were sent."""
    asked: list[int] = []

    def ask(_request: object, version: int, _response: type) -> MetadataResponse:
        asked.append(version)
        nodes = [MetadataResponseBroker(node_id=i, host=h, port=p) for i, h, p in brokers]
        return MetadataResponse(brokers=nodes)

    connection: Any = SimpleNamespace(ask=ask)
    versions = {} if offered is None else {3: offered}
    return _identity(connection, versions, ADDRESS), asked


@pytest.mark.parametrize(
    ("offered", "asked"),
    [((0, 13), [9]), ((0, 9), [9]), ((9, 12), [9]), ((0, 4), [4]), ((10, 13), []), (None, [])],
)
def test_metadata_is_asked_in_a_version_that_both_have(
    offered: tuple[int, int] | None, asked: list[int]
) -> None:
    found, versions = identity(offered, HERE, THERE)
    assert versions == asked
    assert found == ((7, ADDRESS) if asked else (-1, None))


@pytest.mark.parametrize(
    ("brokers", "found"),
    [
        ([THERE, HERE], (7, ADDRESS)),
        ([THERE], (8, ("127.0.0.1", 9093))),
        ([THERE, (9, "127.0.0.1", 9094)], (-1, None)),
        ([], (-1, None)),
    ],
    ids=["its address", "alone behind another address", "none of its address", "no broker"],
)
def test_broker_is_known_by_its_address_or_because_it_is_alone(
    brokers: list[tuple[int, str, int]], found: tuple[int, Any]
) -> None:
    assert identity((0, 13), *brokers)[0] == found


@pytest.mark.parametrize(
    ("security", "is_judged"),
    [
        (Security(), True),
        (Security(credentials=Credentials("PLAIN", "user", "secret")), False),
        (Security(tls=ssl.create_default_context()), False),
    ],
    ids=["plain", "SASL", "TLS"],
)
def test_cases_of_unknown_clients_need_a_listener_that_knows_none(
    security: Security, is_judged: bool
) -> None:
    broker = Subject(replace(TARGET, security=security), "row")
    if is_judged:
        needs_no_login(broker)
    else:
        with pytest.raises(NotSupported, match="knows its clients"):
            needs_no_login(broker)


def beat(epoch: int, **partitions: list[int]) -> heartbeats.ShareGroupHeartbeatResponse:
    """An answer that assigns partitions of topics named by one letter; without any, none at all."""
    topics = [
        heartbeats.TopicPartitions(topic_id=Uuid(name.encode() * 16), partitions=numbers)
        for name, numbers in partitions.items()
    ]
    assignment = heartbeats.Assignment(topic_partitions=topics) if topics else None
    return heartbeats.ShareGroupHeartbeatResponse(
        member_id="m", member_epoch=epoch, assignment=assignment
    )


def test_member_waits_for_all_partitions_of_its_own_topic() -> None:
    """Partitions of another topic do not count, nor a part of its own."""
    whole = beat(5, t=[0, 1])
    script = Scripted([beat(1), beat(2, o=[0, 1]), beat(3, t=[1]), beat(4, t=[0, 1, 2]), whole])
    topic = Topic("t", Uuid(b"t" * 16))
    assert assigned(script.subject(), "g", topic, partitions=2) is whole
    assert script.answers == []
