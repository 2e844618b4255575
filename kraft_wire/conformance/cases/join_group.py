"""JoinGroup, API key 11: members of classic groups come in, and agree on a protocol."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.connection import CLIENT_ID, Connection
from kraft_wire.conformance.members import (
    SUBSCRIPTION,
    join_request,
    joined,
    stable_member,
    subscription,
    sync_request,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse

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
    """A new dynamic member gets its id with MEMBER_ID_REQUIRED, and joins with it.

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
    """A new member gets an id and joins at once.

    Join without a member id.
    """
    answer = broker.ask(join_request(broker.group()), version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(bool(answer.member_id), "a member id", answer.member_id, "member_id")


@case("JoinGroup", "Kafka protocol guide, JoinGroup API")
def first_member_leads(broker: Subject, version: int) -> None:
    """The first member leads generation 1, and gets every member's subscription.

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
    """The response has the group's protocol type.

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
    """An unknown member id is refused with UNKNOWN_MEMBER_ID.

    Join an empty group with an unknown member id.
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
    """A static member joins at once, and its id begins with its instance id.

    Join with group_instance_id "instance".
    """
    request = join_request(broker.group(), group_instance_id="instance")
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    seen = answer.member_id
    expect.true(seen.startswith("instance"), "an id that begins with it", seen, "member_id")


@case("JoinGroup", "KIP-345", since=_STATIC_SINCE)
def static_member_comes_back(broker: Subject, version: int) -> None:
    """A static member that rejoins gets a new id, and the old one is FENCED_INSTANCE_ID.

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


@case("JoinGroup", "KIP-345", since=_STATIC_SINCE)
def static_member_of_a_stable_group(broker: Subject, version: int) -> None:
    """A static member that rejoins a stable group gets its generation, without a rebalance.

    Join and sync under an instance id, then join again without a member id.
    """
    group_id, connection = broker.group(), broker.connect()
    first = joined(connection, version, group_id, group_instance_id="instance")
    request = sync_request(group_id, first, min(version, SyncGroupRequest.MAX_VERSION))
    connection.ask(request, min(version, SyncGroupRequest.MAX_VERSION), SyncGroupResponse)
    again = joined(broker.connect(), version, group_id, group_instance_id="instance")
    expect.error(again, "error_code", ErrorCode.NONE)
    expect.equal(again, "generation_id", first.generation_id)
    expect.equal(again, "protocol_name", "range")
    expect.true(again.member_id != first.member_id, "another id", again.member_id, "member_id")


@case("JoinGroup", "KIP-394", since=_ID_REQUIRED_SINCE)
def member_id_is_the_client_id_and_a_uuid(broker: Subject, version: int) -> None:
    """A member id is the client id, a dash and a random UUID (version 4).

    Join without a member id.
    """
    answer = joined(broker.connect(), version, broker.group())
    client_id, unique = answer.member_id[:-37], answer.member_id[-36:]
    expect.true(bool(answer.member_id), "a member id", "none", "member_id")
    expect.as_release(client_id == CLIENT_ID, CLIENT_ID, client_id, "member_id")
    is_random = unique[14] == "4" and unique[19] in "89ab"
    expect.as_release(is_random, "a UUID", unique, "member_id")


@case("JoinGroup", _SOURCE)
def common_protocol(broker: Subject, version: int) -> None:
    """The group uses a protocol that every member supports, even if more prefer another.

    Join with "range" and "sticky", then have another member join with "sticky" only.
    """
    group_id = broker.group()
    first, second = broker.connect(), broker.connect()
    wide = join_request(group_id)
    wide.protocols.append(JoinGroupRequestProtocol(name="sticky", metadata=SUBSCRIPTION))
    member = _known_member(first, version, wide)
    narrow = join_request(group_id, protocol="sticky", metadata=subscription("conform"))
    if version >= _ID_REQUIRED_SINCE:
        narrow.member_id = second.ask(narrow, version, JoinGroupResponse).member_id
    payload, header = second.encoded(narrow, version)
    second.send_frame(payload)
    _await_rebalance(broker, group_id)
    wide.member_id = member.member_id
    member = first.ask(wide, version, JoinGroupResponse)
    expect.equal(member, "protocol_name", "sticky")
    answer = second.response(payload, header, JoinGroupResponse)
    expect.equal(answer, "protocol_name", "sticky")


def _await_rebalance(broker: Subject, group_id: str) -> None:
    question = DescribeGroupsRequest(groups=[group_id])
    for _ in broker.attempts("a rebalance of the group"):
        found = broker.prepare(question, DescribeGroupsResponse).groups[0]
        if found.group_state == "PreparingRebalance":
            return


def _known_member(
    connection: Connection, version: int, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Join, with the member id that the broker demands."""
    answer = connection.ask(request, version, JoinGroupResponse)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = answer.member_id
        answer = connection.ask(request, version, JoinGroupResponse)
    return answer


@case("JoinGroup", "KIP-345", since=_STATIC_SINCE)
def static_leader_that_restarts(broker: Subject, version: int) -> None:
    """A leader that restarts under its instance id during a rebalance leads the next generation.

    Bring a static member into a stable group, have a second one join, then have the first one join
    again without its member id.
    """
    group_id, connection = broker.group(), broker.connect()
    first = joined(connection, version, group_id, group_instance_id="leader")
    newest = min(version, SyncGroupRequest.MAX_VERSION)
    request = sync_request(group_id, first, newest)
    connection.ask(request, newest, SyncGroupResponse)
    second = broker.connect()
    payload, header = second.encoded(
        join_request(group_id, group_instance_id="follower", metadata=subscription("conform")),
        version,
    )
    second.send_frame(payload)
    _await_rebalance(broker, group_id)
    leader = joined(broker.connect(), version, group_id, group_instance_id="leader")
    expect.error(leader, "error_code", ErrorCode.NONE)
    expect.equal(leader, "generation_id", first.generation_id + 1)
    follower = second.response(payload, header, JoinGroupResponse)
    expect.one_of(leader, "leader", leader.member_id, follower.member_id)
    expect.equal(follower, "leader", leader.leader)
    leads = leader.leader == leader.member_id
    expect.as_release(leads, leader.member_id, leader.leader, "leader")


@case("JoinGroup", _SOURCE, since=_ID_REQUIRED_SINCE)
def member_that_joins_twice(broker: Subject, version: int) -> None:
    """A member that joins again before SyncGroup gets the same generation; after it, a new one.

    Join, join again, sync, join again.
    """
    group_id, connection = broker.group(), broker.connect()
    first = joined(connection, version, group_id)
    again = join_request(group_id, first.member_id)
    second = connection.ask(again, version, JoinGroupResponse)
    expect.error(second, "error_code", ErrorCode.NONE)
    expect.equal(second, "generation_id", first.generation_id)
    expect.equal(second, "leader", first.member_id)
    expect.equal(second, "members[0].member_id", first.member_id)
    newest = min(version, SyncGroupRequest.MAX_VERSION)
    connection.ask(sync_request(group_id, second, newest), newest, SyncGroupResponse)
    third = connection.ask(again, version, JoinGroupResponse)
    expect.error(third, "error_code", ErrorCode.NONE)
    expect.equal(third, "generation_id", first.generation_id + 1)


@case("JoinGroup", _SOURCE, since=_ID_REQUIRED_SINCE)
def other_subscription_before_the_assignment(broker: Subject, version: int) -> None:
    """A member that joins again with another subscription begins a new generation.

    Join, join again with another subscription.
    """
    group_id, connection = broker.group(), broker.connect()
    first = joined(connection, version, group_id)
    again = join_request(group_id, first.member_id, metadata=subscription("conform"))
    second = connection.ask(again, version, JoinGroupResponse)
    expect.error(second, "error_code", ErrorCode.NONE)
    expect.equal(second, "generation_id", first.generation_id + 1)


@case("JoinGroup", _SOURCE, since=_ID_REQUIRED_SINCE)
def member_whose_connection_is_closed(broker: Subject, version: int) -> None:
    """A member that waits on a closed connection is in the next generation all the same.

    Bring a group into the state Stable, join as another member, close its connection, send
    heartbeats until there is a rebalance, join again.
    """
    group_id = broker.group()
    first = stable_member(broker, group_id)
    other = join_request(group_id, metadata=subscription("conform"))
    connection = broker.connect()
    other.member_id = connection.ask(other, version, JoinGroupResponse).member_id
    payload, _ = connection.encoded(other, version)
    connection.send_frame(payload)
    connection.close()
    beat = HeartbeatRequest(
        group_id=group_id, generation_id=first.generation_id, member_id=first.member_id
    )
    for _ in broker.attempts("a rebalance"):
        answer = broker.prepare(beat, HeartbeatResponse)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            break
    again = join_request(group_id, first.member_id)
    joined_again = broker.ask(again, version, JoinGroupResponse)
    expect.error(joined_again, "error_code", ErrorCode.NONE)
    found = {each.member_id for each in joined_again.members}
    expect.true(found == {first.member_id, other.member_id}, "both members", found, "members")
