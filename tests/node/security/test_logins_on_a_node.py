"""Logins at a whole node: what is served before and after them, and credentials that change."""

from __future__ import annotations

from hashlib import pbkdf2_hmac
from itertools import count
from typing import Any

import pytest

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import LoginFailed, log_in
from kraft_wire.node.outputs import Peer
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import ADMINISTRATOR, GuardedDoor

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
MECHANISM, SHA_256 = "SCRAM-SHA-256", 1
SALT, ITERATIONS = b"salt of ann", 4096


class LoginNode(GuardedDoor):
    """A node without an authorizer, with a listener where clients log in by SCRAM."""

    def __init__(self) -> None:
        self._numbers = count(5)
        super().__init__(
            authorizer_class_name="",
            super_users="",
            listeners="PLAINTEXT://127.0.0.1:9092,SECURE://127.0.0.1:9095,"
            "CONTROLLER://127.0.0.1:9093",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            sasl_enabled_mechanisms=MECHANISM,
            **{"listener.name.secure.scram-sha-256.sasl.jaas.config": MODULE},
        )

    def connected(self) -> int:
        """Open a connection to the listener for logins; return its number."""
        number = next(self._numbers)
        peer = self._peers[number] = Peer(number, "10.0.0.3", 1, "SECURE")
        self.node.connection_opened(peer)
        return number

    def log_in(self, connection: int, password: str) -> None:
        """Log in as ann; raises LoginFailed."""
        self.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1, connection=connection)

        def send(token: bytes) -> bytes:
            request = SaslAuthenticateRequest(auth_bytes=token)
            answer = self.ask(request, 1, connection=connection)
            if answer is None:
                raise LoginFailed("the answer waits for the delay of failures")
            assert answer.error_code == 0, answer
            return bytes(answer.auth_bytes)

        log_in(Credentials(MECHANISM, "ann", password), send)

    def asked_by(self, connection: int, request: Message, version: int) -> Any:
        return self.ask(request, version, connection=connection)

    def set_password(self, password: str | None) -> None:
        """Set or delete ann's credential, as the controller is asked for it."""
        request = AlterUserScramCredentialsRequest()
        if password is None:
            request.deletions = [ScramCredentialDeletion(name="ann", mechanism=SHA_256)]
        else:
            salted = pbkdf2_hmac("sha256", password.encode(), SALT, ITERATIONS)
            credential = ScramCredentialUpsertion(
                name="ann",
                mechanism=SHA_256,
                iterations=ITERATIONS,
                salt=SALT,
                salted_password=salted,
            )
            request.upsertions = [credential]
        (result,) = self.ask(request, host=ADMINISTRATOR).results
        assert result.error_code == 0, result


@pytest.fixture
def node() -> LoginNode:
    node = LoginNode()
    node.set_password("first")
    return node


def test_the_same_apis_are_listed_before_and_after_a_login(node: LoginNode) -> None:
    """SEC-SASL-05: and on a listener without logins, which lists those of logins too."""
    connection = node.connected()
    before = node.asked_by(connection, ApiVersionsRequest(), 2)
    node.log_in(connection, "first")
    after = node.asked_by(connection, ApiVersionsRequest(), 2)
    plain = node.ask(ApiVersionsRequest(), 2)
    assert (before.error_code, after.error_code) == (0, 0)
    assert before.api_keys == after.api_keys == plain.api_keys
    assert {17, 36} < {each.api_key for each in before.api_keys}


@pytest.mark.parametrize("password", [None, "second"])
def test_a_credential_that_is_changed_or_deleted_ends_no_connection(
    node: LoginNode, password: str | None
) -> None:
    """SEC-SCRAM-17: nobody logs in by it any more, and who has, is served on."""
    connection = node.connected()
    node.log_in(connection, "first")
    node.set_password(password)
    topics = MetadataRequest(topics=[])
    assert node.asked_by(connection, topics, 9).brokers
    assert node._peers[connection].principal.name == "ann"
    with pytest.raises(LoginFailed):
        node.log_in(node.connected(), "first")
    if password is not None:
        node.log_in(node.connected(), password)
    assert node.asked_by(connection, topics, 9).brokers
