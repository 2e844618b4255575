"""Rules of delegation tokens that brokers and controllers share (KIP-48, KIP-373, KIP-900).

A token is a record without a secret. Its password is the HMAC of its id, under a key that all nodes
have in `delegation.token.secret.key`. Not here: requests (`controller`, `broker`), and logins by
tokens (`node.security`).
"""

from base64 import b64encode
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Final

from kraft_wire.metadata.image import DelegationTokenImage, MetadataImage
from kraft_wire.model import ANONYMOUS, Principal
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "find_token",
    "is_expired",
    "may_describe",
    "may_renew",
    "may_use_tokens",
    "named_principal",
    "secret_key",
    "token_hmac",
    "token_password",
]

_SECRET_KEY: Final = "delegation.token.secret.key"
_HMAC_BYTES: Final = 64
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def secret_key(settings: NodeSettings) -> str | None:
    """Return the key of all tokens; None: tokens are off."""
    assert _SECRET_KEY in BROKER_KEYS
    return settings.text(_SECRET_KEY) or None


def token_hmac(secret: str, token_id: str) -> bytes:
    """Return a token's HMAC, which its owner gets once."""
    assert secret, "tokens are off"
    assert token_id
    mac = hmac_digest(secret.encode(), token_id.encode(), "sha512")
    assert len(mac) == _HMAC_BYTES
    return mac


def token_password(secret: str, token_id: str) -> str:
    """Return a token's password for SCRAM: the HMAC in base64."""
    password = b64encode(token_hmac(secret, token_id)).decode()
    assert "," not in password, "it may stand in a SCRAM message"
    return password


def find_token(image: MetadataImage, secret: str, hmac: bytes) -> str | None:
    """Return the id of the token with an HMAC; the time does not depend on equal bytes."""
    assert secret, "tokens are off"
    for token_id in image.delegation_tokens:
        if compare_digest(token_hmac(secret, token_id), hmac):
            return token_id
    return None


def is_expired(token: DelegationTokenImage, wall_ms: int) -> bool:
    """Return whether a token may be neither renewed nor given another end."""
    assert wall_ms >= 0, wall_ms
    return min(token.max_timestamp, token.expiration_timestamp) < wall_ms


def may_renew(token: DelegationTokenImage, principal: Principal) -> bool:
    """Return whether a principal is the owner or a renewer, who alone may change a token."""
    assert isinstance(token.renewers, tuple), token
    return str(principal) in (token.owner, *token.renewers)


def may_describe(token: DelegationTokenImage, principal: Principal) -> bool:
    """Return whether a principal sees a token without a right: the requester does too."""
    name = str(principal)
    assert ":" in name, principal
    return name == token.requester or may_renew(token, principal)


def may_use_tokens(principal: Principal, protocol: str | None) -> bool:
    """Return whether a client may send requests about tokens.

    Clients without a login may not, and neither may those that logged in by a token. `protocol` is
    that of the listener, None for a request that a broker forwards and has judged.
    """
    assert protocol in (*_PROTOCOLS, None), protocol
    if principal.token_authenticated or protocol == "PLAINTEXT":
        return False
    return protocol != "SSL" or principal != ANONYMOUS


def named_principal(text: str) -> Principal:
    """Return the principal of a text `Type:Name`, as records have it."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)
