"""Answers to a request as a whole: `getErrorResponse` of each request's class in release 4.3.1."""

import pytest

from kraft_wire.controller.controller import Controller
from kraft_wire.controller.requests import decide, nobody_active, refuse
from kraft_wire.model import Uuid
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from kraft_wire.wire.generated.alter_partition import AlterPartitionRequest
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignableTopic,
)
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraft_wire.wire.generated.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kraft_wire.wire.message import Message
from tests.controller.cluster import Context, SeededRandomSource

NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER


def inactive() -> Controller:
    return Controller(node_id=1, settings=NodeSettings({}), random_source=SeededRandomSource())


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (AlterPartitionRequest(), ErrorCode.NONE),
        (ElectLeadersRequest(election_type=9, topic_partitions=[]), ErrorCode.NONE),
        (ElectLeadersRequest(topic_partitions=None), NOT_CONTROLLER),
        (AlterPartitionReassignmentsRequest(), ErrorCode.NONE),
        (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t")]), NOT_CONTROLLER),
        (ListPartitionReassignmentsRequest(topics=[]), ErrorCode.NONE),
        (ListPartitionReassignmentsRequest(topics=None), NOT_CONTROLLER),
        (
            ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics(name="t")]),
            NOT_CONTROLLER,
        ),
    ],
)
def test_any_controller_answers_an_empty_list(request_: Message, error: ErrorCode) -> None:
    """QuorumController of 4.3.1 returns before it asks whether it is active."""
    version = 2 if isinstance(request_, AlterPartitionRequest | ElectLeadersRequest) else 0
    response = decide(inactive(), Context(version), request_).response
    assert getattr(response, "error_code", None) == error


def test_a_controller_names_the_active_one() -> None:
    """ControllerExceptions.newWrongControllerException."""
    assert nobody_active() == "No controller appears to be active."
    assert nobody_active(0) == "The active controller appears to be node 0."
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t")])
    response = decide(inactive(), Context(0), request).response
    assert getattr(response, "error_message", None) == nobody_active()


def test_quotas_are_refused_as_they_were_named_with_the_words_of_the_error() -> None:
    parts = [
        EntityData(entity_type="user", entity_name="u"),
        EntityData(entity_type="client-id", entity_name=None),
        EntityData(entity_type="user", entity_name="v"),
    ]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=parts)])
    response = refuse(request, NOT_CONTROLLER, "other words")
    assert isinstance(response, AlterClientQuotasResponse)
    entry = response.entries[0]
    assert entry.error_message == NOT_CONTROLLER.message
    named = [(each.entity_type, each.entity_name) for each in entry.entity]
    assert named == [("user", "u"), ("client-id", None), ("user", "v")]


def test_users_of_refused_credentials_are_listed_by_name() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="c"), ScramCredentialDeletion(name="a")],
        upsertions=[ScramCredentialUpsertion(name="b"), ScramCredentialUpsertion(name="a")],
    )
    response = refuse(request, NOT_CONTROLLER, "words")
    assert isinstance(response, AlterUserScramCredentialsResponse)
    assert [each.user for each in response.results] == ["a", "b", "c"]


def test_topics_are_refused_without_a_message() -> None:
    state = DeleteTopicState(name=None, topic_id=Uuid(b"id of some topic"))
    request = DeleteTopicsRequest(topics=[state])
    response = refuse(request, NOT_CONTROLLER, "words")
    assert isinstance(response, DeleteTopicsResponse)
    assert response.responses[0].topic_id == state.topic_id
    assert response.responses[0].error_message is None


@pytest.mark.parametrize(
    "request_", [RenewDelegationTokenRequest(), ExpireDelegationTokenRequest()]
)
def test_a_token_is_refused_with_no_time(request_: Message) -> None:
    response = refuse(request_, NOT_CONTROLLER, None)
    assert isinstance(response, RenewDelegationTokenResponse | ExpireDelegationTokenResponse)
    assert response.expiry_timestamp_ms == 0
