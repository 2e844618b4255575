"""`--add-scram` of `kraft-wire format`: stored keys out of a password (RFC 5802, KIP-554)."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import digest as hmac_digest
from secrets import token_bytes
from typing import Final, NamedTuple

from kraft_wire.cli.format.plan import FormatRefused
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord

__all__ = ["parse_scram"]

_FORM: Final = re.compile(r"([A-Z0-9-]+)=\[(.*)\]")
_PART: Final = re.compile(r'([a-z]+)=(?:"([^"]*)"|([^,]*))(?:,|$)')
_ITERATIONS_MAX: Final = 16_384
_SALT_BYTES: Final = 16
_COMPONENTS: Final = ("name", "password", "saltedpassword", "salt", "iterations")


class _Mechanism(NamedTuple):
    number: int
    algorithm: str
    iterations_min: int


_MECHANISMS: Final = {
    "SCRAM-SHA-256": _Mechanism(1, "sha256", 4096),
    "SCRAM-SHA-512": _Mechanism(2, "sha512", 4096),
}


def parse_scram(text: str) -> UserScramCredentialRecord:
    """Read `SCRAM-SHA-256=[name=alice,password=…]` and derive the keys that are stored."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match[1] not in _MECHANISMS:
        raise FormatRefused(
            "--add-scram is MECHANISM=[name=…,password=…] with "
            f"{' or '.join(_MECHANISMS)} as mechanism"
        )
    mechanism = _MECHANISMS[match[1]]
    parts = _parts(match[2])
    if not parts.get("name"):
        raise FormatRefused("--add-scram needs the name of a user")
    if ("password" in parts) == ("saltedpassword" in parts):
        raise FormatRefused("--add-scram needs one of password and saltedpassword")
    iterations = _iterations(parts.get("iterations"), mechanism)
    salt = _decoded(parts["salt"], "salt") if "salt" in parts else token_bytes(_SALT_BYTES)
    if "saltedpassword" in parts:
        if "salt" not in parts:
            raise FormatRefused("--add-scram with saltedpassword needs the salt too")
        salted = _decoded(parts["saltedpassword"], "saltedpassword")
    else:
        password = parts["password"].encode()
        salted = pbkdf2_hmac(mechanism.algorithm, password, salt, iterations)
    client_key = hmac_digest(salted, b"Client Key", mechanism.algorithm)
    return UserScramCredentialRecord(
        name=parts["name"],
        mechanism=mechanism.number,
        salt=salt,
        stored_key=new_hash(mechanism.algorithm, client_key).digest(),
        server_key=hmac_digest(salted, b"Server Key", mechanism.algorithm),
        iterations=iterations,
    )


def _parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match[1] in parts:
            raise FormatRefused(f"--add-scram cannot be parsed at {text[position:]!r}")
        if match[1] not in _COMPONENTS:
            raise FormatRefused(f"--add-scram knows no {match[1]}, only {', '.join(_COMPONENTS)}")
        parts[match[1]] = match[2] if match[2] is not None else match[3]
        position = match.end()
    return parts


def _iterations(text: str | None, mechanism: _Mechanism) -> int:
    if text is None:
        return mechanism.iterations_min
    low = mechanism.iterations_min
    if not text.isdecimal() or not low <= int(text) <= _ITERATIONS_MAX:
        raise FormatRefused(f"--add-scram allows {low} to {_ITERATIONS_MAX} iterations, not {text}")
    return int(text)


def _decoded(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as error:
        raise FormatRefused(f"--add-scram: {what} is not base64") from error
