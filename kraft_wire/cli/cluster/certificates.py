"""Certificates of a secured cluster: one authority, and one certificate for each node.

By the package `cryptography` (extra `security`). The authority's key is
not stored, so no other certificate can be made that the cluster trusts. The certificates have what
clients ask for that follow RFC 5280 to the letter, as Python 3.13 does by default: the use of the
authority's key, and which key has signed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from kraft_wire.cli.cluster.files import CannotRun
from kraft_wire.extras import install_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, KeyUsage, Name

__all__ = ["Certificates", "certificates_for", "check_can_certify"]

_VALID: Final = timedelta(days=365)
_CLOCKS_DIFFER: Final = timedelta(minutes=5)
_PACKAGE: Final = "cryptography"
_AUTHORITY: Final = "authority of a kraft-wire cluster"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM texts."""

    authority: str
    """The certificate that nodes and clients trust."""
    nodes: Mapping[int, str]
    """By node id: the key, and the certificate for the node's address."""


def check_can_certify() -> None:
    """Refuse a secured cluster where the package is missing. Errors: CannotRun."""
    try:
        import cryptography.x509  # noqa: F401  # only whether it is there
    except ImportError as missing:
        remedy = install_command("security", [_PACKAGE])
        raise CannotRun(f"--secure needs the package {_PACKAGE}; install: {remedy}") from missing


def certificates_for(hosts: Mapping[int, str], now_s: float) -> Certificates:
    """Make certificates for nodes, by id and IP address, valid for a year from a time on."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding

    now = datetime.fromtimestamp(now_s, UTC)
    authority_key = generate_private_key(SECP256R1())
    authority = _signed(_name(_AUTHORITY), authority_key, None, authority_key, now)
    nodes = {}
    for node_id, host in hosts.items():
        key = generate_private_key(SECP256R1())
        certificate = _signed(_name(f"node-{node_id}"), key, host, authority_key, now)
        nodes[node_id] = _key_text(key) + certificate.public_bytes(Encoding.PEM).decode()
    return Certificates(authority.public_bytes(Encoding.PEM).decode(), nodes)


def _signed(
    subject: "Name",
    key: "EllipticCurvePrivateKey",
    host: str | None,
    authority_key: "EllipticCurvePrivateKey",
    now: datetime,
) -> "Certificate":
    """Return a certificate for a host, or the authority's own without one."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_name(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=host is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
    )
    if host is not None:
        names = [x509.IPAddress(ip_address(host)), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(authority_key, SHA256())


def _key_usage(*, is_authority: bool) -> "KeyUsage":
    """Return what a key is for: the authority's signs certificates, others sign handshakes."""
    from cryptography.x509 import KeyUsage

    return KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> "Name":
    from cryptography.x509 import Name, NameAttribute
    from cryptography.x509.oid import NameOID

    return Name([NameAttribute(NameOID.COMMON_NAME, text)])


def _key_text(key: "EllipticCurvePrivateKey") -> str:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
