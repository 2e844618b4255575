"""`conform --command-config`: a secured Apache Kafka is reached by Kafka's own client settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.conformance.command import app
from kraft_wire.login.client_config import Credentials, UnusableConfig, read_client_config
from kraft_wire.login.sasl import LoginFailed, log_in
from tests.apache.node import ApacheNode
from tests.conformance.test_suite import server
from tests.ports import free_port
from tests.server_process import ServerProcess

__all__ = ["server"]

PASSWORD = 'pen"cil=, \\x'
QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
MODULES = "org.apache.kafka.common.security"
LISTENERS = {"LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL", "TLS": "SSL"}
ROWS = ["--only", "metadata.one_topic", "--only", "produce.offsets_follow_each_other/9"]


def in_file(text: str) -> str:
    """A value of a properties file, which escapes backslashes once more."""
    return text.replace("\\", "\\\\")


class SecuredNode(ApacheNode):
    """A node with a listener for each security protocol."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.ports = {name: free_port() for name in LISTENERS}
        made_certificates(directory)
        self.format_options = [
            *("--add-scram", f"SCRAM-SHA-256=[name=bob,password={'pencil'}]"),
            *("--add-scram", f"SCRAM-SHA-512=[name=bob,password={'pencil'}]"),
        ]

    def properties(self) -> dict[str, str]:
        own = super().properties()
        places = [f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()]
        protocols = [f"{name}:{protocol}" for name, protocol in LISTENERS.items()]
        accounts = in_file(f'user_bob="pencil" user_{"carol"}="{QUOTED}"')
        plain = f"{MODULES}.plain.PlainLoginModule required {accounts};"
        scram = f"{MODULES}.scram.ScramLoginModule required;"
        logins = {
            f"listener.name.{name}.{mechanism}.sasl.jaas.config": module
            for name in ("login", "both")
            for mechanism, module in (
                ("plain", plain),
                ("scram-sha-256", scram),
                ("scram-sha-512", scram),
            )
        }
        return {
            **own,
            **logins,
            "listeners": ",".join([own["listeners"], *places]),
            "listener.security.protocol.map": ",".join(
                [own["listener.security.protocol.map"], *protocols]
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "listener.name.tls.ssl.client.auth": "required",
        }

    def place(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


def made_certificates(directory: Path) -> None:
    """Make a CA, and the key and certificate of a node and of a client, with OpenSSL."""

    def openssl(*arguments: str) -> None:
        command = ["openssl", *arguments]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)

    for ca in ("ca", "other-ca"):
        own = ("-keyout", f"{ca}.key", "-out", f"{ca}.pem", "-subj", f"/CN={ca}")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", *own)
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("node", "client"):
        asked = ("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("req", "-newkey", "rsa:2048", "-nodes", *asked)
        ca_files = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
        signed = ("-in", f"{name}.csr", "-out", f"{name}.crt", "-days", "30")
        openssl("x509", "-req", *ca_files, *signed)
        parts = [(directory / f"{name}.{kind}").read_text() for kind in ("key", "crt")]
        (directory / f"{name}.pem").write_text("".join(parts))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    with SecuredNode(tmp_path_factory.mktemp("secured")) as node:
        yield node


def jaas(module: str, user: str, password: str) -> str:
    login = f'{MODULES}.{module} required username="{user}" password="{password}";'
    return f"sasl.jaas.config={in_file(login)}"


BOB = {
    "PLAIN": jaas("plain.PlainLoginModule", "bob", "pencil"),
    "SCRAM-SHA-256": jaas("scram.ScramLoginModule", "bob", "pencil"),
    "SCRAM-SHA-512": jaas("scram.ScramLoginModule", "bob", "pencil"),
}


def conformed(directory: Path, address: str, *lines: str) -> tuple[int, str]:
    config = directory / "client.properties"
    config.write_text("\n".join(lines))
    options = ["--bootstrap-server", address, "--command-config", str(config), *ROWS]
    done = CliRunner().invoke(app, options)
    return done.exit_code, done.output


def trust(node: SecuredNode, ca: str = "ca") -> list[str]:
    return ["ssl.truststore.type=PEM", f"ssl.truststore.location={node.directory / ca}.pem"]


@pytest.mark.java
@pytest.mark.parametrize("mechanism", BOB)
@pytest.mark.parametrize("listener", ["LOGIN", "BOTH"])
def test_user_logs_in(secured: SecuredNode, tmp_path: Path, listener: str, mechanism: str) -> None:
    lines = [f"security.protocol={LISTENERS[listener]}", f"sasl.mechanism={mechanism}"]
    code, output = conformed(
        tmp_path, secured.place(listener), *lines, BOB[mechanism], *trust(secured)
    )
    assert code == 0, output
    assert "produce" in output


@pytest.mark.java
def test_password_with_special_characters_is_taken(secured: SecuredNode, tmp_path: Path) -> None:
    lines = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"]
    login = jaas("plain.PlainLoginModule", "carol", QUOTED)
    code, output = conformed(tmp_path, secured.place("LOGIN"), *lines, login)
    assert code == 0, output


@pytest.mark.java
@pytest.mark.parametrize("mechanism", BOB)
def test_wrong_password_is_one_line(secured: SecuredNode, tmp_path: Path, mechanism: str) -> None:
    lines = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}"]
    wrong = BOB[mechanism].replace("pencil", "pen")
    code, output = conformed(tmp_path, secured.place("LOGIN"), *lines, wrong)
    (line,) = output.splitlines()
    assert code == 2
    assert "Authentication failed" in line


@pytest.mark.java
def test_certificate_of_the_client_is_taken(secured: SecuredNode, tmp_path: Path) -> None:
    own = f"ssl.keystore.location={secured.directory / 'client.pem'}"
    lines = ["security.protocol=SSL", "ssl.keystore.type=PEM", own, *trust(secured)]
    code, output = conformed(tmp_path, secured.place("TLS"), *lines)
    assert code == 0, output


@pytest.mark.java
def test_certificates_stand_in_the_file_itself(secured: SecuredNode, tmp_path: Path) -> None:
    def text(name: str) -> str:
        return (secured.directory / name).read_text().strip().replace("\n", " \\n\\\n  ")

    lines = [
        "security.protocol=SSL",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.key={text('client.key')}",
        f"ssl.keystore.certificate.chain={text('client.crt')}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.certificates={text('ca.pem')}",
    ]
    code, output = conformed(tmp_path, secured.place("TLS"), *lines)
    assert code == 0, output


@pytest.mark.java
def test_broker_of_another_authority_is_one_line(secured: SecuredNode, tmp_path: Path) -> None:
    lines = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", BOB["PLAIN"]]
    code, output = conformed(tmp_path, secured.place("BOTH"), *lines, *trust(secured, "other-ca"))
    (line,) = output.splitlines()
    assert code == 2
    assert "cannot connect" in line
    assert "certificate" in line.lower()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["security.protocol=KERBEROS"], "security.protocol=KERBEROS: use PLAINTEXT, SSL"),
        (["security.protocol=SASL_PLAINTEXT"], "sasl.mechanism=GSSAPI is not supported"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"], "names no username"),
        (["security.protocol=SSL", "ssl.truststore.location=a.jks"], "a.jks: No such file"),
        (
            [
                "security.protocol=SSL",
                "ssl.truststore.type=PEM",
                "ssl.truststore.location=/nowhere.pem",
            ],
            "a store cannot be used: /nowhere.pem: No such file",
        ),
        (["ssl.provider=BC"], "ssl.provider is not supported; remove it"),
    ],
)
def test_unsupported_setting_is_one_line(tmp_path: Path, lines: list[str], words: str) -> None:
    code, output = conformed(tmp_path, "127.0.0.1:1", *lines)
    (line,) = output.splitlines()
    assert code == 2
    assert words in line


def test_settings_that_are_not_about_security_are_named(
    server: ServerProcess, tmp_path: Path
) -> None:
    lines = ["# a comment", "client.id = shop", "request.timeout.ms:5"]
    code, output = conformed(tmp_path, server.bootstrap, *lines)
    assert code == 0
    assert "ignored: client.id, request.timeout.ms" in output


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnusableConfig, match="cannot read"):
        read_client_config(tmp_path / "nothing")


RFC_7677 = [
    "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
]
"""The example of RFC 7677, section 3; the password is "pencil"."""


def exchanged(messages: list[str]) -> list[str]:
    """Log in against fixed answers, and return what was sent."""
    sent: list[str] = []

    def send(token: bytes) -> bytes:
        sent.append(token.decode())
        return messages[2 * len(sent) - 1].encode()

    log_in(Credentials("SCRAM-SHA-256", "user", "pencil"), send, "rOprNGfwEbeRWgbNEkqO")
    return sent


def test_scram_is_that_of_rfc_7677() -> None:
    assert exchanged(RFC_7677) == RFC_7677[::2]


@pytest.mark.parametrize(
    ("place", "answer", "words"),
    [
        (1, "r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "another client's"),
        (1, RFC_7677[1].replace("i=4096", "i=9000000"), "another client's"),
        (1, "e=other-error", "is none"),
        (3, "v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "does not know the password"),
    ],
)
def test_broker_that_is_another_is_noticed(place: int, answer: str, words: str) -> None:
    messages = [*RFC_7677]
    messages[place] = answer
    with pytest.raises(LoginFailed, match=words):
        exchanged(messages)
