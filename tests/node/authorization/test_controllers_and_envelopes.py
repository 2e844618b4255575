"""A controller's listener: envelopes, forwarded principals, an authorizer that is not loaded."""

from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.model import Principal
from kraft_wire.node.authorization import guards
from kraft_wire.node.links.envelopes import pack
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import (
    ADMINISTRATOR,
    CLUSTER,
    CLUSTER_NAME,
    CONTROLLER_LISTENER,
    NOBODY,
    TOPIC,
    GuardedDoor,
    guarded_node,
)

NONE, NO_TOPIC, NO_CLUSTER = 0, 29, 31
CLIENT = "10.0.0.9"
"""The address of a client whose request a broker forwards."""
FROM_CONTROLLER: Any = {"listener": CONTROLLER_LISTENER}


@pytest.fixture
def node() -> GuardedDoor:
    return guarded_node("mine")


def envelope(request: Message, version: int, principal: Principal, host: str) -> Message:
    header = RequestHeader(request.API_KEY, version, 1, "client")
    return pack(header, request, host, principal)


def creation() -> CreateTopicsRequest:
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1_000)


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
    assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_super_users_are_served_before_the_entries_are_loaded() -> None:
    """SEC-ENV-06, SEC-ACL-01."""
    node = GuardedDoor(super_users="User:root;User:ANONYMOUS")
    guarding = node.node._guards
    assert guarding is not None
    guarding._authorizer.is_loaded = False
    assert node.ask(DescribeQuorumRequest(), **FROM_CONTROLLER).error_code == NONE


def test_entries_count_for_open_connections_from_their_replay_on(node: GuardedDoor) -> None:
    """SEC-ACL-10: the same connection is refused, then served."""
    asked: Any = {"connection": 5, "host": NOBODY}
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
