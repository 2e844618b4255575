"""ApiVersions, API key 18: which versions a broker serves (KIP-35, KIP-511, KIP-584)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import joining
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.header import RequestHeader, encode_request_header


def _request(name: str = "conform", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@case("ApiVersions", "KIP-35")
def lists_itself(broker: Subject, version: int) -> None:
    """The response lists ApiVersions with a range that includes the version of the request.

    Send ApiVersions.
    """
    answer = broker.ask(_request(), version, ApiVersionsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    own = [each for each in answer.api_keys if each.api_key == ApiVersionsRequest.API_KEY]
    expect.true(len(own) == 1, "one entry of API key 18", len(own), "api_keys")
    holds = own[0].min_version <= version <= own[0].max_version
    seen = f"{own[0].min_version} to {own[0].max_version}"
    expect.true(holds, f"a range that holds {version}", seen, "api_keys")


@case("ApiVersions", "KIP-35")
def ranges_are_proper(broker: Subject, version: int) -> None:
    """Each API key is listed once, and its first version is not above the last.

    Send ApiVersions.
    """
    answer = broker.ask(_request(), version, ApiVersionsResponse)
    keys = [each.api_key for each in answer.api_keys]
    expect.true(len(set(keys)) == len(keys), "each API key once", sorted(keys), "api_keys")
    for index, each in enumerate(answer.api_keys):
        range_holds = 0 <= each.min_version <= each.max_version
        seen = f"{each.min_version} to {each.max_version}"
        expect.true(range_holds, "first <= last", seen, f"api_keys[{index}].max_version")


@case("ApiVersions", "KIP-511, ApiVersions Request/Response Handling", until=0)
def unknown_version_is_answered_in_version_0(broker: Subject, version: int) -> None:
    """An ApiVersions request of an unknown version gets UNSUPPORTED_VERSION in version 0.

    Send ApiVersions in version 99; decode the response in version 0. It lists ApiVersions, so that
    the client can retry.
    """
    connection = broker.connect()
    asked = RequestHeader(ApiVersionsRequest.API_KEY, 99, 7, "conform")
    payload = encode_request_header(asked) + _request().encode(4)
    answered = RequestHeader(ApiVersionsRequest.API_KEY, version, 7, "conform")
    answer = connection.ask_bytes(payload, answered, ApiVersionsResponse)
    expect.error(answer, "error_code", ErrorCode.UNSUPPORTED_VERSION)
    keys = [each.api_key for each in answer.api_keys]
    expect.true(ApiVersionsRequest.API_KEY in keys, "API key 18 among them", keys, "api_keys")


def _refuses_software(broker: Subject, version: int, name: str, software: str) -> None:
    answer = broker.ask(_request(name, software), version, ApiVersionsResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("ApiVersions", "KIP-482, Unsigned Varints", since=3)
def lengths_of_compact_strings(broker: Subject, version: int) -> None:
    """The length of a compact string takes as many bytes as it needs: 1, 2 or 3.

    Send ApiVersions with names of 126, 127 and 128 characters, and of 16382, 16383 and 16384.
    """
    for limit in (1 << 7, 1 << 14):
        for count in (limit - 2, limit - 1, limit):
            answer = broker.ask(_request("x" * count), version, ApiVersionsResponse)
            expect.error(answer, "error_code", ErrorCode.NONE)


@case("ApiVersions", "KIP-511, Client Name and Version Validation", since=3)
def empty_software_name(broker: Subject, version: int) -> None:
    """An empty client software name is refused with INVALID_REQUEST.

    Send ApiVersions with the name "".
    """
    _refuses_software(broker, version, "", "1.0")


@case("ApiVersions", "KIP-511, Client Name and Version Validation", since=3)
def empty_software_version(broker: Subject, version: int) -> None:
    """An empty client software version is refused with INVALID_REQUEST.

    Send ApiVersions with the version "".
    """
    _refuses_software(broker, version, "conform", "")


@case("ApiVersions", "KIP-511, Client Name and Version Validation", since=3)
def software_name_with_a_space(broker: Subject, version: int) -> None:
    """A client software name with characters besides letters, digits, '-' and '.' is refused.

    Send ApiVersions with the name "con form".
    """
    _refuses_software(broker, version, "con form", "1.0")


@case("ApiVersions", "KIP-511, Client Name and Version Validation", since=3)
def software_name_that_ends_in_a_dash(broker: Subject, version: int) -> None:
    """A client software name must begin and end with a letter or digit.

    Send ApiVersions with the name "conform-".
    """
    _refuses_software(broker, version, "conform-", "1.0")


@case("ApiVersions", "KIP-584, ApiVersionsResponse", since=3)
def features_are_proper(broker: Subject, version: int) -> None:
    """Each feature has valid ranges, and a finalized level is within the supported ones.

    Send ApiVersions. Below version 4 a feature whose first supported level is 0 is left out.
    """
    answer = broker.ask(_request(), version, ApiVersionsResponse)
    supported = {each.name: each for each in answer.supported_features}
    for index, each in enumerate(answer.supported_features):
        path = f"supported_features[{index}].max_version"
        seen = f"{each.min_version} to {each.max_version}"
        expect.true(0 <= each.min_version <= each.max_version, "first <= last", seen, path)
        expect.true(version >= 4 or each.min_version >= 1, "a first level of 1 or more", seen, path)
    for index, final in enumerate(answer.finalized_features):
        known = supported.get(final.name)
        if known is None:
            continue
        holds = known.min_version <= final.max_version_level <= known.max_version
        path = f"finalized_features[{index}].max_version_level"
        expect.true(holds, f"at most {known.max_version}", final.max_version_level, path)


@case("ApiVersions", "KIP-584, ApiVersionsResponse", since=3)
def features_in_use(broker: Subject, version: int) -> None:
    """A broker that serves consumer groups has finalized a level of group.version.

    Join a consumer group, then send ApiVersions.
    """
    request = joining(broker.group(), broker.topic().name)
    joined = broker.prepare(request, ConsumerGroupHeartbeatResponse)
    answer = broker.ask(_request(), version, ApiVersionsResponse)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    if joined.error_code != ErrorCode.UNSUPPORTED_VERSION:
        found = levels.get("group.version", 0)
        expect.true(found >= 1, "a level of group.version", levels, "finalized_features")
    found = levels.get("metadata.version", 0)
    expect.true(found >= 1, "a level of metadata.version", levels, "finalized_features")
