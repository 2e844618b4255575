"""Stores that keytool makes, and the same ones damaged: what Kafka takes, and what we take.

Kafka's side is its own DefaultSslEngineFactory. Both must take the same chain and trust the same
certificates, or both must refuse.
"""

from __future__ import annotations

import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from re import DOTALL, findall
from typing import NamedTuple

import pytest

from kraft_wire.keystores.reading import identity_of, trusted_of
from kraft_wire.keystores.store import Store, UnusableStore, is_pem_type
from tests.apache.java_process import java_command
from tests.certificates import Authority, Certificate
from tests.keystores.java_stores import PASSWORD, pkcs12_of, store_of_identity, trust_store

pytestmark = pytest.mark.java
OTHER = "secret-of-the-key"


class Made(NamedTuple):
    """The stores of one module, by name."""

    stores: dict[str, Path]
    judge: subprocess.Popen[str]

    def kafka(self, **settings: str) -> str:
        """Return what Kafka makes of settings, which are `ssl.` keys with underscores."""
        words = (f"ssl.{key.replace('_', '.')}={value}" for key, value in settings.items())
        assert self.judge.stdin is not None
        assert self.judge.stdout is not None
        self.judge.stdin.write("\t".join(words) + "\n")
        self.judge.stdin.flush()
        return self.judge.stdout.readline().strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    directory = tmp_path_factory.mktemp("stores")
    authority, other = Authority(directory / "ca"), Authority(directory / "other", "other")
    server = authority.signed("server")
    stores = {
        kind: store_of_identity(directory, authority, server, kind, PASSWORD)
        for kind in ("JKS", "PKCS12")
    }
    stores["JKS-other"] = store_of_identity(directory, authority, server, "JKS", OTHER)
    stores["openssl"] = pkcs12_of(directory, server, authority.trusted, alias="by-openssl")
    for kind in ("JKS", "PKCS12"):
        stores[f"trust-{kind}"] = trust_store(directory, kind, authority.trusted, other.trusted)
    command = java_command("judge.Stores")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as judge:
        assert judge.stdin is not None
        with closing(judge.stdin):
            yield Made(stores, judge)


def ours(**settings: str) -> str:
    """Return what we make of the same settings, in the same form."""
    try:
        chain = _chain(settings)
        trusted = ""
        if location := settings.get("truststore_location"):
            is_pem = bool(is_pem_type(settings["truststore_type"]))
            store = Store(location, is_pem=is_pem, password=settings.get("truststore_password"))
            trusted = _digests(trusted_of(store))
    except UnusableStore:
        return "refused"
    return f"chain={chain} trusted={trusted}"


def _chain(settings: dict[str, str]) -> str:
    location = settings.get("keystore_location")
    if location is None:
        return ""
    is_pem = bool(is_pem_type(settings["keystore_type"]))
    store = Store(location, is_pem=is_pem, password=settings["keystore_password"])
    pem, _ = identity_of(store, settings.get("key_password"))
    return _digests(pem.decode())


def _digests(pem: str) -> str:
    found = findall(r"-----BEGIN CERTIFICATE-----(.+?)-----END", pem, DOTALL)
    return ",".join(sorted(sha256(b64decode(each)).hexdigest() for each in found))


@pytest.mark.parametrize("name", ["JKS", "PKCS12", "openssl"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "pkcs12"])
def test_a_key_store_is_read_by_its_content(made: Made, name: str, kind: str) -> None:
    """SEC-TLS-10: whichever of both types the settings name, in any case."""
    settings = {
        "keystore_type": kind,
        "keystore_location": str(made.stores[name]),
        "keystore_password": PASSWORD,
    }
    kafka = made.kafka(**settings)
    assert kafka.count(",") == 1, "the chain has two certificates"
    assert ours(**settings) == kafka


@pytest.mark.parametrize("name", ["JKS", "PKCS12"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_trust_store_is_read_by_its_content(made: Made, name: str, kind: str) -> None:
    """SEC-TLS-10: with the password, both certificates are trusted."""
    settings = {
        "truststore_type": kind,
        "truststore_location": str(made.stores[f"trust-{name}"]),
        "truststore_password": PASSWORD,
    }
    kafka = made.kafka(**settings)
    assert kafka.count(",") == 1, kafka
    assert ours(**settings) == kafka


@pytest.mark.parametrize("name", ["JKS", "PKCS12", "openssl"])
def test_of_a_key_store_used_as_trust_store_the_first_certificate_is_trusted(
    made: Made, name: str
) -> None:
    """SEC-TLS-10: not the authority that completes its chain."""
    settings = {
        "truststore_type": "JKS",
        "truststore_location": str(made.stores[name]),
        "truststore_password": PASSWORD,
    }
    kafka = made.kafka(**settings)
    assert len(kafka.partition("trusted=")[2]) == 64, kafka
    assert ours(**settings) == kafka


def test_a_jks_trust_store_without_a_password_is_taken(made: Made) -> None:
    """SEC-TLS-11: its integrity is not checked; one of PKCS12 is encrypted."""
    settings = {
        "truststore_type": "JKS",
        "truststore_location": str(made.stores["trust-JKS"]),
    }
    kafka = made.kafka(**settings)
    assert kafka.startswith("chain= trusted=")
    assert ours(**settings) == kafka


@pytest.mark.parametrize(
    ("name", "passwords"),
    [
        ("JKS", {"keystore_password": "wrong"}),
        ("PKCS12", {"keystore_password": "wrong"}),
        ("openssl", {"keystore_password": "wrong"}),
        ("JKS", {"keystore_password": PASSWORD, "key_password": "wrong"}),
        ("PKCS12", {"keystore_password": PASSWORD, "key_password": "wrong"}),
        ("JKS-other", {"keystore_password": PASSWORD}),
        ("JKS-other", {"keystore_password": PASSWORD, "key_password": PASSWORD}),
    ],
)
def test_a_wrong_password_is_refused_by_both(
    made: Made, name: str, passwords: dict[str, str]
) -> None:
    """SEC-TLS-10: of the store, or of its key."""
    settings = {"keystore_type": "JKS", "keystore_location": str(made.stores[name]), **passwords}
    assert made.kafka(**settings) == ours(**settings) == "refused"


def test_a_key_of_jks_may_have_a_password_of_its_own(made: Made) -> None:
    """SEC-TLS-10: ssl.key.password."""
    settings = {
        "keystore_type": "JKS",
        "keystore_location": str(made.stores["JKS-other"]),
        "keystore_password": PASSWORD,
        "key_password": OTHER,
    }
    kafka = made.kafka(**settings)
    assert kafka.startswith("chain=")
    assert ours(**settings) == kafka


@pytest.mark.parametrize("name", ["JKS", "PKCS12"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_a_damaged_store_is_refused_by_both(
    made: Made, name: str, damage: str, tmp_path: Path
) -> None:
    """SEC-TLS-10: cut short, one bit changed, empty, or no store at all."""
    whole = made.stores[name].read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    data = {"cut": whole[: len(whole) // 2], "flipped": bytes(flipped), "empty": b"", "text": b"a"}
    file = tmp_path / "damaged"
    file.write_bytes(data[damage])
    settings = {
        "keystore_type": name,
        "keystore_location": str(file),
        "keystore_password": PASSWORD,
    }
    assert made.kafka(**settings) == ours(**settings) == "refused"


def test_a_key_store_of_a_certificate_without_a_key_is_refused(made: Made) -> None:
    """SEC-TLS-10: Kafka starts with it, and then no client can connect; we refuse at the start."""
    settings = {
        "keystore_type": "PKCS12",
        "keystore_location": str(made.stores["trust-PKCS12"]),
        "keystore_password": PASSWORD,
    }
    assert made.kafka(**settings) == "chain= trusted="
    assert ours(**settings) == "refused"


def test_signed_certificate_is_of_the_authority(made: Made, tmp_path: Path) -> None:
    """A store without its authority's certificate has a chain of one."""
    signed: Certificate = Authority(tmp_path / "ca").signed("alone")
    settings = {
        "keystore_type": "PKCS12",
        "keystore_location": str(pkcs12_of(tmp_path, signed)),
        "keystore_password": PASSWORD,
    }
    kafka = made.kafka(**settings)
    assert len(kafka.removeprefix("chain=").partition(" ")[0]) == 64
    assert ours(**settings) == kafka
