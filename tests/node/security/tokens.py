"""Tokens and key sets for tests, made by joserfc, and messages that carry them."""

from __future__ import annotations

import json
import warnings
from base64 import urlsafe_b64encode
from hmac import digest
from typing import Any

from joserfc import jwk, jws
from joserfc.jws import JWSRegistry

__all__ = [
    "EC",
    "ED",
    "RSA",
    "hmac_token",
    "key_set",
    "message",
    "plain_token",
    "public",
    "token",
    "weak_key",
]

RSA = jwk.RSAKey.generate_key(2048, {"kid": "rsa"})
EC = jwk.ECKey.generate_key("P-256", {"kid": "ec"})
ED = jwk.OKPKey.generate_key("Ed25519", {"kid": "ed"})
_ANY = JWSRegistry(algorithms=list(JWSRegistry.algorithms), strict_check_header=False)
_ANY.max_header_length = 100_000


def weak_key() -> jwk.RSAKey:
    """Return a key that is too short to sign tokens."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jwk.RSAKey.generate_key(1024, {"kid": "weak"})


def public(key: Any, **more: Any) -> dict[str, Any]:
    """Return a key as an entry of a key set."""
    return {**key.as_dict(private=key.key_type == "oct"), **more}


def key_set(*entries: dict[str, Any]) -> bytes:
    """Return a key set; without entries that of the three keys."""
    return json.dumps({"keys": entries or [public(each) for each in (RSA, EC, ED)]}).encode()


def token(
    claims: object, key: Any = RSA, alg: str = "RS256", kid: str | None = "rsa", **header: Any
) -> str:
    """Return a signed token; claims that are a text stand as they are."""
    head = {"alg": alg, **({} if kid is None else {"kid": kid}), **header}
    body = claims if isinstance(claims, str) else json.dumps(claims)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weak keys, on purpose
        return jws.serialize_compact(head, body, key, registry=_ANY)


def plain_token(claims: object, header: object = None, signature: str = "") -> str:
    """Return an unsecured token."""
    parts = ({"alg": "none"} if header is None else header, claims)
    encoded = [
        urlsafe_b64encode(each if isinstance(each, bytes) else json.dumps(each).encode())
        for each in parts
    ]
    return ".".join([*(each.rstrip(b"=").decode() for each in encoded), signature])


def hmac_token(claims: object, secret: bytes, kid: str) -> str:
    """Return a token with HS256, by the formula of RFC 7518."""
    signed = plain_token(claims, {"alg": "HS256", "kid": kid})[:-1]
    signature = urlsafe_b64encode(digest(secret, signed.encode(), "sha256"))
    return f"{signed}.{signature.rstrip(b'=').decode()}"


def message(shown: str, authzid: str = "", more: str = "") -> bytes:
    """Return a client's first message."""
    name = f"a={authzid}" if authzid else ""
    return f"n,{name},\x01auth=Bearer {shown}\x01{more}\x01".encode()
