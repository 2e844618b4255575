"""Stores made by Java's `keytool`, of certificates that the `openssl` program signed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.certificates import Authority, Certificate

__all__ = ["PASSWORD", "pkcs12_of", "store_of_identity", "trust_store"]

PASSWORD = "secret-of-the-store"


def pkcs12_of(
    directory: Path, certificate: Certificate, *trusted: Path, alias: str = "server"
) -> Path:
    """Make a PKCS12 store with a key, by the openssl program."""
    store = directory / f"{certificate.store.stem}.{alias}.p12"
    chain = [part for each in trusted for part in ("-certfile", str(each))]
    command = ["openssl", "pkcs12", "-export", "-out", str(store), "-name", alias]
    command += ["-inkey", str(certificate.key), "-in", str(certificate.chain), *chain]
    _run([*command, "-passout", f"pass:{PASSWORD}"])
    return store


def store_of_identity(
    directory: Path, authority: Authority, certificate: Certificate, kind: str, key_password: str
) -> Path:
    """Make a store of a kind with a key and its chain, by keytool."""
    source = pkcs12_of(directory, certificate, authority.trusted)
    store = directory / f"{certificate.store.stem}.{key_password}.{kind}"
    _keytool(
        "-importkeystore",
        *("-srckeystore", source, "-srcstorepass", PASSWORD, "-srcalias", "server"),
        *("-destkeystore", store, "-deststoretype", kind, "-deststorepass", PASSWORD),
        *("-destkeypass", key_password),
    )
    return store


def trust_store(directory: Path, kind: str, *certificates: Path) -> Path:
    """Make a store of a kind with trusted certificates, by keytool."""
    store = directory / f"trust.{kind}"
    for number, each in enumerate(certificates):
        _keytool(
            *("-importcert", "-noprompt", "-alias", f"trusted{number}", "-file", each),
            *("-keystore", store, "-storetype", kind, "-storepass", PASSWORD),
        )
    return store


def _keytool(*arguments: object) -> None:
    _run(["keytool", *map(str, arguments)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
