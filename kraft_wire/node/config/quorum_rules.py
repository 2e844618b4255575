"""Rules for `process.roles` and the keys of the quorum together, as in Kafka.

KIP-595 (`controller.quorum.voters`), KIP-853 (`controller.quorum.bootstrap.servers`), KIP-1186
(auto-join). Errors are ConfigError, naming the entry. Not here: the voters of a formatted
directory, which override the static ones once kraft.version is 1 (`metadata_opening`).
"""

import re
from typing import Final, NamedTuple

from kraft_wire.node.config.listener_endpoints import EVERY_ADDRESS
from kraft_wire.node.config.sources import ConfigReader, is_number_up_to

__all__ = ["QuorumAddress", "check_quorum", "read_bootstrap_servers", "read_roles", "read_voters"]

_ROLES: Final = "process.roles"
_VOTERS: Final = "controller.quorum.voters"
_BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
_AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
_PORT_MAX: Final = 65_535
_ID_MAX: Final = 2**31 - 1
_ADDRESS: Final = re.compile(
    r"([0-9a-zA-Z\-%._]*://)?(?P<host>\[[0-9a-zA-Z\-%._:]+\]|[0-9a-zA-Z\-%._:]+):(?P<port>[0-9]+)"
)


class QuorumAddress(NamedTuple):
    """The address of a member of the quorum; its id is -1 if only the address is known."""

    node_id: int
    host: str
    port: int


def read_roles(reader: ConfigReader) -> tuple[str, ...]:
    """Return the roles of this process, in alphabetic order."""
    roles = tuple(sorted(reader.strings(_ROLES)))
    if not roles:
        raise reader.error(_ROLES, "a role is required: broker, controller, or both")
    assert all(role in ("broker", "controller") for role in roles), "the key's own check"
    return roles


def read_voters(reader: ConfigReader) -> tuple[QuorumAddress, ...]:
    """Return the static voters; empty if the quorum is found by its bootstrap servers."""
    voters = tuple(_voter(reader, text) for text in reader.strings(_VOTERS))
    ids = [voter.node_id for voter in voters]
    for node_id in ids:
        if ids.count(node_id) > 1:
            raise reader.error(_VOTERS, f"voter {node_id} is listed twice")
    return voters


def read_bootstrap_servers(reader: ConfigReader) -> tuple[QuorumAddress, ...]:
    """Return the bootstrap servers of the quorum."""
    return tuple(
        QuorumAddress(-1, *_address(reader, _BOOTSTRAP, text, f"{text!r} is not host:port"))
        for text in reader.strings(_BOOTSTRAP)
    )


def check_quorum(
    reader: ConfigReader,
    node_id: int,
    voters: tuple[QuorumAddress, ...],
    bootstrap_servers: tuple[QuorumAddress, ...],
    *,
    is_controller: bool,
    is_embedded: bool,
) -> None:
    """Check that the quorum can be found, and that only controllers are voters."""
    if not voters and not bootstrap_servers and not is_embedded:
        raise reader.error(
            _BOOTSTRAP,
            "the quorum cannot be found: list its controllers here or in controller.quorum.voters",
        )
    is_voter = node_id in [voter.node_id for voter in voters]
    if voters and is_controller and not is_voter:
        raise reader.error(
            _VOTERS, f"node.id {node_id} is not among the voters, and this node is a controller"
        )
    if is_voter and not is_controller:
        raise reader.error(
            _VOTERS, f"node.id {node_id} is among the voters, and this node is only a broker"
        )
    if reader.settings.boolean(_AUTO_JOIN) and not is_controller:
        raise reader.error(_AUTO_JOIN, "only a controller can join the quorum")


def _voter(reader: ConfigReader, text: str) -> QuorumAddress:
    problem = f"{text!r} is not id@host:port"
    node_id, at, address = text.partition("@")
    if not (at and is_number_up_to(node_id, _ID_MAX)):
        raise reader.error(_VOTERS, problem)
    voter = QuorumAddress(int(node_id), *_address(reader, _VOTERS, address, problem))
    if voter.host == EVERY_ADDRESS[0]:
        raise reader.error(_VOTERS, f"{voter.host} is not an address of a voter")
    return voter


def _address(reader: ConfigReader, key: str, text: str, problem: str) -> tuple[str, int]:
    """Return host and port of a text like those of `Utils.getHost`: a scheme is passed over."""
    parts = _ADDRESS.fullmatch(text)
    port = parts["port"] if parts else ""
    if not (parts and is_number_up_to(port, _PORT_MAX) and int(port) > 0):
        raise reader.error(key, problem)
    return parts["host"].strip("[]"), int(port)
