"""Nodes with a listener that asks for a login: Apache Kafka's and ours, configured alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.apache.node import ApacheNode
from tests.certificates import Authority
from tests.command_forks import run_forked
from tests.ports import free_port
from tests.process import KraftWireServer, write_properties

__all__ = [
    "ACCOUNTS",
    "MECHANISMS",
    "SecuredApache",
    "SecuredNode",
    "client_settings",
    "sasl_settings",
]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ACCOUNTS = {"ann": "secret-of-ann", "bob": "secret-of-bob", "broker": "secret-of-broker"}
"""Passwords by user, in PLAIN and in both kinds of SCRAM."""
_MODULES = "org.apache.kafka.common.security"


def sasl_settings(listener: str) -> dict[str, str]:
    """Return the keys that make a listener offer every mechanism."""
    users = " ".join(f'user_{name}="{password}"' for name, password in ACCOUNTS.items())
    own = f'username="broker" password="{ACCOUNTS["broker"]}"'
    prefix = f"listener.name.{listener.lower()}"
    scram = f"{_MODULES}.scram.ScramLoginModule required {own};"
    return {
        f"{prefix}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
        f"{own} {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
    }


def client_settings(
    authority: Authority,
    mechanism: str = "SCRAM-SHA-512",
    password: str = ACCOUNTS["ann"],
    user: str = "ann",
) -> dict[str, str]:
    """Return Kafka's keys of a client that logs in over TLS."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES}.{module}LoginModule required"
        f' username="{user}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
    }


class SecuredApache(ApacheNode):
    """Apache's node with one more listener, SECURE, of the given protocol."""

    def __init__(
        self, directory: Path, protocol: str, settings: Mapping[str, str], **machine: Any
    ) -> None:
        """`machine` are the arguments of an ApacheNode about Java."""
        super().__init__(directory, **machine)
        self._secure_port = free_port()
        self._protocol, self._settings = protocol, settings
        self.format_options = [
            part
            for name, password in ACCOUNTS.items()
            for mechanism in MECHANISMS[1:]
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    @property
    def secure(self) -> str:
        """``host:port`` of the listener with a login."""
        return f"127.0.0.1:{self._secure_port}"

    def properties(self) -> dict[str, str]:
        plain = super().properties()
        return {
            **plain,
            "listeners": f"{plain['listeners']},SECURE://{self.secure}",
            "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},"
            f"SECURE:{self._protocol}",
            **self._settings,
        }


class SecuredNode(KraftWireServer):
    """Our node with the same listeners."""

    def __init__(self, directory: Path, protocol: str, settings: Mapping[str, str]) -> None:
        super().__init__(directory / "ours.log", directory / "ready.json")
        self.directory = directory
        self._twin = SecuredApache(directory / "twin", protocol, settings)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the listener without a login."""
        return self._twin.bootstrap

    @property
    def secure(self) -> str:
        """``host:port`` of the listener with a login."""
        return self._twin.secure

    @property
    def properties_file(self) -> Path:
        """The server.properties that the node runs with."""
        return self.directory / "server.properties"

    def properties(self) -> dict[str, str]:
        """Everything that is set, as on Apache's node."""
        return {**self._twin.properties(), "log.dirs": str(self.directory / "data")}

    def arguments(self) -> list[str]:
        return [str(self.properties_file)]

    def format(self) -> None:
        """Write the properties and format the data directory."""
        write_properties(self.properties_file, self.properties())
        arguments = ["format", "-t", self._twin.cluster_id, "-c", str(self.properties_file)]
        done = run_forked([*arguments, *self._twin.format_options])
        assert done.returncode == 0, done.stderr
