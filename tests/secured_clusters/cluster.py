"""Three controllers and three brokers, protected by SASL_SSL with SCRAM or by mutual TLS.

Every node is `node`, a super user, and so is `admin`. `ann` may do what the entries say that admin
makes; `eve` has a login and no entry. With SCRAM controllers log in to each other by PLAIN: a
quorum of several voters has no credentials before it has a leader, as in Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.login.client_config import Security, security_of
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.apache.jars import RELEASE
from tests.apache.secured_node import client_settings
from tests.certificates import Authority
from tests.clients.cluster import lacking
from tests.cluster_command import kraft_wire
from tests.mixed.controller import OURS, Controller
from tests.ports import free_port
from tests.process import write_properties
from tests.waiting import until

__all__ = ["BROKERS", "CONTROLLERS", "LAYOUTS", "PROTECTIONS", "USERS", "SecuredCluster"]

CONTROLLERS = (1, 2, 3)
BROKERS = (101, 102, 103)
SCRAM, TLS = "SCRAM", "mutual TLS"
PROTECTIONS = (SCRAM, TLS)
LAYOUTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "guests": ((OURS, OURS, OURS), (RELEASE, RELEASE, RELEASE)),
    "mixed": ((RELEASE, RELEASE, RELEASE), (RELEASE, OURS, RELEASE)),
    "ours": ((OURS, OURS, OURS), (OURS, OURS, OURS)),
    "apache": ((RELEASE, RELEASE, RELEASE), (RELEASE, RELEASE, RELEASE)),
    "two guests": ((OURS, OURS, OURS), (RELEASE, RELEASE)),
}
"""The makes of controllers and of brokers; `apache` is the control."""
USERS = ("node", "admin", "ann", "eve")
_MECHANISM = "SCRAM-SHA-512"
_MODULES = "org.apache.kafka.common.security"
_BROKER_HEAP_MB = 384
_PATIENCE_S = 120.0
_PAUSE_S = 0.3
_SETTINGS = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "4000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
_OF_TWO = {
    "min.insync.replicas": "1",
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}


class _Broker(Controller):
    heap_mb = _BROKER_HEAP_MB


def password(user: str) -> str:
    """Return a user's password."""
    return f"secret-of-{user}"


class SecuredCluster:
    """The nodes; `running` starts them."""

    def __init__(self, home: Path, layout: str, protection: str) -> None:
        home.mkdir(parents=True)
        self.home, self._protection = home, protection
        self._authority = Authority(home / "authority")
        self._stores = {user: self._authority.signed(user) for user in USERS}
        controllers, brokers = LAYOUTS[layout]
        self.broker_ids = BROKERS[: len(brokers)]
        node_ids = (*CONTROLLERS, *self.broker_ids)
        makes = dict(zip(node_ids, (*controllers, *brokers), strict=True))
        ports = {node_id: free_port() for node_id in node_ids}
        self._voters = ",".join(f"{each}@127.0.0.1:{ports[each]}" for each in CONTROLLERS)
        self.nodes = {
            node_id: (Controller if node_id in CONTROLLERS else _Broker)(
                node_id, make, home, ports[node_id], self._properties(node_id, ports[node_id])
            )
            for node_id, make in makes.items()
        }

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses."""
        return ",".join(self.nodes[each].address for each in self.broker_ids)

    # -- settings --------------------------------------------------------------------------------

    def _properties(self, node_id: int, port: int) -> dict[str, str]:
        is_controller = node_id in CONTROLLERS
        listener = "CONTROLLER" if is_controller else "CLIENTS"
        return {
            "process.roles": "controller" if is_controller else "broker",
            "node.id": str(node_id),
            "listeners": f"{listener}://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": self._voters,
            "log.dirs": str(self.home / f"node-{node_id}"),
            **({} if is_controller else {"inter.broker.listener.name": "CLIENTS"}),
            **_SETTINGS,
            **(_OF_TWO if len(self.broker_ids) < len(BROKERS) else {}),
            **self._protected(),
        }

    def _protected(self) -> dict[str, str]:
        stores = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._stores["node"].store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.trusted),
        }
        if self._protection == TLS:
            return stores | {
                "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
                "ssl.client.auth": "required",
                "super.users": "User:CN=node;User:CN=admin",
            }
        own = f'username="node" password="{password("node")}"'
        accounts = " ".join(f'user_{user}="{password(user)}"' for user in ("node", "admin"))
        scram = _MECHANISM.lower()
        return stores | {
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
            "super.users": "User:node;User:admin",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": _MECHANISM,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f"{_MODULES}.plain"
            f".PlainLoginModule required {own} {accounts};",
            "listener.name.clients.sasl.enabled.mechanisms": _MECHANISM,
            f"listener.name.clients.{scram}.sasl.jaas.config": f"{_MODULES}.scram"
            f".ScramLoginModule required {own};",
        }

    # -- clients ---------------------------------------------------------------------------------

    def principal(self, user: str) -> str:
        """Return the name by which entries know a user."""
        return f"User:CN={user}" if self._protection == TLS else f"User:{user}"

    def keys_of(self, user: str, mechanism: str = _MECHANISM) -> dict[str, str]:
        """Return Kafka's keys of a client."""
        if self._protection == SCRAM:
            return client_settings(self._authority, mechanism, password(user), user)
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.trusted),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._stores[user].store),
        }

    def security_of(self, user: str) -> Security:
        """Return what a connection of ours needs to be a user."""
        return security_of(self.keys_of(user))

    def librdkafka(self, user: str) -> dict[str, Any]:
        """Return the settings of librdkafka for a user."""
        settings = {"bootstrap.servers": self.bootstrap, "log_level": 0}
        settings["ssl.ca.location"] = str(self._authority.trusted)
        if self._protection == TLS:
            made = self._stores[user]
            own = {"ssl.certificate.location": str(made.chain), "ssl.key.location": str(made.key)}
            return {**settings, "security.protocol": "SSL", **own}
        login = {"sasl.username": user, "sasl.password": password(user)}
        kind = {"security.protocol": "SASL_SSL", "sasl.mechanism": _MECHANISM}
        return {**settings, **kind, **login}

    def allow(
        self,
        admin: AdminClient,
        user: str,
        *rights: tuple[ResourceType, str, AclOperation],
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        """Add entries that allow a user operations on resources."""
        principal, allow = self.principal(user), AclPermissionType.ALLOW
        entries = [
            AclBinding(kind, name, pattern, principal, "*", operation, allow)
            for kind, name, operation in rights
        ]
        for added in admin.create_acls(entries).values():
            added.result(_PATIENCE_S)

    # -- how it stands ---------------------------------------------------------------------------

    def active_controller(self) -> int:
        """Return the controller that leads, as `admin` is told."""
        file = self.home / "admin-of-controllers.properties"
        write_properties(file, self.keys_of("admin", "PLAIN"))
        controllers = ",".join(self.nodes[each].address for each in CONTROLLERS)
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            done = kraft_wire(
                *("quorum", "describe", "-c", controllers, "--command-config", str(file), "--json")
            )
            if done.returncode == 0:
                return int(json.loads(done.stdout)["leader_id"])
            assert time.monotonic() < deadline, done.stderr
            time.sleep(_PAUSE_S)

    def await_whole(self, admin: AdminClient) -> None:
        """Wait until every broker is there, and in every ISR."""
        deadline = time.monotonic() + _PATIENCE_S
        while (what := self._lacking(admin)) is not None:
            died = [each.node_id for each in self.nodes.values() if each.died]
            assert not died, f"{died} ended by themselves: {self.logs(died)}"
            assert time.monotonic() < deadline, f"{what}: {self.logs(self.nodes)}"
            time.sleep(_PAUSE_S)

    def described(self, node_id: int, user: str, topic: str) -> MetadataResponseTopic:
        """Return what a broker tells a user of a topic."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        address = self.nodes[node_id].address
        with BrokerConnection(address, security=self.security_of(user)) as connection:
            return connection.send(request, MetadataResponse).topics[0]

    def await_rights(self, user: str, topic: str) -> None:
        """Wait until all brokers let a user see a topic: each learns of entries in its own time."""
        for node_id in self.broker_ids:
            until(
                lambda asked=node_id: self.described(asked, user, topic).error_code == 0,
                lambda: f"{user} may not describe {topic}",
            )

    def _lacking(self, admin: AdminClient) -> str | None:
        try:
            return lacking(admin.list_topics(timeout=10), self.broker_ids)
        except KafkaException as error:
            return str(error)

    def logs(self, node_ids: Any) -> str:
        """Return the ends of logs."""
        return "\n".join(f"--- {each}\n{self.nodes[each].text[-2_000:]}" for each in node_ids)

    @contextmanager
    def running(self, *, has_brokers: bool = True) -> Iterator[SecuredCluster]:
        """Format everything and start it, with or without brokers, and end it."""
        credentials = [
            word
            for user in USERS
            for word in ("--add-scram", f"{_MECHANISM}=[name={user},password={password(user)}]")
        ]
        for node_id, node in self.nodes.items():
            node.format(*(credentials if node_id in CONTROLLERS else ()))
        try:
            for node_id, node in self.nodes.items():
                if has_brokers or node_id in CONTROLLERS:
                    node.start()
            if has_brokers:
                self.await_whole(AdminClient(self.librdkafka("admin")))
            yield self
        finally:
            for node in reversed(self.nodes.values()):
                node.kill()
