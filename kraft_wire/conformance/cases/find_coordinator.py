"""FindCoordinator, API key 10: the broker that coordinates a group."""

from base64 import urlsafe_b64encode
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_MANY_SINCE: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_SHARE_SINCE: Final = 6


@case("FindCoordinator", "Kafka protocol guide, FindCoordinator API", until=_MANY_SINCE - 1)
def coordinator_of_a_group(broker: Subject, version: int) -> None:
    """A group's coordinator is a broker with an address.

    Ask for the coordinator of a new group, after one exists.
    """
    group_id = broker.group()
    request = FindCoordinatorRequest(key=group_id, key_type=_GROUP, coordinator_keys=[])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(answer.port > 0, "a port", answer.port, "port")
    expect.true(bool(answer.host), "a host", answer.host, "host")


@case("FindCoordinator", "KIP-699", since=_MANY_SINCE)
def coordinators_of_several_groups(broker: Subject, version: int) -> None:
    """One response has the results of several groups, each with its key.

    Ask for the coordinators of two groups.
    """
    keys = [broker.group(), broker.name("group")]
    request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=keys)
    answer = broker.ask(request, version, FindCoordinatorResponse)
    seen = sorted(each.key for each in answer.coordinators)
    expect.true(seen == sorted(keys), str(sorted(keys)), seen, "coordinators")
    for index, _ in enumerate(keys):
        expect.error(answer, f"coordinators[{index}].error_code", ErrorCode.NONE)


@case("FindCoordinator", "kafka.server.KafkaApis, handleFindCoordinatorRequest", since=1, until=3)
def unknown_key_type(broker: Subject, version: int) -> None:
    """An unknown key type is refused with INVALID_REQUEST.

    Ask with key type 9.
    """
    request = FindCoordinatorRequest(key="x", key_type=9, coordinator_keys=[])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("FindCoordinator", "kafka.server.KafkaApis, handleFindCoordinatorRequest", since=4)
def unknown_key_type_of_several(broker: Subject, version: int) -> None:
    """An unknown key type is refused with INVALID_REQUEST for each key.

    Ask with key type 9.
    """
    request = FindCoordinatorRequest(key_type=9, coordinator_keys=["x"])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "coordinators[0].error_code", ErrorCode.INVALID_REQUEST)


@case("FindCoordinator", "KIP-98, FindCoordinatorRequest", since=1, until=_MANY_SINCE - 1)
def coordinator_of_a_transactional_id(broker: Subject, version: int) -> None:
    """A transactional id's coordinator is a broker with an address.

    Ask for the coordinator of a transactional id, after one exists.
    """
    name = broker.transactional_id()
    request = FindCoordinatorRequest(key=name, key_type=_TRANSACTION, coordinator_keys=[])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(answer.port > 0, "a port", answer.port, "port")
    expect.true(bool(answer.host), "a host", answer.host, "host")


@case("FindCoordinator", "KIP-699", since=_MANY_SINCE)
def coordinators_with_addresses(broker: Subject, version: int) -> None:
    """A coordinator of a group or of a transactional id is the broker that coordinates it.

    Ask for the coordinators of a group and of a transactional id of the tested broker.
    """
    keys = ((_GROUP, broker.group()), (_TRANSACTION, broker.transactional_id()))
    for kind, key in keys:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        answer = broker.ask(request, version, FindCoordinatorResponse)
        expect.error(answer, "coordinators[0].error_code", ErrorCode.NONE)
        expect.equal(answer, "coordinators[0].key", key)
        found = answer.coordinators[0].port
        expect.true(found > 0, "a port", found, "coordinators[0].port")


@case("FindCoordinator", "KIP-699", since=_MANY_SINCE)
def no_keys(broker: Subject, version: int) -> None:
    """A request without keys has a response without coordinators.

    Ask for no coordinator.
    """
    request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.equal(answer, "coordinators", [])


@case("FindCoordinator", "KIP-932, FindCoordinator", since=_MANY_SINCE)
def coordinator_of_a_share_partition(broker: Subject, version: int) -> None:
    """A share partition has a coordinator from version 6 on: INVALID_REQUEST below.

    Ask for the coordinator of a share partition of a new group.
    """
    topic_id = urlsafe_b64encode(bytes(broker.topic().topic_id)).decode().rstrip("=")
    request = FindCoordinatorRequest(
        key_type=_SHARE, coordinator_keys=[f"{broker.group()}:{topic_id}:0"]
    )
    for _ in broker.attempts("a coordinator of a share partition"):
        found = broker.prepare(request, FindCoordinatorResponse)
        if found.coordinators[0].error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            break
    answer = broker.ask(request, version, FindCoordinatorResponse)
    wanted = ErrorCode.NONE if version >= _SHARE_SINCE else ErrorCode.INVALID_REQUEST
    expect.error(answer, "coordinators[0].error_code", wanted)


@case("FindCoordinator", "KIP-932, FindCoordinator", since=_SHARE_SINCE)
def key_of_no_share_partition(broker: Subject, version: int) -> None:
    """A key that names no share partition is refused with INVALID_REQUEST.

    Ask for the coordinator of the share partition "conform".
    """
    request = FindCoordinatorRequest(key_type=_SHARE, coordinator_keys=["conform"])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "coordinators[0].error_code", ErrorCode.INVALID_REQUEST)


@case("FindCoordinator", "KIP-932, FindCoordinator", since=1, until=_MANY_SINCE - 1)
def share_partition_in_an_older_version(broker: Subject, version: int) -> None:
    """Versions without several keys know no share partitions: INVALID_REQUEST.

    Ask with key type 2.
    """
    request = FindCoordinatorRequest(key="conform", key_type=_SHARE, coordinator_keys=[])
    answer = broker.ask(request, version, FindCoordinatorResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)
