"""The broker under judgment: its address, the versions that it offers, and its own node id."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.verdict import Mismatch
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse

__all__ = ["Target", "Unreachable", "learn_target"]

_API_VERSIONS: Final = ApiVersionsRequest.API_KEY
_METADATA: Final = MetadataRequest.API_KEY
_METADATA_VERSION_MAX: Final = 9


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
    """The broker that advertises the address; -1 where none does, as behind a proxy."""
    prefix: str
    """Begins the name of every topic and group that this run makes."""


def learn_target(address: tuple[str, int], timeout_s: float) -> Target:
    """Ask a broker which versions it offers and who it is; raises Unreachable."""
    place = f"{address[0]}:{address[1]}"
    try:
        connection = Connection(address, timeout_s, keep=lambda _: None)
    except OSError as error:
        raise Unreachable(f"cannot connect to {place}: {error.strerror or error}") from error
    try:
        offered = connection.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        versions = {each.api_key: (each.min_version, each.max_version) for each in offered.api_keys}
        node_id = _node_id(connection, versions, address)
    except Mismatch as error:
        raise Unreachable(f"{place} does not answer as a broker does: {error}") from error
    finally:
        connection.close()
    return Target(address, timeout_s, versions, node_id, f"conform-{token_hex(4)}")


def _node_id(
    connection: Connection, versions: Mapping[int, tuple[int, int]], address: tuple[str, int]
) -> int:
    """Return the id of the broker that advertises `address`; a single broker needs no match."""
    if _METADATA not in versions:
        return -1
    first, last = versions[_METADATA]
    version = min(last, _METADATA_VERSION_MAX)
    if version < first:
        return -1
    answer = connection.ask(MetadataRequest(topics=[]), version, MetadataResponse)
    if len(answer.brokers) == 1:
        return answer.brokers[0].node_id
    found = [each.node_id for each in answer.brokers if (each.host, each.port) == address]
    return found[0] if found else -1
