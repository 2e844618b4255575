"""The registry of API keys against the schemas and against what release 4.3.1 itself says."""

import pytest

from kraft_wire.apis.api import Api, ListenerType, Owner
from kraft_wire.apis.registry import (
    APIS,
    FORWARDABLE,
    FORWARDED,
    advertised,
    key_of,
    served,
)
from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.metadata.acl_rules import OPERATIONS, RESOURCE_TYPES
from kraft_wire.wire.generated.messages import RELEASE
from kraft_wire.wire.generated.registry import REQUESTS, request_class
from tests.node.far_side import RELEASES

FORWARDABLE_IN_KAFKA = {
    *(19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46),
    *(49, 51, 55, 57, 64, 67, 80, 81),
}
"""`ApiKeys.forwardable` of the release."""

AMONG_NODES = {
    *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition", "Envelope"),
    *("BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds", "FetchSnapshot"),
    *("ControllerRegistration", "AssignReplicasToDirs", "UpdateRaftVoter"),
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
    *("DeleteShareGroupState", "ReadShareGroupStateSummary"),
}
"""What only nodes ask each other, so that CLUSTER_ACTION is all that it needs."""


def test_every_key_of_the_release_has_one_row_in_order() -> None:
    assert list(APIS) == sorted(REQUESTS)
    assert [key_of(each.name) for each in APIS.values()] == list(APIS)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_row_has_the_stable_versions_of_its_class(api: Api) -> None:
    kind = request_class(api.key)
    assert kind.__name__ == f"{api.name}Request"
    assert api.versions == (kind.MIN_VERSION, kind.MAX_VERSION - kind.LATEST_VERSION_UNSTABLE)


def test_only_produce_is_advertised_below_what_is_served() -> None:
    ours = served(ListenerType.BROKER)
    assert {key: low for key, (low, _) in advertised().items() if low != ours[key][0]} == {0: 0}
    assert list(advertised()) == sorted(ours)


def test_controller_serves_no_version_that_the_release_does_not_advertise() -> None:
    theirs = {int(key): tuple(versions) for key, versions in RELEASES[RELEASE].items()}
    ours = served(ListenerType.CONTROLLER)
    assert {key: theirs[key] for key in ours} == ours


def test_forwardable_is_what_kafka_takes_from_an_envelope() -> None:
    assert FORWARDABLE == FORWARDABLE_IN_KAFKA
    assert frozenset(FORWARDED) <= FORWARDABLE


def test_what_is_not_served_is_owned_by_nobody_anywhere() -> None:
    for api in APIS.values():
        owners = [api.owner_on(listener) for listener in ListenerType]
        assert any(owners) == (api.owner is not None)
        assert api.controller_owner is None or ListenerType.CONTROLLER in api.listeners


def test_only_a_controllers_listener_asks_the_node_itself() -> None:
    owners = {api.owner_on(ListenerType.BROKER) for api in APIS.values()}
    assert owners == {None, Owner.BROKER, Owner.CONTROLLER, Owner.RAFT}


def test_codes_of_rights_are_those_of_access_control_entries() -> None:
    assert {each.value: each.name for each in AclOperation}.items() <= OPERATIONS.items()
    assert {each.value: each.name for each in ResourceType}.items() <= RESOURCE_TYPES.items()


def test_what_nodes_ask_each_other_needs_cluster_action_alone() -> None:
    alone = [
        api.name
        for api in APIS.values()
        if [str(each) for each in api.needs] == ["CLUSTER_ACTION CLUSTER"]
    ]
    assert sorted(alone) == sorted(AMONG_NODES)


@pytest.mark.parametrize(
    ("name", "listener", "needs"),
    [
        ("Fetch", "broker", ["READ TOPIC (a consumer)", "CLUSTER_ACTION CLUSTER (a replica)"]),
        ("Fetch", "controller", ["CLUSTER_ACTION CLUSTER"]),
        ("DescribeCluster", "controller", ["ALTER CLUSTER"]),
        ("ListGroups", "broker", ["DESCRIBE CLUSTER or DESCRIBE GROUP"]),
        ("OffsetDelete", "broker", ["DELETE GROUP", "READ TOPIC"]),
        ("AlterShareGroupOffsets", "broker", ["READ GROUP", "READ TOPIC"]),
        ("WriteTxnMarkers", "broker", ["ALTER CLUSTER or CLUSTER_ACTION CLUSTER"]),
        ("ApiVersions", "broker", []),
    ],
)
def test_rights_are_in_the_order_in_which_kafka_asks(
    name: str, listener: str, needs: list[str]
) -> None:
    api = APIS[key_of(name)]
    assert [str(each) for each in api.needs_on(ListenerType(listener))] == needs
