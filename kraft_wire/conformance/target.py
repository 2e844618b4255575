"""The broker under judgment: its address, the versions that it offers, and its own node id."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.verdict import Mismatch
from kraft_wire.login.client_config import Security
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse

__all__ = ["Target", "Unreachable", "learn_target", "new_prefix"]

_API_VERSIONS: Final = ApiVersionsRequest.API_KEY
_METADATA: Final = MetadataRequest.API_KEY
_METADATA_VERSION_MAX: Final = 9
_PLAINTEXT: Final = Security()
_UNKNOWN: Final = (-1, None)


class Unreachable(Exception):
    """The broker cannot be reached, or does not answer ApiVersions; the text is one line."""


@dataclass(frozen=True, slots=True)
class Target:
    """One listener of one broker."""

    address: tuple[str, int]
    timeout_s: float
    """The limit of each wait for a response."""
    versions: Mapping[int, tuple[int, int]]
    """By API key: the first and the last version that ApiVersions offers, both inclusive."""
    node_id: int
    """The broker that advertises the address; -1 without one, as behind a proxy."""
    advertised: tuple[str, int] | None
    """The address of that broker in responses; None if no broker advertises one."""
    prefix: str
    """Begins the name of every topic and group that this run makes."""
    security: Security = _PLAINTEXT


def learn_target(
    address: tuple[str, int], timeout_s: float, security: Security = _PLAINTEXT
) -> Target:
    """Ask a broker for its versions and its id. Errors: Unreachable."""
    place = f"{address[0]}:{address[1]}"
    try:
        connection = Connection(address, timeout_s, lambda _: None, security)
    except OSError as error:
        raise Unreachable(f"cannot connect to {place}: {error.strerror or error}") from error
    try:
        offered = connection.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        expect.equal(offered, "error_code", 0)
        versions = {each.api_key: (each.min_version, each.max_version) for each in offered.api_keys}
        node_id, advertised = _identity(connection, versions, address)
    except Mismatch as error:
        raise Unreachable(f"{place} does not answer as a broker does: {error}") from error
    finally:
        connection.close()
    return Target(address, timeout_s, versions, node_id, advertised, new_prefix(), security)


def new_prefix() -> str:
    """Return the prefix of the names of one run."""
    return f"conform-{token_hex(4)}"


def _identity(
    connection: Connection, versions: Mapping[int, tuple[int, int]], address: tuple[str, int]
) -> tuple[int, tuple[str, int] | None]:
    """Return id and address of the broker at `address`; a single broker needs no match."""
    if _METADATA not in versions:
        return _UNKNOWN
    first, last = versions[_METADATA]
    version = min(last, _METADATA_VERSION_MAX)
    if version < first:
        return _UNKNOWN
    answer = connection.ask(MetadataRequest(topics=[]), version, MetadataResponse)
    places = {each.node_id: (each.host, each.port) for each in answer.brokers}
    is_alone = len(places) == 1
    found = [each for each in places.items() if is_alone or each[1] == address]
    return found[0] if found else _UNKNOWN
