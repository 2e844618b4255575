"""A secured cluster: SASL_SSL on every listener, two users, and what one of them may do.

Nodes and the user `admin` log in by PLAIN with accounts in the nodes' own files: a quorum of
several voters cannot use SCRAM before it has a leader, as with Kafka. The user `client` logs in by
SCRAM; its credential and its entries are records of the cluster's metadata, and can be changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.cli.cluster.certificates import certificates_for
from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.cli.cluster.state import ClusterState
from kraft_wire.cli.format.scram import parse_scram
from kraft_wire.cli.properties_file import property_line
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.client.connection import use_security
from kraft_wire.login.client_config import read_client_config
from kraft_wire.login.jaas import LOGIN_MODULES
from kraft_wire.metadata.acl_rules import STANDARD_AUTHORIZER
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import random_uuid
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord

__all__ = ["CLIENTS", "Accounts", "dial_as_admin", "secure_files", "secure_records", "secured_keys"]

CLIENTS: Final = "CLIENTS"
"""The listener of brokers."""
_OWNER_ONLY: Final = 0o600
_PASSWORD_BYTES: Final = 18
_SCRAM_MECHANISM: Final = "SCRAM-SHA-256"
_PLAIN: Final = LOGIN_MODULES["PLAIN"]
_SCRAM: Final = LOGIN_MODULES[_SCRAM_MECHANISM]

_ALLOW, _LITERAL, _ANY = 3, 3, "*"
_RIGHTS_OF_CLIENT: Final = (
    (ResourceType.TOPIC, AclOperation.READ),
    (ResourceType.TOPIC, AclOperation.WRITE),
    (ResourceType.TOPIC, AclOperation.CREATE),
    (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, AclOperation.READ),
    (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
)
"""Resource types and operations, on resources of any name."""


def _new_password() -> str:
    return token_urlsafe(_PASSWORD_BYTES)


@dataclass(frozen=True, slots=True)
class Accounts:
    """Passwords of a new cluster."""

    node: str = field(default_factory=_new_password, repr=False)
    admin: str = field(default_factory=_new_password, repr=False)
    client: str = field(default_factory=_new_password, repr=False)


def secure_files(
    files: ClusterFiles, state: ClusterState, accounts: Accounts, now_s: float
) -> None:
    """Write certificates, and the settings of both users; only the owner can read a secret."""
    hosts = {each.node_id: each.host for each in state.nodes.values()}
    made = certificates_for(hosts, now_s)
    files.secrets.authority.write_text(made.authority, encoding="ascii")
    for node_id, text in made.nodes.items():
        _write_secret(files.secrets.certificate(node_id), text)
    admin = _login(_PLAIN, "admin", accounts.admin)
    _write_secret(files.secrets.admin_config, _client_config(files, "PLAIN", admin))
    client = _login(_SCRAM, "client", accounts.client)
    _write_secret(files.secrets.client_config, _client_config(files, _SCRAM_MECHANISM, client))


def secured_keys(files: ClusterFiles, node_id: int, accounts: Accounts) -> dict[str, str]:
    """Return the settings that secure a node."""
    accepted = f'user_node="{accounts.node}" user_admin="{accounts.admin}"'
    login = f"{_login(_PLAIN, 'node', accounts.node)[:-1]} {accepted};"
    clients, controller = f"listener.name.{CLIENTS.lower()}", "listener.name.controller"
    return {
        "listener.security.protocol.map": f"{CLIENTS}:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": CLIENTS,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{clients}.sasl.enabled.mechanisms": f"PLAIN,{_SCRAM_MECHANISM}",
        f"{clients}.plain.sasl.jaas.config": login,
        f"{clients}.{_SCRAM_MECHANISM.lower()}.sasl.jaas.config": f"{_SCRAM} required;",
        f"{controller}.sasl.enabled.mechanisms": "PLAIN",
        f"{controller}.plain.sasl.jaas.config": login,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.secrets.certificate(node_id)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.secrets.authority),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node;User:admin",
    }


def secure_records(accounts: Accounts) -> list[VersionedRecord]:
    """Return the credential of the user `client`, and its entries."""
    credential = parse_scram(f'{_SCRAM_MECHANISM}=[name=client,password="{accounts.client}"]')
    entries = [
        AccessControlEntryRecord(
            id=random_uuid(SystemRandomSource()),
            resource_type=resource_type,
            resource_name=_ANY,
            pattern_type=_LITERAL,
            principal="User:client",
            host=_ANY,
            operation=operation,
            permission_type=_ALLOW,
        )
        for resource_type, operation in _RIGHTS_OF_CLIENT
    ]
    return [VersionedRecord(each) for each in (credential, *entries)]


def dial_as_admin(files: ClusterFiles, state: ClusterState) -> None:
    """Let this process log in as `admin`, if the cluster is secured."""
    security, _ = read_client_config(files.secrets.admin_config) if state.is_secured else (None, [])
    use_security(security)


def _login(module: str, name: str, password: str) -> str:
    return f'{module} required username="{name}" password="{password}";'


def _client_config(files: ClusterFiles, mechanism: str, login: str) -> str:
    properties: Mapping[str, str] = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.secrets.authority),
    }
    return "".join(property_line(key, value) for key, value in properties.items())


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=_OWNER_ONLY, exist_ok=False)
    path.write_text(text, encoding="utf-8")
