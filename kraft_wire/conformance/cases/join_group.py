"""JoinGroup, API key 11: members of classic groups come in, and agree on a protocol."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import SUBSCRIPTION, join_request, joined, stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse

_ID_REQUIRED_SINCE: Final = 4
_STATIC_SINCE: Final = 5
_SOURCE: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager, classicGroupJoin"


def _refused(
    broker: Subject, version: int, code: ErrorCode, group_id: str, **given: str | int
) -> None:
    member_id = str(given.pop("member_id", ""))
    request = join_request(group_id, member_id, **given)  # type: ignore[arg-type]  # by its keys
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", code)


@case("JoinGroup", "KIP-394", since=_ID_REQUIRED_SINCE)
def member_id_is_required(broker: Subject, version: int) -> None:
    """A new dynamic member is told its id with MEMBER_ID_REQUIRED, and comes in with it.

    Join without a member id, then with the one of the response.
    """
    group_id = broker.group()
    first = broker.ask(join_request(group_id), version, JoinGroupResponse)
    expect.error(first, "error_code", ErrorCode.MEMBER_ID_REQUIRED)
    expect.true(bool(first.member_id), "a member id", first.member_id, "member_id")
    second = broker.ask(join_request(group_id, first.member_id), version, JoinGroupResponse)
    expect.error(second, "error_code", ErrorCode.NONE)
    expect.equal(second, "member_id", first.member_id)


@case("JoinGroup", "Kafka protocol guide, JoinGroup API", until=_ID_REQUIRED_SINCE - 1)
def member_id_is_given(broker: Subject, version: int) -> None:
    """A new member is given an id and comes in at once.

    Join without a member id.
    """
    answer = broker.ask(join_request(broker.group()), version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(bool(answer.member_id), "a member id", answer.member_id, "member_id")


@case("JoinGroup", "Kafka protocol guide, JoinGroup API")
def first_member_leads(broker: Subject, version: int) -> None:
    """The first member leads generation 1, and is told every member's subscription.

    Join an empty group.
    """
    answer = joined(broker.connect(), version, broker.group())
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "generation_id", 1)
    expect.equal(answer, "leader", answer.member_id)
    expect.equal(answer, "protocol_name", "range")
    expect.equal(answer, "members[0].member_id", answer.member_id)
    expect.true(
        bytes(answer.members[0].metadata) == SUBSCRIPTION,
        "the member's subscription",
        bytes(answer.members[0].metadata),
        "members[0].metadata",
    )


@case("JoinGroup", "KIP-559", since=7)
def protocol_type(broker: Subject, version: int) -> None:
    """The response carries the group's protocol type.

    Join an empty group as "consumer".
    """
    answer = joined(broker.connect(), version, broker.group())
    expect.equal(answer, "protocol_type", "consumer")


@case("JoinGroup", "kafka.server.KafkaApis, handleJoinGroupRequest")
def empty_group_id(broker: Subject, version: int) -> None:
    """An empty group id is refused with INVALID_GROUP_ID.

    Join the group "".
    """
    broker.group()
    _refused(broker, version, ErrorCode.INVALID_GROUP_ID, "")


@case("JoinGroup", _SOURCE)
def session_timeout_too_short(broker: Subject, version: int) -> None:
    """A session timeout below group.min.session.timeout.ms: INVALID_SESSION_TIMEOUT.

    Join with a session timeout of 1 ms.
    """
    group_id = broker.group()
    _refused(broker, version, ErrorCode.INVALID_SESSION_TIMEOUT, group_id, session_timeout_ms=1)


@case("JoinGroup", _SOURCE)
def session_timeout_too_long(broker: Subject, version: int) -> None:
    """A session timeout above group.max.session.timeout.ms: INVALID_SESSION_TIMEOUT.

    Join with a session timeout of 24 days.
    """
    group_id, longest = broker.group(), (1 << 31) - 1
    code = ErrorCode.INVALID_SESSION_TIMEOUT
    _refused(broker, version, code, group_id, session_timeout_ms=longest)


@case("JoinGroup", _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """A member id that the group does not know is refused with UNKNOWN_MEMBER_ID.

    Join an empty group with a made-up member id.
    """
    group_id = broker.group()
    _refused(broker, version, ErrorCode.UNKNOWN_MEMBER_ID, group_id, member_id="made-up")


@case("JoinGroup", _SOURCE)
def other_protocol(broker: Subject, version: int) -> None:
    """A member that shares no protocol with the group: INCONSISTENT_GROUP_PROTOCOL.

    Join a group of protocol "range" with "roundrobin".
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    _refused(broker, version, code, group_id, protocol="roundrobin")


@case("JoinGroup", _SOURCE)
def other_protocol_type(broker: Subject, version: int) -> None:
    """A member of another protocol type is refused with INCONSISTENT_GROUP_PROTOCOL.

    Join a group of consumers as "connect".
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    _refused(broker, version, code, group_id, protocol_type="connect")


@case("JoinGroup", "KIP-345", since=_STATIC_SINCE)
def static_member(broker: Subject, version: int) -> None:
    """A static member comes in at once, and its id begins with its instance id.

    Join with group_instance_id "instance".
    """
    request = join_request(broker.group(), group_instance_id="instance")
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    seen = answer.member_id
    expect.true(seen.startswith("instance"), "an id that begins with it", seen, "member_id")


@case("JoinGroup", "KIP-345", since=_STATIC_SINCE)
def static_member_comes_back(broker: Subject, version: int) -> None:
    """A static member that joins again gets a new id, and the old one is FENCED_INSTANCE_ID.

    Join twice under one instance id, then rejoin with the first member id.
    """
    group_id = broker.group()
    ids = [
        joined(broker.connect(), version, group_id, group_instance_id="instance").member_id
        for _ in range(2)
    ]
    expect.true(ids[0] != ids[1], "another member id", ids[1], "member_id")
    request = join_request(group_id, ids[0], group_instance_id="instance")
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.FENCED_INSTANCE_ID)
