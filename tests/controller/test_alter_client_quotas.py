"""AlterClientQuotas: entities, values, and the bounds of one change."""

import pytest

from kraft_wire.controller.requests import decide
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.cluster import Context, OneNodeCluster

UNREADABLE = "\ufffd" * 20_000
"""A name whose bytes were no UTF-8: it fits into a request and not into a record."""


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


@pytest.mark.parametrize(
    ("key", "value", "is_valid"),
    [
        ("producer_byte_rate", 0.0, False),
        ("producer_byte_rate", -1.0, False),
        ("consumer_byte_rate", 2.5, False),
        ("consumer_byte_rate", 2.0, True),
        ("request_percentage", 2.5, True),
        ("controller_mutation_rate", 0.5, True),
        ("unknown_rate", 1.0, False),
    ],
)
def test_values_are_above_0_and_whole_for_bytes(key: str, value: float, is_valid: bool) -> None:
    """SEC-QUOTA-04: others get INVALID_REQUEST."""
    entity = [EntityData(entity_type="user", entity_name="a")]
    entry = EntryData(entity=entity, ops=[OpData(key=key, value=value)])
    response = OneNodeCluster().ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert isinstance(response, AlterClientQuotasResponse)
    expected = ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST
    assert response.entries[0].error_code == expected


def test_not_a_number_is_no_quota() -> None:
    cluster = OneNodeCluster()
    request = AlterClientQuotasRequest(entries=[quota("a", value=float("nan"))])
    response = cluster.ask(request, 1)
    assert isinstance(response, AlterClientQuotasResponse)
    assert response.entries[0].error_message == "Quota producer_byte_rate must be greater than 0"


def test_result_carries_the_records_as_they_are_appended() -> None:
    cluster = OneNodeCluster()
    request = AlterClientQuotasRequest(entries=[quota("a"), quota("b")])
    result = decide(cluster.controller, Context(1), request)
    assert len(result.values) == len(result.records) == 2
    assert result.values[0][:3] == bytes([1, 14, 0])


@pytest.mark.parametrize(("name", "shown"), [("", ""), (None, "null"), ("u", "u")])
def test_an_entity_that_is_named_twice_is_shown_with_its_name(name: str | None, shown: str) -> None:
    """ClientQuotaEntity.toString of 4.3.1."""
    entity = [EntityData(entity_type="user", entity_name=name)]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity)] * 2)
    response = OneNodeCluster().ask(request, 1)
    assert isinstance(response, AlterClientQuotasResponse)
    words = f"Ignoring duplicate entity ClientQuotaEntity(entries={{user={shown}}})"
    assert [each.error_message for each in response.entries] == [words]
