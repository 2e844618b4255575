"""Stores of a controller's listener are exchanged while it runs, on a node of either make.

The change is that of the node's settings as a broker, at the controller's own listener, as by
``kafka-configs --bootstrap-controller``.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.jars import RELEASE
from tests.certificates import Authority, Certificate
from tests.mixed.controller import OURS, Controller
from tests.ports import free_port
from tests.process import accepts
from tests.tls.test_exchange import DONE, altered_at, serial
from tests.tls.test_listeners import VERSIONS, ask, opened, trusting
from tests.waiting import until

pytestmark = pytest.mark.slow
KEY = "listener.name.secure.ssl.keystore.location"
NODE_ID = "1"


class Node(Controller):
    """The only voter, with one listener in TLS and one in plain text."""

    def __init__(self, make: str, home: Path, store: Certificate, trusted: Path) -> None:
        self.tls_port, self.plain_port = free_port(), free_port()
        self.own = serial(store)
        addresses = {"SECURE": self.tls_port, "OPEN": self.plain_port}
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in addresses.items()]
        settings = {
            "process.roles": "controller",
            "node.id": NODE_ID,
            "listeners": ",".join(listeners),
            "controller.listener.names": "OPEN,SECURE",
            "listener.security.protocol.map": "SECURE:SSL,OPEN:PLAINTEXT",
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{self.plain_port}",
            "log.dirs": str(home / f"node-{NODE_ID}"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
        }
        super().__init__(int(NODE_ID), make, home, self.plain_port, settings)

    def served(self, context: ssl.SSLContext) -> str:
        """Return the serial number of the certificate that a new connection gets."""
        with opened(self.tls_port, context) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            assert len(ask(sock, VERSIONS, 3)) > 100
            found = sock.getpeercert()
        assert found is not None
        return str(found["serialNumber"])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module", params=[OURS, pytest.param(RELEASE, marks=pytest.mark.java)])
def node(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    home = tmp_path_factory.mktemp("node")
    node = Node(request.param, home, authority.signed("server"), authority.trusted)
    node.format()
    with node:
        until(lambda: accepts(node.plain_port) and accepts(node.tls_port))
        until(
            lambda: altered_at(node.plain_port, NODE_ID, {KEY: None}) == DONE
        )  # there is a leader
        yield node


def test_a_controller_serves_the_store_that_it_is_given(node: Node, authority: Authority) -> None:
    """SEC-TLS-20: at the controller's listener too."""
    context = trusting(authority)
    new = authority.signed(f"renewed-by-{node.make}", subject="/CN=server")
    assert altered_at(node.plain_port, NODE_ID, {KEY: str(new.store)}) == DONE
    until(lambda: node.served(context) == serial(new))
    assert altered_at(node.plain_port, NODE_ID, {KEY: None}) == DONE
    until(lambda: node.served(context) == node.own)


def test_a_controller_keeps_its_store_where_the_new_one_is_of_no_use(
    node: Node, authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-20: it is recorded unchecked; the node keeps its own store, and logs why."""
    context = trusting(authority)
    # Connections of 4.3.1 use a former store for a moment, in the threads that change to it last.
    until(lambda: {node.served(context) for _ in range(6)} == {node.own})
    nothing = tmp_path / "nothing.pem"
    assert altered_at(node.plain_port, NODE_ID, {KEY: str(nothing)}) == DONE
    until(lambda: "nothing.pem" in node.text)
    assert node.served(context) == node.own
    assert altered_at(node.plain_port, NODE_ID, {KEY: None}) == DONE
