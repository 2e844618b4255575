"""A controller's listener: envelopes, forwarded principals, an authorizer that is not loaded."""

from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.model import Principal
from kraft_wire.node.authorization import guards
from kraft_wire.node.links.envelopes import pack
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.default_principal_data import DefaultPrincipalData
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraft_wire.wire.generated.envelope import EnvelopeRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import (
    ADMINISTRATOR,
    BROKER_LISTENER,
    CLUSTER,
    CLUSTER_NAME,
    CONTROLLER_LISTENER,
    STRANGER,
    TOPIC,
    GuardedDoor,
    guarded_node,
)

NONE, NO_TOPIC, NO_CLUSTER = 0, 29, 31
NO_PRINCIPAL = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
ALL_OF_A_TOPIC, ALL_OF_A_CLUSTER = 3576, 8096
"""What 4.3.1 shows to who may do everything."""
CLIENT = "10.0.0.9"
"""The address of a client whose request a broker forwards."""
FROM_CONTROLLER: Any = {"listener": CONTROLLER_LISTENER}


def inner_bytes(request: Message, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 1, "client")
    return encode_request_header(header) + request.encode(version)


def creation() -> CreateTopicsRequest:
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1_000)


CREATION = inner_bytes(creation(), 7)
PRINCIPAL = bytes(2) + DefaultPrincipalData(type="User", name="ann").encode(0)


@pytest.fixture
def node() -> GuardedDoor:
    return guarded_node("mine")


def envelope(request: Message, version: int, principal: Principal, host: str) -> Message:
    header = RequestHeader(request.API_KEY, version, 1, "client")
    return pack(header, request, host, principal)


def inner_error(answer: Any) -> int:
    """Return the error of the topic in an envelope's answer."""
    assert answer.error_code == NONE, answer
    found, _ = CreateTopicsResponse.decode(answer.response_data, 7, 5)
    (topic,) = found.topics
    return topic.error_code


def test_envelopes_are_opened_for_those_who_may_act_for_others(node: GuardedDoor) -> None:
    """SEC-ENV-08: 31 outside, and nothing is done; not even for the administrator inside."""
    ann = Principal("User", "ANONYMOUS", token_authenticated=False)
    sent = envelope(creation(), 7, ann, ADMINISTRATOR)
    assert node.ask(sent, 0, **FROM_CONTROLLER).error_code == NO_CLUSTER
    assert node.node.controller.image.topic("new") is None
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    assert inner_error(node.ask(sent, 0, **FROM_CONTROLLER)) == NONE


def test_a_forwarded_request_is_judged_by_the_principal_and_address_inside(
    node: GuardedDoor,
) -> None:
    """SEC-ENV-12: the sender's rights are no help, the client's count, at its own address."""
    ann = Principal("User", "ANONYMOUS", token_authenticated=False)
    sent = envelope(creation(), 7, ann, CLIENT)
    assert inner_error(node.ask(sent, 0, host=ADMINISTRATOR, **FROM_CONTROLLER)) == NO_TOPIC
    node.permit(TOPIC, "new", Op.CREATE, host=CLIENT)
    other = envelope(creation(), 7, ann._replace(name="bob"), CLIENT)
    assert inner_error(node.ask(other, 0, host=ADMINISTRATOR, **FROM_CONTROLLER)) == NO_TOPIC
    assert inner_error(node.ask(sent, 0, host=ADMINISTRATOR, **FROM_CONTROLLER)) == NONE


def test_envelopes_are_for_a_controllers_listener_alone(node: GuardedDoor) -> None:
    """SEC-ENV-07: a broker's closes, as for every API that it does not serve."""
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    sent = envelope(creation(), 7, Principal("User", "ANONYMOUS"), ADMINISTRATOR)
    assert node.ask(sent, 0) == "closed"
    assert node.node.controller.image.topic("new") is None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request_principal": None}, NO_PRINCIPAL),
        ({"request_principal": b""}, NO_PRINCIPAL),
        ({"request_principal": b"\0\1" + PRINCIPAL[2:]}, NO_PRINCIPAL),
        ({"request_principal": PRINCIPAL[:-3]}, NO_PRINCIPAL),
        ({"request_principal": PRINCIPAL + b"\0"}, NO_PRINCIPAL),
        ({"client_host_address": bytes(5)}, ErrorCode.INVALID_REQUEST),
        ({"client_host_address": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_data": inner_bytes(VoteRequest(), 2)}, ErrorCode.INVALID_REQUEST),
        ({"request_data": inner_bytes(EnvelopeRequest(), 0)}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b""}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\0\x13\0\x63" + CREATION[4:]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x7f\xff" + CREATION[2:]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": CREATION[:-6]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"", "client_host_address": b"\1"}, ErrorCode.INVALID_REQUEST),
        ({"request_principal": b"", "client_host_address": b"\1"}, NO_PRINCIPAL),
    ],
)
def test_what_an_envelope_must_hold(
    node: GuardedDoor, changes: dict[str, Any], error: ErrorCode
) -> None:
    """SEC-ENV-09, SEC-ENV-10, SEC-ENV-11: principal, then address, then request; 4.3.1's codes.

    Only bytes behind the principal pass in 4.3.1.
    """
    whole = {
        "request_data": CREATION,
        "request_principal": PRINCIPAL,
        "client_host_address": bytes(4),
    }
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    answer = node.ask(EnvelopeRequest(**whole), 0, **FROM_CONTROLLER)
    assert inner_error(answer) == NO_TOPIC, "who is named may not create it"
    answer = node.ask(EnvelopeRequest(**whole | changes), 0, **FROM_CONTROLLER)
    assert (answer.error_code, answer.response_data) == (error, None)


@pytest.mark.parametrize("listener", [BROKER_LISTENER, CONTROLLER_LISTENER])
def test_credentials_are_described_on_both_kinds_of_listener(
    node: GuardedDoor, listener: str
) -> None:
    """SEC-SCRAM-16: 4.3.1 answers UNKNOWN_SERVER_ERROR on a controller's."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")])
    assert node.ask(request, listener=listener).error_code == NO_CLUSTER
    answer = node.ask(request, host=ADMINISTRATOR, listener=listener)
    assert answer.error_code == NONE
    assert [each.error_code for each in answer.results] == [ErrorCode.RESOURCE_NOT_FOUND]


def test_a_wrong_setting_of_a_broker_is_no_oracle(node: GuardedDoor) -> None:
    """SEC-ENV-16: 31 without the right, whatever the values; 4.3.1 says INVALID_REQUEST."""
    codes = []
    for host in (STRANGER, ADMINISTRATOR):
        for name, value in (("1", "x"), ("1", "2"), ("9", "2")):
            change = AlterableConfig(name="log.cleaner.threads", config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=4, resource_name=name, configs=[change])
            answer = node.ask(IncrementalAlterConfigsRequest(resources=[resource]), host=host)
            codes.append(answer.responses[0].error_code)
    wrong = ErrorCode.INVALID_REQUEST
    assert codes == [NO_CLUSTER] * 3 + [wrong, NONE, wrong]


def test_without_an_authorizer_everybody_may_do_everything_but_change_entries() -> None:
    """SEC-ACL-15: entries are SECURITY_DISABLED, and allowed operations are all of the kind."""
    node = GuardedDoor(authorizer_class_name="", super_users="")
    assert node.ask(creation(), 7).topics[0].error_code == NONE
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="new")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = node.ask(request, 8)
    assert answer.topics[0].topic_authorized_operations == ALL_OF_A_TOPIC
    assert answer.cluster_authorized_operations == ALL_OF_A_CLUSTER
    assert node.ask(VoteRequest(), **FROM_CONTROLLER).error_code != NO_CLUSTER
    wanted = AclCreation(resource_type=TOPIC, resource_name="new", principal="User:a", host="*")
    wanted.operation = wanted.permission_type = 3
    (refused,) = node.ask(CreateAclsRequest(creations=[wanted])).results
    assert refused.error_code == ErrorCode.SECURITY_DISABLED


def test_a_controller_describes_the_cluster_to_who_may_alter_it(node: GuardedDoor) -> None:
    """SEC-API-19: free on a broker's listener, ALTER on a controller's."""
    assert node.ask(DescribeClusterRequest()).error_code == NONE
    request = DescribeClusterRequest(endpoint_type=2)
    assert node.ask(request, **FROM_CONTROLLER).error_code == NO_CLUSTER
    node.permit(CLUSTER, CLUSTER_NAME, Op.ALTER)
    assert node.ask(request, **FROM_CONTROLLER).error_code == NONE


def test_calls_between_nodes_need_the_brokers_right(node: GuardedDoor) -> None:
    """SEC-API-20, SEC-ENV-04: CLUSTER_ACTION, and no other right on the cluster."""
    for operation in (Op.ALTER, Op.DESCRIBE, Op.CREATE):
        node.permit(CLUSTER, CLUSTER_NAME, operation)
    assert node.ask(VoteRequest(), **FROM_CONTROLLER).error_code == NO_CLUSTER
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    assert node.ask(VoteRequest(), **FROM_CONTROLLER).error_code != NO_CLUSTER


def test_until_the_entries_are_loaded_super_users_alone_are_served(node: GuardedDoor) -> None:
    """SEC-ENV-06: others get UNKNOWN_SERVER_ERROR, whatever entries allow them."""
    node.permit(CLUSTER, CLUSTER_NAME, Op.DESCRIBE)
    assert node.ask(DescribeQuorumRequest(), **FROM_CONTROLLER).error_code == NONE
    guarding = node.node._guards
    assert guarding is not None
    guarding._authorizer.is_loaded = False
    refused = node.ask(DescribeQuorumRequest(), **FROM_CONTROLLER)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    settings = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name="mine")]
    )
    (result,) = node.ask(settings, **FROM_CONTROLLER).results
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    # 4.3.1's `DescribeConfigsRequest.getErrorResponse`
    assert (result.error_code, result.error_message) == (unknown, unknown.message)


def test_a_broker_asks_again_until_the_entries_are_loaded() -> None:
    """SEC-ENV-06: its client waits, and gets no error that says nothing."""
    node = GuardedDoor(super_users="User:ANONYMOUS")
    guarding = node.node._guards
    assert guarding is not None
    guarding._authorizer.is_loaded = False
    sent = envelope(creation(), 7, Principal("User", "ann"), STRANGER)
    answer = node.ask(sent, 0, **FROM_CONTROLLER)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    guarding._authorizer.is_loaded = True
    assert inner_error(node.ask(sent, 0, **FROM_CONTROLLER)) == NO_TOPIC


def test_super_users_are_served_before_the_entries_are_loaded() -> None:
    """SEC-ENV-06, SEC-ACL-01."""
    node = GuardedDoor(super_users="User:root;User:ANONYMOUS")
    guarding = node.node._guards
    assert guarding is not None
    guarding._authorizer.is_loaded = False
    assert node.ask(DescribeQuorumRequest(), **FROM_CONTROLLER).error_code == NONE


def test_entries_count_for_open_connections_from_their_replay_on(node: GuardedDoor) -> None:
    """SEC-ACL-10: the same connection is refused, then served."""
    asked: Any = {"connection": 5, "host": STRANGER}
    assert node.ask(creation(), 7, **asked).topics[0].error_code == NO_TOPIC
    node.permit(TOPIC, "new", Op.CREATE)
    assert node.ask(creation(), 7, **asked).topics[0].error_code == NONE


def test_without_entries_everybody_is_allowed_where_the_key_says_so() -> None:
    """SEC-ACL-03: one entry about a resource turns that off for all others."""
    first = GuardedDoor()
    first.create("mine")
    node = first.reopened(allow_everyone_if_no_acl_found="true")
    assert node.ask(creation(), 7).topics[0].error_code == NONE


def test_every_api_that_is_served_has_a_guard_that_knows_its_steps() -> None:
    """A guard of `whole.cluster` has one step, on the cluster: the table is the only place."""
    for listener in ListenerType:
        for api in APIS.values():
            if api.owner_on(listener) is None:
                continue
            guard = guards._guard_of(api.key, listener)
            needs = api.needs_on(listener)
            if guard is guards.whole.cluster:
                (need,) = needs
                assert all(right.resource.name == "CLUSTER" for right in need.rights), api
            elif guard is guards.whole.nothing:
                assert not needs, api
