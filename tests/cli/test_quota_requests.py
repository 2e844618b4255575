"""Requests of `kraft-wire quotas`, and the order of what is shown; the connection is played."""

from typing import Any

import pytest

from kraft_wire.cli.quotas.admin import alter_quotas, described_quotas
from kraft_wire.client.refused import AdminRefused
from kraft_wire.wire.generated import alter_client_quotas as altering
from kraft_wire.wire.generated import describe_client_quotas as describing


class Connection:
    """Answers with what a test chooses, and keeps what it was asked."""

    def __init__(self, answer: object) -> None:
        self.asked: list[Any] = []
        self._answer = answer

    def send(self, request: object, response: type) -> Any:
        self.asked.append(request)
        assert isinstance(self._answer, response)
        return self._answer


def entry(values: dict[str, float], **entity: str | None) -> describing.EntryData:
    """A described entity; a type's name has an underscore for its dash."""
    named = [
        describing.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in entity.items()
    ]
    keys = [describing.ValueData(key=key, value=value) for key, value in values.items()]
    return describing.EntryData(entity=named, values=keys)


def test_all_quotas_are_asked_for_without_a_component_and_shown_in_order() -> None:
    answer = describing.DescribeClientQuotasResponse(
        entries=[
            entry({"b": 2.0, "a": 1.0}, client_id="app", user="bob"),
            entry({"a": 3.0}, user="ann"),
            entry({"a": 4.0}, user=None),
        ]
    )
    connection: Any = Connection(answer)
    found = described_quotas(connection, {})
    (asked,) = connection.asked
    assert (asked.components, asked.strict) == ([], False)
    assert [(list(each.entity.items()), list(each.values.items())) for each in found] == [
        ([("user", None)], [("a", 4.0)]),
        ([("user", "ann")], [("a", 3.0)]),
        ([("user", "bob"), ("client-id", "app")], [("a", 1.0), ("b", 2.0)]),
    ]


def test_one_entity_is_asked_for_strictly_and_a_default_by_its_own_match() -> None:
    """KIP-546: match type 0 is an exact name, 1 the default; strict leaves further parts out."""
    connection: Any = Connection(describing.DescribeClientQuotasResponse(entries=None))
    assert described_quotas(connection, {"user": "ann", "client-id": None}) == []
    (asked,) = connection.asked
    assert asked.strict
    assert [(each.entity_type, each.match_type, each.match) for each in asked.components] == [
        ("user", 0, "ann"),
        ("client-id", 1, None),
    ]


def test_quotas_are_set_and_removed_in_one_request_that_is_carried_out() -> None:
    connection: Any = Connection(altering.AlterClientQuotasResponse(entries=[]))
    alter_quotas(connection, {"user": "ann", "client-id": None}, {"a": 1.5}, ["b"])
    (asked,) = connection.asked
    (change,) = asked.entries
    assert not asked.validate_only
    assert [(each.entity_type, each.entity_name) for each in change.entity] == [
        ("user", "ann"),
        ("client-id", None),
    ]
    assert [(each.key, each.value, each.remove) for each in change.ops] == [
        ("a", 1.5, False),
        ("b", 0.0, True),
    ]


def test_refusals_name_what_was_refused() -> None:
    refused = describing.DescribeClientQuotasResponse(error_code=31, error_message="no")
    connection: Any = Connection(refused)
    with pytest.raises(AdminRefused, match="quotas"):
        described_quotas(connection, {})
    answers = [altering.ResponseEntryData(error_code=31, error_message="no")]
    connection = Connection(altering.AlterClientQuotasResponse(entries=answers))
    with pytest.raises(AdminRefused, match="user ann, default client-id"):
        alter_quotas(connection, {"user": "ann", "client-id": None}, {"a": 1.0}, [])
