"""Requests about SCRAM credentials: describe and alter (KIP-554).

The password is never sent: it is salted and hashed first, by RFC 5802.
"""

from collections.abc import Sequence
from hashlib import pbkdf2_hmac
from secrets import token_bytes
from typing import Final, NamedTuple

from kraft_wire.client import BrokerConnection
from kraft_wire.client.refused import AdminRefused
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "MECHANISMS",
    "Credential",
    "delete_credentials",
    "described_credentials",
    "set_credential",
]

MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_ALGORITHMS: Final = {1: "sha256", 2: "sha512"}
_NAMES: Final = {number: name for name, number in MECHANISMS.items()}
_SALT_BYTES: Final = 24


class Credential(NamedTuple):
    """The public part of a credential: nothing that helps to log in."""

    user: str
    mechanism: str
    iterations: int


def described_credentials(
    connection: BrokerConnection, users: Sequence[str] = ()
) -> list[Credential]:
    """Return the credentials of the named users, or of all; a user without one has none."""
    names = [UserName(name=each) for each in users]
    request = DescribeUserScramCredentialsRequest(users=names or None)
    answer = connection.send(request, DescribeUserScramCredentialsResponse)
    if answer.error_code:
        raise AdminRefused("users", answer.error_code, answer.error_message)
    found = []
    for result in answer.results:
        if result.error_code and result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            raise AdminRefused(f"user {result.user}", result.error_code, result.error_message)
        for info in result.credential_infos:
            name = _NAMES.get(info.mechanism, f"mechanism {info.mechanism}")
            found.append(Credential(result.user, name, info.iterations))
    return sorted(found)


def set_credential(
    connection: BrokerConnection, user: str, mechanism: str, iterations: int, password: str
) -> None:
    """Set the credential of a user for one mechanism, under a new salt."""
    number, salt = MECHANISMS[mechanism], token_bytes(_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=number,
        iterations=iterations,
        salt=salt,
        salted_password=pbkdf2_hmac(_ALGORITHMS[number], password.encode(), salt, iterations),
    )
    _alter(connection, AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]))


def delete_credentials(connection: BrokerConnection, credentials: Sequence[Credential]) -> None:
    """Delete credentials, one a request: a request may name a user only once (KIP-554)."""
    for each in credentials:
        deletion = ScramCredentialDeletion(name=each.user, mechanism=MECHANISMS[each.mechanism])
        _alter(connection, AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]))


def _alter(connection: BrokerConnection, request: AlterUserScramCredentialsRequest) -> None:
    for result in connection.send(request, AlterUserScramCredentialsResponse).results:
        if result.error_code:
            raise AdminRefused(f"user {result.user}", result.error_code, result.error_message)
