"""A controller and a broker, as processes, that dial each other by TLS and SASL.

Everything between them is behind a login: registration, metadata, forwarded requests.
"""

from __future__ import annotations

from pathlib import Path

from tests.apache.secured_node import ACCOUNTS, sasl_settings
from tests.certificates import Authority
from tests.cluster_command import kraft_wire
from tests.ports import free_port
from tests.process import KraftWireServer, write_properties

__all__ = ["CLUSTER_ID", "MECHANISM", "Member", "members", "shared"]

CLUSTER_ID = "kWlinksAAAAAAAAAAAAAAA"
MECHANISM = {"controller": "PLAIN", "inter.broker": "SCRAM-SHA-256"}


class Member(KraftWireServer):
    """One node of the cluster, which formats its own directory."""

    def __init__(self, directory: Path, node_id: int, properties: dict[str, str]) -> None:
        super().__init__(directory / f"{node_id}.log", directory / f"{node_id}.json")
        self.file = directory / f"{node_id}.properties"
        data = str(directory / f"data{node_id}")
        write_properties(self.file, {"node.id": str(node_id), "log.dirs": data, **properties})
        listeners = (each.partition("://") for each in properties["listeners"].split(","))
        self.addresses = {name: address for name, _, address in listeners}
        """``host:port`` of each listener."""

    def arguments(self) -> list[str]:
        return [str(self.file)]


def shared(
    protocol: str, authority: Authority, name: str = "node", **made: object
) -> dict[str, str]:
    """Return what both nodes are told."""
    store = authority.signed(name, **made)  # type: ignore[arg-type]  # options of `signed`
    return {
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"CONTROLLER:{protocol},INSIDE:{protocol},"
        "PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        **{f"sasl.mechanism.{link}.protocol": name for link, name in MECHANISM.items()},
        **sasl_settings("CONTROLLER"),
        **sasl_settings("INSIDE"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store.store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
        "ssl.client.auth": "required",
    }


def members(
    directory: Path, of_controller: dict[str, str], of_broker: dict[str, str]
) -> tuple[Member, Member]:
    """Format a controller and a broker; the quorum is one voter."""
    port, plain, inside = free_port(), free_port(), free_port()
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{port}"}
    controller = Member(
        directory,
        1,
        {
            "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            **voters,
            **of_controller,
        },
    )
    broker = Member(
        directory,
        2,
        {
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},INSIDE://127.0.0.1:{inside}",
            **voters,
            **of_broker,
        },
    )
    password = ACCOUNTS["broker"]
    scram = f"SCRAM-SHA-256=[name=broker,password={password}]"
    for member in (controller, broker):
        done = kraft_wire("format", "-t", CLUSTER_ID, "-c", str(member.file), "--add-scram", scram)
        assert done.returncode == 0, done.stderr
    return controller, broker
