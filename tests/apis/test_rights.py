"""The table of rights against what Apache Kafka 4.3.1 answered to a principal without any."""

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.apis.rows import ROWS
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apis.refusals import error_codes, recorded

BROKER, CONTROLLER = ListenerType.BROKER, ListenerType.CONTROLLER
NEEDS_NOTHING = {
    "SaslHandshake",
    "ApiVersions",
    "SaslAuthenticate",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
"""Whoever is connected may ask; what belongs to others is protected in other ways."""
OTHER_ANSWERS = {
    "SaslHandshake": ErrorCode.ILLEGAL_SASL_STATE,
    "SaslAuthenticate": ErrorCode.ILLEGAL_SASL_STATE,
    "CreateDelegationToken": ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    "RenewDelegationToken": ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    "ExpireDelegationToken": ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    "DescribeDelegationToken": ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    "PushTelemetry": ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
}
"""Refusals that are older than any right: plain text has no SASL, and gets no tokens."""
NOT_ON_CONTROLLERS = ("DescribeDelegationToken", "DescribeUserScramCredentials")
"""Apache's controllers advertise them and answer UNKNOWN_SERVER_ERROR."""
CELLS = list(recorded())


def test_every_api_and_version_of_each_listener_is_recorded() -> None:
    assert [(where, name, version) for where, name, version, _ in CELLS] == [
        (where, api.name, version)
        for where in (BROKER, CONTROLLER)
        for api in ROWS
        if where in api.listeners
        for version in range(api.versions[0], api.versions[1] + 1)
    ]
    assert all(isinstance(answer, dict) for *_, answer in CELLS)


def test_every_api_has_its_row_of_rights() -> None:
    """An API without rights is one of those that are named."""
    assert {api.name for api in ROWS if not api.needs} == NEEDS_NOTHING
    assert sorted(APIS) == sorted({key_of(name) for _, name, _, _ in CELLS})


@pytest.mark.parametrize(
    ("where", "name", "version", "answer"),
    CELLS,
    ids=[f"{where.value}-{name}-{version}" for where, name, version, _ in CELLS],
)
def test_refusal_is_that_of_the_table(
    where: ListenerType, name: str, version: int, answer: object
) -> None:
    codes = set(error_codes(answer))
    needs = APIS[key_of(name)].needs_on(where)
    if where is CONTROLLER and name in NOT_ON_CONTROLLERS:
        assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
    elif name in OTHER_ANSWERS:
        assert codes == {OTHER_ANSWERS[name]}
    elif name == "DescribeLogDirs" and version < 3:
        assert not codes, "these versions have no field for it"
    elif all(each.refused is None for each in needs):
        assert not codes
    elif not needs[0].when:
        assert codes == {needs[0].refused}
    else:
        assert len(codes) == 1
        assert codes < {each.refused for each in needs} or codes == {needs[0].refused}
