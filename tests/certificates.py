"""Certificates of an authority of its own, made by the `openssl` program: files in PEM form.

A store is a key in PKCS#8 form with its chain, as Kafka reads it. Nothing here is ours but the
names. The default client of Python 3.13 asks for the use of an authority's key, and for the name of
the key that has signed.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Authority", "Certificate"]

_CONFIG = """\
[ca]
default_ca = own
[own]
database = {directory}/index.txt
new_certs_dir = {directory}
serial = {directory}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
organizationalUnitName = optional
organizationName = optional
emailAddress = optional
domainComponent = optional
countryName = optional
[req]
distinguished_name = names
[names]
"""


@dataclass(frozen=True)
class Certificate:
    """A key and a certificate, apart and in one file."""

    store: Path
    key: Path
    chain: Path


class Authority:
    """Signs certificates below a directory."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._config = directory / "openssl.cnf"
        self._config.write_text(_CONFIG.format(directory=directory))
        (directory / "index.txt").write_text("")
        (directory / "serial").write_text("01\n")
        self.trusted = directory / "trusted.pem"
        self._key = directory / "authority.key"
        self._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", self._key, "-out", self.trusted, "-days", "30", "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )

    def signed(
        self,
        name: str,
        *,
        subject: str | None = None,
        hosts: str = "DNS:localhost,IP:127.0.0.1",
        is_expired: bool = False,
        password: str | None = None,
    ) -> Certificate:
        """Make a certificate; `subject` in the program's form, `/O=x/CN=y`."""
        key, request = self._directory / f"{name}.key", self._directory / f"{name}.csr"
        chain, store = self._directory / f"{name}.crt", self._directory / f"{name}.pem"
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={hosts}\nauthorityKeyIdentifier=keyid\n")
        self._openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", key, "-out", request, "-subj", subject or f"/CN={name}", "-utf8"),
        )
        if password is not None:
            self._openssl(
                *("pkcs8", "-topk8", "-in", key, "-out", f"{key}.encrypted"),
                *("-passout", f"pass:{password}"),
            )
            key = Path(f"{key}.encrypted")
        days = ("20200101000000Z", "20200102000000Z") if is_expired else None
        dates = ("-days", "20") if days is None else ("-startdate", days[0], "-enddate", days[1])
        self._openssl(
            *("ca", "-batch", "-notext", "-preserveDN", "-utf8", "-in", request, "-out", chain),
            *("-cert", self.trusted, "-keyfile", self._key, "-extfile", extensions, *dates),
        )
        store.write_text(key.read_text() + chain.read_text())
        return Certificate(store, key, chain)

    def _openssl(self, command: str, *arguments: object) -> None:
        """Run the program; only two of its commands read a configuration."""
        given = ["-config", str(self._config)] if command in ("ca", "req") else []
        done = subprocess.run(
            ["openssl", command, *given, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
