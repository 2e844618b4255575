"""Changes beyond what Apache was asked: derived keys, sizes, other nodes, silent voters."""

from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac
from time import process_time

import pytest

from kraft_wire.controller.requests import decide
from kraft_wire.controller.update_features import quorum_refused
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.metadata.image import BROKER_RESOURCE, AclImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.settings.broker import FIXED_WHILE_RUNNING
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.controller.cluster import Context, OneNodeCluster

UNREADABLE = "\ufffd" * 20_000
"""A name whose bytes were no UTF-8: it fits into a request and not into a record."""


def test_keys_of_a_credential_are_those_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    upsertion = ScramCredentialUpsertion(
        name="user",
        mechanism=1,
        iterations=4096,
        salt=salt,
        salted_password=pbkdf2_hmac("sha256", b"pencil", salt, 4096),
    )
    cluster = OneNodeCluster()
    cluster.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    stored = cluster.loader.image.scram["user", 1]
    assert b64encode(stored.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert b64encode(stored.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert (stored.salt, stored.iterations) == (salt, 4096)


def quota(name: str, *, value: float = 1.0, kind: str = "user") -> EntryData:
    entity = [EntityData(entity_type=kind, entity_name=name)]
    return EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=value)])


def test_name_that_no_record_can_hold_is_refused_and_nothing_else_of_the_request_is_done() -> None:
    cluster = OneNodeCluster()
    before = cluster.loader.image
    request = AlterClientQuotasRequest(entries=[quota("fine"), quota(UNREADABLE)])
    response = cluster.ask(request, 1)
    assert isinstance(response, AlterClientQuotasResponse)
    assert {each.error_code for each in response.entries} == {ErrorCode.INVALID_REQUEST}
    assert cluster.loader.image is before


def test_change_that_no_batch_can_hold_is_refused_as_a_whole() -> None:
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
    long = "x" * 30_000
    creations = [
        AclCreation(
            resource_type=2,
            resource_name=f"{number}{long}",
            principal=f"User:{long}",
            host=long,
            operation=3,
            permission_type=3,
        )
        for number in range(100)
    ]
    response = cluster.ask(CreateAclsRequest(creations=creations), 3)
    assert isinstance(response, CreateAclsResponse)
    assert {each.error_code for each in response.results} == {ErrorCode.RECORD_LIST_TOO_LARGE}
    assert cluster.loader.image.acls == {}


@pytest.mark.parametrize(
    "field", ["resource_type", "resource_pattern_type", "operation", "permission_type"]
)
def test_entry_is_accepted_with_every_code_that_kafka_has_and_no_other(field: str) -> None:
    """1 means any, and a pattern of 2 all that match: only filters have them."""
    last = {"resource_type": 7, "resource_pattern_type": 4, "operation": 15, "permission_type": 3}
    accepted = []
    for code in range(1, 20):
        given = {
            "resource_type": 2,
            "resource_pattern_type": 3,
            "operation": 3,
            "permission_type": 3,
        }
        entry = AclCreation(
            resource_name="kafka-cluster", principal="User:u", host="*", **given | {field: code}
        )
        cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
        response = cluster.ask(CreateAclsRequest(creations=[entry]), 3)
        assert isinstance(response, CreateAclsResponse)
        accepted += [code] * (response.results[0].error_code == ErrorCode.NONE)
    first = 3 if field == "resource_pattern_type" else 2
    assert accepted == list(range(first, last[field] + 1))


def test_more_quotas_than_a_batch_holds_are_refused_all_together() -> None:
    cluster = OneNodeCluster()
    entries = [quota(f"user-{number}") for number in range(10_001)]
    response = cluster.ask(AlterClientQuotasRequest(entries=entries), 1)
    assert isinstance(response, AlterClientQuotasResponse)
    assert {each.error_code for each in response.entries} == {ErrorCode.POLICY_VIOLATION}
    assert cluster.loader.image.client_quotas == {}


@pytest.mark.parametrize(
    ("name", "is_one"),
    [(None, True), ("10.0.0.1", True), ("::1", True), ("localhost", False), ("", False)],
)
def test_quota_of_an_address_names_one_or_the_default(name: str | None, is_one: bool) -> None:
    entity = [EntityData(entity_type="ip", entity_name=name)]
    change = OpData(key="connection_creation_rate", value=5)
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[change])])
    response = OneNodeCluster().ask(request, 1)
    assert isinstance(response, AlterClientQuotasResponse)
    assert (response.entries[0].error_code == ErrorCode.NONE) == is_one


def test_not_a_number_is_no_quota() -> None:
    cluster = OneNodeCluster()
    request = AlterClientQuotasRequest(entries=[quota("a", value=float("nan"))])
    response = cluster.ask(request, 1)
    assert isinstance(response, AlterClientQuotasResponse)
    assert response.entries[0].error_message == "Quota producer_byte_rate must be greater than 0"


def test_result_carries_the_records_as_they_are_appended() -> None:
    cluster = OneNodeCluster()
    request = AlterClientQuotasRequest(entries=[quota("a"), quota("b")])
    result = decide(cluster.controller, Context(1), request, 0, 0)
    assert len(result.values) == len(result.records) == 2
    assert result.values[0][:3] == bytes([1, 14, 0])


def test_more_entries_than_one_change_may_remove_are_refused() -> None:
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
    image = cluster.loader.image
    acl = AclImage(2, "t", 3, "User:a", "*", 3, 3)
    crowd = {Uuid(number.to_bytes(16)): acl for number in range(10_001)}
    object.__setattr__(image, "acls", crowd)
    every = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    cluster.controller.renounce(image)
    cluster.controller.become_active(
        image, leader_epoch=2, in_transaction=False, bootstrap=(), now_ms=0
    )
    result = decide(cluster.controller, Context(3), DeleteAclsRequest(filters=[every]), 0, 0)
    assert result.records == ()
    assert result.response.filter_results[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("node_id", "error"), [("1", 0), ("2", 0), ("3", 42), ("-1", 42)])
def test_settings_of_every_registered_node_are_taken(node_id: str, error: int) -> None:
    cluster = OneNodeCluster(brokers=2)
    config = AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=4, resource_name=node_id, configs=[config])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == error


def registration(**fields: object) -> ControllerRegistrationRequest:
    plain: dict[str, object] = {
        "controller_id": 7,
        "incarnation_id": Uuid(b"i" * 16),
        "listeners": [Listener(name="CONTROLLER", host="h", port=9)],
        "features": [
            Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
        ],
    }
    return ControllerRegistrationRequest(**{**plain, **fields})


def test_controller_registers_and_replaces_its_former_self() -> None:
    cluster = OneNodeCluster()
    cluster.ask(registration(), 0)
    cluster.ask(registration(incarnation_id=Uuid(b"j" * 16)), 0)
    seen = cluster.loader.image.controllers[7]
    assert seen.incarnation_id == Uuid(b"j" * 16)
    assert seen.endpoints["CONTROLLER"].port == 9
    assert seen.features["metadata.version"] == (7, 30)


@pytest.mark.parametrize(
    "fields",
    [
        {"controller_id": -1},
        {"listeners": [Listener(name="A"), Listener(name="A")]},
        {"listeners": [Listener(name="A", security_protocol=9)]},
        {"features": [Feature(name="a"), Feature(name="a")]},
        {"features": [Feature(name="a", min_supported_version=2, max_supported_version=1)]},
    ],
)
def test_registration_that_no_log_may_hold_is_refused(fields: dict[str, object]) -> None:
    cluster = OneNodeCluster()
    response = cluster.ask(registration(**fields), 0)
    assert isinstance(response, ControllerRegistrationResponse)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert cluster.loader.image.controllers == {}


def raised(
    cluster: OneNodeCluster, feature: str, level: int, kind: int = 1
) -> UpdateFeaturesResponse:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    response = cluster.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def test_voter_that_has_not_registered_blocks_an_upgrade() -> None:
    cluster = OneNodeCluster(brokers=0)
    cluster.controller.voter_ids = (1, 7)
    words = "controller 7 has not registered, and may not support this feature"
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")
    cluster.ask(registration(), 0)
    assert raised(cluster, "metadata.version", 30).error_code == ErrorCode.NONE


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_level_that_is_there_already_is_neither_raised_nor_lowered(kind: int) -> None:
    cluster = OneNodeCluster(brokers=0)
    level = cluster.loader.image.metadata_version
    assert raised(cluster, "metadata.version", level, kind).error_code == ErrorCode.NONE
    assert cluster.loader.image.metadata_version == level


def test_node_that_does_not_support_a_level_blocks_it() -> None:
    cluster = OneNodeCluster(brokers=1)
    words = "Broker 1 does not support this feature."
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")
    cluster = OneNodeCluster(brokers=0)
    old = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=25)]
    cluster.ask(registration(features=old), 0)
    words = "Controller 7 only supports versions 7-25"
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")


def test_level_of_the_quorum_is_asked_for_and_its_refusal_answered() -> None:
    cluster = OneNodeCluster(brokers=0)
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    words = "Local controller 1 does not support this feature."
    assert words in (raised(cluster, "kraft.version", 1).error_message or "")
    cluster.controller.kraft_version = 0
    result = decide(cluster.controller, Context(2), request, 0, 0)
    assert result.quorum_upgrade is not None
    assert (result.quorum_upgrade.level, result.quorum_upgrade.validate_only) == (1, True)
    refused = quorum_refused(request, ErrorCode.INVALID_UPDATE_VERSION)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "INVALID_UPDATE_VERSION" in (refused.error_message or "")


def test_feature_that_is_not_served_can_be_taken_away_but_not_raised() -> None:
    cluster = OneNodeCluster(brokers=0)
    assert raised(cluster, "group.version", 1).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert raised(cluster, "group.version", 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("key", sorted(FIXED_WHILE_RUNNING))
def test_what_a_broker_reads_at_its_start_alone_is_not_recorded_but_may_be_taken_away(
    key: str,
) -> None:
    cluster = OneNodeCluster()

    def answer(*changes: AlterableConfig) -> tuple[int, str | None]:
        resource = AlterConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="1", configs=list(changes)
        )
        response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert isinstance(response, IncrementalAlterConfigsResponse)
        return response.responses[0].error_code, response.responses[0].error_message

    recorded_by_apache = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="1", name=key, value="PLAINTEXT:PLAINTEXT"
    )
    cluster.commit([VersionedRecord(recorded_by_apache)])
    words = f"{key} cannot be changed while the broker runs: change its file, restart"
    change = AlterableConfig(name=key, config_operation=0, value="PLAINTEXT:PLAINTEXT")
    assert answer(change) == (ErrorCode.INVALID_REQUEST, words)
    other = AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
    assert answer(other) == (ErrorCode.NONE, None), "what is recorded is in nobody's way"
    assert answer(AlterableConfig(name=key, config_operation=1)) == (ErrorCode.NONE, None)
    assert cluster.loader.image.config(BROKER_RESOURCE, "1") == {"log.cleaner.threads": "2"}


PATTERNS = [
    ("client_id=app-[0-9]+", True),
    ("client_software_name = apache.*", True),
    ("client_id=a|b=", True),
    ("client_id=[é-ü]+[a-\\u00ff]", True),
    ("client_id", False),
    ("client_id=", False),
    ("client_id=a=b", False),
    ("client=a", False),
    ("client_id=(", False),
    ("client_id=a{99999999999999999999}", False),
    ("client_id=" + "(" * 3_000 + ")" * 3_000, False),
    ("client_id=(?a)(?u)x", False),
    ("client_id=\\U0010ffff", False),
]
"""Whether 4.3.1 takes them: of expressions Java 17's own Pattern was asked."""


@pytest.mark.parametrize(("pattern", "is_taken"), PATTERNS, ids=[row[0][:20] for row in PATTERNS])
def test_pattern_of_a_subscription_is_taken_or_refused_whatever_it_says(
    pattern: str, is_taken: bool
) -> None:
    cluster = OneNodeCluster()
    match = AlterableConfig(name="match", config_operation=0, value=pattern)
    resource = AlterConfigsResource(resource_type=16, resource_name="mine", configs=[match])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    error = ErrorCode.NONE if is_taken else ErrorCode.INVALID_CONFIG
    assert response.responses[0].error_code == error


def test_pattern_of_far_reaching_classes_is_checked_in_the_time_of_any_other() -> None:
    cluster = OneNodeCluster()
    match = AlterableConfig(
        name="match", config_operation=0, value="client_id=" + "[^\0-\U0010ffff]" * 3_000
    )
    resource = AlterConfigsResource(resource_type=16, resource_name="mine", configs=[match])
    began_s = process_time()
    cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert process_time() - began_s < 2, "Python takes 12 seconds to compile it as it is"
    assert cluster.loader.image.config(16, "mine") == {"match": match.value}


@pytest.mark.parametrize(
    ("name", "key", "value", "words"),
    [
        ("", "node.id", "2", "Cannot update these configs dynamically: [node.id]"),
        ("", "listeners", "A://:1", "broker id must be specified: [listeners]"),
        ("1", "log.cleaner.threads", "x", "Invalid value x"),
        ("", "log.cleaner.threads", "2", ""),
        ("1", "nobody.knows.it", "2", ""),
    ],
)
def test_setting_of_brokers_is_refused_where_it_cannot_be_one(
    name: str, key: str, value: str, words: str
) -> None:
    """KIP-226: read at the start alone, of one broker's listeners for all, of another type."""
    cluster = OneNodeCluster()
    change = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=name, configs=[change]
    )
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    answer = response.responses[0]
    assert (answer.error_code == ErrorCode.NONE) == (words == "")
    assert words in (answer.error_message or "")
    assert bool(cluster.loader.image.config(BROKER_RESOURCE, name)) == (words == "")
