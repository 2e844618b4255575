"""Signatures of tokens, by the package `joserfc` (extra `security`).

Only the algorithms with a public key, those of 4.3.1: `none`, and HMAC with a shared secret, are
never among them. Of a key set only the numbers of public keys are taken; an entry that is of no use
is left out. Header fields that carry a key, or name where one is, have no meaning.
"""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kraft_wire.extras import install_command
from kraft_wire.foreign_text import json_value
from kraft_wire.keystores.key_sets import UnusableKeySet

if TYPE_CHECKING:
    from joserfc.jwk import Key

__all__ = ["KIND_OF_ALGORITHM", "VerificationKey", "is_signed_by", "read_key_set"]

KIND_OF_ALGORITHM: Final[Mapping[str, str]] = {
    **{f"{family}{bits}": "RSA" for family in ("RS", "PS") for bits in (256, 384, 512)},
    **{f"ES{bits}": "EC" for bits in (256, 384, 512)},
    "EdDSA": "OKP",
}
"""The kind of key of each algorithm that is accepted."""
_NUMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_KEYS_MAX: Final = 100
_RSA_BITS_MIN: Final = 2048
_PACKAGE: Final = "joserfc"


class VerificationKey(NamedTuple):
    """A public key."""

    key_id: str | None
    kind: str
    key: "Key"


def read_key_set(data: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys of a key set. Errors: UnusableKeySet."""
    try:
        entries = json_value(data)["keys"]
    except (ValueError, TypeError, KeyError):
        raise UnusableKeySet("it is not a JSON web key set") from None
    if not isinstance(entries, list) or len(entries) > _KEYS_MAX:
        raise UnusableKeySet(f"its keys are not a list of at most {_KEYS_MAX}")
    keys = tuple(key for entry in entries if (key := _key_of(entry)) is not None)
    if not keys:
        raise UnusableKeySet("it has no public key for signatures: RSA of 2048 bits, EC or OKP")
    return keys


def is_signed_by(
    algorithm: str, signed: bytes, signature: bytes, keys: Sequence[VerificationKey]
) -> bool:
    """Return whether one of the keys made a signature; `algorithm` is one that is accepted."""
    from joserfc.errors import JoseError
    from joserfc.jws import JWSRegistry

    assert algorithm in KIND_OF_ALGORITHM, algorithm
    rules = JWSRegistry.algorithms[algorithm]
    for each in keys:
        with suppress(JoseError, ValueError):  # a key of another curve
            rules.check_key(each.key)
            if rules.verify(signed, signature, each.key):
                return True
    return False


def _key_of(entry: Any) -> VerificationKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    kind, key_id, uses = entry.get("kty"), entry.get("kid"), entry.get("key_ops", ["verify"])
    if kind not in ("RSA", "EC", "OKP") or not isinstance(uses, list) or "verify" not in uses:
        return None
    key = _imported({"kty": kind, **{name: entry.get(name) for name in _NUMBERS[kind]}})
    return (
        None
        if key is None
        else VerificationKey(key_id if isinstance(key_id, str) else None, kind, key)
    )


def _imported(numbers: dict[str, Any]) -> "Key | None":
    try:
        from joserfc import jwk
        from joserfc.errors import JoseError
    except ImportError as missing:
        remedy = install_command("security", [_PACKAGE])
        raise UnusableKeySet(
            f"signed tokens need the package {_PACKAGE}; install: {remedy}"
        ) from missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of weak keys, which are left out
            key = jwk.import_key(numbers)
        size = getattr(key.raw_value, "key_size", _RSA_BITS_MIN)
    except (JoseError, LookupError, ValueError, TypeError, AttributeError):
        return None
    return None if numbers["kty"] == "RSA" and size < _RSA_BITS_MIN else key
