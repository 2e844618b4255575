"""DescribeClientQuotas and AlterClientQuotas, API keys 48 and 49: limits of clients (KIP-546)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated import alter_client_quotas as alter
from kraft_wire.wire.generated import describe_client_quotas as describe
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.ClientQuotaControlManager, alterClientQuotas"
_CLIENT, _USER, _KEY = "client-id", "user", "producer_byte_rate"
_EXACT, _DEFAULT, _ANY = 0, 1, 2
_CODE: Final = "entries[0].error_code"


def _altered(
    broker: Subject,
    version: int,
    entity: dict[str, str | None],
    *ops: tuple[str, float, bool],
    validate_only: bool = False,
) -> alter.AlterClientQuotasResponse:
    entry = alter.EntryData(
        entity=[alter.EntityData(entity_type=k, entity_name=v) for k, v in entity.items()],
        ops=[alter.OpData(key=key, value=value, remove=remove) for key, value, remove in ops],
    )
    request = alter.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    return broker.ask(request, version, alter.AlterClientQuotasResponse)


def _filters(
    *components: tuple[str, int, str | None], strict: bool = False
) -> describe.DescribeClientQuotasRequest:
    return describe.DescribeClientQuotasRequest(
        components=[
            describe.ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )


def _described(
    broker: Subject, version: int, *components: tuple[str, int, str | None], strict: bool = False
) -> describe.DescribeClientQuotasResponse:
    request = _filters(*components, strict=strict)
    return broker.ask(request, version, describe.DescribeClientQuotasResponse)


def _values(answer: describe.DescribeClientQuotasResponse) -> dict[str, float]:
    return {value.key: value.value for each in answer.entries or () for value in each.values}


@case("AlterClientQuotas", "KIP-546")
def quota_of_a_client(broker: Subject, version: int) -> None:
    """A limit of a client is set, changed and removed.

    Set a limit of a client id, describe it, remove it.
    """
    client = broker.name("client")
    ops = ((_KEY, 1000.0, False), ("consumer_byte_rate", 2000.0, False))
    answer = _altered(broker, version, {_CLIENT: client}, *ops)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "entries[0].entity[0].entity_name", client)
    try:
        for _ in broker.attempts("a limit that is described"):
            request = describe.DescribeClientQuotasRequest(
                components=[
                    describe.ComponentData(entity_type=_CLIENT, match_type=_EXACT, match=client)
                ],
            )
            found = broker.prepare(request, describe.DescribeClientQuotasResponse)
            if len(_values(found)) == 2:
                break
        shown = _described(broker, min(version, 1), (_CLIENT, _EXACT, client))
        wanted = {_KEY: 1000.0, "consumer_byte_rate": 2000.0}
        expect.true(_values(shown) == wanted, str(wanted), _values(shown), "entries")
    finally:
        ops = ((_KEY, 0.0, True), ("consumer_byte_rate", 0.0, True))
        answer = _altered(broker, version, {_CLIENT: client}, *ops)
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("AlterClientQuotas", "KIP-546")
def validation_only(broker: Subject, version: int) -> None:
    """validate_only checks a limit and sets nothing.

    Validate a limit of a client id, describe it.
    """
    client = broker.name("client")
    ops = ((_KEY, 1000.0, False),)
    answer = _altered(broker, version, {_CLIENT: client}, *ops, validate_only=True)
    expect.error(answer, _CODE, ErrorCode.NONE)
    found = _values(_described(broker, min(version, 1), (_CLIENT, _EXACT, client)))
    expect.true(found == {}, "no limit", found, "entries")


def _refused(
    broker: Subject, version: int, entity: dict[str, str | None], key: str, value: float
) -> None:
    answer = _altered(broker, version, entity, (key, value, False), validate_only=True)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("AlterClientQuotas", _SOURCE)
def unknown_limit(broker: Subject, version: int) -> None:
    """A limit that does not exist is refused with INVALID_REQUEST.

    Set "no_such_rate" of a client id.
    """
    _refused(broker, version, {_CLIENT: "x"}, "no_such_rate", 1.0)


@case("AlterClientQuotas", _SOURCE)
def value_that_is_not_positive(broker: Subject, version: int) -> None:
    """Limits of 0 and below are refused with INVALID_REQUEST.

    Set limits of 0 and -1 of a client id.
    """
    for value in (0.0, -1.0):
        _refused(broker, version, {_CLIENT: "x"}, _KEY, value)


@case("AlterClientQuotas", _SOURCE)
def fraction_of_a_byte(broker: Subject, version: int) -> None:
    """A rate of bytes that is not a whole number is refused.

    Set a limit of 10.5 of a client id.
    """
    _refused(broker, version, {_CLIENT: "x"}, _KEY, 10.5)


@case("AlterClientQuotas", _SOURCE)
def wrong_entities(broker: Subject, version: int) -> None:
    """No entity, an unknown type, an empty name, and an address with a user are refused.

    Set a limit of each of these.
    """
    for entity in ({}, {"team": "x"}, {_CLIENT: ""}, {"ip": "127.0.0.1", _USER: "x"}):
        _refused(broker, version, dict(entity), _KEY, 1000.0)


@case("AlterClientQuotas", _SOURCE)
def limit_of_another_entity(broker: Subject, version: int) -> None:
    """Addresses have only a connection rate, and clients have none.

    Set a connection rate of a client id, and a byte rate of an address.
    """
    _refused(broker, version, {_CLIENT: "x"}, "connection_creation_rate", 10.0)
    _refused(broker, version, {"ip": "127.0.0.1"}, _KEY, 10.0)


@case("AlterClientQuotas", _SOURCE)
def limit_of_an_address(broker: Subject, version: int) -> None:
    """An address may have a connection rate, and another text is refused.

    Validate connection rates of an address, of all addresses, and of words.
    """
    key = "connection_creation_rate"
    for name in ("127.0.0.1", None):
        answer = _altered(broker, version, {"ip": name}, (key, 10.0, False), validate_only=True)
        expect.error(answer, _CODE, ErrorCode.NONE)
    _refused(broker, version, {"ip": "no address"}, key, 10.0)


@case("DescribeClientQuotas", "kafka.server.metadata.ClientQuotaCache, describeClientQuotas")
def wrong_filters(broker: Subject, version: int) -> None:
    """Filters of an unknown kind, of one type twice and without a name are refused.

    Describe by each of these.
    """
    filters: tuple[tuple[tuple[str, int, str | None], ...], ...] = (
        ((_CLIENT, 9, None),),
        ((_CLIENT, _EXACT, None),),
        ((_CLIENT, _DEFAULT, "x"),),
        ((_CLIENT, _EXACT, "x"), (_CLIENT, _EXACT, "y")),
        (("", _EXACT, "x"),),
    )
    for each in filters:
        answer = _described(broker, version, *each)
        expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)
        expect.equal(answer, "entries", None)


@case("DescribeClientQuotas", "KIP-546")
def nothing_that_matches(broker: Subject, version: int) -> None:
    """A filter without a match has a response without entries.

    Describe a client id that has no limits, strictly and not.
    """
    client = broker.name("client")
    for strict in (False, True):
        answer = _described(broker, version, (_CLIENT, _EXACT, client), strict=strict)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "entries", [])


@case("DescribeClientQuotas", "KIP-546")
def filters_that_match(broker: Subject, version: int) -> None:
    """Filters match a name, the default or any name; a strict one matches nothing more.

    Set a limit of a client id, and one of a user with it; describe by the client id.
    """
    client, user = broker.name("client"), broker.name("user")
    both: dict[str, str | None] = {_CLIENT: client, _USER: user}
    entities: tuple[dict[str, str | None], ...] = ({_CLIENT: client}, both)
    try:
        for entity, value in zip(entities, (1000.0, 2000.0), strict=True):
            request = _entry(entity, value, remove=False)
            answer = broker.prepare(request, alter.AlterClientQuotasResponse)
            expect.error(answer, _CODE, ErrorCode.NONE)
        of_client = _filters((_CLIENT, _EXACT, client))
        for _ in broker.attempts("two limits"):
            seen = broker.prepare(of_client, describe.DescribeClientQuotasResponse)
            if len(_entities(seen)) == len(entities):
                break
        for components, strict, count in (
            (((_CLIENT, _EXACT, client),), True, 1),
            (((_CLIENT, _EXACT, client), (_USER, _ANY, None)), True, 1),
            (((_CLIENT, _EXACT, client), (_USER, _DEFAULT, None)), False, 0),
            (((_USER, _EXACT, user),), True, 0),
            (((_USER, _EXACT, user),), False, 1),
        ):
            found = _entities(_described(broker, version, *components, strict=strict))
            expect.true(len(found) == count, f"{count} by {components}", found, "entries")
    finally:
        for entity in entities:
            request = _entry(entity, 0.0, remove=True)
            broker.prepare(request, alter.AlterClientQuotasResponse)


def _entry(
    entity: dict[str, str | None], value: float, *, remove: bool
) -> alter.AlterClientQuotasRequest:
    parts = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    operation = alter.OpData(key=_KEY, value=value, remove=remove)
    return alter.AlterClientQuotasRequest(entries=[alter.EntryData(entity=parts, ops=[operation])])


def _entities(answer: describe.DescribeClientQuotasResponse) -> list[list[str]]:
    """Return the types of each entity that is described."""
    return [sorted(part.entity_type for part in each.entity) for each in answer.entries or ()]


@case("DescribeClientQuotas", "kafka.server.metadata.ClientQuotaCache, describeClientQuotas")
def unknown_entity_type(broker: Subject, version: int) -> None:
    """A filter by a type that does not exist is refused with UNSUPPORTED_VERSION.

    Describe by "team".
    """
    answer = _described(broker, version, ("team", _EXACT, "x"))
    expect.error(answer, "error_code", ErrorCode.UNSUPPORTED_VERSION)
    expect.equal(answer, "entries", None)
