"""FindCoordinator: the leader of the group's partition, and the topic that is made for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.java_hash import text_hash
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from tests.broker.groups.harness import Harness


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator_names_the_leader_of_the_group_s_partition(version: int) -> None:
    request = FindCoordinatorRequest(key="group", coordinator_keys=["group", "other"])
    if version < 4:
        request.coordinator_keys = []
        response = Harness().send(request, version).response
        found = [(response.error_code, response.node_id, response.host, response.port)]
    else:
        request.key = ""
        response = Harness().send(request, version).response
        found = [(c.error_code, c.node_id, c.host, c.port) for c in response.coordinators]
        assert [c.key for c in response.coordinators] == ["group", "other"]
    assert found == [(ErrorCode.NONE, 1, "127.0.0.1", 9092)] * len(found)


def test_the_first_look_for_a_coordinator_creates_the_topic_once() -> None:
    harness = Harness(offsets_partitions=0, offsets_topic_num_partitions=7)
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    for _ in range(2):
        found = harness.send(request, 6).response.coordinators[0]
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (sent,) = harness.controller_requests
    assert isinstance(sent, CreateTopicsRequest)
    (topic,) = sent.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (
        "__consumer_offsets",
        7,
        3,
    )
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    harness.create_topic("__consumer_offsets", 7)
    assert harness.send(request, 6).response.coordinators[0].error_code == ErrorCode.NONE


def test_an_unanswered_creation_is_asked_for_again_after_half_a_minute() -> None:
    harness = Harness(offsets_partitions=0)
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    for _ in range(3):
        harness.send(request, 6)
        harness.advance(15_000)
    assert len(harness.controller_requests) == 2


@pytest.mark.parametrize(
    ("key_type", "version", "error"),
    [
        (2, 5, ErrorCode.INVALID_REQUEST),
        (3, 1, ErrorCode.INVALID_REQUEST),
        (-1, 6, ErrorCode.INVALID_REQUEST),
    ],
)
def test_coordinators_of_other_types_are_not_served(
    key_type: int, version: int, error: ErrorCode
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["key"])
    if version < 4:
        request = FindCoordinatorRequest(key_type=key_type, key="key")
    response = Harness().send(request, version).response
    assert error == (response.error_code if version < 4 else response.coordinators[0].error_code)


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("key_type", [0, 9])
def test_answer_without_a_coordinator_names_no_node(version: int, key_type: int) -> None:
    """`FindCoordinatorResponse.prepareOldResponse` and `Node.noNode()`: -1, no host, port -1."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["group"])
    if version < 4:
        request = FindCoordinatorRequest(key_type=key_type, key="group")
    if version == 0:
        request.key_type = 0
    response = Harness(offsets_partitions=0).send(request, version).response
    found = response if version < 4 else response.coordinators[0]
    assert (found.node_id, found.host, found.port) == (-1, "", -1)
    is_unknown = key_type and version
    error = ErrorCode.INVALID_REQUEST if is_unknown else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found.error_code == error


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(1 << 31))],
)
def test_java_string_hash_of_known_strings(text: str, value: int) -> None:
    assert text_hash(text) == value


@pytest.mark.parametrize("text", ["kraft-wire", "é", "😀", "\ud800"])
def test_java_string_hash_is_the_documented_sum(text: str) -> None:
    assert text_hash(text) == java_hash_by_hand(text)


def java_hash_by_hand(text: str) -> int:
    """The sum that String.hashCode documents: s[0]*31^(n-1) + ... + s[n-1], modulo 2^32."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = [data[n] + 256 * data[n + 1] for n in range(0, len(data), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - n) for n, unit in enumerate(units)) % 2**32
    return total - 2**32 if total >= 2**31 else total


def test_the_smallest_hash_counts_as_partition_zero() -> None:
    assert key_partition("polygenelubricants", 50) == 0
    assert key_partition("hello", 50) == 99162322 % 50


def test_errors_in_order() -> None:
    harness = Harness(offsets_partitions=0)

    def error(key_type: int) -> int:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["group"])
        return int(harness.send(request, 6).response.coordinators[0].error_code)

    assert error(9) == ErrorCode.INVALID_REQUEST
    assert harness.controller_requests == []
    assert error(0) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_leader_that_is_gone_or_has_no_such_listener_is_no_coordinator() -> None:
    """`KafkaApis.getCoordinator`: without an endpoint of the client's listener there is none."""
    harness = Harness()
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    (broker,) = harness.image.brokers.values()
    endpoint = broker.endpoints["PLAINTEXT"]
    for changed in (
        replace(broker, endpoints={"INTERNAL": endpoint}),
        replace(broker, fenced=True),
        None,
    ):
        brokers = {} if changed is None else {1: changed}
        harness.publish(replace(harness.image, brokers=brokers))
        (found,) = harness.send(request, 6).response.coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    harness.publish(replace(harness.image, brokers={1: broker}))
    assert harness.send(request, 6).response.coordinators[0].node_id == 1
